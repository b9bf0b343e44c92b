"""Which nodes a Citus cluster has, and how each is reached."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rowq.engines import engine_for_url
from rowq.tools.migrate.errors import MissingPrivilege, RoutedDatabase

SAFE_PATH = "set search_path = pg_catalog, pg_temp"
"""Names are looked for in pg_catalog alone: anybody who may create in another schema could have
made an operator there, which would run as the superuser whose session it is."""

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


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a cluster.

    Attributes:
        name: host and port, as the cluster knows them.
        group: Citus' number of it; 0 is the coordinator.
        is_synced: whether it knows what the coordinator knows, so that Citus carries calls to it.
        url: how it is reached. It holds the password, if there is one, and is never shown.
    """

    name: str
    group: int
    is_synced: bool
    url: str = field(repr=False)

    @property
    def is_coordinator(self) -> bool:
        """Whether it is the node that knows all others."""
        return self.group == 0


def nodes_of(url: str) -> tuple[Node, ...]:
    """Return all nodes of a cluster, the coordinator first.

    The others are reached by their addresses in pg_dist_node, and by the user, the password and
    the other parameters of the coordinator's URL.

    Args:
        url: a superuser's URL of the coordinator.

    Raises:
        RoutedDatabase: this is no Citus cluster, not its coordinator, or a node is not active.
        MissingPrivilege: the user is no superuser.
        CannotConnect: the coordinator could not be reached.
    """
    with session(url) as connection:
        if not _value(connection, _CITUS):
            raise RoutedDatabase(
                f"{RoutedDatabase.number} routed_database: this database has no extension citus",
                "On all nodes: create extension citus; and citus_add_node on the coordinator.",
            )
        if not _value(connection, _SUPERUSER):
            raise MissingPrivilege(
                f"{MissingPrivilege.number} missing_privilege: this is for a superuser, who can"
                " connect to every node"
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
    """Return how a node is called in what people read."""
    return f"{host}:{port}"


def url_of(url: str, host: str, port: int) -> str:
    """Return the URL of a coordinator for another node."""
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
    """Open a session with a safe path on a node, in autocommit, and close it in the end.

    Raises:
        CannotConnect: the node could not be reached.
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
    """Open a session as `session` does, and see to it that it is on the node that is meant.

    Raises:
        RoutedDatabase: another node has answered, as behind a pooler or an address that moved.
        CannotConnect: the node could not be reached.
    """
    with session(node.url) as connection:
        require_node(connection, node)
        yield connection


def require_node(connection: Any, node: Node) -> None:
    """Refuse a connection to another node than the one that is meant."""
    found = _value(connection, _HAS_GROUP) and _value(connection, _GROUP)
    if found is False or found != node.group:
        said = "no node of a cluster" if found is False else f"the node of group {found}"
        raise RoutedDatabase(
            f"{RoutedDatabase.number} routed_database: at {node.name} answers {said}, and that of"
            f" group {node.group} is meant",
            "Correct its address by citus_update_node, or the options of the URL.",
        )


def _value(connection: Any, query: str) -> Any:
    return connection.execute(query).fetchone()[0]
