"""Fixtures of the Citus tests."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import psycopg
import pytest

from sql.postgres.addons.citus.install import install
from sql.postgres.addons.citus.nodes import Node, nodes_of
from sql.postgres.addons.citus.tests.cluster import URL, Cluster, cluster, on_node, place_of
from tests.engines.base import TO_RUN, Connection, Unavailable

Open = Callable[[Node], Connection]


@pytest.fixture(autouse=True)
def _only_postgres() -> None:
    """Override the fixture that requires a server of the run: the cluster is not one."""


@pytest.fixture(scope="session")
def citus() -> Iterator[Cluster]:
    """Return the shared cluster."""
    try:
        with cluster() as found:
            yield found
    except Unavailable as reason:
        pytest.skip(f"no Citus cluster: {reason}{TO_RUN}{URL}, the URL of a coordinator")


@pytest.fixture
def empty_cluster(citus: Cluster) -> Iterator[str]:
    """Return the coordinator's URL of a database on every node, without rowq."""
    url = citus.fresh_database()
    yield url
    citus.drop_database(url)


@pytest.fixture(scope="session")
def routed_url(citus: Cluster) -> str:
    """Return the coordinator's URL of the shared database with rowq on every node."""
    url = citus.fresh_database()
    install(url)
    return url


@pytest.fixture(scope="session")
def nodes(routed_url: str) -> tuple[Node, ...]:
    """Return that database's nodes, the coordinator first."""
    return nodes_of(routed_url)


@pytest.fixture
def open_node(routed_url: str) -> Iterator[Open]:
    """Return a function that opens a session on a node."""
    with ExitStack() as opened:

        def open_session(node: Node) -> Connection:
            url = on_node(routed_url, node)
            return opened.enter_context(psycopg.connect(url, autocommit=True))

        yield open_session


@pytest.fixture
def connection(open_node: Open, nodes: tuple[Node, ...]) -> Connection:
    """Return a session on the coordinator."""
    return open_node(nodes[0])


@pytest.fixture
def pair(routed_url: str, queue_name: str) -> Iterator[dict[str, str]]:
    """Return two queues on different nodes, by node name."""
    with psycopg.connect(routed_url, autocommit=True) as session:
        found = _names_on_two_nodes(session, queue_name)
        for name in found.values():
            session.execute("select rowq.create_queue(%s)", [name])
    yield found
    # A test may have killed a session's node.
    with psycopg.connect(routed_url, autocommit=True) as session:
        for name in found.values():
            session.execute("select rowq.drop_queue(%s, true)", [name])


def _names_on_two_nodes(session: Connection, queue_name: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for number in range(1000):
        name = f"{queue_name}_{number}"
        found.setdefault(place_of(session, name), name)
        if len(found) == 2:
            return found
    pytest.skip(f"only one node has queues{TO_RUN}a cluster of two workers")
