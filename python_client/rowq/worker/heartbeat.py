"""The heartbeat: extends the lease of every claim in hand, and hands in decisions that wait.

It also gives back what a slow claim has not begun with, and reports that the worker is there.
"""

import logging
import random
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import rowq
from rowq.backoff import Backoff
from rowq.engines.base import Row
from rowq.queue import Queue
from rowq.session import Session
from rowq.worker.claim import LiveClaim
from rowq.worker.context import Context, Server, log

_REPORT_SECONDS = 10.0
# Each pause is longer or shorter by up to this share, so that workers do not report all at once.
_REPORT_JITTER = 0.2
_LONGEST_NAME = 200
_MOST_THREADS = 100_000

_TICK_SECONDS = 0.1


class Reports:
    """The reports of one worker process to one server, in the thread of a heartbeat.

    A report is one call every ten seconds for each stripe of the queue. People see the workers by
    them; nothing else depends on them, so that no error of a report ends or delays the worker.
    """

    def __init__(self, context: Context, server: Server) -> None:
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
        self._due_at[stripe] = time.monotonic() + _report_pause()
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


def _report_pause() -> float:
    return _REPORT_SECONDS * random.uniform(1 - _REPORT_JITTER, 1 + _REPORT_JITTER)  # noqa: S311 - no secret


class Heartbeat:
    """The loop of the thread that extends leases, with its own connection, until `end` is called.

    It never gives up before, as a consumer works on every claim that is watched. It makes each call
    once a round, and no call waits for a lock for long. A claim that another session has locked,
    such as a handler's, is stuck: of these one is tried in each round, after all other claims, so
    that they delay none of them. While its row is locked no claim is taken back.
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
        """Keep `claim` alive for as long as the block runs."""
        with self._lock:
            self._claims.add(claim)
        try:
            yield
        finally:
            with self._lock:
                self._claims.discard(claim)
                self._stuck.pop(claim, None)
            if self._context.meter:
                self._context.meter.note_free()

    def claims(self) -> list[LiveClaim]:
        """Return the claims that are watched now."""
        with self._lock:
            return list(self._claims)

    def end(self) -> None:
        """End the thread; only after the last consumer."""
        self._ended.set()

    def run(self) -> None:
        """Look after all claims, again and again, until the end."""
        session = _BriefSession(self._context, self._server)
        backoff = Backoff(first=0.1, cap=2.0)
        with Queue(session) as queue:
            while not self._ended.wait(_TICK_SECONDS):
                try:
                    self._go_round(queue)
                    backoff.reset()
                except Exception as error:
                    if not self._context.engine.is_connection_lost(error):
                        raise
                    self._context.note_trouble()
                    delay = backoff.next()
                    log.warning("heartbeat: no connection, trying again in %.1f s", delay)
                    self._ended.wait(delay)
                else:
                    self._reports.send_due(queue)
            if session.is_open:
                self._reports.end(queue)

    def _go_round(self, queue: Queue) -> None:
        for claim in self._due():
            self._look_after(claim, queue)
        with self._lock:
            stuck = sorted(self._stuck, key=self._stuck.__getitem__)
        if stuck:
            self._look_after(stuck[0], queue)

    def _due(self) -> list[LiveClaim]:
        """Return the claims to be looked after, without the stuck ones, the most urgent first."""
        with self._lock:
            claims = self._claims - self._stuck.keys()
        due = [
            claim
            for claim in claims
            if claim.heartbeat_due or claim.flush_due or claim.give_back_due or claim.is_hung
        ]
        return sorted(due, key=lambda claim: claim.lease.expires_at)

    def _look_after(self, claim: LiveClaim, queue: Queue) -> None:
        """Extend a claim's lease and hand in its decisions, as far as they are due.

        Raises what means that the connection is lost, and what is no passing error.
        """
        try:
            _attend_to(claim, queue)
        except Exception as error:
            if self._context.engine.is_connection_lost(error) or not self._context.is_transient(
                error
            ):
                raise
            self._context.note_trouble()
            with self._lock:
                if claim in self._claims:
                    is_new = claim not in self._stuck
                    self._stuck[claim] = time.monotonic()
                    log.log(
                        logging.WARNING if is_new else logging.DEBUG,
                        "heartbeat: claim %d cannot be extended now: %s",
                        claim.claim_id,
                        error,
                    )
        else:
            with self._lock:
                self._stuck.pop(claim, None)


def _attend_to(claim: LiveClaim, queue: Queue) -> None:
    if claim.heartbeat_due:
        claim.extend(queue)
    if claim.flush_due:
        claim.flush(queue)
    if claim.give_back_due:
        claim.give_back(queue)
    if claim.is_hung:
        claim.give_up(queue)


class _BriefSession(Session):
    """A connection of the heartbeat's own, on which every call is made once."""

    def __init__(self, context: Context, server: Server) -> None:
        self.engine = context.engine
        self._url = server.url
        self._connection: Any = None

    @property
    def is_open(self) -> bool:
        """Whether there is a connection that is not known to be broken."""
        return self._connection is not None and self.engine.is_usable(self._connection)

    def connection(self) -> Any:
        """Return the connection, made anew if it is known to be broken."""
        if self._connection is not None and not self.engine.is_usable(self._connection):
            self.close()
        if self._connection is None:
            self._connection = self.engine.connect(self._url)
        return self._connection

    def call(
        self, routine: str, arguments: Mapping[str, Any], until: float | None = None
    ) -> list[Row]:
        """Call a routine that does not wait; a lost connection is closed, and its error raised."""
        del until
        try:
            return self.engine.call_briefly(self.connection(), routine, arguments)
        except Exception as error:
            if self.engine.is_connection_lost(error):
                self.close()
            raise

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self.engine.close(connection)

    def end(self) -> None:
        """Close the connection."""
        self.close()
