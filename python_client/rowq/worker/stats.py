"""What a worker has done so far."""

import threading
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import reduce

from rowq.worker.stripes import Stripe


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
        """Count from zero, beginning now."""
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
