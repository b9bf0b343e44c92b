"""What a server tells of itself: reads, deadlocks, lock waits, commits, log, processor time."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from benchmarks.rowq_bench.closing import Closing
from benchmarks.rowq_bench.host import cpu_seconds
from benchmarks.rowq_bench.seeds.session import MariadbSession, PostgresSession, Session

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
# InnoDB shows the list of transactions as it was at the last look, if that was just now.
_CACHED_SECONDS = 0.15
_TABLES = """
    select format('%I.%I', n.nspname, c.relname)
    from pg_catalog.pg_class c
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where c.relkind = 'r' and n.nspname in ('seed', 'rowq')
"""


@dataclass(frozen=True, slots=True)
class Counts:
    """Counters at one moment.

    reads: pages looked at in memory, those of bodies included only where body_reads is 0.
    body_reads: pages of bodies that are kept outside their rows, where the engine tells them apart.
    lock_waits: waits for a row's lock. cpu: seconds of the server's process, where it is one.
    """

    reads: int
    body_reads: int
    deadlocks: int
    lock_waits: int
    lock_wait_seconds: float
    commits: int
    log_bytes: int
    cpu: float

    def since(self, before: Counts) -> Counts:
        """Return what was added."""
        names = [field.name for field in fields(self)]
        return Counts(**{name: getattr(self, name) - getattr(before, name) for name in names})


class Observer(Protocol):
    """A session beside the others that reads the server's counters."""

    def __enter__(self) -> Self:
        """Return the observer."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the session."""

    def counts(self, session: Session | None = None) -> Counts:
        """Read the counters; session: first let this one hand in what it has not told yet."""

    def settle(self) -> None:
        """Wait until sessions that have been opened since this one have handed in what they did."""

    def look(self) -> None:
        """Note who waits for a lock now, where the server does not count it."""

    def rows_locked(self, session: Session) -> int:
        """Return how many rows an open transaction has locked."""


class PostgresObserver(Closing):
    """Counters of one database. Lock waits are those that a look found: distinct by their start."""

    def __init__(self, url: str) -> None:
        self._session = PostgresSession(url)
        self._waits: dict[tuple[bytes | None, bytes | None], float] = {}
        self._there = self._others()

    def close(self) -> None:
        """Close the session."""
        self._session.close()

    def counts(self, session: Session | None = None) -> Counts:
        """Read the counters. Reads are those of the database's tables, indexes and sequences."""
        for one in (session, self._session):
            if one is not None:
                one.run("select pg_stat_force_next_flush()")
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


class MariadbObserver(Closing):
    """Counters of the whole server, and of InnoDB's list of transactions."""

    def __init__(self, url: str) -> None:
        self._session = MariadbSession(url)

    def close(self) -> None:
        """Close the session."""
        self._session.close()

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

    def settle(self) -> None:
        """Do nothing: every count is the server's own."""

    def look(self) -> None:
        """Do nothing: the server counts every wait."""

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
