"""The state and the problems of a cluster's nodes."""

from collections.abc import Mapping
from dataclasses import dataclass

from rowq.errors import CannotConnect
from rowq.tools.engines.postgres.status import Inspection
from rowq.tools.migrate import Status
from rowq.tools.migrate.errors import MigrationError
from rowq.tools.migrate.release import release_for
from rowq.tools.migrate.status import status_by
from sql.postgres.addons.citus.build import FORWARDER, wrappers
from sql.postgres.addons.citus.nodes import (
    Node,
    forwards,
    knows_the_same,
    misplaced,
    nodes_of,
    old_forwarders,
    queues_on,
    session,
    session_on,
)

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """A node's state.

    Attributes:
        node: host and port.
        role: coordinator or worker.
        installed: its newest migration's number, or 0.
        carries: whether it forwards calls to the queue's node.
        queues: the number of its queues.
        problems: differences from the expected state, and what to do.
    """

    node: str
    role: str
    installed: int
    carries: bool
    queues: int
    problems: tuple[str, ...]


class NodeLook(Inspection):
    """An inspection of a node with wrappers."""

    SCHEMAS = ("rowq", "rowq_node")

    def refuse_wrappers(self) -> None:
        """Refuse nothing: this inspection knows wrappers."""

    def shipped(self, files: Mapping[str, str]) -> dict[str, str]:
        """Return the texts of all routines in these files and of all wrappers, by name."""
        return super().shipped({**files, **wrappers()})

    def rights_of_others(self) -> tuple[str, ...]:
        """List rights outside rowq's roles, except those of rowq_citus."""
        return tuple(
            text for text in super().rights_of_others() if not text.startswith(f"role {FORWARDER} ")
        )


def node_status(url: str) -> Status:
    """Return a node's status; raise the errors of rowq.tools.migrate.status."""
    with session(url) as connection:
        look = NodeLook(connection) if forwards(connection) else Inspection(connection)
        return status_by(look, release_for("postgres"))


def cluster_status(url: str) -> tuple[NodeStatus, ...]:
    """Return the state of all nodes of a cluster, the coordinator first.

    Args:
        url: a superuser's URL of the coordinator.

    Raises:
        RoutedDatabase: this is not a cluster's coordinator.
        MissingPrivilege: the user is not a superuser.
        CannotConnect: the coordinator cannot be reached.
    """
    nodes = nodes_of(url)
    return tuple(_status(nodes, node) for node in nodes)


def _status(nodes: tuple[Node, ...], node: Node) -> NodeStatus:
    role = "coordinator" if node.is_coordinator else "worker"
    try:
        with session_on(node) as connection:
            is_forwarding = forwards(connection)
            is_mixed = is_forwarding and bool(old_forwarders(connection))
        found = node_status(node.url)
        if not found.installed:
            return NodeStatus(node.name, role, 0, False, 0, ("run install",))
        names = queues_on(node)
        problems = [f"newer: {id_}" for id_ in found.newer]
        if found.pending:
            # Its wrappers are those of its own release.
            pending = ", ".join(map(str, found.pending))
            problems.append(f"pending: {pending}: run upgrade")
        else:
            problems += [f"{drift.routine} is {drift.problem}" for drift in found.drift]
            if is_mixed:
                problems.append("has forwarders of another release: run upgrade")
        if is_forwarding:
            problems += _places(nodes, node)
        else:
            problems.append("forwards no calls: run install")
    except (CannotConnect, MigrationError) as error:
        return NodeStatus(node.name, role, 0, False, 0, (" ".join(str(error).split()),))
    return NodeStatus(node.name, role, found.installed, is_forwarding, len(names), tuple(problems))


def _places(nodes: tuple[Node, ...], node: Node) -> list[str]:
    lost = misplaced(nodes, node)
    problems = [
        f"queue {name} is here, and calls go to {place}"
        for name, place in sorted(lost.items())[:_SHOWN]
    ]
    if len(lost) > _SHOWN:
        problems.append(f"and {len(lost) - _SHOWN} more such queues")
    if not node.is_synced:
        problems.append("its metadata are not in sync: Citus forwards no calls to it (RQ706)")
    if not knows_the_same(nodes[0], node):
        problems.append("its map of queues differs from the coordinator's")
    return problems
