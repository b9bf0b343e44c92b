"""Reads a MariaDB server's counters: reads, deadlocks, waits, commits, log, processor time."""

import contextlib
import time
from pathlib import Path

from benchmarks.engines.mysql.session import MariadbSession
from benchmarks.harness.host import cpu_seconds
from benchmarks.harness.observe import Counts, Observer
from benchmarks.harness.session import Session

# InnoDB refreshes its list of transactions only after this time; an earlier look sees the old list.
_CACHED_SECONDS = 0.15


class MariadbObserver(Observer):
    """Counters of the whole server, and of InnoDB's list of transactions."""

    def __init__(self, url: str) -> None:
        super().__init__(MariadbSession(url))

    def counts(self, session: Session | None = None) -> Counts:  # noqa: ARG002
        """Read the counters. Reads are requests to the buffer pool, those of purge included."""
        rows = self._session.run(
            "show global status where variable_name like 'Innodb%' or variable_name = 'Com_commit'"
        )
        status = {(name or b"").decode(): int(value or 0) for name, value in _numbers(rows)}
        ((pid_file,),) = self._session.run("select @@pid_file")
        cpu = 0.0
        with contextlib.suppress(OSError, ValueError):
            cpu = cpu_seconds(int(Path((pid_file or b"").decode()).read_text("ascii")))
        return Counts(
            reads=status["Innodb_buffer_pool_read_requests"],
            body_reads=0,
            deadlocks=status["Innodb_deadlocks"],
            lock_waits=status["Innodb_row_lock_waits"],
            lock_wait_seconds=status["Innodb_row_lock_time"] / 1e3,
            commits=status["Com_commit"],
            log_bytes=status["Innodb_lsn_current"],
            cpu=cpu,
        )

    def rows_locked(self, session: Session) -> int:
        """Return InnoDB's count of the session's row locks, index entries included."""
        time.sleep(_CACHED_SECONDS)
        rows = self._session.run(
            "select trx_rows_locked from information_schema.innodb_trx"
            " where trx_mysql_thread_id = :backend",
            backend=session.backend,
        )
        return sum(int(count or 0) for (count,) in rows)


def _numbers(rows: list[tuple[bytes | None, ...]]) -> list[tuple[bytes | None, bytes | None]]:
    return [(row[0], row[1]) for row in rows if (row[1] or b"").isdigit()]
