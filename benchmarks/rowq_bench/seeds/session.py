"""Sessions that run statements with named values, with as little of the client as possible."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Protocol, Self

import psycopg
import pymysql
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult
from pymysql.constants import CLIENT

from benchmarks.rowq_bench.closing import Closing
from benchmarks.rowq_bench.host import cpu_seconds
from benchmarks.rowq_bench.mariadb.wire import Connection, WireError
from rowq.mysql.url import connection_parameters

Row = tuple[bytes | None, ...]
Value = int | str | bytes | Sequence[int]

NAMED_VALUE = re.compile(r"(?<![:\w]):([a-z]\w*)")
"""A value in a statement of a form, by its name."""

_GOOD = {ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK}
_RETRY_STATES = {"40P01", "40001", "55P03"}
_RETRY_NUMBERS = {1213, 1205, 1020}


class RetryError(RuntimeError):
    """A deadlock, a lock timeout or a lost race: nothing was done, the caller may try again."""


class Session(Protocol):
    """An open session in autocommit."""

    def __enter__(self) -> Self:
        """Return the session."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the session."""

    def close(self) -> None:
        """Close the session, as leaving a `with` does."""

    @property
    def backend(self) -> int:
        """The server's number of the session."""

    @property
    def server_cpu(self) -> float:
        """Seconds that the server spent for this session alone; 0 where nobody can tell."""

    @property
    def affected(self) -> int:
        """How many rows the last statement changed."""

    def run(self, statement: str, **values: Value) -> list[Row]:
        """Run a statement, return its rows; raises RetryError, or RuntimeError for the others."""

    def script(self, text: str) -> None:
        """Run any number of statements."""


class PostgresSession(Closing):
    """A session through libpq; each statement is prepared when it is first run."""

    def __init__(self, url: str) -> None:
        self.connection = psycopg.connect(url, autocommit=True)
        self._prepared: dict[str, tuple[bytes, list[str]]] = {}
        self.affected = 0

    def close(self) -> None:
        """Close the session."""
        self.connection.close()

    @property
    def backend(self) -> int:
        """The server process's pid."""
        return self.connection.info.backend_pid

    @property
    def server_cpu(self) -> float:
        """Seconds of processor time of the server process."""
        return cpu_seconds(self.backend)

    def run(self, statement: str, **values: Value) -> list[Row]:
        """Run a statement and return its rows."""
        name, order = self._prepared.get(statement) or self._prepare(statement)
        given = [_postgres_text(values[one]) for one in order]
        result = self._check(self.connection.pgconn.exec_prepared(name, given))
        self.affected = result.command_tuples or 0
        columns = range(result.nfields)
        return [
            tuple(result.get_value(row, column) for column in columns)
            for row in range(result.ntuples)
        ]

    def script(self, text: str) -> None:
        """Run any number of statements, in one transaction if they are several."""
        self.connection.execute(text.encode())

    def _prepare(self, statement: str) -> tuple[bytes, list[str]]:
        order = list(dict.fromkeys(NAMED_VALUE.findall(statement)))
        text = NAMED_VALUE.sub(lambda found: f"${order.index(found[1]) + 1}", statement)
        name = f"s{len(self._prepared)}".encode()
        self._check(self.connection.pgconn.prepare(name, text.encode()))
        self._prepared[statement] = name, order
        return name, order

    def _check(self, result: PGresult) -> PGresult:
        if result.status not in _GOOD:
            text = result.error_message.decode(errors="replace")
            state = (result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) or b"").decode()
            raise (RetryError if state in _RETRY_STATES else RuntimeError)(text)
        return result


class MariadbSession(Closing):
    """A session through libmariadb; values are written into the text."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection = Connection(url)
        ((number,),) = self._connection.run(b"select connection_id()")
        self.backend = int(number or 0)

    def close(self) -> None:
        """Close the session."""
        self._connection.close()

    @property
    def server_cpu(self) -> float:
        """Not known for a session: the server is one process of many threads."""
        return 0.0

    @property
    def affected(self) -> int:
        """How many rows the last statement changed."""
        return self._connection.affected

    def run(self, statement: str, **values: Value) -> list[Row]:
        """Run a statement and return the rows of its first result."""
        text = NAMED_VALUE.sub(lambda found: _mariadb_text(values[found[1]]), statement)
        try:
            return self._connection.run(text.encode())
        except WireError as error:
            if error.number in _RETRY_NUMBERS:
                raise RetryError(str(error)) from error
            raise

    def script(self, text: str) -> None:
        """Run any number of statements; the server finds where each ends, bodies included."""
        given = connection_parameters(self._url)
        with (
            pymysql.connect(
                **given, autocommit=True, client_flag=CLIENT.MULTI_STATEMENTS
            ) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(text)
            while cursor.nextset():
                pass


def _postgres_text(value: Value) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, int):
        return b"%d" % value
    return b"{" + b",".join(b"%d" % one for one in value) + b"}"


def _mariadb_text(value: Value) -> str:
    if isinstance(value, int):
        return str(value)
    if isinstance(value, bytes | str):
        text = value.decode() if isinstance(value, bytes) else value
        return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
    return ", ".join(str(one) for one in value)


OpenSession = Callable[[str], Session]
