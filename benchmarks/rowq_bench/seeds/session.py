"""A session in autocommit for plain SQL, with as little of the client in the figures as possible.

Statements are the engine's own: parameters are $1, $2 on PostgreSQL and ? on MariaDB.
"""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self

import psycopg
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

from benchmarks.rowq_bench.mariadb.wire import Connection, WireError

Value = int | str
Row = tuple[bytes | None, ...]

_GOOD = {ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK}
_DEADLOCKS = {"40P01", "1213"}
_TIMEOUTS = {"55P03", "1205"}


class StatementError(RuntimeError):
    """What the server refused; code is its SQLSTATE on PostgreSQL, its number on MariaDB."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code

    @property
    def is_deadlock(self) -> bool:
        """Whether the server chose this session as the victim of a deadlock."""
        return self.code in _DEADLOCKS

    @property
    def is_timeout(self) -> bool:
        """Whether the session waited too long for a lock."""
        return self.code in _TIMEOUTS


class Session(Protocol):
    """An open session; a context that closes it."""

    affected: int
    """How many rows the last statement changed or returned."""

    def __enter__(self) -> Self:
        """Return the session."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""

    def run(self, statement: str, *values: Value) -> list[Row]:
        """Run a statement and return its rows, columns as text; raises StatementError."""

    def script(self, *statements: str) -> None:
        """Run statements that are needed once."""


def open_session(url: str) -> Session:
    """Open a session on the server of a URL."""
    return _Postgres(url) if url.startswith("postgres") else _MariaDB(url)


class _Postgres:
    """A session through libpq; a statement is prepared when it runs for the first time."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._link = self._connection.pgconn
        self._prepared: dict[str, bytes] = {}
        self.affected = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._connection.close()

    def run(self, statement: str, *values: Value) -> list[Row]:
        name = self._prepared.get(statement)
        if name is None:
            name = b"s%d" % len(self._prepared)
            self._check(self._link.prepare(name, statement.encode()))
            self._prepared[statement] = name
        result = self._check(self._link.exec_prepared(name, [str(one).encode() for one in values]))
        self.affected = result.command_tuples or 0
        columns = range(result.nfields)
        return [
            tuple(result.get_value(row, column) for column in columns)
            for row in range(result.ntuples)
        ]

    def script(self, *statements: str) -> None:
        for statement in statements:
            self._check(self._link.exec_(statement.encode()))

    def _check(self, result: PGresult) -> PGresult:
        if result.status not in _GOOD:
            code = result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) or b""
            raise StatementError(code.decode(), result.error_message.decode(errors="replace"))
        return result


class _MariaDB:
    """A session through libmariadb; values are written into the text."""

    def __init__(self, url: str) -> None:
        self._connection = Connection(url)
        self.affected = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._connection.close()

    def run(self, statement: str, *values: Value) -> list[Row]:
        text = statement
        for value in values:
            text = text.replace("?", _literal(value), 1)
        try:
            rows = self._connection.run(text.encode())
        except WireError as error:
            raise StatementError(str(error.number), str(error)) from None
        self.affected = self._connection.affected
        return rows

    def script(self, *statements: str) -> None:
        for statement in statements:
            self._connection.run(statement.encode())


def _literal(value: Value) -> str:
    """Write a value as MariaDB reads it; a text may hold no quote, backslash or question mark."""
    if isinstance(value, int):
        return str(value)
    if set(value) & set("'\\?"):
        raise ValueError("this text cannot be written into a statement")
    return f"'{value}'"
