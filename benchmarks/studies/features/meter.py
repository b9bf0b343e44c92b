"""Reads what the calls of a session cost in the server."""

import contextlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import psycopg

from benchmarks.harness.host import running_seconds

SETTINGS = {
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track": "none",
    "pg_stat_statements.max": "10000",
    "synchronous_commit": "off",
    "autovacuum": "off",
    "max_connections": "200",
}
"""The server's settings besides the benchmarks' own: nobody else works, none waits for the disk."""

FIGURES = ("statements", "buffers", "wal_bytes", "cpu_us")
_COUNTED = """
    select coalesce(sum(s.calls), 0)::bigint,
           coalesce(
               sum(s.shared_blks_hit + s.shared_blks_read) filter (where s.toplevel), 0
           )::bigint
    from pg_stat_statements s
    where s.dbid = (select oid from pg_database where datname = current_database())
      and s.query not like 'set %'
"""
_RESET = """
    select pg_stat_statements_reset(
        0, (select oid from pg_database where datname = current_database()), 0
    )
"""
TRACK = {
    True: "set pg_stat_statements.track = 'all'",
    False: "set pg_stat_statements.track = 'none'",
}
"""What the measured session runs so that its statements are counted, or are not."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of calls.

    statements: the calls and all inside them. buffers: hit or read. wal_bytes: written to the log.
    cpu_us: microseconds that the server process has had a processor.
    """

    statements: float
    buffers: float
    wal_bytes: float
    cpu_us: float

    def each(self, count: int) -> dict[str, float]:
        """Return the figures of one of so many."""
        return {name: round(value / count, 3) for name, value in asdict(self).items()}


class Meter:
    """Measures one server process.

    connection: another session of its database, in autocommit, whose statements are not counted.
    """

    def __init__(self, connection: psycopg.Connection, backend: int) -> None:
        self._connection = connection
        self._backend = backend
        self._wal = 0
        self._cpu = 0.0
        connection.execute("create extension if not exists pg_stat_statements")

    def start(self) -> None:
        """Begin from nothing."""
        self._wal, self._cpu = 0, 0.0
        self._connection.execute(_RESET)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Add what is written and worked from here to the end of the block."""
        wal, cpu = self._log(), running_seconds(self._backend)
        yield
        self._cpu += running_seconds(self._backend) - cpu
        self._wal += self._log() - wal

    def used(self) -> tuple[int, float]:
        """Return the bytes of the log and the µs so far."""
        return self._wal, self._cpu * 1e6

    def counted(self) -> tuple[int, int]:
        """Return the statements and buffers since the start, while the session was tracked."""
        row = self._connection.execute(_COUNTED).fetchone()
        assert row is not None
        return row[0], row[1]

    def _log(self) -> int:
        row = self._connection.execute(
            "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"
        ).fetchone()
        assert row is not None
        return int(row[0])
