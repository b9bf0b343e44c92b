"""What rowq doctor says of a node of a cluster."""

from collections.abc import Iterator
from typing import Any

from rowq.tools.doctor.check import Check, Status
from rowq.tools.engines.postgres.citus.nodes import node_name
from rowq.tools.engines.postgres.citus.places import carries

_IS_CITUS = "select pg_catalog.to_regclass('pg_catalog.pg_dist_node') is not null"
_NODES = """
    select
        d.nodename,
        d.nodeport,
        (
            select pg_catalog.count(*)
            from pg_catalog.pg_dist_node n
            where n.noderole operator(pg_catalog.=) 'primary'
        ),
        coalesce(
            pg_catalog.current_setting('rowq.here', true) operator(pg_catalog.=) 'on', false)
    from pg_catalog.pg_dist_local_group g
    left join pg_catalog.pg_dist_node d
        on d.groupid operator(pg_catalog.=) g.groupid
        and d.noderole operator(pg_catalog.=) 'primary'
"""
_WORDS = (
    "a call goes to the node of its queue; version and next_ticks are answered here; listen is"
    " unavailable, so workers look for messages by themselves; rowq citus status shows all nodes"
)


def nodes(connection: Any) -> Iterator[Check]:
    """Yield what works on which node, where calls are carried between nodes; else nothing."""
    if not carries(connection):
        return
    if not connection.execute(_IS_CITUS).fetchone()[0]:
        yield Check("nodes", Status.FAILED, "calls are carried, but there is no extension citus")
        return
    host, port, count, is_alone = connection.execute(_NODES).fetchone()
    name = node_name(host, port) if host else "the coordinator"
    if is_alone:
        yield Check("nodes", Status.WARNING, f"rowq.here is on: {name} alone answers this session")
    else:
        yield Check("nodes", Status.OK, f"this is {name} of {count} nodes; {_WORDS}")
