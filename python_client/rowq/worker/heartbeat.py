"""The heartbeat: it extends the leases of all claims and reports delayed decisions.

It also releases the unstarted messages of slow claims, and reports the worker.
"""

import logging
import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import rowq
from rowq.backoff import Backoff
from rowq.queue import Queue
from rowq.worker.claim import LiveClaim
from rowq.worker.context import Context, Server, log
from rowq.worker.sessions import BriefSession, GuestSession

_REPORT_SECONDS = 10.0
# Each pause is longer or shorter by up to this share, so that workers do not report together.
_REPORT_JITTER = 0.2
_LONGEST_NAME = 200
_MOST_THREADS = 100_000

_TICK_SECONDS = 0.1


class Reports:
    """The reports of one worker process to one server, in the thread of a heartbeat.

    A report is one call every 10 seconds for each stripe of the queue, for `list_workers` and
    `rowq top`. Errors of a report do not end or delay the worker.
    """

    def __init__(self, context: Context, server: Server) -> None:
        self._context = context
        self._due_at = {stripe: 0.0 for stripe in context.stripes if stripe.server == server.name}
        self._reported: set[str] = set()
        self._is_disabled = not self._due_at

    def send_due(self, queue: Queue) -> None:
        """Report for one stripe, if it is due; the next round reports another one."""
        if self._is_disabled:
            return
        stripe = min(self._due_at, key=self._due_at.__getitem__)
        if time.monotonic() < self._due_at[stripe]:
            return
        self._due_at[stripe] = time.monotonic() + _report_pause()
        settings, stats = self._context.settings, self._context.counter.of(stripe)
        try:
            queue.report_worker(
                stripe.queue_name,
                self._context.worker_id,
                worker_name=settings.name,
                host_name=socket.gethostname()[:_LONGEST_NAME],
                worker_version=f"rowq {rowq.__version__}",
                threads=min(settings.parallel_handlers, _MOST_THREADS),
                completed=stats.processed,
                failed=stats.retried + stats.failed,
            )
        except Exception as error:
            if self._context.is_transient(error):
                log.debug("%s: report failed, will retry: %s", stripe, error)
                return
            self._is_disabled = True
            log.warning(
                "%s: cannot report the worker, rowq top will not show it (logged once): %s",
                stripe,
                " ".join(str(error).split()),
            )
        else:
            self._reported.add(stripe.queue_name)

    def end(self, queue: Queue) -> None:
        """Report the normal end for each reported stripe; stop at the first error."""
        if self._is_disabled or self._context.failure is not None:
            return
        try:
            for name in sorted(self._reported):
                queue.report_worker(name, self._context.worker_id, is_ended=True)
        except Exception as error:
            log.debug("cannot report the end of the worker: %s", error)


def _report_pause() -> float:
    return _REPORT_SECONDS * random.uniform(1 - _REPORT_JITTER, 1 + _REPORT_JITTER)  # noqa: S311 - no secret


class Heartbeat:
    """The loop of the thread that extends leases, until `end`.

    It makes each call once per round, with a short lock timeout. A claim that another session, such
    as a handler's, has locked is stuck: each round tries one stuck claim, after all other claims,
    so that they are not delayed. A claim whose row is locked is not reaped. The thread has its own
    connection while claims need it.
    """

    def __init__(self, context: Context, server: Server) -> None:
        self._context = context
        self._server = server
        self._reports = Reports(context, server)
        self._claims: set[LiveClaim] = set()
        self._stuck: dict[LiveClaim, float] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()

    @contextmanager
    def watching(self, claim: LiveClaim) -> Iterator[None]:
        """Extend the lease of `claim` during the block."""
        with self._lock:
            self._claims.add(claim)
        try:
            yield
        finally:
            with self._lock:
                self._claims.discard(claim)
                self._stuck.pop(claim, None)
            if self._context.meter:
                self._context.meter.record_free()

    def claims(self) -> list[LiveClaim]:
        """Return the watched claims."""
        with self._lock:
            return list(self._claims)

    def end(self) -> None:
        """End the thread; call it after the last consumer has ended."""
        self._ended.set()

    def run(self) -> None:
        """Attend to all claims in rounds until the end."""
        session = BriefSession(self._server.url)
        guest = GuestSession(session, self._server.shared)
        idle = Queue(guest)
        backoff = Backoff(first=0.1, cap=2.0)
        with Queue(session) as queue:
            while not self._ended.wait(_TICK_SECONDS):
                try:
                    self._go_round(queue)
                    backoff.reset()
                except Exception as error:
                    if not self._context.engine.is_connection_lost(error):
                        raise
                    self._context.record_database_error()
                    delay = backoff.next()
                    log.warning("heartbeat: no connection, retrying in %.1f s", delay)
                    self._ended.wait(delay)
                else:
                    if self.claims():
                        self._reports.send_due(queue)
                    else:
                        self._reports.send_due(idle)
                        session.close_unused()
            if guest.is_open:
                self._reports.end(idle)

    def _go_round(self, queue: Queue) -> None:
        for claim in self._due():
            self._attend_to(claim, queue)
        with self._lock:
            stuck = sorted(self._stuck, key=self._stuck.__getitem__)
        if stuck:
            self._attend_to(stuck[0], queue)

    def _due(self) -> list[LiveClaim]:
        """Return the claims to be looked after, without the stuck ones, the most urgent first."""
        with self._lock:
            claims = self._claims - self._stuck.keys()
        due = [
            claim
            for claim in claims
            if claim.heartbeat_due or claim.flush_due or claim.release_due or claim.is_hung
        ]
        return sorted(due, key=lambda claim: claim.lease.expires_at)

    def _attend_to(self, claim: LiveClaim, queue: Queue) -> None:
        """Make the calls that are due for a claim; raises connection losses and lasting errors."""
        try:
            _call_due(claim, queue)
        except Exception as error:
            if self._context.engine.is_connection_lost(error) or not self._context.is_transient(
                error
            ):
                raise
            self._context.record_database_error()
            with self._lock:
                if claim in self._claims:
                    is_new = claim not in self._stuck
                    self._stuck[claim] = time.monotonic()
                    log.log(
                        logging.WARNING if is_new else logging.DEBUG,
                        "heartbeat: cannot extend claim %d, will retry: %s",
                        claim.claim_id,
                        error,
                    )
        else:
            with self._lock:
                self._stuck.pop(claim, None)


def _call_due(claim: LiveClaim, queue: Queue) -> None:
    if claim.heartbeat_due:
        claim.extend(queue)
    if claim.flush_due:
        claim.flush(queue)
    if claim.release_due:
        claim.release_unstarted(queue)
    if claim.is_hung:
        claim.abandon(queue)
