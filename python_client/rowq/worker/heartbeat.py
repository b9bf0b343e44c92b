"""The heartbeat: extends the lease of every claim in hand, and hands in decisions that wait.

It also gives back what a slow claim has not begun with, and reports that the worker is there.
"""

import logging
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rowq.backoff import Backoff
from rowq.engines.base import Row
from rowq.queue import Queue
from rowq.session import Session
from rowq.worker.claim import LiveClaim
from rowq.worker.context import Context, Server, log
from rowq.worker.reports import Reports

_TICK_SECONDS = 0.1


class Heartbeat:
    """The loop of the thread that extends leases, with its own connection, until `end` is called.

    It never gives up before, as a consumer works on every claim that is watched. It makes each call
    once a round, and no call waits for a lock for long. A claim that another session has locked,
    such as a handler's, is stuck: of these one is tried in each round, after all other claims, so
    that they delay none of them. While its row is locked no claim is taken back.
    """

    def __init__(self, context: Context, server: Server) -> None:
        """Prepare to watch claims that the worker of `context` has on a server."""
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
