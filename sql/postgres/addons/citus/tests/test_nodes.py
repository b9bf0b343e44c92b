"""A call that does not reach its node is refused, and an unreachable node is omitted."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

import rowq
from rowq.tools import migrate
from rowq.tools.metrics import Collector
from sql.postgres.addons.citus.install import install
from sql.postgres.addons.citus.nodes import Node, nodes_of, require_node
from sql.postgres.addons.citus.status import cluster_status
from sql.postgres.addons.citus.tests.cluster import Cluster, address, on_node
from sql.postgres.addons.citus.tests.conftest import Open
from tests.engines.base import TO_RUN, Connection
from tests.helpers.calls import call, call_one, refused
from tests.metrics.reading import scraped

CHANGES: dict[str, dict[str, Any]] = {
    "create_queue": {},
    "enqueue": {"body": "x"},
    "enqueue_batch": {"messages": [{"body": "x"}]},
    "dequeue_fast": {},
    "complete": {"claim_id": 1},
    "purge_queue": {},
    "drop_queue": {"force": True},
    "bind_topic": {"topic_pattern": "t"},
    "create_schedule": {"schedule_name": "s", "interval_seconds": 60},
}


def queues_of(session: Connection) -> set[str]:
    """Return the names of the queues on the session's node."""
    return {name for (name,) in session.execute("select queue_name from rowq.queue")}


def contents(session: Connection) -> list[tuple[str, int]]:
    """Return the queues of the session's node with their numbers of ready messages."""
    query = "select queue_name, ready from rowq_node.queue_stats() order by 1"
    return list(session.execute(query))


@contextmanager
def out_of_sync(open_node: Open, asked: Node, node: Node) -> Iterator[None]:
    """Mark another node's metadata as out of sync on a node."""
    change = "update pg_dist_node set metadatasynced = %s where groupid = %s"
    session = open_node(asked)
    session.execute(change, [False, node.group])
    try:
        # Citus repairs it periodically unless the table is locked.
        with session.transaction():
            session.execute("lock table pg_dist_node in share mode")
            yield
    finally:
        session.execute(change, [True, node.group])


@pytest.fixture
def workers(nodes: tuple[Node, ...], pair: dict[str, str]) -> dict[Node, str]:
    """Return the nodes of two queues, each with its queue's name."""
    return {node: pair[node.name] for node in nodes if node.name in pair}


@pytest.mark.parametrize("asked", ["coordinator", "worker"])
def test_call_that_citus_does_not_forward_is_refused(
    nodes: tuple[Node, ...], workers: dict[Node, str], open_node: Open, asked: str
) -> None:
    lost, other = workers
    place = nodes[0] if asked == "coordinator" else other
    session = open_node(place)
    every = [open_node(node) for node in nodes]
    for name in workers.values():
        call_one(session, "bind_topic", queue_name=name, topic_pattern="t")
    before = [contents(one) for one in every]
    with out_of_sync(open_node, place, lost):
        for routine, arguments in CHANGES.items():
            refused(session, "RQ706", routine, queue_name=workers[lost], **arguments)
        refused(session, "RQ706", "publish", topic="t", body="x")
        refused(session, "RQ706", "publish_batch", messages=[{"topic": "t", "body": "x"}])
        assert [contents(one) for one in every] == before
        # The other node still answers.
        call_one(session, "enqueue", queue_name=workers[other], body="x")
        away = [row for row in call(session, "health") if row.check_name == "unreachable_node"]
        assert [row.detail for row in away] == [f"{lost.name}: does not answer, SQLSTATE RQ706"]
        found = {row.queue_name for row in call(session, "queue_stats")}
        assert workers[other] in found
        assert workers[lost] not in found
    assert len(call(session, "publish", topic="t", body="x")) == 2
    for name in workers.values():
        call_one(session, "enqueue", queue_name=name, body="x")
        call_one(session, "unbind_topic", queue_name=name, topic_pattern="t")


def test_session_that_citus_mistakes_for_its_own_is_refused(
    nodes: tuple[Node, ...], workers: dict[Node, str], routed_url: str
) -> None:
    with psycopg.connect(
        on_node(routed_url, nodes[0]),
        autocommit=True,
        application_name="citus_internal gpid=10000000001",
    ) as session:
        for routine, arguments in CHANGES.items():
            refused(session, "RQ711", routine, queue_name=next(iter(workers.values())), **arguments)
        refused(session, "RQ711", "publish", topic="t", body="x")


