"""The nodes of a Citus cluster, their URLs, queues and maps."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg

from rowq.engines import engine_for_url
from rowq.tools.engines.postgres.status import WRAPPED
from rowq.tools.migrate.errors import ForeignSchema, MissingPrivilege, RoutedDatabase
from sql.postgres.addons.citus.build import forwarders

SAFE_PATH = "set search_path = pg_catalog, pg_temp"
"""Resolve names in pg_catalog only: another user's operator would run with the superuser's
rights."""

_ADDRESS = {"host", "hostaddr", "port"}
_CITUS = "select count(*) = 1 from pg_catalog.pg_extension where extname = 'citus'"
_SUPERUSER = "select rolsuper from pg_catalog.pg_roles where rolname = session_user"
_GROUP = "select groupid from pg_catalog.pg_dist_local_group"
_HAS_GROUP = "select pg_catalog.to_regclass('pg_catalog.pg_dist_local_group') is not null"
_NODES = """
    select groupid, nodename, nodeport, isactive, metadatasynced
    from pg_catalog.pg_dist_node
    where noderole = 'primary'
      and nodecluster = pg_catalog.current_setting('citus.cluster_name')
    order by groupid <> 0, nodename, nodeport
"""

_OLD = """
    select p.proname
    from pg_catalog.pg_proc p
    where p.pronamespace operator(pg_catalog.=) pg_catalog.to_regnamespace('rowq_citus')
      and p.proname operator(pg_catalog.<>) all (%s)
    order by p.proname
"""
# A view in place of the table would run with the superuser's rights; copy refuses a view.
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


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a cluster.

    Attributes:
        name: host and port, as the cluster knows them.
        group: Citus' group number; 0 is the coordinator.
        is_synced: whether its metadata are in sync, so that Citus forwards calls to it.
        url: its URL, which can hold a password and is never shown.
    """

    name: str
    group: int
    is_synced: bool
    url: str = field(repr=False)

    @property
    def is_coordinator(self) -> bool:
        """Whether it is the coordinator."""
        return self.group == 0


def nodes_of(url: str) -> tuple[Node, ...]:
    """Return all nodes of a cluster, the coordinator first.

    The others' URLs have their addresses in pg_dist_node and the user, password and parameters of
    the coordinator's URL.

    Args:
        url: a superuser's URL of the coordinator.

    Raises:
        RoutedDatabase: this is not a cluster's coordinator, or a node is not active.
        MissingPrivilege: the user is not a superuser.
        CannotConnect: the coordinator cannot be reached.
    """
    with session(url) as connection:
        if not _value(connection, _CITUS):
            raise RoutedDatabase(
                f"{RoutedDatabase.number} routed_database: this database has no extension citus",
                "On all nodes: create extension citus; and citus_add_node on the coordinator.",
            )
        if not _value(connection, _SUPERUSER):
            raise MissingPrivilege(
                f"{MissingPrivilege.number} missing_privilege: only a superuser can connect to"
                " every node"
            )
        if _value(connection, _GROUP) != 0:
            raise RoutedDatabase(
                f"{RoutedDatabase.number} routed_database: this node is not the coordinator",
                "Connect to the coordinator.",
            )
        found = connection.execute(_NODES).fetchall()
        if not found:
            raise RoutedDatabase(
                f"{RoutedDatabase.number} routed_database: the coordinator knows no node",
                "On the coordinator: select citus_add_node('host', 5432);",
            )
        if away := [
            node_name(host, port) for _, host, port, is_active, _ in found if not is_active
        ]:
            raise RoutedDatabase(
                f"{RoutedDatabase.number} routed_database: not active: {', '.join(away)}"
            )
        own = node_name(connection.info.host or "localhost", connection.info.port)
    listed = [
        Node(
            node_name(host, port), group, is_synced, url if group == 0 else url_of(url, host, port)
        )
        for group, host, port, _, is_synced in found
    ]
    if listed[0].is_coordinator:
        return tuple(listed)
    return (Node(own, 0, True, url), *listed)


