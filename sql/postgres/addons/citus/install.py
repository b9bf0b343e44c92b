"""Install, upgrade and remove the forwarding of calls on a Citus cluster.

An upgrade goes over all nodes three times: each is migrated and keeps its wrappers; each gets the
new forwarders, next to the old ones; each gets its new wrappers. So every call between nodes finds
the routines and forwarders that it needs, and callers notice nothing. Finally the old forwarders
are dropped.

A node changes in one transaction, and each step can be repeated: after a crash the same command
continues.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from rowq.tools.engines.postgres.install import Installer
from rowq.tools.migrate.errors import MigrationBusy, RoutedDatabase, refusals
from rowq.tools.migrate.release import Release, release_for
from sql.postgres.addons.citus.build import script
from sql.postgres.addons.citus.nodes import (
    SAFE_PATH,
    Node,
    forwards,
    nodes_of,
    old_forwarders,
    require_node,
    session_on,
)
from sql.postgres.addons.citus.preflight import Found, before_install, before_removal, named

# Every node is installed alone: Citus does not know its tables.
_BY_ITSELF = "set citus.enable_ddl_propagation to off"

_NOW = "select pg_catalog.clock_timestamp()"
# A call of an old wrapper may still need its forwarder, also in a background worker such as
# pg_cron's. Citus' daemon and autovacuum do not call rowq.
_UNDER_WAY = """
    select count(*)
    from pg_catalog.pg_stat_activity a
    where a.datname = pg_catalog.current_database()
      and a.pid <> pg_catalog.pg_backend_pid()
      and a.backend_type !~ '^(Citus Maintenance Daemon|autovacuum)'
      and a.state = 'active'
      and a.xact_start < %s
"""
_LOCK = "select pg_catalog.pg_try_advisory_lock(pg_catalog.hashtext('rowq citus'))"
# Any user who can connect can hold this lock.
_HOLDERS = """
    select concat('process ', l.pid, ' of ', coalesce(a.usename, 'an unknown user'))
    from pg_locks l
    join pg_database d on d.oid = l.database and d.datname = current_database()
    left join pg_stat_activity a on a.pid = l.pid
    where l.locktype = 'advisory'
      and l.granted
      and l.objsubid = 1
      and l.classid::bigint << 32 | l.objid::bigint = hashtext('rowq citus')::bigint
    order by l.pid
