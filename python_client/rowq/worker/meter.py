"""What a worker counts and measures for its metrics, where it has a port for them.

A Meter is one process's: its threads add to it. Measures are what it has measured so far, with what
is true at the moment; they can be sent to another process, and added up over several.
"""

import threading
import time
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import reduce
from typing import Literal, Protocol

from rowq.worker.stripes import Stripe

BOUNDS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
    *(60.0, 300.0, 1800.0, 7200.0, float("inf")),
)
"""The upper bounds of a histogram's buckets, in seconds."""

Event = Literal["found", "empty", "handler_error", "database_error", "lease_extended", "lease_lost"]
EVENTS: tuple[Event, ...] = (
    *("found", "empty", "handler_error", "database_error", "lease_extended", "lease_lost"),
)
"""What is counted: dequeues that found messages or none, errors, and leases."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class WorkerStats:
    """Messages by what became of them; `failed` are dead, `stale` had gone to others meanwhile.

    `cancelled` were cancelled while the worker had them, and not completed. After a lost connection
    `stale` can also be a message whose completion did take effect.
    """

    started_at: datetime = field(default_factory=_now)
    processed: int = 0
    retried: int = 0
    failed: int = 0
    released: int = 0
    stale: int = 0
    cancelled: int = 0

    def plus(self, other: "WorkerStats") -> "WorkerStats":
        """Return the sum of both, since this one's start."""
        return replace(
            self,
            **{
                stat.name: getattr(self, stat.name) + getattr(other, stat.name)
                for stat in fields(self)
                if stat.name != "started_at"
            },
        )


class Counter:
    """WorkerStats that several threads add to, by the stripes of the queue."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._start = WorkerStats()
        self._stripes: dict[Stripe, WorkerStats] = {}

    def add(self, stripe: Stripe, more: WorkerStats) -> None:
        """Add the counts of `more`, which is about messages of a stripe."""
        with self._lock:
            self._stripes[stripe] = self.of(stripe).plus(more)

    def of(self, stripe: Stripe) -> WorkerStats:
        """Return the counts of a stripe so far."""
        return self._stripes.get(stripe, self._start)

    def snapshot(self) -> WorkerStats:
        """Return the counts of all stripes so far."""
        with self._lock:
            counted = list(self._stripes.values())
        return reduce(WorkerStats.plus, counted, self._start)


@dataclass(frozen=True, slots=True)
class Times:
    """A histogram: how many times were in each bucket, and their sum in seconds."""

    counts: tuple[int, ...] = (0,) * len(BOUNDS)
    seconds: float = 0.0

    def plus(self, other: "Times") -> "Times":
        """Return both together."""
        counts = zip(self.counts, other.counts, strict=True)
        return Times(tuple(map(sum, counts)), self.seconds + other.seconds)


@dataclass(frozen=True, slots=True)
class Measures:
    """What a worker has done so far, and how it is.

    handled, waited: seconds of handlers' calls, and from enqueue to the first delivery. held:
    messages in hand now. oldest_claim_seconds: for how long the oldest claim in hand is there.
    last_poll_at: by this machine's clock, when a dequeue was last answered; over several processes,
    the one that waits for it longest. why_not_ready: empty when the worker does what it should.
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
        """Return those of two processes together."""
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
        """Return what is left of them when their process has ended: what it has counted."""
        return replace(self, held=0, oldest_claim_seconds=0.0, last_poll_at=None, why_not_ready="")


class Measured(Protocol):
    """A worker that can be asked for its measures."""

    def measures(self) -> Measures:
        """Return what it has done so far, and how it is."""


class Meter:
    """Counts and times of one process, which every thread of its worker adds to."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events: dict[Event, int] = dict.fromkeys(EVENTS, 0)
        self._handled = Times()
        self._waited = Times()
        self.answered_at: float | None = None
        """By time.monotonic(), when a dequeue was last answered."""
        self.free_at = 0.0
        """By time.monotonic(), when a thread was last done with a claim."""

    def count(self, event: Event) -> None:
        """Count something that has happened."""
        with self._lock:
            self._events[event] += 1

    def note_empty(self) -> None:
        """Note that a dequeue has found nothing."""
        with self._lock:
            self.answered_at = time.monotonic()
            self._events["empty"] += 1

    def note_found(self, waited: Iterable[float]) -> None:
        """Note that a dequeue has found messages, and for how many seconds new ones had waited."""
        with self._lock:
            self.answered_at = time.monotonic()
            self._events["found"] += 1
            for seconds in waited:
                self._waited = _with(self._waited, seconds)

    def note_handled(self, seconds: float) -> None:
        """Note how long a call of the handler took."""
        with self._lock:
            self._handled = _with(self._handled, seconds)

    def note_free(self) -> None:
        """Note that a thread is done with its claim."""
        self.free_at = time.monotonic()

    def measures(self) -> Measures:
        """Return what was measured so far, without what is true at the moment."""
        with self._lock:
            return Measures(events=dict(self._events), handled=self._handled, waited=self._waited)


def _with(times: Times, seconds: float) -> Times:
    seconds = max(seconds, 0.0)
    counts = list(times.counts)
    counts[bisect_left(BOUNDS, seconds)] += 1
    return Times(tuple(counts), times.seconds + seconds)
