"""Sessions on PostgreSQL through libpq: statements with named values, prepared."""

from collections.abc import Sequence

import psycopg
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

from benchmarks.harness.closing import Closing
from benchmarks.harness.host import cpu_seconds
from benchmarks.harness.session import NAMED_VALUE, RetryError, Row, Session, Value

_GOOD = {ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK}
_RETRY_STATES = {"40P01", "40001", "55P03"}


class Libpq(Closing):
    """A connection in autocommit whose prepared statements go through libpq.

    backend: the server process's pid.
    """

    def __init__(self, url: str) -> None:
        self.connection = psycopg.connect(url, autocommit=True)
        self.backend = self.connection.info.backend_pid

    def close(self) -> None:
        """Close the session."""
        self.connection.close()

    @property
    def server_cpu(self) -> float:
        """Seconds of processor time of the server process."""
        return cpu_seconds(self.backend)

    def prepare(self, name: str, statement: str) -> None:
        """Prepare a statement with its values as $1, $2 and so on."""
        checked(self.connection.pgconn.prepare(name.encode(), statement.encode()))

    def call(self, name: str, values: Sequence[bytes]) -> PGresult:
        """Run a prepared statement; raises RetryError, or RuntimeError for the others."""
        return checked(self.connection.pgconn.exec_prepared(name.encode(), values))


class PostgresSession(Libpq, Session):
    """A session through libpq; each statement is prepared when it is first run."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._prepared: dict[str, tuple[str, list[str]]] = {}

    def run(self, statement: str, **values: Value) -> list[Row]:
        """Run a statement and return its rows."""
        known, order = self._prepared.get(statement) or self._prepare(statement)
        result = self.call(known, [_text(values[name]) for name in order])
        self.affected = result.command_tuples or 0
        columns = range(result.nfields)
        return [
            tuple(result.get_value(row, column) for column in columns)
            for row in range(result.ntuples)
        ]

    def script(self, text: str) -> None:
        """Run any number of statements, in one transaction if they are several."""
        self.connection.execute(text.encode())

    def _prepare(self, statement: str) -> tuple[str, list[str]]:
        order = list(dict.fromkeys(NAMED_VALUE.findall(statement)))
        text = NAMED_VALUE.sub(lambda found: f"${order.index(found[1]) + 1}", statement)
        name = f"s{len(self._prepared)}"
        self.prepare(name, text)
        self._prepared[statement] = name, order
        return name, order


def checked(result: PGresult) -> PGresult:
    """Return a result; raises RetryError or RuntimeError if it is an error."""
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
    return b"{" + b",".join(b"%d" % number for number in value) + b"}"
