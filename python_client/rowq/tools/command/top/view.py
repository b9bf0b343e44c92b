"""What is shown: chosen by keys, and remembered from one look to the next."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from rowq.messages import Claim, DeadMessage, HealthCheck, QueueStats, WorkerReport
from rowq.tools.throughput import Rates, Throughput, by_queue

ORDERS = ("name", "ready", "dead", "age")
_KEPT = 20
"""Looks that a trend is made of."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What one look has found.

    at: the moment, in seconds of a clock that only goes on. server: name and version.
    """

    at: float
    server: str
    queues: Sequence[QueueStats] = ()
    workers: Sequence[WorkerReport] = ()
    claims: Sequence[Claim] = ()
    checks: Sequence[HealthCheck] = ()
    dead: Sequence[DeadMessage] = ()


@dataclass(slots=True)
class View:
    """What a person has chosen.

    entered: the one queue that is shown. chosen: the marked line of all queues, from 0. max_count:
    no count is larger. error: why the last look failed.
    """

    entered: str | None = None
    max_count: int = 10_000
    chosen: int = 0
    order: str = ORDERS[0]
    is_paused: bool = False
    shows_dead: bool = False
    error: str | None = None
    _past: dict[str, deque[int]] = field(default_factory=dict)
    _throughput: Throughput[str] = field(init=False)

    def __post_init__(self) -> None:
        self._throughput = Throughput(self.max_count)

    def remember(self, snapshot: Snapshot) -> None:
        """Keep a look for trends."""
        names = {queue.queue_name for queue in snapshot.queues}
        self._past = {name: past for name, past in self._past.items() if name in names}
        for queue in snapshot.queues:
            self._past.setdefault(queue.queue_name, deque(maxlen=_KEPT)).append(queue.ready)
        queues = {queue.queue_name: queue for queue in snapshot.queues}
        self._throughput.note(snapshot.at, queues, by_queue(snapshot.workers))

    def ready_so_far(self, queue_name: str) -> Sequence[int]:
        """Return how many messages were ready at each look, the oldest first."""
        return list(self._past.get(queue_name, ()))

    def rates(self, queue_name: str) -> Rates:
        """Return how many messages a second come into a queue, leave it, and fail."""
        return self._throughput.of(queue_name)

    def ordered(self, queues: Sequence[QueueStats]) -> list[QueueStats]:
        """Return queues in the chosen order; what is more comes first."""
        if self.order == "name":
            return sorted(queues, key=lambda queue: queue.queue_name)
        attribute = {"age": "oldest_ready_seconds"}.get(self.order, self.order)
        return sorted(
            queues, key=lambda queue: (-(getattr(queue, attribute) or 0), queue.queue_name)
        )

    def press(self, key: str, queues: Sequence[QueueStats]) -> None:
        """Do what a key asks for; `queues` are those on the screen."""
        last = max(len(queues) - 1, 0)
        match key:
            case "p":
                self.is_paused = not self.is_paused
            case "s":
                self.order = ORDERS[(ORDERS.index(self.order) + 1) % len(ORDERS)]
            case "up" | "k":
                self.chosen = max(self.chosen - 1, 0)
            case "down" | "j":
                self.chosen = min(self.chosen + 1, last)
            case "escape":
                self.entered, self.shows_dead = None, False
            case "enter" | "d":
                self._enter(queues, dead=key == "d")

    def _enter(self, queues: Sequence[QueueStats], *, dead: bool) -> None:
        if self.entered is not None:
            self.shows_dead = self.shows_dead is not dead
        elif queues:
            chosen = self.ordered(queues)[min(self.chosen, len(queues) - 1)]
            self.entered, self.shows_dead = chosen.queue_name, dead
