"""What is shown: chosen by keys, and remembered from one look to the next."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from rowq.messages import Claim, DeadMessage, HealthCheck, QueueStats

ORDERS = ("name", "ready", "dead", "age")
_KEPT = 20
"""Looks that a trend is made of."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What one look has found.

    at: the moment, in seconds of a clock that only goes on. server: name and version.
    """

    at: float
    server: str
    queues: Sequence[QueueStats] = ()
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
    _past: dict[str, deque[tuple[float, QueueStats]]] = field(default_factory=dict)

    def remember(self, sight: Sight) -> None:
        """Keep a look for trends."""
        names = {queue.queue_name for queue in sight.queues}
        self._past = {name: past for name, past in self._past.items() if name in names}
        for queue in sight.queues:
            past = self._past.setdefault(queue.queue_name, deque(maxlen=_KEPT))
            past.append((sight.at, queue))

    def ready_so_far(self, queue_name: str) -> list[int]:
        """Return how many messages were ready at each look, the oldest first."""
        return [queue.ready for _, queue in self._past.get(queue_name, ())]

    def change_a_second(self, queue_name: str) -> float | None:
        """Return by how many messages a second those that are not dead or ended became more.

        None after one look only, and where a count was cut off.
        """
        past = list(self._past.get(queue_name, ()))[-2:]
        if len(past) < 2:
            return None
        (before_at, before), (at, now) = past
        counts = [count for queue in (before, now) for count in alive(queue)]
        if max(counts) >= self.max_count or at <= before_at:
            return None
        return (sum(alive(now)) - sum(alive(before))) / (at - before_at)

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


def alive(queue: QueueStats) -> tuple[int, ...]:
    """Return the counts of messages that are neither dead nor ended."""
    return (queue.ready, queue.delayed, queue.leased, queue.blocked or 0)
