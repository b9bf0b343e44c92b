"""What the tests need to know of an engine's SQL; <engine>/dialect.py has it.

What most engines say in the same words is said here.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from rowq.contract import Parameter, Routine
from tests.engines.base import Connection


class Dialect(ABC):
    """Calls, errors, transactions and tables of one engine.

    database_error: the driver's class of errors that come from the server.
    is_free_of_deadlocks: whether the routines never meet one. Elsewhere they try again by
        themselves, and one that reaches a caller is an error of that call.
    archive_table: the name of the table that keeps finished messages.
    readers_wait: whether whoever reads a table that another session holds waits for it.
    savepoints_give_back: whether a row is free as soon as its lock is rolled back to a savepoint,
        and not at the end of the transaction only.
    expires_in_transactions: whether maintain withdraws what is due in its caller's transaction.
    expires_what_is_named: whether maintain and reap withdraw a message that an open transaction has
        named as a predecessor. Elsewhere the first maintain after that transaction does.
    sees_newer: whether routines see what others have committed since the transaction began, where
        its isolation level is repeatable read or serializable.
    shows_before: whether get_result and get_history show a message as it was before an open
        transaction changed it. Elsewhere it is leased, as it is in that transaction's hands.
    row_version: the columns that show whether a row was written again.
    counts: by what a table holds, the query for the number of its rows of a queue.
    places: queries for unfinished messages and where they are.
    ends: queries for finished messages and their states.
    messages: the query for the messages whose bodies are there.
    """

    archive_table: str
    is_free_of_deadlocks: bool
    readers_wait: bool
    savepoints_give_back: bool
    expires_in_transactions: bool = False
    expires_what_is_named: bool = False
    sees_newer: bool = False
    shows_before: bool = True
    row_version: str = "*"
    counts: Mapping[str, str]
    places: Sequence[str]
    ends: Sequence[str]
    messages: str

    @property
    @abstractmethod
    def database_error(self) -> type[Exception]: ...

    @abstractmethod
    def call(
        self, connection: Connection, routine: Routine, arguments: Mapping[str, Any]
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Call a routine with these arguments by name; return column names and rows."""

    @abstractmethod
    def can_say(self, parameter: Parameter, value: Any) -> bool:
        """Whether a call can have this value as an argument at all."""

    def short_text(self, text: str) -> str | None:
        """Return what a text other than a body is after a round trip: itself, but on Oracle."""
        return text

    @abstractmethod
    def error(self, error: Exception) -> tuple[str, str]:
        """Return number (such as RQ701, or the engine's own) and text of an error."""

    @abstractmethod
    def execute(self, connection: Connection, statement: str, values: Sequence[Any] = ()) -> Any:
        """Run a statement of the tests' own, with %s for each value; return its cursor."""

    def make_table(self, connection: Connection, name: str, columns: str) -> None:
        """Make a table of the tests' own unless it is there."""
        self.execute(connection, f"create table if not exists {name} ({columns})")

    @abstractmethod
    def begin(self, connection: Connection, isolation: str = "read committed") -> None:
        """Open a transaction on a connection in autocommit."""

    @abstractmethod
    def commit(self, connection: Connection) -> None:
        """Commit it."""

    @abstractmethod
    def rollback(self, connection: Connection) -> None:
        """Roll it back."""

    def reset(self, connection: Connection) -> None:
        """End an open transaction, and give the session the settings of a new one."""
        self.rollback(connection)

    def savepoint(self, connection: Connection, name: str) -> None:
        """Set a savepoint in the open transaction."""
        self.execute(connection, f"savepoint {name}")

    def back_to(self, connection: Connection, name: str) -> None:
        """Roll back to a savepoint."""
        self.execute(connection, f"rollback to savepoint {name}")

    @abstractmethod
    def wait_at_most(self, connection: Connection, seconds: int) -> None:
        """Let a session wait no longer than this for a lock; then a statement of it fails."""

    @abstractmethod
    def hold_table(self, connection: Connection, table: str) -> None:
        """Let nobody else read or write a table of rowq's until give_table."""

    def give_table(self, connection: Connection) -> None:
        """Let others have it again."""
        self.rollback(connection)

    @abstractmethod
    def is_passed(self, connection: Connection, queue: str, message_id: int) -> bool:
        """Whether a floor is beyond a message, which nobody may see yet and was enqueued once."""

    @abstractmethod
    def tables(self, connection: Connection) -> set[str]:
        """Return the names of rowq's tables, as hold_table takes them."""

    def stored(self, connection: Connection, queue: str) -> dict[str, int]:
        """Return how many rows each table has for a queue."""
        return {table: self._count(connection, table, queue) for table in self.counts}

    def census(self, connection: Connection, queue: str) -> list[tuple[int, str]]:
        """Return every unfinished message and where it is, as often as it is somewhere."""
        return self._states(connection, self.places, queue)

    def finished(self, connection: Connection, queue: str) -> list[tuple[int, str]]:
        """Return the finished messages that are kept for the archive, or are in it."""
        return self._states(connection, self.ends, queue)

    def bodies(self, connection: Connection, queue: str) -> set[int]:
        """Return the messages whose bodies are there."""
        return {int(message) for (message,) in self.rows_of(connection, self.messages, queue)}

    def held_keys(self, connection: Connection, queue: str) -> int:
        """Return how many dedup keys are taken."""
        return self._count(connection, "dedup", queue)

    @abstractmethod
    def deadlocks(self, connection: Connection) -> int:
        """Return how many deadlocks the server has broken, as far as reported."""

    @abstractmethod
    def pass_seconds(self, connection: Connection, queue: str, seconds: int) -> None:
        """Move every stored time of a queue back; see tests/stored_times.py."""

    @abstractmethod
    def tick(self, connection: Connection, queue: str) -> None:
        """Let the moment come at which the next maintain looks for late committers again."""

    @abstractmethod
    def expire_claim(self, connection: Connection, claim_id: int) -> None:
        """Let the lease of one claim run out now."""

    @abstractmethod
    def routine_names(self, connection: Connection) -> list[str]:
        """Return the name of every installed routine, as often as it is there."""

    @abstractmethod
    def installed_parameters(self, connection: Connection, routine: Routine) -> list[Any]:
        """Return what the server says about a routine's parameters."""

    @abstractmethod
    def contract_parameters(self, routine: Routine) -> list[Any]:
        """Return what installed_parameters should be."""

    @abstractmethod
    def comments(self, connection: Connection) -> dict[str, str]:
        """Return what the server says of what, such as "routine enqueue" or "column queue.name"."""

    @abstractmethod
    def result_columns(self, connection: Connection, routine: Routine, queue: str) -> list[Any]:
        """Return name and type of each column of a call; `queue` exists and is the test's own."""

    @abstractmethod
    def contract_columns(self, routine: Routine) -> list[Any]:
        """Return what result_columns should be."""

    @abstractmethod
    def other_sessions(self, connection: Connection) -> int:
        """Return how many sessions of clients there are besides this one."""

    @abstractmethod
    def rows_of(self, connection: Connection, query: str, queue: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query about a queue."""

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


class ShiftedDialect(Dialect):
    """Moves the times in rowq's tables, one table after the other.

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
