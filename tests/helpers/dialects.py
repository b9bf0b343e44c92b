"""What the tests need to know of an engine's SQL; tests/engines/<engine>/dialect.py has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import pytest

from rowq.contract import Parameter, Routine
from rowq.engines import engine_for_connection
from tests.engines.base import Connection
from tests.engines.mysql import dialect as mysql
from tests.engines.oracle import dialect as oracle
from tests.engines.postgres import dialect as postgres
from tests.engines.sqlserver import dialect as sqlserver


class Dialect(Protocol):
    """Calls, errors, transactions and tables of one engine.

    database_error: the driver's class of errors that come from the server.
    is_free_of_deadlocks: whether the routines never meet one. Elsewhere they try again by
        themselves, and one that reaches a caller is an error of that call.
    archive_table: the name of the table that keeps finished messages.
    readers_wait: whether whoever reads a table that another session holds waits for it.
    savepoints_give_back: whether a row is free as soon as its lock is rolled back to a savepoint,
        and not at the end of the transaction only.
    """

    @property
    def database_error(self) -> type[Exception]: ...
    @property
    def archive_table(self) -> str: ...
    @property
    def is_free_of_deadlocks(self) -> bool: ...
    @property
    def readers_wait(self) -> bool: ...
    @property
    def savepoints_give_back(self) -> bool: ...

    def call(
        self, connection: Connection, routine: Routine, arguments: Mapping[str, Any]
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Call a routine with these arguments by name; return column names and rows."""

    def can_say(self, parameter: Parameter, value: Any) -> bool:
        """Whether a call can have this value as an argument at all."""

    def short_text(self, text: str) -> str | None:
        """Return what a text other than a body is after a round trip: itself, but on Oracle."""

    def error(self, error: Exception) -> tuple[str, str]:
        """Return number (such as RQ701, or the engine's own) and text of an error."""

    def execute(self, connection: Connection, statement: str, values: Sequence[Any] = ()) -> Any:
        """Run a statement of the tests' own, with %s for each value; return its cursor."""

    def make_table(self, connection: Connection, name: str, columns: str) -> None:
        """Make a table of the tests' own unless it is there."""

    def begin(self, connection: Connection, isolation: str = "read committed") -> None:
        """Open a transaction on a connection in autocommit."""

    def commit(self, connection: Connection) -> None:
        """Commit it."""

    def rollback(self, connection: Connection) -> None:
        """Roll it back."""

    def savepoint(self, connection: Connection, name: str) -> None:
        """Set a savepoint in the open transaction."""

    def back_to(self, connection: Connection, name: str) -> None:
        """Roll back to a savepoint."""

    def wait_at_most(self, connection: Connection, seconds: int) -> None:
        """Let a session wait no longer than this for a lock; then a statement of it fails."""

    def hold_table(self, connection: Connection, table: str) -> None:
        """Let nobody else read or write a table of rowq's until give_table."""

    def give_table(self, connection: Connection) -> None:
        """Let others have it again."""

    def is_passed(self, connection: Connection, queue: str, message_id: int) -> bool:
        """Whether a floor is beyond a message, which nobody may see yet and was enqueued once."""

    def tables(self, connection: Connection) -> set[str]:
        """Return the names of rowq's tables, as hold_table takes them."""

    def stored(self, connection: Connection, queue: str) -> dict[str, int]:
        """Return how many rows each table has for a queue."""

    def census(self, connection: Connection, queue: str) -> list[tuple[int, str]]:
        """Return every unfinished message and where it is, as often as it is somewhere."""

    def finished(self, connection: Connection, queue: str) -> list[tuple[int, str]]:
        """Return the finished messages that are kept for the archive, or are in it."""

    def bodies(self, connection: Connection, queue: str) -> set[int]:
        """Return the messages whose bodies are there."""

    def held_keys(self, connection: Connection, queue: str) -> int:
        """Return how many dedup keys are taken."""

    def deadlocks(self, connection: Connection) -> int:
        """Return how many deadlocks the server has broken, as far as reported."""

    def pass_seconds(self, connection: Connection, queue: str, seconds: int) -> None:
        """Move every stored time of a queue back; see tests/stored_times.py."""

    def tick(self, connection: Connection, queue: str) -> None:
        """Let the moment come at which the next maintain looks for late committers again."""

    def expire_claim(self, connection: Connection, claim_id: int) -> None:
        """Let the lease of one claim run out now."""

    def routine_names(self, connection: Connection) -> list[str]:
        """Return the name of every installed routine, as often as it is there."""

    def installed_parameters(self, connection: Connection, routine: Routine) -> list[Any]:
        """Return what the server says about a routine's parameters."""

    def contract_parameters(self, routine: Routine) -> list[Any]:
        """Return what installed_parameters should be."""

    def result_columns(self, connection: Connection, routine: Routine, queue: str) -> list[Any]:
        """Return name and type of each column of a call; `queue` exists and is the test's own."""

    def contract_columns(self, routine: Routine) -> list[Any]:
        """Return what result_columns should be."""

    def other_sessions(self, connection: Connection) -> int:
        """Return how many sessions of clients there are besides this one."""


@runtime_checkable
class Interrupting(Protocol):
    """A dialect of an engine on which a statement can be ended without its session."""

    def interrupt(self, connection: Connection, other: Connection) -> None:
        """End the statement that another session is executing, and not that session."""


@runtime_checkable
class Preparing(Protocol):
    """A dialect of an engine that has statements for prepared transactions."""

    def begin_prepared(self, connection: Connection, name: str) -> None:
        """Open a transaction that can be prepared under a name."""

    def prepare(self, connection: Connection, name: str) -> None:
        """Prepare it: from now on it outlives its session, and the server."""

    def commit_prepared(self, connection: Connection, name: str) -> None:
        """Commit it, in another session."""

    def allows_prepared(self, connection: Connection) -> bool:
        """Whether the server allows such transactions."""


DIALECTS: dict[str, Dialect] = {
    "mysql": mysql.DIALECT,
    "oracle": oracle.DIALECT,
    "postgres": postgres.DIALECT,
    "sqlserver": sqlserver.DIALECT,
}
"""The dialect of each engine, by the engine's name."""


def dialect_of(connection: Connection) -> Dialect:
    """Return the dialect of a driver's connection."""
    return DIALECTS[engine_for_connection(connection).name]


def interrupting_dialect_of(connection: Connection) -> Interrupting:
    """Return the dialect, which can interrupt; skips the test where the engine cannot."""
    dialect = dialect_of(connection)
    if not isinstance(dialect, Interrupting):
        pytest.skip(
            "this engine ends sessions, and no single statement of another one"
            "; to run it: --engine postgres18"
        )
    return dialect


def preparing_dialect_of(connection: Connection) -> Preparing:
    """Return the dialect, which can prepare; skips the test where engine or server cannot."""
    dialect = dialect_of(connection)
    if not isinstance(dialect, Preparing):
        pytest.skip(
            "this engine prepares transactions by a coordinator of its own only"
            "; to run it: --engine postgres18"
        )
    if not dialect.allows_prepared(connection):
        pytest.skip(
            "the server prepares none; to run it: start it with max_prepared_transactions = 10"
        )
    return dialect
