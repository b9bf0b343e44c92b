"""Where queues are, and where calls with their names go."""

from typing import Any

import psycopg

from rowq.tools.engines.postgres.citus.nodes import Node, session_on
from rowq.tools.engines.postgres.citus.scripts import carriers
from rowq.tools.migrate.errors import ForeignSchema

_CARRIES = """
    select exists (
        select
        from pg_catalog.pg_namespace n
        join pg_catalog.pg_namespace r
            on r.nspname operator(pg_catalog.=) 'rowq'
            and r.nspowner operator(pg_catalog.=) n.nspowner
        where n.nspname operator(pg_catalog.=) 'rowq_node'
    )
"""
_OLD = """
    select p.proname
    from pg_catalog.pg_proc p
    where p.pronamespace operator(pg_catalog.=) pg_catalog.to_regnamespace('rowq_citus')
      and p.proname operator(pg_catalog.<>) all (%s)
    order by p.proname
"""
# A view that the owner has put in the table's place would run as the superuser whose session it is;
# copy refuses a view.
_QUEUES = "copy rowq.queue (queue_name) to stdout"
_PLACES = """
    select q.queue_name, p.groupid
    from unnest(%s::text[]) q (queue_name)
    join pg_catalog.pg_dist_placement p
        on p.shardid = pg_catalog.get_shard_id_for_distribution_column(
            'rowq_citus.route', q.queue_name)
"""
_KNOWN = """
    select s.shardid, p.groupid
    from pg_catalog.pg_dist_shard s
    join pg_catalog.pg_dist_placement p on p.shardid = s.shardid
    where s.logicalrelid = pg_catalog.to_regclass('rowq_citus.route')
"""


def carries(connection: Any) -> bool:
    """Return whether a node carries calls to others, whatever the session's search_path is."""
    return bool(connection.execute(_CARRIES).fetchone()[0])


def old_carriers(connection: Any) -> list[str]:
    """Return the functions that carry calls of a release before."""
    return [name for (name,) in connection.execute(_OLD, [list(carriers())])]


def queues_on(node: Node) -> list[str]:
    """Return the names of the queues that a node has.

    Raises:
        ForeignSchema: rowq.queue is not the table that rowq made.
        CannotConnect: the node could not be reached.
    """
    with session_on(node) as connection:
        try:
            with connection.cursor().copy(_QUEUES) as copied:
                copied.set_types(["text"])
                return sorted(name for (name,) in copied.rows())
        except psycopg.errors.WrongObjectType as error:
            raise ForeignSchema(
                f"{ForeignSchema.number} foreign_schema: rowq.queue is not a table",
                "Find out who has put something else in its place.",
            ) from error


def misplaced(nodes: tuple[Node, ...], node: Node) -> dict[str, str]:
    """Return the queues of a node that calls do not reach, and the nodes where these go.

    Args:
        nodes: all nodes of the cluster, the coordinator first.
        node: the node to look at.
    """
    with session_on(nodes[0]) as connection:
        return misplaced_as_seen(connection, nodes, node)


def misplaced_as_seen(connection: Any, nodes: tuple[Node, ...], node: Node) -> dict[str, str]:
    """Return what misplaced does, as a transaction of the coordinator sees the places."""
    found = connection.execute(_PLACES, [queues_on(node)]).fetchall()
    names = {one.group: one.name for one in nodes}
    return {
        name: names.get(group, f"group {group}") for name, group in found if group != node.group
    }


def knows_the_same(coordinator: Node, node: Node) -> bool:
    """Return whether a node carries calls to the same nodes as the coordinator."""
    known = []
    for one in (coordinator, node):
        with session_on(one) as connection:
            known.append(set(connection.execute(_KNOWN).fetchall()))
    return known[0] == known[1]
