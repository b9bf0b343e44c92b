"""How many messages a second come into queues, leave them, and fail.

The database counts nothing of that, as each count would be a row that all producers, or all
workers, wait for. What leaves and what fails is what workers say in their reports. What comes in is
the difference of two looks: by how much the messages became more, and what was completed meanwhile.
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
"""A worker that has not reported for longer counts no more: it reports every ten seconds."""
# A difference of looks is made over so many seconds, or two looks where these are further apart.
_WINDOW_SECONDS = 10.0
# What was before a longer time without looks says nothing of now.
_OLDEST_SECONDS = 60.0
_STATES = ("ready", "delayed", "leased", "blocked", "dead")


@dataclass(frozen=True, slots=True)
class Rates:
    """Messages a second; workers: how many have reported within the last half minute.

    arrived: None where that is not known: of a first look, where a count was cut off, and where
    messages become less without a worker that reports. completed, failed: None without such a one.
    """

    workers: int = 0
    arrived: float | None = None
    completed: float | None = None
    failed: float | None = None

    def rounded(self) -> "Rates":
        """Return them to a tenth, as they are shown."""
        return Rates(self.workers, *map(tenth, (self.arrived, self.completed, self.failed)))


def tenth(number: float | None) -> float | None:
    """Return a number rounded to a tenth, and None for None."""
    return None if number is None else round(number, 1)


def is_live(worker: WorkerReport) -> bool:
    """Whether a worker has reported lately."""
    return worker.last_seen_seconds <= LIVE_SECONDS


def by_queue(workers: Iterable[WorkerReport]) -> dict[str, list[WorkerReport]]:
    """Return workers by the names of their queues."""
    found: dict[str, list[WorkerReport]] = {}
    for worker in workers:
        found.setdefault(worker.queue_name, []).append(worker)
    return found


def listed_workers(queue: Queue, queue_name: str | None = None) -> list[WorkerReport] | None:
    """Return the workers of a queue, or of all; None where the account may not list them."""
    try:
        return queue.list_workers(queue_name)
    except Exception as error:
        if remedy_of(error):
            return None
        raise


class Throughput(Generic[_Key]):
    """The rates of queues by one look after the other; a key tells a queue from others."""

    def __init__(self, max_count: int) -> None:
        """Begin without a look; no count of a look is larger than `max_count`."""
        self._max_count = max_count
        self._past: dict[_Key, deque[tuple[float, int | None]]] = {}
        self._rates: dict[_Key, Rates] = {}

    def note(
        self,
        at: float,
        queues: Mapping[_Key, QueueStats],
        workers: Mapping[_Key, Sequence[WorkerReport]],
    ) -> None:
        """Note a look, made at a moment in seconds of any clock."""
        past, self._past, self._rates = self._past, {}, {}
        for key, stats in queues.items():
            looks = self._past[key] = past.get(key) or deque()
            looks.append((at, self._total(stats)))
            while looks[0][0] < at - _OLDEST_SECONDS or (
                len(looks) > 2 and looks[1][0] <= at - _WINDOW_SECONDS
            ):
                looks.popleft()
            self._rates[key] = _rates(looks, [one for one in workers.get(key, ()) if is_live(one)])

    def of(self, key: _Key) -> Rates:
        """Return the rates of a queue as of the last look."""
        return self._rates.get(key, Rates())

    def _total(self, queue: QueueStats) -> int | None:
        """Return how many messages a queue has; None where a count was cut off."""
        counts = [getattr(queue, state) or 0 for state in _STATES]
        return None if max(counts) >= self._max_count else sum(counts)


def _rates(looks: Sequence[tuple[float, int | None]], live: Sequence[WorkerReport]) -> Rates:
    completed = sum(one.completed_per_second for one in live) if live else None
    failed = sum(one.failed_per_second for one in live) if live else None
    (before_at, before), (at, now) = looks[0], looks[-1]
    arrived = None
    if before is not None and now is not None and at > before_at:
        growth = (now - before) / (at - before_at)
        if live or growth >= 0:
            arrived = max(growth + (completed or 0.0), 0.0)
    return Rates(len(live), arrived, completed, failed)
