"""Whether every node of a cluster has what it should have."""

from collections.abc import Mapping
from dataclasses import dataclass

from rowq.errors import CannotConnect
from rowq.tools.engines.postgres.status import Inspection
from rowq.tools.migrate import Status
from rowq.tools.migrate.errors import MigrationError
from rowq.tools.migrate.release import release_for
from rowq.tools.migrate.status import status_by
from sql.postgres.addons.citus.build import CARRIER, wrappers
from sql.postgres.addons.citus.nodes import (
    Node,
    carries,
    knows_the_same,
    misplaced,
    nodes_of,
    old_carriers,
    queues_on,
    session,
    session_on,
)

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """What is on a node.

    Attributes:
        node: host and port.
        role: coordinator or worker.
        installed: number of its newest migration, 0 for none.
        carries: whether it carries calls to the node of their queue.
        queues: how many queues it has.
        problems: what is not as it should be, and what to do.
    """

    node: str
    role: str
    installed: int
    carries: bool
    queues: int
    problems: tuple[str, ...]


class NodeLook(Inspection):
    """What there is to see on a node whose routines are behind wrappers."""

    SCHEMAS = ("rowq", "rowq_node")

    def refuse_wrappers(self) -> None:
        """Refuse nothing: this look knows wrappers."""

    def shipped(self, files: Mapping[str, str]) -> dict[str, str]:
        """Return name and text of every routine in these files, and of every wrapper."""
        return super().shipped({**files, **wrappers()})

    def rights_of_others(self) -> tuple[str, ...]:
        """Say who has rights without a role of rowq's, beside the role that carries calls."""
        return tuple(
            text for text in super().rights_of_others() if not text.startswith(f"role {CARRIER} ")
        )


def node_status(url: str) -> Status:
    """Look at one node and change nothing; raises what rowq.tools.migrate.status raises."""
    with session(url) as connection:
        look = NodeLook(connection) if carries(connection) else Inspection(connection)
        return status_by(look, release_for("postgres"))


def cluster_status(url: str) -> tuple[NodeStatus, ...]:
    """Look at all nodes of a cluster, the coordinator first, and change nothing.

    Args:
        url: a superuser's URL of the coordinator.

    Raises:
        RoutedDatabase: this is no coordinator of a cluster.
        MissingPrivilege: the user is no superuser.
        CannotConnect: the coordinator could not be reached.
    """
    nodes = nodes_of(url)
    return tuple(_status(nodes, node) for node in nodes)


def _status(nodes: tuple[Node, ...], node: Node) -> NodeStatus:
    role = "coordinator" if node.is_coordinator else "worker"
    try:
        with session_on(node) as connection:
            is_carrying = carries(connection)
            is_mixed = is_carrying and bool(old_carriers(connection))
        found = node_status(node.url)
        if not found.installed:
            return NodeStatus(node.name, role, 0, False, 0, ("run install",))
        names = queues_on(node)
        problems = [f"newer: {id_}" for id_ in found.newer]
        if found.pending:
            # Its wrappers are those of its release, and not of this one.
            pending = ", ".join(map(str, found.pending))
            problems.append(f"pending: {pending}: run upgrade")
        else:
            problems += [f"{drift.routine} is {drift.problem}" for drift in found.drift]
            if is_mixed:
                problems.append("has carriers of another release: run upgrade")
        if is_carrying:
            problems += _places(nodes, node)
        else:
            problems.append("carries no calls: run install")
    except (CannotConnect, MigrationError) as error:
        return NodeStatus(node.name, role, 0, False, 0, (" ".join(str(error).split()),))
    return NodeStatus(node.name, role, found.installed, is_carrying, len(names), tuple(problems))


def _places(nodes: tuple[Node, ...], node: Node) -> list[str]:
    lost = misplaced(nodes, node)
    problems = [
        f"queue {name} is here, and calls go to {place}"
        for name, place in sorted(lost.items())[:_SHOWN]
    ]
    if len(lost) > _SHOWN:
        problems.append(f"and {len(lost) - _SHOWN} more such queues")
    if not node.is_synced:
        problems.append("its metadata are not in sync: Citus carries no call to it (RQ706)")
    if not knows_the_same(nodes[0], node):
        problems.append("it knows other places of queues than the coordinator, whose are right")
    return problems