"""
_PATIENCE_SECONDS = 60.0
_LOOK_SECONDS = 0.2
_GOES_ON = "Finished steps stay. To continue, run install again"
_GOES_ON_AWAY = "Finished steps stay. To continue, run remove again"
Step = Callable[[], None]


@dataclass(frozen=True, slots=True)
class InstalledNode:
    """The changes on a node.

    Attributes:
        name: host and port.
        applied: the installed migrations' numbers, in order.
        installed: the node's number now.
        notices: what was skipped, and what to do.
    """

    name: str
    applied: tuple[int, ...]
    installed: int
    notices: tuple[str, ...]


class _NodeInstaller(Installer):
    """An installer of one node that can put all steps into one transaction."""

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
        """Install the missing migrations up to `target`; return their numbers."""
        applied: list[int] = []
        while (number := self.step_up(target)) is not None:
            applied.append(number)
        return tuple(applied)

    def behind_wrappers(self, target: int) -> tuple[int, ...]:
        """Install the missing migrations while the wrappers are aside, or do nothing."""
        with self.engine.transaction(self.connection):
            self._scripts("check.sql", "aside.sql")
            applied = self.steps(target)
            self._scripts("behind.sql", "rights.sql")
        return applied

    def in_one(self, *names: str) -> None:
        """Run scripts in one transaction, after the checks."""
        with self.engine.transaction(self.connection):
            self._scripts("check.sql", *names)

    def _scripts(self, *names: str) -> None:
        for name in names:
            with refusals(self.DatabaseError, self.REFUSAL):
                self.connection.execute(script(name))


@dataclass(slots=True)
class _Upgrade:
    """An installation or upgrade of all nodes, with the changes on each."""

    nodes: tuple[Node, ...]
    release: Release
    found: dict[str, Found]
    applied: dict[str, tuple[int, ...]] = field(default_factory=dict)
    notices: dict[str, list[str]] = field(default_factory=dict)

    def steps(self) -> Iterator[Step]:
        """Yield the steps in order; each can be repeated."""
        # The coordinator comes last, so that its calls find every node ready.
        for node in reversed(self.nodes):
            yield partial(self._migrate, node)
        for node in self.nodes:
            yield partial(self._run, node, "forward.sql", "rights.sql")
        yield partial(self._run, self.nodes[0], "distribute.sql")
        for node in reversed(self.nodes):
            yield partial(self._run, node, "aside.sql", "behind.sql", "route.sql", "rights.sql")
        yield self._remove_forwarders

    def installed(self) -> tuple[InstalledNode, ...]:
        """Return the changes on each node."""
        return tuple(
            InstalledNode(
                node.name,
                self.applied.get(node.name, ()),
                self.release.newest,
                tuple(self.notices.get(node.name, ())),
            )
            for node in self.nodes
        )

    def _migrate(self, node: Node) -> None:
        with named(node, _GOES_ON), _NodeInstaller(node, self.release) as installer:
            newest = self.release.newest
            if self.found[node.name].forwards:
                self.applied[node.name] = installer.behind_wrappers(newest)
            else:
                self.applied[node.name] = installer.steps(newest)
            self.notices[node.name] = installer.notices

    def _run(self, node: Node, *names: str) -> None:
        with named(node, _GOES_ON), _NodeInstaller(node, self.release) as installer:
            installer.in_one(*names)

    def _remove_forwarders(self) -> None:
        """Remove the old forwarders when no call uses them."""
        if not any(_has_old_forwarders(node) for node in self.nodes):
            return
        busy = [node.name for node in self.nodes if not _wait_for_calls(node)]
        if busy:
            self.notices.setdefault(self.nodes[0].name, []).append(
                f"calls from before the upgrade are still running on {', '.join(busy)}:"
                " run upgrade again when they have ended, to remove what they use"
            )
            return
        for node in self.nodes:
            self._run(node, "unforward.sql")


def install(url: str) -> tuple[InstalledNode, ...]:
    """Install or upgrade rowq on all nodes of a cluster and forward calls to the queue's node.

    It can be repeated; run it again after adding a node. All checks come before the first change.
    After a crash it continues.

    Args:
        url: a superuser's URL of the coordinator.

    Raises:
        RoutedDatabase: this is not a cluster's coordinator, or calls would not reach a queue.
        MigrationBusy: another command is changing the cluster.
        MigrationError: another error of rowq.tools.migrate.migrate.
        CannotConnect: a node cannot be reached.
    """
    with _alone(nodes_of(url)[0]):
        upgrade = begun(url)
        for step in upgrade.steps():
            step()
    return upgrade.installed()


def begun(url: str) -> _Upgrade:
    """Return a checked installation or upgrade, before its first step."""
    nodes = nodes_of(url)
    return _Upgrade(nodes, release_for("postgres"), before_install(nodes))


def upgrade(url: str) -> tuple[InstalledNode, ...]:
    """Do the same as install where calls are already forwarded.

    Raises:
        RoutedDatabase: calls are not forwarded yet, or as install.
        MigrationError, CannotConnect: as install.
    """
    if not any(_forwards(node) for node in nodes_of(url)):
        raise RoutedDatabase(
            f"{RoutedDatabase.number} routed_database: calls are not forwarded between these nodes",
            "Run install.",
        )
    return install(url)


def remove(url: str) -> tuple[str, ...]:
    """Let each node answer for itself again, with all its data; return the nodes' names.

    The empty table rowq_citus.route stays, so that a later installation finds the queues. All
    checks come before the first change.

    Args:
        url: a superuser's URL of the coordinator.

    Raises:
        RoutedDatabase, MigrationError, CannotConnect: as install.
    """
    release = release_for("postgres")
    nodes = nodes_of(url)
    with _alone(nodes[0]):
        before_removal(nodes)
        for node in reversed(nodes):
            with named(node, _GOES_ON_AWAY), _NodeInstaller(node, release) as installer:
                installer.in_one("aside.sql", "unroute.sql")
        # Citus drops distributed functions on the coordinator for all nodes.
        for node in nodes:
            with named(node, _GOES_ON_AWAY), _NodeInstaller(node, release) as installer:
                installer.in_one("unforward.sql")
    return tuple(node.name for node in nodes)


@contextmanager
def _alone(coordinator: Node) -> Iterator[None]:
    """Lock the cluster against other commands; the lock ends with the session."""
    with session_on(coordinator) as connection:
        if not connection.execute(_LOCK).fetchone()[0]:
            holders = ", ".join(name for (name,) in connection.execute(_HOLDERS))
            raise MigrationBusy(
                f"{MigrationBusy.number} migration_busy: another command changes the cluster:"
                f" {holders or 'it has just ended'}",
                "Try again after it ends. If it is not a command of this add-on, use"
                " pg_terminate_backend on the coordinator.",
            )
        yield


def _forwards(node: Node) -> bool:
    with named(node), session_on(node) as connection:
        return forwards(connection)


def _has_old_forwarders(node: Node) -> bool:
    with named(node), session_on(node) as connection:
        return bool(old_forwarders(connection))


def _wait_for_calls(node: Node) -> bool:
    """Wait for a node's running calls; return whether all ended."""
    give_up = time.monotonic() + _PATIENCE_SECONDS
    with named(node), session_on(node) as connection:
        now = connection.execute(_NOW).fetchone()[0]
        while connection.execute(_UNDER_WAY, [now]).fetchone()[0]:
            if time.monotonic() > give_up:
                return False
            time.sleep(_LOOK_SECONDS)
    return True
