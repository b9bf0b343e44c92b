"""Reads a PostgreSQL server's counters: reads, deadlocks, lock waits, commits, log."""

import time

from benchmarks.engines.postgres.session import PostgresSession
from benchmarks.harness.observe import Counts, Observer
from benchmarks.harness.session import Session

_READS = """
    select coalesce(sum(t.reads), 0)::bigint
               + (select coalesce(sum(s.blks_read + s.blks_hit), 0)
                  from pg_catalog.pg_statio_user_sequences s)::bigint,
           coalesce(sum(t.body_reads), 0)::bigint
    from (
        select coalesce(x.heap_blks_read + x.heap_blks_hit, 0)
                   + coalesce(x.idx_blks_read + x.idx_blks_hit, 0) as reads,
               coalesce(x.toast_blks_read + x.toast_blks_hit, 0)
                   + coalesce(x.tidx_blks_read + x.tidx_blks_hit, 0) as body_reads
        from pg_catalog.pg_statio_user_tables x
    ) t
"""
_SERVER = """
    select d.deadlocks, d.xact_commit,
           pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint
    from pg_catalog.pg_stat_database d
    where d.datname = current_database()
"""
_WAITS = """
    select l.pid, extract(epoch from l.waitstart)::text, extract(epoch from clock_timestamp())::text
    from pg_catalog.pg_locks l
    where not l.granted and l.waitstart is not null
"""
_SESSIONS = """
    select a.pid
    from pg_catalog.pg_stat_activity a
    where a.datname = current_database() and a.backend_type = 'client backend'
"""
_SETTLE_SECONDS = 10.0
_TABLES = """
    select format('%I.%I', n.nspname, c.relname)
    from pg_catalog.pg_class c
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where c.relkind = 'r' and n.nspname in ('seed', 'rowq')
"""


class PostgresObserver(Observer):
    """Counters of one database. Lock waits are those that a look found: distinct by their start."""

    def __init__(self, url: str) -> None:
        super().__init__(PostgresSession(url))
        self._waits: dict[tuple[bytes | None, bytes | None], float] = {}
        self._there = self._others()

    def counts(self, session: Session | None = None) -> Counts:
        """Read the counters. Reads are those of the database's tables, indexes and sequences."""
        for observed in (session, self._session):
            if observed is not None:
                observed.run("select pg_stat_force_next_flush()")
        ((reads, body_reads),) = self._session.run(_READS)
        ((deadlocks, commits, log_bytes),) = self._session.run(_SERVER)
        return Counts(
            reads=int(reads or 0),
            body_reads=int(body_reads or 0),
            deadlocks=int(deadlocks or 0),
            lock_waits=len(self._waits),
            lock_wait_seconds=sum(self._waits.values()),
            commits=int(commits or 0),
            log_bytes=int(log_bytes or 0),
            cpu=0.0,
        )

    def settle(self) -> None:
        """Wait until younger sessions are gone: each hands in its counts before it ends."""
        until = time.monotonic() + _SETTLE_SECONDS
        while self._others() - self._there and time.monotonic() < until:
            time.sleep(0.02)

    def _others(self) -> set[bytes | None]:
        return {pid for (pid,) in self._session.run(_SESSIONS)}

    def look(self) -> None:
        """Note each session that waits for a lock, and for how long it has."""
        for pid, since, now in self._session.run(_WAITS):
            self._waits[pid, since] = float(now or 0) - float(since or 0)

    def rows_locked(self, session: Session) -> int:  # noqa: ARG002
        """Return how many rows of all tables `for share skip locked` leaves out."""
        locked = 0
        for (table,) in self._session.run(_TABLES):
            name = (table or b"").decode()
            ((all_rows, free),) = self._session.run(
                f"select (select count(*) from {name}),"
                f" (select count(*) from (select from {name} for share skip locked) x)"
            )
            locked += int(all_rows or 0) - int(free or 0)
        return locked
