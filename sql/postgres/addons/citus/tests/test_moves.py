"""Calls reach each node once while shards move, nodes change and servers crash."""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psycopg
import pytest

from sql.postgres.addons.citus.install import install
from sql.postgres.addons.citus.nodes import Node, nodes_of
from sql.postgres.addons.citus.status import cluster_status
from sql.postgres.addons.citus.tests.cluster import Cluster, address, move, on_node
from tests.engines.base import TO_RUN, Connection, wait_until
from tests.helpers.calls import call, call_one, refused

SHARDS = """
    select n.name, p.groupid, p.shardid
    from unnest(%s::text[]) n (name)
    join pg_dist_placement p
        on p.shardid = get_shard_id_for_distribution_column('rowq_citus.route', n.name)
    """


@pytest.fixture
def moving(empty_cluster: str) -> Iterator[Connection]:
    """Return a coordinator's session on a cluster with movable shards."""
    install(empty_cluster)
    with psycopg.connect(empty_cluster, autocommit=True) as session:
        workers = [node for node in nodes_of(empty_cluster) if not node.is_coordinator]
        if len(workers) < 2:
            pytest.skip(f"only one node has queues{TO_RUN}a cluster of two workers")
        yield session


def one_queue_on_each(session: Connection, groups: set[int]) -> dict[int, str]:
    """Create a queue on each of these nodes, bound to a topic; return their names."""
    names = [f"q{number}" for number in range(500)]
    found = {group: name for name, group, _ in session.execute(SHARDS, [names]) if group in groups}
    assert found.keys() == groups
    for name in found.values():
        call_one(session, "create_queue", queue_name=name)
        call_one(session, "bind_topic", queue_name=name, topic_pattern="t")
    return found


def assert_each_is_asked_once(url: str, names: set[str]) -> None:
    """Call all nodes on each node, and check that each answers once."""
    with ExitStack() as opened:
        for node in nodes_of(url):
            session = opened.enter_context(psycopg.connect(on_node(url, node), autocommit=True))
            for routine, arguments in (
                ("publish", {"topic": "t", "body": "x"}),
                ("queue_stats", {}),
                ("maintain", {}),
                ("list_topics", {}),
            ):
                found = [row.queue_name for row in call(session, routine, **arguments)]
                assert sorted(found) == sorted(names), (node.name, routine)
            assert "unreachable_node" not in {row.check_name for row in call(session, "health")}
    assert {one.problems for one in cluster_status(url)} == {()}


def test_calls_reach_each_node_once_after_a_shard_moves(
    moving: Connection, empty_cluster: str
) -> None:
    first, second = (node for node in nodes_of(empty_cluster) if not node.is_coordinator)
    queues = one_queue_on_each(moving, {first.group, second.group})
    assert_each_is_asked_once(empty_cluster, set(queues.values()))
    kept = {shard for _, _, shard in moving.execute(SHARDS, [list(queues.values())])}
    # The first of these names finds the nodes.
    names = [f"n{number}" for number in range(1, 7)]
    moves = {shard: group for _, group, shard in moving.execute(SHARDS, [names])}
    for shard, group in moves.items():
        if shard not in kept:
            ends = (first, second) if group == first.group else (second, first)
            move(moving, shard, *map(address, ends))
            assert_each_is_asked_once(empty_cluster, set(queues.values()))


def test_queue_of_a_moved_shard_fails_no_other_call(moving: Connection, empty_cluster: str) -> None:
    first, second = (node for node in nodes_of(empty_cluster) if not node.is_coordinator)
    queues = one_queue_on_each(moving, {first.group, second.group})
    lost, kept = queues[first.group], queues[second.group]
    for name in queues.values():
        call_one(
            moving,
            "create_schedule",
            queue_name=name,
            schedule_name="s",
            interval_seconds=1,
            body="x",
        )
    ((_, _, shard),) = moving.execute(SHARDS, [[lost]]).fetchall()
    move(moving, shard, address(first), address(second))

    messages = [{"topic": "t", "body": "x"}]
    for routine, arguments in (
        ("publish", {"topic": "t", "body": "x"}),
        ("publish_batch", {"messages": messages}),
    ):
        found = {row.queue_name for row in call(moving, routine, **arguments)}
        assert found == set(queues.values())
    time.sleep(1.1)
    assert {row.queue_name for row in call(moving, "maintain")} == set(queues.values())
    assert call_one(moving, "queue_stats", queue_name=kept).ready == 3
    refused(moving, "RQ701", "enqueue", queue_name=lost, body="x")
    with psycopg.connect(on_node(empty_cluster, first), autocommit=True) as there:
        there.execute("set rowq.here = 'on'")
        refused(there, "RQ711", "enqueue", queue_name=lost, body="x")

    move(moving, shard, address(second), address(first))
    assert call_one(moving, "queue_stats", queue_name=lost).ready == 3


