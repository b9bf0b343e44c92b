"""The server's counters of one database, read from another database."""

import time
from dataclasses import dataclass

import psycopg
from psycopg.conninfo import make_conninfo

from benchmarks.harness.host import children_of, cpu_seconds

_COUNTERS = """
    select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint,
           d.blks_hit + d.blks_read, d.xact_commit + d.xact_rollback, d.deadlocks
    from pg_stat_database d where d.datname = %s
"""
_QUERIES = "select coalesce(sum(calls), 0)::bigint from pg_stat_statements where dbid = %s"
_SESSIONS = """
    select count(*) from pg_stat_activity
    where datname = %s and backend_type = 'client backend'
"""
_SIZES = """
    select coalesce(sum(pg_table_size(c.oid)), 0)::bigint,
           coalesce(sum(pg_indexes_size(c.oid)), 0)::bigint
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relkind = 'r' and n.nspname <> 'information_schema' and n.nspname !~ '^pg_'
"""

_QUIET_SECONDS = 1.0
_STEP = 0.01


@dataclass(frozen=True, slots=True)
class Counters:
    """The counters of a database at one time; cpu: seconds of the whole server.

    queries: statements that clients ran; None without pg_stat_statements.
    """

    wal_bytes: int
    buffers: int
    transactions: int
    deadlocks: int
    queries: int | None
    cpu: float


class Watch:
    """A session in another database that reads the counters of `database`.

    postmaster: the server's main process, None if it is remote.
    """

    def __init__(self, admin_url: str, database: str, postmaster: int | None) -> None:
        self._connection = psycopg.connect(make_conninfo(admin_url), autocommit=True)
        self._database = database
        self._postmaster = postmaster
        row = self._connection.execute(
            "select oid, exists (select from pg_extension where extname = 'pg_stat_statements')"
            " from pg_database where datname = %s",
            [database],
        ).fetchone()
        assert row is not None
        self._oid, self._has_statements = row
        if self._has_statements:
            self._connection.execute("select pg_stat_statements_reset()")
        self._sessions_before = self._sessions()

    def wait_quiet(self) -> None:
        """Wait up to 1 second for sessions to end, which report their counters then."""
        end = time.monotonic() + _QUIET_SECONDS
        while self.connections() > 0 and time.monotonic() < end:
            time.sleep(_STEP)

    def connections(self) -> int:
        """Return the connections that were opened since the watch began."""
        return self._sessions() - self._sessions_before

    def _sessions(self) -> int:
        row = self._connection.execute(_SESSIONS, [self._database]).fetchone()
        assert row is not None
        return int(row[0])

    def close(self) -> None:
        """Close the session."""
        self._connection.close()

    def read(self) -> Counters:
        """Read the counters."""
        counters = self._connection.execute(_COUNTERS, [self._database]).fetchone()
        assert counters is not None
        queries = None
        if self._has_statements:
            row = self._connection.execute(_QUERIES, [self._oid]).fetchone()
            assert row is not None
            queries = int(row[0])
        cpu = 0.0 if self._postmaster is None else server_cpu(self._postmaster)
        wal_bytes, buffers, transactions, deadlocks = counters
        return Counters(wal_bytes, buffers, transactions, deadlocks, queries, cpu)


def sizes(url: str) -> tuple[int, int]:
    """Return the bytes of all tables (with TOAST) and of all indexes."""
    with psycopg.connect(make_conninfo(url)) as connection:
        row = connection.execute(_SIZES).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])


def server_cpu(postmaster: int) -> float:
    """Return the CPU seconds of a server, including its ended processes."""
    processes = [postmaster, *children_of(postmaster)]
    return sum(cpu_seconds(pid, waited=True) for pid in processes)
