"""What the processes of seed 004 are told, and what they tell."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from benchmarks.harness.session import RetryError, Session

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class Size:
    """How a process works.

    batch: executions per fetch. threads: executors. seconds: when to stop, if not empty before.
    """

    batch: int
    threads: int
    seconds: float

    @property
    def low(self) -> int:
        """How many executions may be left when the poller fetches again."""
        return self.batch // 3


@dataclass(slots=True)
class Tally:
    """What a process did: the executions it handled, and the monotonic time of the last.

    fetches: how often it asked for work. misses: picks that another process had been first to.
    stale: candidates dropped unpicked, because a newer fetch had replaced them.
    retries: what was tried again after a deadlock or a lock timeout. server_cpu: seconds that the
    server spent for the sessions alone; 0 where nobody can tell.
    """

    handled: list[int] = field(default_factory=list)
    last: float = 0
    fetches: int = 0
    misses: int = 0
    stale: int = 0
    retries: int = 0
    server_cpu: float = 0

    def add(self, other: Tally) -> None:
        """Add what another did."""
        self.handled += other.handled
        self.last = max(self.last, other.last)
        self.fetches += other.fetches
        self.misses += other.misses
        self.stale += other.stale
        self.retries += other.retries
        self.server_cpu += other.server_cpu


class Crew:
    """Threads that begin together; each returns a tally."""

    def __init__(self, works: Sequence[Callable[[], Tally]]) -> None:
        self._tallies: list[Tally] = []
        self._errors: list[Exception] = []
        self._threads = [threading.Thread(target=self._run, args=(work,)) for work in works]

    def start(self) -> None:
        """Let them begin."""
        for thread in self._threads:
            thread.start()

    def join(self) -> Tally:
        """Wait for all, and return what they did together; raises what one of them raised."""
        for thread in self._threads:
            thread.join()
        if self._errors:
            raise self._errors[0]
        total = Tally()
        for tally in self._tallies:
            total.add(tally)
        return total

    def _run(self, work: Callable[[], Tally]) -> None:
        try:
            self._tallies.append(work())
        except Exception as error:
            self._errors.append(error)


def server_cpu(sessions: Sequence[Session]) -> float:
    """Return what the server has spent for these sessions, in seconds."""
    return sum(session.server_cpu for session in sessions)


def patiently(act: Callable[[], _Answer], session: Session, tally: Tally) -> _Answer:
    """Do something, again and again as long as it ends in a deadlock or a lock timeout."""
    while True:
        try:
            return act()
        except RetryError:
            tally.retries += 1
            session.run("rollback")