def test_call_for_distributed_rows_changes_nothing(
    workers: dict[Node, str], open_node: Open, nodes: tuple[Node, ...]
) -> None:
    session = open_node(nodes[0])
    name = next(iter(workers.values()))
    session.execute("create table rows_to_send (number int)")
    try:
        session.execute("select create_distributed_table('rows_to_send', 'number')")
        session.execute("insert into rows_to_send select generate_series(1, 20)")
        for call_of in (f"rowq.enqueue('{name}', number::text)", "rowq.publish('t', number::text)"):
            with pytest.raises(psycopg.Error, match="RQ711") as refusal:
                session.execute(f"select {call_of} from rows_to_send")
            assert "offset 0" in str(refusal.value)
            assert call_one(session, "queue_stats", queue_name=name).ready == 0
        sent = "select number from rows_to_send offset 0"
        session.execute(f"select rowq.enqueue('{name}', number::text) from ({sent}) t")
        assert call_one(session, "queue_stats", queue_name=name).ready == 20
    finally:
        session.execute("drop table rows_to_send")


def test_node_with_an_old_map_omits_no_node(
    nodes: tuple[Node, ...], workers: dict[Node, str], open_node: Open
) -> None:
    """In the old map all names belong to one node, which refuses a call for each node."""
    asked, other = workers
    session = open_node(nodes[0])
    for name in workers.values():
        call_one(session, "bind_topic", queue_name=name, topic_pattern="t")
    with session.transaction(force_rollback=True):
        session.execute("set local citus.enable_metadata_sync to off")
        session.execute(
            "update pg_dist_placement set groupid = %s where groupid = %s",
            [other.group, asked.group],
        )
        with pytest.raises(psycopg.Error) as refusal:
            call(session, "publish", topic="t", body="x")
        assert refusal.value.sqlstate == "RQ706"
    assert len(call(session, "publish", topic="t", body="x")) == 2


def test_client_raises_wrong_node(
    nodes: tuple[Node, ...], workers: dict[Node, str], open_node: Open, routed_url: str
) -> None:
    lost, name = next(iter(workers.items()))
    with rowq.connect(routed_url) as queue, out_of_sync(open_node, nodes[0], lost):
        with pytest.raises(rowq.WrongNode, match="RQ706 wrong_node") as refusal:
            queue.enqueue(name, "x")
        assert refusal.value.retryable


def test_rowq_here_changes_no_queue_of_another_node(
    nodes: tuple[Node, ...], workers: dict[Node, str], open_node: Open
) -> None:
    for node in nodes:
        session = open_node(node)
        session.execute("set rowq.here = 'on'")
        before = queues_of(session)
        for place, name in workers.items():
            if place == node:
                call_one(session, "enqueue", queue_name=name, body="x")
                assert len(call(session, "dequeue_fast", queue_name=name)) == 1
                continue
            for routine, arguments in CHANGES.items():
                text = refused(session, "RQ711", routine, queue_name=name, **arguments)
                assert "rowq.here is on" in text
            refused(session, "RQ701", "queue_stats", queue_name=name)
            refused(session, "RQ701", "maintain", queue_name=name)
        refused(session, "RQ711", "publish", topic="t", body="x")
        refused(session, "RQ711", "publish_batch", messages=[{"topic": "t", "body": "x"}])
        call(session, "maintain")
        call(session, "health")
        assert queues_of(session) == before


def test_status_names_a_node_out_of_sync(
    nodes: tuple[Node, ...], workers: dict[Node, str], open_node: Open, routed_url: str
) -> None:
    lost = next(iter(workers))
    with out_of_sync(open_node, nodes[0], lost):
        problems = {one.node: one.problems for one in cluster_status(routed_url)}
        assert [text for text in problems[lost.name] if "not in sync" in text]
    assert {one.problems for one in cluster_status(routed_url)} == {()}


