"""What the engine-neutral tests read from rowq's tables, as far as engines differ in words only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from tests.engines.base import Connection


class BaseTables(ABC):
    """Reads rows of tables, as their owner.

    counts: by what a table holds, the query for the number of its rows of a queue. places: queries
    for unfinished messages and where they are. ends: queries for finished ones and their states.
    messages: the query for those whose bodies are there.
    """

    counts: Mapping[str, str]
    places: Sequence[str]
    ends: Sequence[str]
    messages: str

    @abstractmethod
    def rows_of(self, connection: Connection, query: str, queue: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query about a queue."""

    def stored(self, connection: Connection, queue: str) -> dict[str, int]:
        """Return how many rows each table has for a queue."""
        return {table: self._count(connection, table, queue) for table in self.counts}

    def held_keys(self, connection: Connection, queue: str) -> int:
        """Return how many dedup keys are taken."""
        return self._count(connection, "dedup", queue)

    def census(self, connection: Connection, queue: str) -> list[tuple[int, str]]:
        """Return every unfinished message and where it is, as often as it is somewhere."""
        return self._states(connection, self.places, queue)

    def finished(self, connection: Connection, queue: str) -> list[tuple[int, str]]:
        """Return the finished messages that are kept for the archive, or are in it."""
        return self._states(connection, self.ends, queue)

    def bodies(self, connection: Connection, queue: str) -> set[int]:
        """Return the messages whose bodies are there."""
        return {int(message) for (message,) in self.rows_of(connection, self.messages, queue)}

    def _count(self, connection: Connection, table: str, queue: str) -> int:
        ((count,),) = self.rows_of(connection, self.counts[table], queue)
        return int(count)

    def _states(
        self, connection: Connection, queries: Sequence[str], queue: str
    ) -> list[tuple[int, str]]:
        return [
            (int(message), str(state))
            for query in queries
            for message, state in self.rows_of(connection, query, queue)
        ]


class ShiftedTables(BaseTables):
    """Reads rows of tables, and moves the times in them, a table after the other.

    shifts: the tables with times and how to move them; checks: that with the moment at which a
    maintain looks for late committers again.
    """

    shifts: Sequence[Any]
    checks: Any

    @abstractmethod
    def move(self, connection: Connection, queue: str, seconds: int, shift: Any) -> None:
        """Move the times of a queue's rows in one table back, of those that nobody else holds."""

    def pass_seconds(self, connection: Connection, queue: str, seconds: int) -> None:
        """Move every stored time of a queue back."""
        for shift in (*self.shifts, self.checks):
            self.move(connection, queue, seconds, shift)

    def tick(self, connection: Connection, queue: str) -> None:
        """Let the moment come at which the next maintain looks for late committers again."""
        self.move(connection, queue, 2, self.checks)
