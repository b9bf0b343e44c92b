"""What tests of a cluster's installation look at."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import psycopg
import pytest

from rowq.tools.engines.postgres.citus.nodes import Node, nodes_of
from rowq.tools.migrate.errors import MigrationError
from tests.engines.base import Connection
from tests.engines.postgres.citus import on_node

BY_ITSELF = "set citus.enable_ddl_propagation to off"
_EVERYTHING = """
    select 'function', p.oid::regprocedure::text, pg_get_userbyid(p.proowner)::text,
           array(select a::text from unnest(p.proacl) a order by 1)::text, md5(p.prosrc)
    from pg_proc p
    join pg_namespace n on n.oid = p.pronamespace
    where n.nspname ~ '^rowq'
    union all
    select 'schema', n.nspname, pg_get_userbyid(n.nspowner), n.nspacl::text, null
    from pg_namespace n
    where n.nspname ~ '^rowq'
    union all
    select 'table', c.oid::regclass::text, pg_get_userbyid(c.relowner), c.relacl::text, null
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
    where n.nspname ~ '^rowq'
    union all
    select 'role', r.rolname, null, r.rolcanlogin::text, null
    from pg_roles r
    where r.rolname = 'rowq_citus'
    order by 1, 2
    """
_PLACE = """
    select n.nodename || ':' || n.nodeport
    from pg_dist_placement p
    join pg_dist_node n on n.groupid = p.groupid
    where p.shardid = get_shard_id_for_distribution_column('rowq_citus.route', %s::text)
    """


def on_each(url: str, stack: ExitStack) -> Iterator[tuple[Node, Connection]]:
    """Yield all nodes with a session on each, which a stack closes."""
    for node in nodes_of(url):
        opened = psycopg.connect(on_node(url, node), autocommit=True)
        yield node, stack.enter_context(opened)


def everything(url: str) -> dict[str, list[tuple[object, ...]]]:
    """Return all that rowq has on every node: objects, owners, rights."""
    with ExitStack() as stack:
        return {
            node.name: session.execute(_EVERYTHING).fetchall()
            for node, session in on_each(url, stack)
        }


def move(session: Connection, shard: int, source: tuple[str, int], target: tuple[str, int]) -> None:
    """Move a shard from the node at one address to the one at another."""
    session.execute(
        "select citus_move_shard_placement(%s, %s, %s, %s, %s, 'block_writes')",
        [shard, *source, *target],
    )


def place_of(session: Connection, name: str) -> str:
    """Return the node that a name belongs to."""
    (place,) = session.execute(_PLACE, [name]).fetchone() or ("",)
    return str(place)


@contextmanager
def refuses_and_changes_nothing(url: str, number: str) -> Iterator[Callable[[], str]]:
    """Expect a refusal of a number in a block, which leaves every node as it is."""
    before = everything(url)
    with pytest.raises(MigrationError, match=number) as refusal:
        yield lambda: str(refusal.value)
    assert everything(url) == before


def last(url: str) -> Node:
    """Return the node that is looked at last."""
    return nodes_of(url)[-1]


def on_last(url: str) -> psycopg.Connection[tuple[object, ...]]:
    """Open a session on that node which Citus leaves alone."""
    session = psycopg.connect(on_node(url, last(url)), autocommit=True)
    session.execute(BY_ITSELF)
    return session
