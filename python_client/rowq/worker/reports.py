"""Reports to the database that the worker is there, idle or not, and how much it does.

A report is one call every ten seconds for each stripe of the queue. People see the workers by them;
nothing else depends on them, so that no error of a report ends or delays the worker.
"""

import random
import socket
import time

import rowq
from rowq.queue import Queue
from rowq.worker.context import Context, Server, log

_SECONDS = 10.0
# Each pause is longer or shorter by up to this share, so that workers do not report all at once.
_JITTER = 0.2
_LONGEST_NAME = 200
_MOST_THREADS = 100_000


class Reports:
    """The reports of one worker process to one server, in the thread of a heartbeat."""

    def __init__(self, context: Context, server: Server) -> None:
        """Prepare to report for the worker of `context`."""
        self._context = context
        self._due_at = {stripe: 0.0 for stripe in context.stripes if stripe.server == server.name}
        self._reported: set[str] = set()
        self._is_given_up = not self._due_at

    def send_due(self, queue: Queue) -> None:
        """Report for one stripe, if it is time; the next round reports another one."""
        if self._is_given_up:
            return
        stripe = min(self._due_at, key=self._due_at.__getitem__)
        if time.monotonic() < self._due_at[stripe]:
            return
        self._due_at[stripe] = time.monotonic() + _pause()
        settings, stats = self._context.settings, self._context.counter.of(stripe)
        try:
            queue.report_worker(
                stripe.queue_name,
                self._context.worker_id,
                worker_name=settings.name,
                host_name=socket.gethostname()[:_LONGEST_NAME],
                worker_version=f"rowq {rowq.__version__}",
                threads=min(settings.handlers_at_a_time, _MOST_THREADS),
                completed=stats.processed,
                failed=stats.retried + stats.failed,
            )
        except Exception as error:
            if self._context.is_transient(error):
                log.debug("%s: the worker could not report, and will again: %s", stripe, error)
                return
            self._is_given_up = True
            log.warning(
                "%s: the worker does not report, so rowq top does not show it (said once): %s",
                stripe,
                " ".join(str(error).split()),
            )
        else:
            self._reported.add(stripe.queue_name)

    def end(self, queue: Queue) -> None:
        """Report the normal end for each reported stripe; the first error ends that."""
        if self._is_given_up or self._context.failure is not None:
            return
        try:
            for name in sorted(self._reported):
                queue.report_worker(name, self._context.worker_id, is_ended=True)
        except Exception as error:
            log.debug("the worker could not report its end: %s", error)


def _pause() -> float:
    return _SECONDS * random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311 - no secret
