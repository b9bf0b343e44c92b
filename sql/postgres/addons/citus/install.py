"""Installs, upgrades and removes what carries calls between the nodes of a Citus cluster.

An upgrade goes over all nodes three times: each is migrated and keeps the wrappers that it has;
each gets the carriers of the release, beside those of the one before; each gets its wrappers. So a
call that goes from any node to any other meets routines and carriers that it knows, and callers of
what both releases have notice nothing. In the end the carriers of the release before go.

A node changes in one transaction, and every step may be repeated: after a crash at any moment the
same command goes on.
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
from sql.postgres.addons.citus.look import Found, before_install, before_removal, named
from sql.postgres.addons.citus.nodes import (
    SAFE_PATH,
    Node,
    carries,
    nodes_of,
    old_carriers,
    require_node,
    session_on,
)

# Every node is installed by itself: its tables are its own, and Citus knows nothing of them.
_BY_ITSELF = "set citus.enable_ddl_propagation to off"

_NOW = "select pg_catalog.clock_timestamp()"
# A call that began with a wrapper of the release before may still be about to use its carrier, also
# one of a background worker, such as pg_cron's. Citus' daemon and autovacuum call nothing of ours.
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
# Whoever may connect can hold this lock.
_HOLDERS = """
    select concat('process ', l.pid, ' of ', coalesce(a.usename, 'somebody'))
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
_GOES_ON = "What was done stays. To go on, run install again"
_GOES_ON_AWAY = "What was done stays. To go on, run remove again"
Step = Callable[[], None]


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

    def behind_wrappers(self, target: int) -> tuple[int, ...]:
        """Install what is missing while the wrappers are aside, or do nothing."""
        with self.engine.transaction(self.connection):
            self._scripts("check.sql", "aside.sql")
            applied = self.steps(target)
            self._scripts("behind.sql", "rights.sql")
        return applied

    def in_one(self, *names: str) -> None:
        """Run scripts in one transaction, after what refuses."""
        with self.engine.transaction(self.connection):
            self._scripts("check.sql", *names)

    def _scripts(self, *names: str) -> None:
        for name in names:
            with refusals(self.DatabaseError, self.REFUSAL):
                self.connection.execute(script(name))


@dataclass(slots=True)
class _Upgrade:
    """An installation or upgrade of all nodes, and what was done on each of them."""

    nodes: tuple[Node, ...]
    release: Release
    found: dict[str, Found]
    applied: dict[str, tuple[int, ...]] = field(default_factory=dict)
    notices: dict[str, list[str]] = field(default_factory=dict)

    def steps(self) -> Iterator[Step]:
        """Yield the steps in their order; each may be repeated, and the next one comes after it."""
        # The coordinator comes last, so that what it carries finds every node ready.
        for node in reversed(self.nodes):
            yield partial(self._migrate, node)
        for node in self.nodes:
            yield partial(self._run, node, "carry.sql", "rights.sql")
        yield partial(self._run, self.nodes[0], "distribute.sql")
        for node in reversed(self.nodes):
            yield partial(self._run, node, "aside.sql", "behind.sql", "route.sql", "rights.sql")
        yield self._remove_carriers

    def installed(self) -> tuple[InstalledNode, ...]:
        """Return what was done on each node."""
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
            if self.found[node.name].carries:
                self.applied[node.name] = installer.behind_wrappers(newest)
            else:
                self.applied[node.name] = installer.steps(newest)
            self.notices[node.name] = installer.notices

    def _run(self, node: Node, *names: str) -> None:
        with named(node, _GOES_ON), _NodeInstaller(node, self.release) as installer:
            installer.in_one(*names)

    def _remove_carriers(self) -> None:
        """Remove the carriers of the release before, when no call uses them any more."""
        if not any(_has_old_carriers(node) for node in self.nodes):
            return
        busy = [node.name for node in self.nodes if not _wait_for_calls(node)]
        if busy:
            self.notices.setdefault(self.nodes[0].name, []).append(
                f"calls that began before the upgrade are still under way on {', '.join(busy)}:"
                " run upgrade again when they have ended, to remove what they use"
            )
            return
        for node in self.nodes:
            self._run(node, "uncarry.sql")


def install(url: str) -> tuple[InstalledNode, ...]:
    """Install or upgrade rowq on all nodes of a cluster, and let calls go to the node of a queue.

    Harmless when there is nothing to do; it is run again after a node was added. What can be
    refused is, before any node is changed. After a crash at any moment it goes on.

    Args:
        url: a superuser's URL of the coordinator.

    Raises:
        RoutedDatabase: this is no coordinator of a cluster, or a node has a queue already that
            calls would not reach.
        MigrationBusy: somebody else is changing the cluster.
        MigrationError: any other refusal, as of rowq.tools.migrate.migrate.
        CannotConnect: a node could not be reached.
    """
    with _alone(nodes_of(url)[0]):
        upgrade = begun(url)
        for step in upgrade.steps():
            step()
    return upgrade.installed()


def begun(url: str) -> _Upgrade:
    """Return an installation or upgrade that nothing refuses, and none of whose steps is done."""
    nodes = nodes_of(url)
    return _Upgrade(nodes, release_for("postgres"), before_install(nodes))


def upgrade(url: str) -> tuple[InstalledNode, ...]:
    """Do what install does, where calls are carried already.

    Raises:
        RoutedDatabase: nothing is carried here yet, or as install.
        MigrationError, CannotConnect: as install.
    """
    if not any(_carries(node) for node in nodes_of(url)):
        raise RoutedDatabase(
            f"{RoutedDatabase.number} routed_database: no call is carried between these nodes yet",
            "Run install.",
        )
    return install(url)


def remove(url: str) -> tuple[str, ...]:
    """Let every node answer for itself again, with all that is in it; return the nodes' names.

    The empty table rowq_citus.route stays, so that a later installation finds queues where they
    are. What can be refused is, before any node is changed.

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
        # Citus drops on the coordinator, for all nodes, what it carries.
        for node in nodes:
            with named(node, _GOES_ON_AWAY), _NodeInstaller(node, release) as installer:
                installer.in_one("uncarry.sql")
    return tuple(node.name for node in nodes)


@contextmanager
def _alone(coordinator: Node) -> Iterator[None]:
    """Let one of these commands at a time change a cluster; a lock ends with its session."""
    with session_on(coordinator) as connection:
        if not connection.execute(_LOCK).fetchone()[0]:
            holders = ", ".join(name for (name,) in connection.execute(_HOLDERS))
            raise MigrationBusy(
                f"{MigrationBusy.number} migration_busy: another command changes the cluster:"
                f" {holders or 'it has just ended'}",
                "Try again when it has ended. If it is no command of this add-on:"
                " pg_terminate_backend, on the coordinator.",
            )
        yield


def _carries(node: Node) -> bool:
    with named(node), session_on(node) as connection:
        return carries(connection)


def _has_old_carriers(node: Node) -> bool:
    with named(node), session_on(node) as connection:
        return bool(old_carriers(connection))


def _wait_for_calls(node: Node) -> bool:
    """Wait until the calls that are under way on a node have ended; return whether they have."""
    give_up = time.monotonic() + _PATIENCE_SECONDS
    with named(node), session_on(node) as connection:
        now = connection.execute(_NOW).fetchone()[0]
        while connection.execute(_UNDER_WAY, [now]).fetchone()[0]:
            if time.monotonic() > give_up:
                return False
            time.sleep(_LOOK_SECONDS)
    return True
