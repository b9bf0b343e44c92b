"""The deadlock graphs that SQL Server keeps by itself, for the report of a test that failed."""

from typing import Any

# The session system_health is always there and keeps the newest few megabytes of events.
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


def graphs_since(connection: Any, moment: Any) -> list[str]:
    """Return the graphs of the deadlocks that happened since a moment, in UTC, oldest first."""
    rows = connection.execute(GRAPHS, moment).fetchall()
    return [f"{happened_at}\n{graph}" for happened_at, graph in rows]
