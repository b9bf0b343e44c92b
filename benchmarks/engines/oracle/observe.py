"""Reads an Oracle instance's counters from its v$ views."""

from benchmarks.engines.oracle.session import OracleSession
from benchmarks.harness.observe import Counts, Observer
from benchmarks.harness.session import Session

RIGHTS = ("select_catalog_role", "alter system")
"""The rights that an account needs besides its own objects: to read v$ views, to end a session."""

DISCONNECT = """begin
    for victim in (select s.serial# as serial from v$session s where s.sid = :session) loop
        execute immediate
            'alter system disconnect session ''' || :session || ',' || victim.serial
            || ''' immediate';
    end loop;
end"""
"""Ends a session, as a proxy, a failover or an idle timeout would."""

SERVED = """
    select max(case s.name when 'user calls' then s.value end),
           max(case s.name when 'user commits' then s.value end)
    from v$sysstat s
    where s.name in ('user calls', 'user commits')
"""
"""Calls that clients have sent, and commits of theirs; a call with a cursor's rows is two."""

_COUNTERS = """
    select s.name, s.value
    from v$sysstat s
    where s.name in ('session logical reads', 'user commits', 'redo size', 'enqueue deadlocks')
    union all
    select m.stat_name, m.value
    from v$sys_time_model m
    where m.stat_name in ('DB CPU', 'background cpu time')
    union all
    select 'waits', e.total_waits
    from v$system_event e
    where e.event = 'enq: TX - row lock contention'
    union all
    select 'microseconds waited', e.time_waited_micro
    from v$system_event e
    where e.event = 'enq: TX - row lock contention'
    union all
    select 'waiting', count(*)
    from v$session s
    where s.event = 'enq: TX - row lock contention' and s.state = 'WAITING'
    union all
    select 'microseconds waiting', coalesce(sum(s.wait_time_micro), 0)
    from v$session s
    where s.event = 'enq: TX - row lock contention' and s.state = 'WAITING'
"""
_READS = """
    select s.value
    from v$sesstat s
    join v$statname n on n.statistic# = s.statistic#
    where s.sid = :backend and n.name = 'session logical reads'
"""
# Other sessions see rows that are changed and not committed as they were before, so each is counted
# once.
_LOCKED = """declare
    type t_numbers is table of number;
    v_rows   sys_refcursor;
    v_found  t_numbers;
    v_all    number;
    v_locked number := 0;
begin
    for kept in (
        select t.table_name
        from user_tables t
        where t.temporary = 'N'
          and t.nested = 'NO'
          and (t.iot_type is null or t.iot_type = 'IOT')
    ) loop
        execute immediate 'select count(*) from "' || kept.table_name || '"' into v_all;
        v_locked := v_locked + v_all;
        open v_rows for 'select 1 from "' || kept.table_name || '" for update skip locked';
        loop
            fetch v_rows bulk collect into v_found limit 1000;
            v_locked := v_locked - v_found.count;
            exit when v_rows%notfound;
        end loop;
        close v_rows;
    end loop;
    rollback;
    :returned := v_locked;
end"""
_MICRO = 1e-6


class OracleObserver(Observer):
    """Counters of the whole instance, and the reads of one session.

    url: of an account with RIGHTS. A wait for a row's lock counts from its beginning on.
    """

    def __init__(self, url: str) -> None:
        super().__init__(OracleSession(url))

    def counts(self, session: Session | None = None) -> Counts:
        """Read the counters. Reads are those of the session given, or else of all; with bodies."""
        found = {
            (name or b"").decode(): float(value or 0)
            for name, value in self._session.run(_COUNTERS)
        }
        reads = found["session logical reads"]
        if session is not None:
            ((own,),) = self._session.run(_READS, backend=session.backend)
            reads = float(own or 0)
        waited = found.get("microseconds waited", 0.0) + found["microseconds waiting"]
        return Counts(
            reads=int(reads),
            body_reads=0,
            deadlocks=int(found["enqueue deadlocks"]),
            lock_waits=int(found.get("waits", 0.0) + found["waiting"]),
            lock_wait_seconds=waited * _MICRO,
            commits=int(found["user commits"]),
            log_bytes=int(found["redo size"]),
            cpu=(found["DB CPU"] + found["background cpu time"]) * _MICRO,
        )

    def rows_locked(self, session: Session) -> int:  # noqa: ARG002
        """Return how many rows of the account's tables `for update skip locked` leaves out."""
        ((locked,),) = self._session.run(_LOCKED)
        return int(locked or 0)