def test_address_of_another_node_is_refused(
    nodes: tuple[Node, ...], open_node: Open, routed_url: str
) -> None:
    with pytest.raises(migrate.RoutedDatabase, match="is meant"):
        require_node(open_node(nodes[1]), nodes[2])
    first, second = nodes[1], nodes[2]
    session = open_node(nodes[0])
    change = "update pg_dist_node set nodeport = %s where groupid = %s"
    ports = {node.group: address(node)[1] for node in (first, second)}
    try:
        # Two nodes cannot have the same address, so exchange them through a third one.
        session.execute(change, [1, first.group])
        session.execute(change, [ports[first.group], second.group])
        session.execute(change, [ports[second.group], first.group])
        found = cluster_status(routed_url)
        assert ["is meant" in " ".join(one.problems) for one in found] == [False, True, True]
        with pytest.raises(migrate.RoutedDatabase, match="is meant"):
            install(routed_url)
    finally:
        session.execute(change, [1, first.group])
        session.execute(change, [ports[second.group], second.group])
        session.execute(change, [ports[first.group], first.group])
    assert [node.group for node in nodes_of(routed_url)] == [0, 1, 2]


GONE = ("08006", "57P01", "57P02", "57P03", "57P04", "57P05")


@pytest.fixture
def killed(citus: Cluster, pair: dict[str, str]) -> Iterator[tuple[Node, str]]:
    """Kill a node with a queue; return it and the remaining queue."""
    if not citus.can_break:
        pytest.skip(f"a given cluster{TO_RUN}ROWQ_TEST_CITUS_BREAK")
    node = next(one for one in citus.nodes if one.name in pair)
    kept = next(name for place, name in pair.items() if place != node.name)
    citus.kill(node)
    try:
        yield node, kept
    finally:
        citus.start(node)


def test_metrics_of_the_other_nodes_remain(killed: tuple[Node, str], routed_url: str) -> None:
    _, kept = killed
    told = scraped(Collector(routed_url))
    assert told.value("rowq_up") == 1
    assert told.value("rowq_messages", queue=kept, state="ready") == 0
    assert told.value("rowq_claims", queue=kept) == 0
    assert told.value("rowq_health", queue="", check="unreachable_node") == 2
    assert {labels["queue"] for labels in told.named("rowq_messages")} == {kept}


def test_texts_about_a_node_contain_no_account(
    killed: tuple[Node, str], connection: Connection
) -> None:
    node, kept = killed
    said: list[str] = []
    connection.add_notice_handler(lambda notice: said.append(str(notice.message_primary)))
    for routine in ("maintain", "queue_stats", "list_claims"):
        found = {row.queue_name for row in call(connection, routine)}
        assert routine == "list_claims" or found == {kept}
    assert [text for text in said if node.name in text] == [
        f"node {node.name} is left out: SQLSTATE 08006"
    ] * 3
    (row,) = (row for row in call(connection, "health") if row.check_name == "unreachable_node")
    assert (row.status, row.detail) == ("critical", f"{node.name}: does not answer, SQLSTATE 08006")
    assert not [text for text in said if "rowq_citus" in text]


@pytest.mark.parametrize("state", GONE)
def test_stopping_or_starting_node_counts_as_away(
    nodes: tuple[Node, ...], open_node: Open, pair: dict[str, str], state: str
) -> None:
    """Health and maintain on the node raise the error of a stopping server."""
    place, lost = next(iter(pair.items()))
    kept = next(name for name in pair.values() if name != lost)
    session = open_node(nodes[0])
    node = open_node(next(node for node in nodes if node.name == place))
    node.execute("set citus.enable_ddl_propagation to off")
    (body,) = node.execute(
        "select pg_get_functiondef('rowq_citus.groups()'::regprocedure)"
    ).fetchone()
    node.execute(
        "create or replace function rowq_citus.groups() returns integer[] language plpgsql"
        f" as $$ begin raise exception 'gone' using errcode = '{state}'; end $$"
    )
    try:
        assert {row.queue_name for row in call(session, "maintain")} == {kept}
        away = [row for row in call(session, "health") if row.check_name == "unreachable_node"]
        assert [row.detail for row in away] == [f"{place}: does not answer, SQLSTATE {state}"]
        with pytest.raises(psycopg.Error):
            call(session, "publish", topic="t", body="x")
    finally:
        node.execute(body)
    assert call_one(session, "queue_stats", queue_name=lost).ready == 0
