"""Sessions on PostgreSQL through libpq: statements with named values, prepared."""

from __future__ import annotations

import psycopg
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

from benchmarks.harness.closing import Closing
from benchmarks.harness.host import cpu_seconds
from benchmarks.harness.session import NAMED_VALUE, RetryError, Row, Value

_GOOD = {ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK}
_RETRY_STATES = {"40P01", "40001", "55P03"}


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
        given = [_text(values[one]) for one in order]
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


def _text(value: Value) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, int):
        return b"%d" % value
    return b"{" + b",".join(b"%d" % one for one in value) + b"}"
