"""A node is killed after it has promised to commit, and before it does: nothing is lost or doubled.

A commit on the coordinator waits for a standby that never comes: all nodes have prepared the
transaction then, and none has committed it for others to see.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from rowq.tools.engines.postgres.citus.nodes import Node
from tests.engines.base import TO_RUN, Connection, wait_until
from tests.engines.postgres.citus import Cluster, on_node
from tests.helpers.calls import call, call_one

HELD = "select from pg_stat_activity where wait_event = 'SyncRep' and pid = %s"
PREPARED = "select from pg_prepared_xacts where database = current_database()"


class Publisher(threading.Thread):
    """Publishes one message after another until the connection or a call fails.

    Attributes:
        done: bodies of the messages that were published, as far as it was told.
        tried: the same, and the one whose answer was lost.
        pid: of its session's process.
    """

    def __init__(self, url: str, topic: str) -> None:
        """Connect; begin by `start`."""
        super().__init__(daemon=True)
        self.done: list[str] = []
        self.tried: list[str] = []
        self.is_stopped = threading.Event()
        self._topic = topic
        self._connection = psycopg.connect(url, autocommit=True)
        self.pid = self._connection.info.backend_pid

    def run(self) -> None:
        """Publish until something fails."""
        try:
            while not self.is_stopped.is_set():
                self.tried.append(str(len(self.tried)))
                call(self._connection, "publish", topic=self._topic, body=self.tried[-1])
                self.done.append(self.tried[-1])
        except psycopg.Error:
            pass
        finally:
            self._connection.close()


@contextmanager
def commits_held(url: str) -> Iterator[None]:
    """Hold up each commit on the coordinator within a block."""

    def set_to(change: str) -> None:
        with psycopg.connect(url, autocommit=True) as session:
            session.execute(f"alter system {change}")
            session.execute("select pg_reload_conf()")

    set_to("set synchronous_standby_names to 'nobody'")
    try:
        yield
    finally:
        set_to("reset synchronous_standby_names")


def prepared(url: str, nodes: tuple[Node, ...]) -> int:
    """Return how many transactions the nodes have prepared and not ended."""
    count = 0
    for node in nodes:
        with psycopg.connect(on_node(url, node), autocommit=True) as session:
            count += session.execute(PREPARED).rowcount
    return count


def is_settled(url: str, nodes: tuple[Node, ...]) -> bool:
    """Have Citus end what was prepared, and return whether nothing is left."""
    with psycopg.connect(url, autocommit=True) as session:
        session.execute("select recover_prepared_transactions()")
    return prepared(url, nodes) == 0


def bodies(session: Connection, name: str) -> list[str]:
    """Take all messages of a queue and return what is in them, in the order of their numbers."""
    found = call(session, "dequeue_fast", queue_name=name, batch_size=999)
    return sorted((row.body for row in found), key=int)


@pytest.mark.parametrize("is_coordinator", [False, True], ids=["worker", "coordinator"])
def test_a_crash_between_the_commits_of_two_nodes_loses_and_doubles_nothing(
    citus: Cluster,
    nodes: tuple[Node, ...],
    pair: dict[str, str],
    routed_url: str,
    is_coordinator: bool,
) -> None:
    if not citus.can_break:
        pytest.skip(f"a given cluster{TO_RUN}ROWQ_TEST_CITUS_BREAK, or Docker")
    topic = next(iter(pair.values()))
    place = nodes[0].name if is_coordinator else next(iter(pair))
    victim = next(node for node in citus.nodes if node.name == place)
    with psycopg.connect(routed_url, autocommit=True) as session:
        for name in pair.values():
            call_one(session, "bind_topic", queue_name=name, topic_pattern=topic)
        publisher = Publisher(routed_url, topic)
        publisher.start()
        wait_until(lambda: len(publisher.done) > 2, "some messages are published", 30)
        with commits_held(routed_url):

            def is_held() -> bool:
                return session.execute(HELD, [publisher.pid]).rowcount == 1

            wait_until(is_held, "a commit is held", 30)
            assert prepared(routed_url, nodes) == len(pair)
            citus.kill(victim)
            if is_coordinator:
                citus.start(victim)
    publisher.is_stopped.set()
    publisher.join(30)
    assert not publisher.is_alive()
    if not is_coordinator:
        citus.start(victim)
    wait_until(lambda: is_settled(routed_url, nodes), "what was prepared has ended", 60)

    with psycopg.connect(routed_url, autocommit=True) as session:
        found = [bodies(session, name) for name in pair.values()]
    assert found[0] == found[1]
    # What was held on the coordinator is written down there, and is kept although nobody was told.
    possible = [publisher.tried] if is_coordinator else [publisher.done, publisher.tried]
    assert found[0] in possible
