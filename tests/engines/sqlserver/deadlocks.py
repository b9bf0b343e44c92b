"""SQL Server's deadlock graphs, for the reports of failed tests."""

from typing import Any

# The session system_health always exists and keeps the last few megabytes of events.
GRAPHS = """
select e.event.value('(@timestamp)[1]', 'datetime2(3)') as happened_at,
       cast(e.event.query('(data/value/deadlock)[1]') as nvarchar(max)) as graph
from (
    select cast(t.target_data as xml) as kept
    from sys.dm_xe_sessions s
    inner join sys.dm_xe_session_targets t on t.event_session_address = s.address
    where s.name = N'system_health'
      and t.target_name = N'ring_buffer'
) k
cross apply k.kept.nodes('/RingBufferTarget/event[@name="xml_deadlock_report"]') e (event)
where e.event.value('(@timestamp)[1]', 'datetime2(3)') >= ?
order by happened_at
"""


def graphs_since(connection: Any, since: Any) -> list[str]:
    """Return the deadlock graphs since a time in UTC, oldest first."""
    rows = connection.execute(GRAPHS, since).fetchall()
    return [f"{happened_at}\n{graph}" for happened_at, graph in rows]
