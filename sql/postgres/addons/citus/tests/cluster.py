"""The Citus cluster of the environment, and helpers that read it."""

import os
import shlex
import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import psycopg
import pytest
from psycopg import sql

from rowq.tools.migrate.errors import MigrationError
from sql.postgres.addons.citus.nodes import Node, nodes_of, url_of
from tests.engines.base import Connection, Unavailable, wait_until
from tests.engines.postgres.server import with_database

URL = "ROWQ_TEST_CITUS_URL"
BREAK = "ROWQ_TEST_CITUS_BREAK"
"""A command that stops a node with `kill PORT` and restarts it with `start PORT`."""


class Cluster:
    """A cluster with the nodes of pg_dist_node in a database of its coordinator.

    Attributes:
        nodes: all nodes, the coordinator first.
    """

    def __init__(self, url: str) -> None:
        """Read the nodes of a coordinator's database."""
        self._url = url
        self._breaker = shlex.split(os.environ.get(BREAK, ""))
        self._databases: list[str] = []
        self.nodes = nodes_of(url)

    @property
    def can_break(self) -> bool:
        """Whether nodes can be killed and restarted."""
        return bool(self._breaker)

    def fresh_database(self, but: int = 0) -> str:
        """Create a database with the extension on every node; return the coordinator's URL.

        The last `but` nodes are not yet in the cluster.
        """
        name = f"rowq_test_{uuid.uuid4().hex[:12]}"
        self._databases.append(name)
        create = sql.SQL("create database {} template template0 encoding 'UTF8'")
        for node in self.nodes:
            with psycopg.connect(node.url, autocommit=True) as connection:
                # Citus otherwise creates it on the other nodes too.
                connection.execute("set citus.enable_create_database_propagation to off")
                connection.execute(create.format(sql.Identifier(name)))
            with psycopg.connect(with_database(node.url, name), autocommit=True) as connection:
                connection.execute("create extension citus")
        made = with_database(self._url, name)
        with psycopg.connect(made, autocommit=True) as connection:
            for node in self.nodes[: len(self.nodes) - but]:
                host, port = address(node)
                if node.is_coordinator:
                    connection.execute("select citus_set_coordinator_host(%s, %s)", [host, port])
                else:
                    connection.execute("select citus_add_node(%s, %s)", [host, port])
        return made

    def drop_database(self, url: str) -> None:
        """Drop such a database on every node."""
        name = str(psycopg.conninfo.conninfo_to_dict(url)["dbname"])
        drop = sql.SQL("drop database if exists {} with (force)")
        for node in self.nodes:
            with psycopg.connect(node.url, autocommit=True) as connection:
                connection.execute("set citus.enable_create_database_propagation to off")
                connection.execute(drop.format(sql.Identifier(name)))
        self._databases.remove(name)

    def kill(self, node: Node) -> None:
        """Kill a node."""
        self._do("kill", node)

    def start(self, node: Node) -> None:
        """Restart a node and wait until it answers."""
        self._do("start", node)
        wait_until(lambda: _answers(node.url), f"{node.name} answers", 60)

    def close(self) -> None:
        """Drop all created databases."""
        for name in list(self._databases):
            self.drop_database(with_database(self._url, name))

    def _do(self, what: str, node: Node) -> None:
        subprocess.run([*self._breaker, what, str(address(node)[1])], check=True)


@contextmanager
def cluster() -> Iterator[Cluster]:
    """Yield the cluster of the environment; raise Unavailable."""
    if URL not in os.environ:
        raise Unavailable(f"{URL} is not set")
    found = Cluster(os.environ[URL])
    try:
        yield found
    finally:
        found.close()


def _answers(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True


def address(node: Node) -> tuple[str, int]:
    """Return a node's host and port."""
    host, _, port = node.name.rpartition(":")
    return host, int(port)


def on_node(url: str, node: Node) -> str:
    """Return a database's URL on a node other than the coordinator."""
    return url if node.is_coordinator else url_of(url, *address(node))


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
    """Yield all nodes, each with a session that a stack closes."""
    for node in nodes_of(url):
        opened = psycopg.connect(on_node(url, node), autocommit=True)
        yield node, stack.enter_context(opened)


def everything(url: str) -> dict[str, list[tuple[object, ...]]]:
    """Return rowq's objects, owners and rights on every node."""
    with ExitStack() as stack:
        return {
            node.name: session.execute(_EVERYTHING).fetchall()
            for node, session in on_each(url, stack)
        }


def move(session: Connection, shard: int, source: tuple[str, int], target: tuple[str, int]) -> None:
    """Move a shard from one address to another."""
    session.execute(
        "select citus_move_shard_placement(%s, %s, %s, %s, %s, 'block_writes')",
        [shard, *source, *target],
    )


def place_of(session: Connection, name: str) -> str:
    """Return a name's node."""
    (place,) = session.execute(_PLACE, [name]).fetchone() or ("",)
    return str(place)


@contextmanager
def refuses_and_changes_nothing(url: str, number: str) -> Iterator[Callable[[], str]]:
    """Expect an error of this number in a block, without a change on any node."""
    before = everything(url)
    with pytest.raises(MigrationError, match=number) as refusal:
        yield lambda: str(refusal.value)
    assert everything(url) == before


def last(url: str) -> Node:
    """Return the node that is checked last."""
    return nodes_of(url)[-1]


def on_last(url: str) -> psycopg.Connection[tuple[object, ...]]:
    """Open a session on that node without Citus' propagation."""
    session = psycopg.connect(on_node(url, last(url)), autocommit=True)
    session.execute(BY_ITSELF)
    return session
