"""Installs, upgrades and removes what carries calls between the nodes of a Citus cluster.

Every step may be repeated. A node changes in one transaction: the wrappers go, the node is
migrated, and new wrappers come. So nobody ever calls a node without them, and a call that goes
through another node meets either release.
"""

from dataclasses import dataclass
from typing import Any

from rowq.migrate.engines import release_for
from rowq.migrate.errors import RoutedDatabase
from rowq.migrate.refusals import refusals
from rowq.migrate.release import Release
from rowq.postgres.citus.nodes import SAFE_PATH, Node, nodes_of, require_node, session_on
from rowq.postgres.citus.places import carries, misplaced
from rowq.postgres.citus.scripts import CARRY, DISTRIBUTE, ROUTE, UNROUTE, script
from rowq.postgres.install import Installer

# Every node is installed by itself: its tables are its own, and Citus knows nothing of them.
_BY_ITSELF = "set citus.enable_ddl_propagation to off"
_REMOVE = "drop schema if exists rowq_citus cascade"


@dataclass(frozen=True, slots=True)
class InstalledNode:
    """What was done on a node.

    Attributes:
        name: host and port.
        applied: numbers of the migrations that were installed, in order.
        installed: the number that the node has now.
        notices: what was left out, and what to do about it.
    """

    name: str
    applied: tuple[int, ...]
    installed: int
    notices: tuple[str, ...]


class _NodeInstaller(Installer):
    """Installs on one node by itself, and can take all steps in one transaction."""

    def __init__(self, node: Node, release: Release) -> None:
        self._node = node
        super().__init__(node.url, release)

    def use(self, driver_connection: Any) -> None:
        try:
            require_node(driver_connection, self._node)
        except RoutedDatabase:
            self.engine.close(driver_connection)
            raise
        driver_connection.execute(SAFE_PATH)
        driver_connection.execute(_BY_ITSELF)
        super().use(driver_connection)

    def steps(self, target: int) -> tuple[int, ...]:
        """Install what is missing up to `target` and return the numbers."""
        applied: list[int] = []
        while (number := self.step_up(target)) is not None:
            applied.append(number)
        return tuple(applied)

    def in_one(self, target: int) -> tuple[int, ...]:
        """Take the wrappers away, install what is missing, and put them back, or do nothing."""
        with self.engine.transaction(self.connection):
            self._script(UNROUTE)
            applied = self.steps(target)
            self._script(ROUTE)
        return applied

    def alone_script(self, name: str) -> None:
        """Run a script in a transaction of its own."""
        with self.engine.transaction(self.connection):
            self._script(name)

    def _script(self, name: str) -> None:
        with refusals(self.DatabaseError, self.refusal):
            self.connection.execute(script(name))


def install(url: str) -> tuple[InstalledNode, ...]:
    """Install or upgrade rowq on all nodes of a cluster, and let calls go to the node of a queue.

    Harmless when there is nothing to do; it is run again after a node was added. After a crash at
    any moment it goes on.

    Args:
        url: a superuser's URL of the coordinator.

    Raises:
        RoutedDatabase: this is no coordinator of a cluster, or a node has a queue already that
            calls would not reach.
        MigrationError: any other refusal, as of rowq.migrate.migrate.
        CannotConnect: a node could not be reached.
    """
    release = release_for("postgres")
    nodes = nodes_of(url)
    # What can be refused is, before any node is changed in a way that callers could notice.
    first = {node.name: _make_ready(node, release) for node in nodes}
    for node in nodes:
        with _NodeInstaller(node, release) as installer:
            installer.alone_script(CARRY)
    with _NodeInstaller(nodes[0], release) as installer:
        installer.alone_script(DISTRIBUTE)
    _refuse_misplaced(nodes)
    # The coordinator comes last, so that what it carries finds every node ready.
    found = {node.name: _change(node, release, first[node.name]) for node in reversed(nodes)}
    return tuple(found[node.name] for node in nodes)


def upgrade(url: str) -> tuple[InstalledNode, ...]:
    """Do what install does, where calls are carried already.

    Raises:
        RoutedDatabase: nothing is carried here yet, or as install.
        MigrationError, CannotConnect: as install.
    """
    if not any(_carries(node) for node in nodes_of(url)):
        raise RoutedDatabase(
            f"{RoutedDatabase.number} routed_database: no call is carried between these nodes yet",
            "Run: rowq citus install",
        )
    return install(url)


def remove(url: str) -> tuple[str, ...]:
    """Let every node answer for itself again, with all that is in it; return the nodes' names.

    Args:
        url: a superuser's URL of the coordinator.

    Raises:
        RoutedDatabase, MigrationError, CannotConnect: as install.
    """
    release = release_for("postgres")
    nodes = nodes_of(url)
    for node in nodes:
        with _NodeInstaller(node, release) as installer:
            installer.alone_script(UNROUTE)
    with session_on(nodes[0]) as connection:
        connection.execute(_REMOVE)
    for node in nodes:
        with session_on(node) as connection:
            connection.execute(_BY_ITSELF)
            connection.execute(_REMOVE)
    return tuple(node.name for node in nodes)


def _carries(node: Node) -> bool:
    with session_on(node) as connection:
        return carries(connection)


def _make_ready(node: Node, release: Release) -> tuple[int, ...]:
    """Install rowq on a node that has none, and return the numbers; anything else is done later."""
    with _NodeInstaller(node, release) as installer:
        if installer.look.owner() is not None:
            return ()
        return installer.steps(release.newest)


def _change(node: Node, release: Release, before: tuple[int, ...]) -> InstalledNode:
    with _NodeInstaller(node, release) as installer:
        applied = installer.in_one(release.newest)
        return InstalledNode(
            node.name, before + applied, installer.installed, tuple(installer.notices)
        )


def _refuse_misplaced(nodes: tuple[Node, ...]) -> None:
    """Refuse to carry calls away from queues that a node has got before calls were carried."""
    for node in nodes:
        if not _carries(node) and (found := misplaced(nodes, node)):
            name, place = next(iter(found.items()))
            raise RoutedDatabase(
                f"{RoutedDatabase.number} routed_database: queue {name} is on {node.name}, and"
                f" calls would go to {place}",
                f"Let it drain and drop it, and create it anew afterwards; {len(found)} such"
                " queues are there.",
            )
