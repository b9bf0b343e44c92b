"""Whether the threads of a worker do what they should: ask for messages, and keep their claims.

That a process runs, or answers, says nothing: a worker may be cut off from its database, or its
heartbeat may be, while handlers go on.
"""

import time
from collections.abc import Iterable
from dataclasses import replace

from rowq.worker.claim import LiveClaim
from rowq.worker.context import Context
from rowq.worker.heartbeat import Heartbeat
from rowq.worker.meter import Measures, Meter

_PAUSES = 3
# On a busy machine a thread may be late by so many seconds, however short the pauses are.
_LEAST_SECONDS = 3.0


class Pulse:
    """Looks at the threads of one process from outside; it waits for none of them."""

    def __init__(self, context: Context, meter: Meter, heartbeats: Iterable[Heartbeat]) -> None:
        """Look at the worker of `context`, which counts by `meter`."""
        self._context = context
        self._meter = meter
        self._heartbeats = list(heartbeats)

    def measures(self) -> Measures:
        """Return what the worker has done so far, and how it is."""
        claims = self._claims()
        began_at = min((claim.asked_at for claim in claims), default=None)
        now, answered_at = time.monotonic(), self._meter.answered_at
        return replace(
            self._meter.measures(),
            stats=self._context.counter.snapshot(),
            held=sum(claim.held for claim in claims),
            oldest_claim_seconds=0.0 if began_at is None else now - began_at,
            last_poll_at=None if answered_at is None else time.time() - (now - answered_at),
            why_not_ready=self.why_not_ready(),
        )

    def why_not_ready(self) -> str:
        """Return why the worker does not do what it should, an empty text when it does.

        It should have an answer to a dequeue within three pauses between polls, and three seconds,
        unless each thread has a claim in hand; and extend each lease before two thirds are over.
        """
        if self._context.failure is not None:
            return "the worker gives up"
        if self._context.stopping.is_set():
            return "the worker is stopping"
        if self._meter.answered_at is None:
            return "no dequeue has been answered yet"
        return self._why_leases() or self._why_polls(self._meter.answered_at)

    def _claims(self) -> list[LiveClaim]:
        return [claim for heartbeat in self._heartbeats for claim in heartbeat.claims()]

    def _why_leases(self) -> str:
        now = time.monotonic()
        for claim in self._claims():
            late_at = claim.lease.extend_at + claim.lease.seconds / 3
            if claim.held and (claim.lost or now >= late_at):
                return f"the lease of claim {claim.claim_id} is not extended"
        return ""

    def _why_polls(self, answered_at: float) -> str:
        if len(self._claims()) >= self._context.settings.threads:
            return ""
        seconds = time.monotonic() - max(answered_at, self._meter.free_at)
        pauses = _PAUSES * self._context.polling.longest_pause_seconds
        if seconds > max(pauses, _LEAST_SECONDS):
            return f"no dequeue has been answered for {seconds:.0f} seconds"
        return ""
