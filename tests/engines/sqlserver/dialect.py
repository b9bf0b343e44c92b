"""SQL Server, as the engine-neutral tests see it: calls, errors, transactions."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

from rowq.contract import Parameter, Routine
from rowq.sqlserver.driver import load_driver
from rowq.sqlserver.errors import fault_of, numbers_of, text_of
from tests.engines.sqlserver.catalog import SqlserverCatalog, execute_named
from tests.engines.sqlserver.tables import SqlserverTables
from tests.helpers.json_text import json_text
from tests.helpers.rows import Rows

Connection = Any


class SqlserverDialect(SqlserverCatalog, SqlserverTables):
    """SQL Server and Azure SQL through pyodbc, connections in autocommit.

    A statement is ended by its own client or with its session, and a transaction is prepared by the
    operating system's coordinator only: it neither interrupts nor prepares.
    """

    @property
    def database_error(self) -> type[Exception]:
        """The driver's class of errors, loaded when it is first asked for."""
        error: type[Exception] = load_driver().Error
        return error

    def call(
        self, connection: Connection, routine: Routine, arguments: Mapping[str, Any]
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Call a routine with these arguments by name; there must be one set of rows."""
        types = {parameter.name: parameter.type for parameter in routine.parameters}
        values = {name: _value(types[name], value) for name, value in arguments.items()}
        with closing(connection.cursor()) as cursor:
            execute_named(connection, cursor, routine.name, values)
            columns, rows = _only_rows(cursor, routine.name)
        kinds = [column.type for column in routine.columns]
        assert len(kinds) == len(columns), f"columns of {routine.name}: {columns}"
        return columns, [
            tuple(_read(*cell) for cell in zip(columns, kinds, row, strict=True)) for row in rows
        ]

    def can_say(self, parameter: Parameter, value: Any) -> bool:
        """Whether a call can have this value as an argument: nothing is infinite."""
        if isinstance(value, float):
            return math.isfinite(value)
        return not (parameter.type == "timestamp" and value in {"infinity", "-infinity"})

    def short_text(self, text: str) -> str | None:
        """Return what a text other than a body is after a round trip: itself."""
        return text

    def error(self, error: Exception) -> tuple[str, str]:
        """Return number, such as RQ701 or the engine's own, and text of an error."""
        if fault := fault_of(error):
            return fault[:5], fault
        numbers = sorted(numbers_of(error))
        return (str(numbers[0]) if numbers else ""), text_of(error)

    def execute(self, connection: Connection, statement: str, values: Sequence[Any] = ()) -> Rows:
        """Run a statement of the tests' own, with %s for each value."""
        with closing(connection.cursor()) as cursor:
            cursor.execute(statement.replace("%s", "?"), list(values))
            rows = [tuple(row) for row in cursor.fetchall()] if cursor.description else []
            while cursor.nextset():
                pass
        return Rows(rows)

    def make_table(self, connection: Connection, name: str, columns: str) -> None:
        """Make a table of the tests' own unless it is there."""
        self.execute(connection, f"if object_id(N'{name}') is null create table {name} ({columns})")

    def begin(self, connection: Connection, isolation: str = "read committed") -> None:
        """Open a transaction."""
        self.execute(connection, f"set transaction isolation level {isolation}")
        self.execute(connection, "begin transaction")

    def commit(self, connection: Connection) -> None:
        """Commit it."""
        self.execute(connection, "commit transaction")

    def rollback(self, connection: Connection) -> None:
        """Roll it back, unless an error has done that."""
        self.execute(connection, "if @@trancount > 0 rollback transaction")

    def savepoint(self, connection: Connection, name: str) -> None:
        """Set a savepoint."""
        self.execute(connection, f"save transaction {name}")

    def back_to(self, connection: Connection, name: str) -> None:
        """Roll back to a savepoint."""
        self.execute(connection, f"rollback transaction {name}")

    def wait_at_most(self, connection: Connection, seconds: int) -> None:
        """Let a session wait no longer than this for a lock; then a statement of it fails."""
        self.execute(connection, f"set lock_timeout {int(seconds * 1000)}")

    def hold_table(self, connection: Connection, table: str) -> None:
        """Let nobody else read or write a table of rowq's until give_table.

        Only a lock on the table's schema stops readers too, where they read row versions.
        """
        self.begin(connection)
        self.execute(connection, f"alter table rowq.{table} set (lock_escalation = disable)")

    def give_table(self, connection: Connection) -> None:
        """Let others have it again."""
        self.rollback(connection)


def _only_rows(cursor: Any, routine: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return columns and rows of the one set of rows; a message may come before it."""
    columns: list[str] = []
    rows: list[tuple[Any, ...]] = []
    while True:
        if cursor.description:
            assert not columns, f"{routine} returned two result sets"
            columns = [column[0] for column in cursor.description]
            rows = cursor.fetchall()
        if not cursor.nextset():
            return columns, rows


def _value(kind: str, value: Any) -> Any:
    """Return an argument as the driver binds it for a parameter of a contract type."""
    match value:
        case None:
            return None
        case datetime():
            return value.astimezone(UTC).replace(tzinfo=None).isoformat("T", "microseconds")
        case _ if kind in {"json", "int64s"}:
            return json_text(value)
    return value


def _read(column: str, kind: str, value: Any) -> Any:
    """Return a value in the contract's Python type; the server must have sent one that fits."""
    if value is None:
        return None
    sent, read = _TYPES[kind]
    assert type(value) is sent, f"{column}: {value!r} is no {kind}"
    return read(value)


def _same(value: Any) -> Any:
    return value


def _in_utc(value: datetime) -> datetime:
    return value.replace(tzinfo=UTC)


_TYPES: dict[str, tuple[type, Callable[[Any], Any]]] = {
    "boolean": (bool, _same),
    "int32": (int, _same),
    "int64": (int, _same),
    "float": (float, _same),
    "text": (str, _same),
    "binary": (bytes, _same),
    "json": (str, json.loads),
    "timestamp": (datetime, _in_utc),
}


DIALECT = SqlserverDialect()
