"""The interface to an engine's SQL in tests; each engine has a dialect.py."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from rowq.contract import Parameter, Routine
from tests.engines.base import Connection


class Dialect(ABC):
    """Calls, errors, transactions and tables of one engine.

    database_error: the driver's class of server errors.
    is_free_of_deadlocks: whether the routines never deadlock. Elsewhere they retry, and a deadlock
        that reaches a caller is an error of that call.
    archive_table: the table of finished messages.
    readers_wait: whether a reader of a locked table waits.
    savepoints_release_locks: whether rolling back to a savepoint releases row locks at once.
    expires_in_transactions: whether maintain expires messages in its caller's transaction.
    expires_predecessors: whether maintain and reap expire a message that an open transaction names
        as a predecessor. Elsewhere the first maintain after that transaction does.
    sees_newer: whether routines see newer commits of other sessions under repeatable read and
        serializable.
    shows_before: whether get_result and get_history show a message as it was before an open
        transaction changed it. Elsewhere it is shown as leased.
    row_version: the columns that change with each write of a row.
    counts: for each table, the query for the number of a queue's rows.
    places: queries for unfinished messages and their states.
    ends: queries for finished messages and their states.
    messages: the query for messages with a stored body.
    """

    archive_table: str
    is_free_of_deadlocks: bool
    readers_wait: bool
    savepoints_release_locks: bool
    expires_in_transactions: bool = False
    expires_predecessors: bool = False
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
    def can_pass(self, parameter: Parameter, value: Any) -> bool:
        """Return whether a call can pass this value."""

    def short_text(self, text: str) -> str | None:
        """Return a text that is not a body after a round trip: unchanged, except on Oracle."""
        return text

    @abstractmethod
    def error(self, error: Exception) -> tuple[str, str]:
        """Return the number (RQ701, or the engine's own) and the text of an error."""

    @abstractmethod
    def execute(self, connection: Connection, statement: str, values: Sequence[Any] = ()) -> Any:
        """Execute a statement with %s for each value; return its cursor."""

    def make_table(self, connection: Connection, name: str, columns: str) -> None:
        """Create a test table if it does not exist."""
        self.execute(connection, f"create table if not exists {name} ({columns})")

    @abstractmethod
    def begin(self, connection: Connection, isolation: str = "read committed") -> None:
        """Open a transaction on a connection in autocommit."""

    @abstractmethod
    def commit(self, connection: Connection) -> None:
        """Commit the open transaction."""

    @abstractmethod
    def rollback(self, connection: Connection) -> None:
        """Roll back the open transaction."""

    def reset(self, connection: Connection) -> None:
        """Roll back an open transaction and reset the session's settings."""
        self.rollback(connection)

    def savepoint(self, connection: Connection, name: str) -> None:
        """Set a savepoint in the open transaction."""
        self.execute(connection, f"savepoint {name}")

    def back_to(self, connection: Connection, name: str) -> None:
        """Roll back to a savepoint."""
        self.execute(connection, f"rollback to savepoint {name}")

    @abstractmethod
    def wait_at_most(self, connection: Connection, seconds: int) -> None:
        """Set a session's lock timeout."""

    @abstractmethod
    def lock_table(self, connection: Connection, table: str) -> None:
        """Lock a rowq table against other sessions until unlock_table."""

    def unlock_table(self, connection: Connection) -> None:
        """Release the lock of lock_table."""
        self.rollback(connection)

    @abstractmethod
    def is_below_floor(self, connection: Connection, queue: str, message_id: int) -> bool:
        """Return whether a floor has passed an uncommitted message."""

    @abstractmethod
    def tables(self, connection: Connection) -> set[str]:
        """Return the names of rowq's tables, for lock_table."""

    def stored(self, connection: Connection, queue: str) -> dict[str, int]:
        """Return how many rows each table has for a queue."""
        return {table: self._count(connection, table, queue) for table in self.counts}

    def census(self, connection: Connection, queue: str) -> list[tuple[int, str]]:
        """Return every unfinished message and its state, once per row."""
        return self._states(connection, self.places, queue)

    def finished(self, connection: Connection, queue: str) -> list[tuple[int, str]]:
        """Return the messages in the archive or on the way to it."""
        return self._states(connection, self.ends, queue)

    def bodies(self, connection: Connection, queue: str) -> set[int]:
        """Return the messages with a stored body."""
        return {int(message) for (message,) in self.rows_of(connection, self.messages, queue)}

    def held_keys(self, connection: Connection, queue: str) -> int:
        """Return the number of dedup keys in use."""
        return self._count(connection, "dedup", queue)

    @abstractmethod
    def deadlocks(self, connection: Connection) -> int:
        """Return the server's count of deadlocks."""

    @abstractmethod
    def pass_seconds(self, connection: Connection, queue: str, seconds: int) -> None:
        """Move every stored time of a queue back; see tests/stored_times.py."""

    @abstractmethod
    def tick(self, connection: Connection, queue: str) -> None:
        """Make the next maintain rescan for late commits."""

    @abstractmethod
    def expire_claim(self, connection: Connection, claim_id: int) -> None:
        """Expire the lease of a claim."""

    @abstractmethod
    def set_attempt(self, connection: Connection, message_id: int, attempt: int) -> None:
        """Change the attempt of a ready message."""

    @abstractmethod
    def routine_names(self, connection: Connection) -> list[str]:
        """Return the name of every installed routine, once per routine."""

    @abstractmethod
    def installed_parameters(self, connection: Connection, routine: Routine) -> list[Any]:
        """Return a routine's parameters from the server's catalog."""

    @abstractmethod
    def contract_parameters(self, routine: Routine) -> list[Any]:
        """Return the expected installed_parameters."""

    @abstractmethod
    def comments(self, connection: Connection) -> dict[str, str]:
        """Return the catalog's comments by object, such as "column queue.name"."""

    @abstractmethod
    def result_columns(self, connection: Connection, routine: Routine, queue: str) -> list[Any]:
        """Return name and type of each column of a call on an existing queue."""

    @abstractmethod
    def contract_columns(self, routine: Routine) -> list[Any]:
        """Return the expected result_columns."""

    @abstractmethod
    def other_sessions(self, connection: Connection) -> int:
        """Return the number of other client sessions."""

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
    """A dialect that moves stored times table by table.

    shifts: the tables with times and how to move them; checks: the same for the time of the next
    rescan.
    """

    shifts: Sequence[Any]
    checks: Any

    @abstractmethod
    def move(self, connection: Connection, queue: str, seconds: int, shift: Any) -> None:
        """Move the times of a queue's unlocked rows in one table back."""

    def pass_seconds(self, connection: Connection, queue: str, seconds: int) -> None:
        for shift in (*self.shifts, self.checks):
            self.move(connection, queue, seconds, shift)

    def tick(self, connection: Connection, queue: str) -> None:
        self.move(connection, queue, 2, self.checks)
