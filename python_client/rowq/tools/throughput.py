"""Rates of arrivals, completions and failures of queues.

The database does not count them: all producers or workers would wait for the row of the counter.
Workers report completions and failures. Arrivals are the growth between two samples plus the
completions.
"""

from collections import deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from rowq.messages import QueueStats, WorkerReport
from rowq.queue import Queue
from rowq.rights import remedy_of

_Key = TypeVar("_Key", bound=Hashable)

LIVE_SECONDS = 30.0
"""Age from which a worker's report is ignored; workers report every 10 seconds."""
# Time between the samples that are compared, or more if samples are further apart.
_WINDOW_SECONDS = 10.0
# Older samples are ignored.
_OLDEST_SECONDS = 60.0
_STATES = ("ready", "delayed", "leased", "blocked", "dead")


@dataclass(frozen=True, slots=True)
class Rates:
    """Messages per second, and the number of workers that reported in the last 30 seconds.

    `arrived` is None in the first sample, if a count reached its limit, or if the number of
    messages falls without a live worker. The others are None without a live worker.
    """

    workers: int = 0
    arrived: float | None = None
    completed: float | None = None
    failed: float | None = None

    def rounded(self) -> "Rates":
        """Return the rates rounded to a tenth."""
        return Rates(self.workers, *map(tenth, (self.arrived, self.completed, self.failed)))


def tenth(number: float | None) -> float | None:
    """Round a number to a tenth; None stays None."""
    return None if number is None else round(number, 1)


def is_live(worker: WorkerReport) -> bool:
    """Return whether a worker has reported recently."""
    return worker.last_seen_seconds <= LIVE_SECONDS


def by_queue(workers: Iterable[WorkerReport]) -> dict[str, list[WorkerReport]]:
    """Return workers by queue name."""
    found: dict[str, list[WorkerReport]] = {}
    for worker in workers:
        found.setdefault(worker.queue_name, []).append(worker)
    return found


def listed_workers(queue: Queue, queue_name: str | None = None) -> list[WorkerReport] | None:
    """Return the workers of one queue or all queues; None if the account cannot list them."""
    try:
        return queue.list_workers(queue_name)
    except Exception as error:
        if remedy_of(error):
            return None
        raise


class Throughput(Generic[_Key]):
    """Rates of queues, identified by keys, from samples whose counts stop at `max_count`."""

    def __init__(self, max_count: int) -> None:
        self._max_count = max_count
        self._past: dict[_Key, deque[tuple[float, int | None]]] = {}
        self._rates: dict[_Key, Rates] = {}

    def record(
        self,
        at: float,
        queues: Mapping[_Key, QueueStats],
        workers: Mapping[_Key, Sequence[WorkerReport]],
    ) -> None:
        """Add a sample, taken at a time in seconds of any clock."""
        past, self._past, self._rates = self._past, {}, {}
        for key, stats in queues.items():
            totals = self._past[key] = past.get(key) or deque()
            totals.append((at, self._total(stats)))
            while totals[0][0] < at - _OLDEST_SECONDS or (
                len(totals) > 2 and totals[1][0] <= at - _WINDOW_SECONDS
            ):
                totals.popleft()
            self._rates[key] = _rates(totals, [one for one in workers.get(key, ()) if is_live(one)])

    def of(self, key: _Key) -> Rates:
        """Return the rates of a queue at the last sample."""
        return self._rates.get(key, Rates())

    def _total(self, queue: QueueStats) -> int | None:
        """Return the number of messages of a queue; None if a count reached its limit."""
        counts = [getattr(queue, state) or 0 for state in _STATES]
        return None if max(counts) >= self._max_count else sum(counts)


def _rates(totals: Sequence[tuple[float, int | None]], live: Sequence[WorkerReport]) -> Rates:
    completed = sum(one.completed_per_second for one in live) if live else None
    failed = sum(one.failed_per_second for one in live) if live else None
    (before_at, before), (at, now) = totals[0], totals[-1]
    arrived = None
    if before is not None and now is not None and at > before_at:
        growth = (now - before) / (at - before_at)
        if live or growth >= 0:
            arrived = max(growth + (completed or 0.0), 0.0)
    return Rates(len(live), arrived, completed, failed)
