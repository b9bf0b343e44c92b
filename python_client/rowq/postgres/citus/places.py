"""Where queues are, and where calls with their names go."""

from typing import Any

from rowq.postgres.citus.nodes import Node, session
from rowq.postgres.citus.scripts import carriers

_CARRIES = """
    select count(*) > 0
    from pg_catalog.pg_namespace n
    join pg_catalog.pg_namespace r on r.nspname = 'rowq' and r.nspowner = n.nspowner
    where n.nspname = 'rowq_node'
"""
_OLD = """
    select p.proname
    from pg_catalog.pg_proc p
    where p.pronamespace operator(pg_catalog.=) pg_catalog.to_regnamespace('rowq_citus')
      and p.proname operator(pg_catalog.<>) all (%s)
    order by p.proname
"""
_QUEUES = "select q.queue_name from rowq.queue q order by q.queue_name"
_PLACES = """
    select q.queue_name, p.groupid, n.nodename || ':' || n.nodeport
    from unnest(%s::text[]) q (queue_name)
    join pg_catalog.pg_dist_placement p
        on p.shardid = pg_catalog.get_shard_id_for_distribution_column(
            'rowq_citus.route', q.queue_name)
    join pg_catalog.pg_dist_node n on n.groupid = p.groupid and n.noderole = 'primary'
"""
_UNASKED = """
    select distinct n.nodename || ':' || n.nodeport
    from pg_catalog.pg_dist_shard s
    join pg_catalog.pg_dist_placement p on p.shardid = s.shardid
    join pg_catalog.pg_dist_node n on n.groupid = p.groupid and n.noderole = 'primary'
    where s.logicalrelid = pg_catalog.to_regclass('rowq_citus.route')
      and n.nodename || ':' || n.nodeport not in (select a.node_name from rowq_citus.nodes() a)
"""


def carries(connection: Any) -> bool:
    """Return whether a node carries calls to others."""
    return bool(connection.execute(_CARRIES).fetchone()[0])


def old_carriers(connection: Any) -> list[str]:
    """Return the functions that carry calls of a release before."""
    return [name for (name,) in connection.execute(_OLD, [list(carriers())])]


def queues_on(node: Node) -> list[str]:
    """Return the names of the queues that a node has."""
    with session(node.url) as connection:
        return [name for (name,) in connection.execute(_QUEUES)]


def misplaced(coordinator: Node, node: Node) -> dict[str, str]:
    """Return the queues of a node that calls do not reach, and the nodes where these go."""
    with session(coordinator.url) as connection:
        return misplaced_as_seen(connection, node)


def misplaced_as_seen(connection: Any, node: Node) -> dict[str, str]:
    """Return what misplaced does, as a transaction of the coordinator sees the places."""
    found = connection.execute(_PLACES, [queues_on(node)]).fetchall()
    return {name: place for name, group, place in found if group != node.group}


def unasked(coordinator: Node) -> set[str]:
    """Return the nodes to which calls with names go, but not those for every node."""
    with session(coordinator.url) as connection:
        return {name for (name,) in connection.execute(_UNASKED)}