def test_calls_reach_a_node_that_was_removed_and_added_again(
    moving: Connection, empty_cluster: str
) -> None:
    _, first, second = nodes_of(empty_cluster)
    queues = one_queue_on_each(moving, {first.group})
    names = set(queues.values())
    moving.execute("select citus_drain_node(%s, %s, 'block_writes')", address(second))
    assert_each_is_asked_once(empty_cluster, names)
    moving.execute("select citus_remove_node(%s, %s)", address(second))
    assert_each_is_asked_once(empty_cluster, names)

    # It returns as a new node.
    with psycopg.connect(on_node(empty_cluster, second), autocommit=True) as there:
        there.execute("set citus.enable_ddl_propagation to off")
        for schema in ("rowq", "rowq_node", "rowq_citus"):
            there.execute(f"drop schema if exists {schema} cascade")
    moving.execute("select citus_add_node(%s, %s)", address(second))
    moved = moving.execute(
        "select shardid from pg_dist_placement where shardid <> all(%s) order by 1 limit 2",
        [[shard for _, _, shard in moving.execute(SHARDS, [list(names)])]],
    ).fetchall()
    for (shard,) in moved:
        move(moving, shard, address(first), address(second))
    (kept,) = names
    before = call_one(moving, "queue_stats", queue_name=kept).ready
    with pytest.raises(psycopg.Error, match="does not exist"):
        call(moving, "publish", topic="t", body="x")
    assert call_one(moving, "queue_stats", queue_name=kept).ready == before
    assert ("run install",) in {one.problems for one in cluster_status(empty_cluster)}

    install(empty_cluster)
    assert_each_is_asked_once(empty_cluster, names)
    back = next(node for node in nodes_of(empty_cluster) if node.name == second.name)
    queues |= one_queue_on_each(moving, {back.group})
    assert_each_is_asked_once(empty_cluster, set(queues.values()))


HELD = "select from pg_stat_activity where wait_event = 'SyncRep' and pid = %s"
PREPARED = "select from pg_prepared_xacts where database = current_database()"


class Publisher(threading.Thread):
    """A publisher of single messages until a failure.

    Attributes:
        done: bodies of confirmed messages.
        tried: the same, and the one without an answer.
        pid: its session's process id.
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
        """Publish until a call fails."""
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
    """Block each commit on the coordinator within a block."""

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
    """Return the number of open prepared transactions on the nodes."""
    count = 0
    for node in nodes:
        with psycopg.connect(on_node(url, node), autocommit=True) as session:
            count += session.execute(PREPARED).rowcount
    return count


def is_settled(url: str, nodes: tuple[Node, ...]) -> bool:
    """Let Citus end prepared transactions; return whether none is left."""
    with psycopg.connect(url, autocommit=True) as session:
        session.execute("select recover_prepared_transactions()")
    return prepared(url, nodes) == 0


def bodies(session: Connection, name: str) -> list[str]:
    """Dequeue all messages of a queue; return their bodies in order of ids."""
    found = call(session, "dequeue_fast", queue_name=name, batch_size=999)
    return sorted((row.body for row in found), key=int)


@pytest.mark.parametrize("is_coordinator", [False, True], ids=["worker", "coordinator"])
def test_crash_between_two_nodes_commits_loses_no_message(
    citus: Cluster,
    nodes: tuple[Node, ...],
    pair: dict[str, str],
    routed_url: str,
    is_coordinator: bool,
) -> None:
    if not citus.can_break:
        pytest.skip(f"a given cluster{TO_RUN}ROWQ_TEST_CITUS_BREAK")
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
    # The blocked commit is in the coordinator's WAL and stays without a confirmation.
    possible = [publisher.tried] if is_coordinator else [publisher.done, publisher.tried]
    assert found[0] in possible
