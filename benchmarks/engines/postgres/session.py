"""Sessions on PostgreSQL through libpq: prepared statements."""

from collections.abc import Sequence

import psycopg
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

from benchmarks.harness.host import Closing, exact_cpu_seconds

_GOOD = {ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK}


class Libpq(Closing):
    """A connection in autocommit that runs prepared statements by libpq.

    backend: pid of the server process.
    """

    def __init__(self, url: str) -> None:
        self.connection = psycopg.connect(url, autocommit=True)
        self.backend = self.connection.info.backend_pid

    def close(self) -> None:
        """Close the session."""
        self.connection.close()

    @property
    def server_cpu(self) -> float:
        """CPU seconds of the server process."""
        return exact_cpu_seconds(self.backend)

    def prepare(self, name: str, statement: str) -> None:
        """Prepare a statement with parameters $1, $2 and so on."""
        _checked(self.connection.pgconn.prepare(name.encode(), statement.encode()))

    def call(self, name: str, values: Sequence[bytes]) -> PGresult:
        """Run a prepared statement; raises RuntimeError if it fails."""
        return _checked(self.connection.pgconn.exec_prepared(name.encode(), values))


def _checked(result: PGresult) -> PGresult:
    if result.status not in _GOOD:
        raise RuntimeError(result.error_message.decode(errors="replace"))
    return result
