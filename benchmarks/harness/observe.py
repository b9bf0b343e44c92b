"""The counters that are read of every server, and the base class of what reads them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, fields

from benchmarks.harness.closing import Closing
from benchmarks.harness.session import Session


@dataclass(frozen=True, slots=True)
class Counts:
    """Counters at one moment.

    reads: pages looked at in memory, those of bodies included only where body_reads is 0.
    body_reads: pages of bodies that are kept outside their rows, where the engine tells them apart.
    lock_waits: waits for a row's lock. cpu: seconds of the server's process, where it is one.
    """

    reads: int
    body_reads: int
    deadlocks: int
    lock_waits: int
    lock_wait_seconds: float
    commits: int
    log_bytes: int
    cpu: float

    def since(self, before: Counts) -> Counts:
        """Return what was added."""
        names = [field.name for field in fields(self)]
        return Counts(**{name: getattr(self, name) - getattr(before, name) for name in names})


class Observer(Closing):
    """A session beside the others that reads the server's counters."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def close(self) -> None:
        """Close the session."""
        self._session.close()

    @abstractmethod
    def counts(self, session: Session | None = None) -> Counts:
        """Read the counters; session: first let this one hand in what it has not told yet."""

    def settle(self) -> None:
        """Wait until sessions that have been opened since this one have handed in what they did.

        There is nothing to wait for where every count is the server's own.
        """

    def look(self) -> None:
        """Note who waits for a lock now, where the server does not count it."""

    @abstractmethod
    def rows_locked(self, session: Session) -> int:
        """Return how many rows an open transaction has locked."""
