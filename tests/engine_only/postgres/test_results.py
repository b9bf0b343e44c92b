"""Results on PostgreSQL: statements and plans, with and without them, and what a wait costs."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.engine_only.postgres.conftest import Open
from tests.engine_only.postgres.test_plans import Plan, Watched, faults, nodes
from tests.engines.base import Connection
from tests.helpers.calls import call, call_one, dequeue, enqueue, make_dead

QUEUE = "kept"
KEPT_SECONDS = 600


@pytest.fixture
def kept(owner: Connection) -> Connection:
    """Return a session in a database whose only queue keeps results."""
    call(owner, "create_queue", queue_name=QUEUE, result_seconds=KEPT_SECONDS)
    return owner


def fill(connection: Connection, count: int) -> None:
    call(connection, "enqueue_batch", queue_name=QUEUE, messages=[{"body": "x"}] * count)


def complete(connection: Connection, size: int, **given: Any) -> list[int]:
    """Lease and complete messages; return their ids."""
    rows = dequeue(connection, QUEUE, size)
    call(connection, "complete", queue_name=QUEUE, claim_id=rows[0].claim_id, **given)
    return [row.message_id for row in rows]


def cycle(connection: Connection) -> None:
    """End messages in every way, look at their results, and keep house."""
    for size in (1, 3):
        fill(connection, size)
        complete(connection, size)
    fill(connection, 1)
    (message,) = complete(connection, 1, results=[{"a": 1}])
    dead, revived = make_dead(connection, QUEUE, "x", "y")
    call(connection, "cancel", queue_name=QUEUE, message_ids=[dead])
    call(connection, "reset", queue_name=QUEUE, message_ids=[revived])
    complete(connection, 1)
    for one in (message, dead):
        call(connection, "get_result", queue_name=QUEUE, message_id=one)
        call(connection, "wait_for_result", queue_name=QUEUE, message_id=one, wait_seconds=0)
    call(connection, "maintain", queue_name=QUEUE)


@pytest.mark.promise("P13", "P32")
def test_a_session_that_planned_on_empty_tables_uses_indexes_when_they_have_grown(
    kept: Connection, open_owner: Open
) -> None:
    early = Watched(open_owner())
    for _ in range(7):  # The first five calls may each be planned anew.
        early.run(cycle)
    kept.execute(
        "insert into rowq.result (queue_id, message_id, finished_at, state)"
        " select queue_id, -i, clock_timestamp() - i * interval '0.1 seconds', 'completed'"
        " from rowq.queue, generate_series(1, 20000) i"
    )
    messages = [{"body": "x", "delay_seconds": 1000}] * 6000
    call(kept, "enqueue_batch", queue_name=QUEUE, messages=messages)
    kept.execute(
        "insert into rowq.dead (queue_id, message_id, lane, attempt, died_at)"
        " select queue_id, -i, 11, 1, clock_timestamp()"
        " from rowq.queue, generate_series(1, 6000) i"
    )
    assert faults(early.run(cycle)) == set(), "before analyze"
    kept.execute("analyze")
    plans = early.run(cycle)
    assert sum("rowq.result" in plan["Query Text"] for plan in plans) > 5
    assert faults(plans) == set(), "after analyze"
    assert faults(Watched(open_owner()).run(cycle)) == set(), "in a new session"


def fewest(open_owner: Open, work: Callable[[Connection], object]) -> int:
    """Return how many statements some work runs, at least: a floor moves now and then."""
    watched = Watched(open_owner())
    return min(len(watched.run(work)) for _ in range(12))


@pytest.mark.promise("P32")
def test_only_a_queue_that_keeps_results_pays_for_them(owner: Connection, open_owner: Open) -> None:
    call(owner, "create_queue", queue_name=QUEUE)
    fill(owner, 24)
    without = fewest(open_owner, lambda session: complete(session, 1))
    call(owner, "alter_queue", queue_name=QUEUE, result_seconds=60)
    fill(owner, 12)
    assert fewest(open_owner, lambda session: complete(session, 1)) == without + 2
    assert fewest(open_owner, lambda session: complete(session, 1, results=[1])) > without + 2


def looks(plans: list[Plan]) -> list[Plan]:
    """Return the plans of a wait's looks between its first one and its last one."""
    return [plan for plan in plans if plan["Query Text"].startswith("select to_jsonb(h)")]


@pytest.mark.promise("P32")
@pytest.mark.parametrize("backlog", [0, 3000])
def test_a_look_reads_the_result_by_its_key_and_nothing_else(
    kept: Connection, open_owner: Open, backlog: int
) -> None:
    """So fifty waiters cost no more than fifty such looks each quarter of a second."""
    (message,) = enqueue(kept, QUEUE, "x")
    if backlog:
        fill(kept, backlog)
        dequeue(kept, QUEUE, 1000)
        kept.execute(
            "insert into rowq.result (queue_id, message_id, finished_at, state)"
            " select queue_id, -i, clock_timestamp(), 'completed'"
            " from rowq.queue, generate_series(1, 20000) i"
        )
    watched = Watched(open_owner())
    plans = watched.run(
        lambda session: call_one(
            session, "wait_for_result", queue_name=QUEUE, message_id=message, wait_seconds=2
        )
    )
    found = looks(plans)
    assert 5 <= len(found) <= 12
    for plan in found:
        (scan,) = [node for node in nodes(plan["Plan"]) if "Relation Name" in node]
        assert scan["Index Name"] == "result_pk"
        assert plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"] <= 4
    # The first look and the last one are get_result, and none of the others is.
    assert len(plans) <= 3 * len(found) + 60


def purging(plans: list[Plan]) -> int:
    """Return the buffers that maintain reads for results."""
    return sum(
        int(plan["Plan"]["Shared Hit Blocks"]) + int(plan["Plan"]["Shared Read Blocks"])
        for plan in plans
        if "from rowq.result" in plan["Query Text"] and "delete" not in plan["Query Text"]
    )


@pytest.mark.slow("an old snapshot beside many rows")
@pytest.mark.promise("P13", "P32")
def test_maintain_does_not_walk_what_it_has_purged_beside_an_old_snapshot(
    owner: Connection, open_owner: Open
) -> None:
    call(owner, "create_queue", queue_name=QUEUE, result_seconds=0.001)
    holder = open_owner()
    holder.execute("begin isolation level repeatable read")
    holder.execute("select count(*) from rowq.message")
    watched = Watched(open_owner())
    costs: list[int] = []
    for _ in range(30):
        fill(owner, 200)
        complete(owner, 200)
        owner.execute("select pg_sleep(0.01)")
        costs.append(
            purging(watched.run(lambda session: call(session, "maintain", queue_name=QUEUE)))
        )
        assert owner.execute("select count(*) from rowq.result").fetchone() == (0,)
    assert sum(costs[-5:]) <= 2 * sum(costs[5:10]), costs
    holder.execute("rollback")
