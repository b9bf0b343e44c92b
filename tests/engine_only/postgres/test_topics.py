"""publish reads a few pages of one index among 1000 patterns."""

from typing import Any

import pytest

from tests.engine_only.postgres.conftest import Open
from tests.engine_only.postgres.test_plans import Plan, Watched, faults, nodes
from tests.engines.base import Connection
from tests.helpers.calls import call
from tests.helpers.queues import CheckedQueue
from tests.helpers.topics import (
    MANY,
    MOST_ROWS,
    bind,
    bind_to_1000,
    bind_to_many,
    many_topics,
    names,
    publish,
)


def buffers(owner: Connection, topic: str) -> int:
    """Return the number of buffers that matching a topic reads, after planning."""
    query = (
        "explain (analyze, buffers, timing off, format json)"
        " select count(*) from rowq.internal_bound_queues(array[%s])"
    )
    costs: list[int] = []
    for _ in range(3):
        row: Any = owner.execute(query.replace("%s", f"'{topic}'")).fetchone()
        top = row[0][0]["Plan"]
        costs.append(top["Shared Hit Blocks"] + top["Shared Read Blocks"])
    return min(costs)


@pytest.mark.promise("P13", "P35")
def test_patterns_with_other_prefixes_are_not_read(
    owner: Connection, own_queue: CheckedQueue
) -> None:
    bind(own_queue, "orders.*.paid")
    owner.execute("set enable_seqscan = off")
    owner.execute("set enable_bitmapscan = off")
    few = buffers(owner, "orders.7.paid")
    bind_to_1000(owner, "q", "orders.@.#")
    bind_to_1000(owner, "q", "of_@.*")
    assert buffers(owner, "orders.7.paid") <= few + 10


@pytest.mark.promise("P13", "P35")
def test_thousand_patterns_with_the_prefix_are_few_pages(
    owner: Connection, own_queue: CheckedQueue
) -> None:
    bind(own_queue, "orders.*.of.7")
    owner.execute("set enable_seqscan = off")
    owner.execute("set enable_bitmapscan = off")
    few = buffers(owner, "orders.7.paid")
    bind_to_1000(owner, "q", "orders.*.n@")
    assert buffers(owner, "orders.7.paid") <= few + 40


@pytest.mark.promise("P13", "P35")
@pytest.mark.parametrize("is_planned_while_empty", [True, False])
def test_publish_finds_queues_by_the_index(
    open_owner: Open, own_queue: CheckedQueue, *, is_planned_while_empty: bool
) -> None:
    watched = Watched(open_owner())
    if is_planned_while_empty:
        watched.run(lambda session: publish(session, "orders.7.paid"))
    bind_to_1000(own_queue.connection, "q", "orders.*.n@")
    for number in range(50):
        call(own_queue.connection, "create_queue", queue_name=f"other {number}")
    bind(own_queue, "orders.*.paid")
    plans = watched.run(lambda session: publish(session, "orders.7.paid"))
    found = [
        node
        for plan in plans
        for node in nodes(plan["Plan"])
        if node.get("Relation Name") == "topic_binding"
    ]
    assert [node["Index Name"] for node in found] == ["topic_binding_prefix_ix"]
    assert "Index Cond" in found[0]
    assert found[0]["Actual Loops"] == 1
    assert faults(plans) == set()
    assert names(publish(own_queue.connection, "orders.7.paid")) == ["q"]


def rows_of(plan: Plan) -> int:
    """Return the number of rows that the nodes of a plan have read."""
    counted = ("Actual Rows", "Rows Removed by Filter", "Rows Removed by Join Filter")
    return sum(
        int(node.get(name, 0) * node["Actual Loops"])
        for node in nodes(plan["Plan"])
        for name in counted
    )


@pytest.mark.promise("P13", "P35")
@pytest.mark.parametrize("is_planned_while_empty", [True, False])
def test_publish_batch_does_not_compare_every_pair(
    open_owner: Open, own_queue: CheckedQueue, *, is_planned_while_empty: bool
) -> None:
    watched = Watched(open_owner())

    def send(session: Connection) -> None:
        sent = call(session, "publish_batch", messages=many_topics("paid"))
        assert [(row.position, row.queue_name) for row in sent] == [(MANY, "q")]

    if is_planned_while_empty:
        call(watched.connection, "publish_batch", messages=[{"topic": "a.b"}, {"topic": "b.c"}])
    bind_to_many(own_queue, "paid")
    for is_analyzed in (False, True):
        if is_analyzed:
            own_queue.connection.execute("analyze")
        plans = watched.run(send)
        found = [
            plan
            for plan in plans
            if any(node.get("Relation Name") == "topic_binding" for node in nodes(plan["Plan"]))
        ]
        assert found
        assert sum(map(rows_of, found)) < MOST_ROWS
