"""The heartbeat: extends the lease of every claim in hand, and hands in verdicts that wait."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rowq.queue import Queue
from rowq.worker.claim import LiveClaim
from rowq.worker.context import Context

_TICK_SECONDS = 0.1


class Keeper:
    """Runs in a thread of its own, with its own connection, until `end` is called.

    A claim that its consumer is busy handing in is left alone until the next round.
    """

    def __init__(self, context: Context) -> None:
        """Watch over nothing yet."""
        self._context = context
        self._claims: set[LiveClaim] = set()
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

    def end(self) -> None:
        """End the thread; only after the last consumer."""
        self._ended.set()

    def run(self) -> None:
        """Go round until the end."""
        with Queue(self._context.session()) as queue:
            while not self._ended.wait(_TICK_SECONDS):
                with self._lock:
                    claims = list(self._claims)
                for claim in claims:
                    self._look_after(claim, queue)

    def _look_after(self, claim: LiveClaim, queue: Queue) -> None:
        if not (claim.heartbeat_due or claim.flush_due) or not claim.lock.acquire(blocking=False):
            return
        try:
            if claim.heartbeat_due:
                claim.extend(queue)
            if claim.flush_due:
                claim.flush(queue)
        finally:
            claim.lock.release()
