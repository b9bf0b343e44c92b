"""Reads a SQL Server's counters: reads, deadlocks, lock waits, commits, log, processor time."""

from benchmarks.engines.sqlserver.session import SqlserverSession
from benchmarks.engines.sqlserver.statistics_io import Reads
from benchmarks.harness.observe import Counts, Observer
from benchmarks.harness.session import Session

COUNTERS = (
    "Page lookups/sec",
    "Number of Deadlocks/sec",
    "Write Transactions/sec",
    "Log Bytes Flushed/sec",
    "Batch Requests/sec",
)
"""Counters that are read. What the server calls a rate is the count since it began."""

_COUNTERS = """
    select rtrim(c.counter_name), c.cntr_value
    from sys.dm_os_performance_counters c
    where (c.counter_name = N'Page lookups/sec' and c.object_name like N'%:Buffer Manager%')
       or (c.counter_name = N'Number of Deadlocks/sec' and c.instance_name = N'_Total')
       or (c.counter_name in (N'Write Transactions/sec', N'Log Bytes Flushed/sec')
           and c.object_name like N'%:Databases%'
           and c.instance_name = db_name())
       or c.counter_name = N'Batch Requests/sec'
"""
_LOCKS = """
    select coalesce(sum(s.row_lock_wait_count + s.page_lock_wait_count), 0),
           coalesce(sum(s.row_lock_wait_in_ms + s.page_lock_wait_in_ms), 0)
    from sys.dm_db_index_operational_stats(db_id(), null, null, null) s
"""
_CPU = "select sum(p.total_cpu_usage_ms) from sys.dm_resource_governor_resource_pools p"
_LOCKED = """
    select count(*)
    from sys.dm_tran_locks l
    where l.request_session_id = :session
      and l.resource_database_id = db_id()
      and l.resource_type in (N'KEY', N'RID', N'PAGE')
      and l.request_mode not like N'I_'
      and l.request_status = N'GRANT'
"""
QUERIES = (_COUNTERS, _LOCKS, _CPU, _LOCKED)


class SqlserverObserver(Observer):
    """Counters of the whole server; lock waits, commits and log are those of the URL's database.

    Reads are requests to the buffer pool, those of bodies included. For one session they are what
    STATISTICS IO tells, which tells bodies apart.
    """

    def __init__(self, url: str) -> None:
        super().__init__(SqlserverSession(url))

    def counts(self, session: Session | None = None) -> Counts:
        """Read the counters; session: the reads are those that it made since it was first asked."""
        counters = read_counters(self._session)
        ((lock_waits, lock_wait_ms),) = self._session.run(_LOCKS)
        ((cpu_ms,),) = self._session.run(_CPU)
        reads = Reads(counters["Page lookups/sec"])
        if isinstance(session, SqlserverSession):
            reads = session.tell_reads()
        return Counts(
            reads=reads.reads,
            body_reads=reads.lob_reads,
            deadlocks=counters["Number of Deadlocks/sec"],
            lock_waits=int(lock_waits or 0),
            lock_wait_seconds=int(lock_wait_ms or 0) / 1e3,
            commits=counters["Write Transactions/sec"],
            log_bytes=counters["Log Bytes Flushed/sec"],
            cpu=int(cpu_ms or 0) / 1e3,
        )

    def rows_locked(self, session: Session) -> int:
        """Return how many keys and rows a session has locked, index entries and pages included."""
        ((locked,),) = self._session.run(_LOCKED, session=session.backend)
        return int(locked or 0)


def read_counters(session: Session) -> dict[str, int]:
    """Return the server's counters by their names; raises RuntimeError where one is missing."""
    found = {(name or b"").decode(): int(value or 0) for name, value in session.run(_COUNTERS)}
    if missing := [name for name in COUNTERS if name not in found]:
        raise RuntimeError(f"the server does not count {', '.join(missing)}")
    return found