def node_name(host: str, port: int) -> str:
    """Return a node's displayed name."""
    return f"{host}:{port}"


def url_of(url: str, host: str, port: int) -> str:
    """Return the coordinator's URL with another node's address."""
    before, _, query = url.partition("?")
    scheme, _, rest = before.partition("://")
    authority, slash, database = rest.partition("/")
    user, at, _ = authority.rpartition("@")
    address = f"[{host}]" if ":" in host else host
    kept = "&".join(
        word for word in query.split("&") if word and word.partition("=")[0] not in _ADDRESS
    )
    options = f"?{kept}" if kept else ""
    return f"{scheme}://{user}{at}{address}:{port}{slash}{database}{options}"


@contextmanager
def session(url: str) -> Iterator[Any]:
    """Open an autocommit session with a safe path on a node; close it at the end.

    Raises:
        CannotConnect: the node cannot be reached.
    """
    engine = engine_for_url(url)
    connection = engine.connect(url)
    try:
        connection.execute(SAFE_PATH)
        yield connection
    finally:
        engine.close(connection)


@contextmanager
def session_on(node: Node) -> Iterator[Any]:
    """Open a session like `session`, and check that it is on this node.

    Raises:
        RoutedDatabase: another node answered, as behind a pooler or a moved address.
        CannotConnect: the node cannot be reached.
    """
    with session(node.url) as connection:
        require_node(connection, node)
        yield connection


def require_node(connection: Any, node: Node) -> None:
    """Refuse a connection to another node."""
    found = _value(connection, _HAS_GROUP) and _value(connection, _GROUP)
    if found is False or found != node.group:
        said = "no node of a cluster" if found is False else f"the node of group {found}"
        raise RoutedDatabase(
            f"{RoutedDatabase.number} routed_database: at {node.name} answers {said}, and that of"
            f" group {node.group} is meant",
            "Correct its address with citus_update_node, or the URL's options.",
        )


def forwards(connection: Any) -> bool:
    """Return whether a node forwards calls, regardless of search_path."""
    return connection.execute(WRAPPED).fetchone() is not None


def old_forwarders(connection: Any) -> list[str]:
    """Return the forwarders of earlier releases."""
    return [name for (name,) in connection.execute(_OLD, [list(forwarders())])]


def queues_on(node: Node) -> list[str]:
    """Return the names of a node's queues.

    Raises:
        ForeignSchema: rowq.queue is not rowq's table.
        CannotConnect: the node cannot be reached.
    """
    with session_on(node) as connection:
        try:
            with connection.cursor().copy(_QUEUES) as copied:
                copied.set_types(["text"])
                return sorted(name for (name,) in copied.rows())
        except psycopg.errors.WrongObjectType as error:
            raise ForeignSchema(
                f"{ForeignSchema.number} foreign_schema: rowq.queue is not a table",
                "Drop what replaced it.",
            ) from error


def misplaced(nodes: tuple[Node, ...], node: Node) -> dict[str, str]:
    """Return a node's queues that calls do not reach, with the nodes that calls go to.

    Args:
        nodes: all nodes of the cluster, the coordinator first.
        node: the node to check.
    """
    with session_on(nodes[0]) as connection:
        return misplaced_as_seen(connection, nodes, node)


def misplaced_as_seen(connection: Any, nodes: tuple[Node, ...], node: Node) -> dict[str, str]:
    """Return misplaced queues by the map in a coordinator's transaction."""
    found = connection.execute(_PLACES, [queues_on(node)]).fetchall()
    names = {one.group: one.name for one in nodes}
    return {
        name: names.get(group, f"group {group}") for name, group in found if group != node.group
    }


def knows_the_same(coordinator: Node, node: Node) -> bool:
    """Return whether a node has the same map as the coordinator."""
    known = []
    for one in (coordinator, node):
        with session_on(one) as connection:
            known.append(set(connection.execute(_KNOWN).fetchall()))
    return known[0] == known[1]


def _value(connection: Any, query: str) -> Any:
    return connection.execute(query).fetchone()[0]
