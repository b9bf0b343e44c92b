"""The events of a history: session, action, time, claim and results."""

import json
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

Results = tuple[tuple[int, str | int], ...]


@dataclass(frozen=True, slots=True)
class Event:
    """One call of one session.

    start, end: times in seconds of one monotonic clock, before the call and after its answer (in
        a transaction: after its commit).
    action: a routine, or one of
        rollback   the transaction that made the claim was rolled back, or its session was killed
        expire     the claim's lease was made to run out; without a claim, every lease
        maintain   called maintain while no other session worked
        census     read the state of every message while no other session worked
        join       the enqueue at the same time gave messages a group key
        join_later the same for delayed or blocked messages
        wait       the enqueue at the same time gave messages predecessors
        expiring   messages become due from start to end, and maintain may expire them
    results: messages, each with its priority (enqueue), attempt (dequeue), state (census), group
        key (join), predecessors (wait: "hold 5 7"), or the outcome that the call returned.
    known: false if the session was lost during the call, so that it may have taken effect or not.
        The results are then those that it would have had; a lost dequeue or enqueue has none.
    lease_seconds: of a dequeue or an extend_lease.
    """

    start: float
    end: float
    session: str
    action: str
    claim_id: int | None = None
    results: Results = ()
    known: bool = True
    lease_seconds: float = 0.0


class Recorder:
    """Collects the events of all sessions; any thread may record.

    completed: how many messages calls of `complete` were about so far.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.completed = 0
        self._events: list[Event] = []
        self._lock = threading.Lock()

    def record(
        self,
        start: float,
        session: str,
        action: str,
        claim_id: int | None = None,
        results: Iterable[tuple[int, str | int]] = (),
        *,
        known: bool = True,
        lease_seconds: float = 0.0,
        end: float | None = None,
    ) -> None:
        """Record a call that began at `start` and ended at `end`, by default now."""
        end = self.clock() if end is None else end
        found = tuple(results)
        event = Event(start, end, session, action, claim_id, found, known, lease_seconds)
        with self._lock:
            self._events.append(event)
            self.completed += len(found) if action == "complete" else 0

    def history(self) -> list[Event]:
        """Return all events in the order in which they ended."""
        with self._lock:
            return sorted(self._events, key=lambda event: event.end)


def write(history: Iterable[Event], path: Path) -> None:
    """Write a history, one JSON object a line."""
    with path.open("w") as lines:
        for event in history:
            lines.write(json.dumps(asdict(event)) + "\n")


def read(path: Path) -> list[Event]:
    """Read a history written by `write`."""
    events = (json.loads(line) for line in path.read_text().splitlines())
    return [
        Event(**{**event, "results": tuple((message, what) for message, what in event["results"])})
        for event in events
    ]
