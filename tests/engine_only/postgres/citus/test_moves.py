"""Calls for every node go to each node once, while shards move and nodes come and go."""

import time
from collections.abc import Iterator
from contextlib import ExitStack

import psycopg
import pytest

from rowq.tools.engines.postgres.citus.install import install
from rowq.tools.engines.postgres.citus.nodes import nodes_of
from rowq.tools.engines.postgres.citus.status import cluster_status
from tests.engine_only.postgres.citus.helpers import move
from tests.engines.base import TO_RUN, Connection
from tests.engines.postgres.citus import address, on_node
from tests.helpers.calls import call, call_one, refused

SHARDS = """
    select n.name, p.groupid, p.shardid
    from unnest(%s::text[]) n (name)
    join pg_dist_placement p
        on p.shardid = get_shard_id_for_distribution_column('rowq_citus.route', n.name)
    """


@pytest.fixture
def moving(empty_cluster: str) -> Iterator[Connection]:
    """Return a session on the coordinator of a cluster whose shards a test may move."""
    install(empty_cluster)
    with psycopg.connect(empty_cluster, autocommit=True) as session:
        workers = [node for node in nodes_of(empty_cluster) if not node.is_coordinator]
        if len(workers) < 2:
            pytest.skip(f"only one node has queues{TO_RUN}a cluster of two workers")
        yield session


def one_queue_on_each(session: Connection, groups: set[int]) -> dict[int, str]:
    """Create a queue on each of these nodes, bound to a topic, and return their names."""
    names = [f"q{number}" for number in range(500)]
    found = {group: name for name, group, _ in session.execute(SHARDS, [names]) if group in groups}
    assert found.keys() == groups
    for name in found.values():
        call_one(session, "create_queue", queue_name=name)
        call_one(session, "bind_topic", queue_name=name, topic_pattern="t")
    return found


def assert_each_is_asked_once(url: str, names: set[str]) -> None:
    """Ask all nodes by way of each node, and look whether each has answered once."""
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


def test_a_shard_moves(moving: Connection, empty_cluster: str) -> None:
    first, second = (node for node in nodes_of(empty_cluster) if not node.is_coordinator)
    queues = one_queue_on_each(moving, {first.group, second.group})
    assert_each_is_asked_once(empty_cluster, set(queues.values()))
    kept = {shard for _, _, shard in moving.execute(SHARDS, [list(queues.values())])}
    # By the first of these names the nodes are found.
    names = [f"n{number}" for number in range(1, 7)]
    moves = {shard: group for _, group, shard in moving.execute(SHARDS, [names])}
    for shard, group in moves.items():
        if shard not in kept:
            ends = (first, second) if group == first.group else (second, first)
            move(moving, shard, *map(address, ends))
            assert_each_is_asked_once(empty_cluster, set(queues.values()))


def test_a_queue_whose_shard_was_moved_fails_no_call_for_others(
    moving: Connection, empty_cluster: str
) -> None:
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


def test_a_node_goes_and_comes_back(moving: Connection, empty_cluster: str) -> None:
    _, first, second = nodes_of(empty_cluster)
    queues = one_queue_on_each(moving, {first.group})
    names = set(queues.values())
    moving.execute("select citus_drain_node(%s, %s, 'block_writes')", address(second))
    assert_each_is_asked_once(empty_cluster, names)
    moving.execute("select citus_remove_node(%s, %s)", address(second))
    assert_each_is_asked_once(empty_cluster, names)

    # It comes back as a new one.
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
    assert ("run rowq citus install",) in {one.problems for one in cluster_status(empty_cluster)}

    install(empty_cluster)
    assert_each_is_asked_once(empty_cluster, names)
    back = next(node for node in nodes_of(empty_cluster) if node.name == second.name)
    queues |= one_queue_on_each(moving, {back.group})
    assert_each_is_asked_once(empty_cluster, set(queues.values()))
