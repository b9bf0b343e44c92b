"""Counts and measures of a worker, for its metrics.

The threads of a process add to its Meter. Measures are a snapshot, which can be sent to another
process, and added up over several processes.
"""

import threading
import time
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import reduce
from typing import Literal, Protocol

from rowq.worker.stripes import Stripe

BOUNDS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
    *(60.0, 300.0, 1800.0, 7200.0, float("inf")),
)
"""Upper bounds of a histogram's buckets in seconds."""

Event = Literal["found", "empty", "handler_error", "database_error", "lease_extended", "lease_lost"]
EVENTS: tuple[Event, ...] = (
    *("found", "empty", "handler_error", "database_error", "lease_extended", "lease_lost"),
)
"""Counted events: dequeues with and without messages, errors, and leases."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class WorkerStats:
    """Messages by outcome; `failed` are dead, `stale` no longer belonged to the claim.

    `cancelled` were cancelled while leased, and not completed. After a lost connection, `stale` may
    include messages whose completion took effect.
    """

    started_at: datetime = field(default_factory=_now)
    processed: int = 0
    retried: int = 0
    failed: int = 0
    released: int = 0
    stale: int = 0
    cancelled: int = 0
    snoozed: int = 0

    def plus(self, other: "WorkerStats") -> "WorkerStats":
        """Return the sum of both, with this one's start."""
        return WorkerStats(
            self.started_at,
            processed=self.processed + other.processed,
            retried=self.retried + other.retried,
            failed=self.failed + other.failed,
            released=self.released + other.released,
            stale=self.stale + other.stale,
            cancelled=self.cancelled + other.cancelled,
            snoozed=self.snoozed + other.snoozed,
        )


class Counter:
    """Thread-safe WorkerStats per stripe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._start = WorkerStats()
        self._stripes: dict[Stripe, WorkerStats] = {}

    def add(self, stripe: Stripe, more: WorkerStats) -> None:
        """Add counts to those of a stripe."""
        with self._lock:
            self._stripes[stripe] = self.of(stripe).plus(more)

    def of(self, stripe: Stripe) -> WorkerStats:
        """Return the counts of a stripe."""
        return self._stripes.get(stripe, self._start)

    def snapshot(self) -> WorkerStats:
        """Return the counts of all stripes."""
        with self._lock:
            counted = list(self._stripes.values())
        return reduce(WorkerStats.plus, counted, self._start)


@dataclass(frozen=True, slots=True)
class Times:
    """A histogram of times: the count in each bucket, and the sum in seconds."""

    counts: tuple[int, ...] = (0,) * len(BOUNDS)
    seconds: float = 0.0

    def plus(self, other: "Times") -> "Times":
        """Return the sum of both."""
        counts = zip(self.counts, other.counts, strict=True)
        return Times(tuple(map(sum, counts)), self.seconds + other.seconds)


@dataclass(frozen=True, slots=True)
class Measures:
    """Counts and current state of a worker.

    handled: seconds of handler calls. waited: seconds from enqueue to first delivery. held: leased
    messages. oldest_claim_seconds: age of the oldest claim. last_poll_at: time of the last answered
    dequeue by this machine's clock; over several processes, the earliest. why_not_ready: empty if
    the worker is ready.
    """

    stats: WorkerStats = field(default_factory=WorkerStats)
    events: Mapping[Event, int] = field(default_factory=lambda: dict.fromkeys(EVENTS, 0))
    handled: Times = field(default_factory=Times)
    waited: Times = field(default_factory=Times)
    held: int = 0
    oldest_claim_seconds: float = 0.0
    last_poll_at: float | None = None
    why_not_ready: str = ""

    def plus(self, other: "Measures") -> "Measures":
        """Return the sum of two processes."""
        polls = [poll for poll in (self.last_poll_at, other.last_poll_at) if poll is not None]
        return Measures(
            stats=self.stats.plus(other.stats),
            events={event: self.events[event] + other.events[event] for event in EVENTS},
            handled=self.handled.plus(other.handled),
            waited=self.waited.plus(other.waited),
            held=self.held + other.held,
            oldest_claim_seconds=max(self.oldest_claim_seconds, other.oldest_claim_seconds),
            last_poll_at=min(polls, default=None),
            why_not_ready=self.why_not_ready or other.why_not_ready,
        )

    def ended(self) -> "Measures":
        """Return the counts of a process that has ended, without its state."""
        return replace(self, held=0, oldest_claim_seconds=0.0, last_poll_at=None, why_not_ready="")


class Measured(Protocol):
    """A worker with measures."""

    def measures(self) -> Measures:
        """Return the counts and the current state."""


class Meter:
    """Thread-safe counts and times of one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events: dict[Event, int] = dict.fromkeys(EVENTS, 0)
        self._handled = Times()
        self._waited = Times()
        self.answered_at: float | None = None
        """Time of the last answered dequeue, by time.monotonic()."""
        self.free_at = 0.0
        """Time when a thread last finished a claim, by time.monotonic()."""

    def count(self, event: Event) -> None:
        """Count an event."""
        with self._lock:
            self._events[event] += 1

    def record_empty(self) -> None:
        """Record a dequeue without messages."""
        with self._lock:
            self.answered_at = time.monotonic()
            self._events["empty"] += 1

    def record_found(self, waited: Iterable[float]) -> None:
        """Record a dequeue with messages, and how many seconds new messages had waited."""
        with self._lock:
            self.answered_at = time.monotonic()
            self._events["found"] += 1
            for seconds in waited:
                self._waited = _with(self._waited, seconds)

    def record_handled(self, seconds: float) -> None:
        """Record the duration of a handler call."""
        with self._lock:
            self._handled = _with(self._handled, seconds)

    def record_free(self) -> None:
        """Record that a thread has finished its claim."""
        self.free_at = time.monotonic()

    def measures(self) -> Measures:
        """Return the counts and times, without the current state."""
        with self._lock:
            return Measures(events=dict(self._events), handled=self._handled, waited=self._waited)


def _with(times: Times, seconds: float) -> Times:
    seconds = max(seconds, 0.0)
    counts = list(times.counts)
    counts[bisect_left(BOUNDS, seconds)] += 1
    return Times(tuple(counts), times.seconds + seconds)
