"""Results on PostgreSQL: statements, plans and the cost of a wait."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.engine_only.postgres.conftest import Open
from tests.engine_only.postgres.test_plans import Plan, Watched, faults, nodes
from tests.engines.base import Connection
from tests.helpers.calls import call, call_one, dequeue, enqueue, make_dead

pytestmark = pytest.mark.promise("P32")

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
    """End messages in every way, read their results, and maintain."""
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


@pytest.mark.promise("P13")
def test_plans_made_on_empty_tables_use_indexes_later(kept: Connection, open_owner: Open) -> None:
    early = Watched(open_owner())
    for _ in range(7):  # Up to five calls use custom plans.
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
    """Return the fewest statements of several runs: sometimes a floor moves."""
    watched = Watched(open_owner())
    return min(len(watched.run(work)) for _ in range(12))


def test_only_a_queue_with_results_pays_for_them(owner: Connection, open_owner: Open) -> None:
    call(owner, "create_queue", queue_name=QUEUE)
    fill(owner, 24)
    without = fewest(open_owner, lambda session: complete(session, 1))
    call(owner, "alter_queue", queue_name=QUEUE, result_seconds=60)
    fill(owner, 12)
    assert fewest(open_owner, lambda session: complete(session, 1)) == without + 2
    assert fewest(open_owner, lambda session: complete(session, 1, results=[1])) > without + 2


def polls(plans: list[Plan]) -> list[Plan]:
    """Return the plans of a wait's polls between the first and the last."""
    return [plan for plan in plans if plan["Query Text"].startswith("select to_jsonb(h)")]


@pytest.mark.parametrize("backlog", [0, 3000])
def test_poll_reads_only_the_result_by_its_key(
    kept: Connection, open_owner: Open, backlog: int
) -> None:
    """50 waiters cost at most 50 such polls in 250 ms."""
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
    found = polls(plans)
    assert 5 <= len(found) <= 12
    for plan in found:
        (scan,) = [node for node in nodes(plan["Plan"]) if "Relation Name" in node]
        assert scan["Index Name"] == "result_pk"
        assert plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"] <= 4
    # Only the first and the last poll call get_result.
    assert len(plans) <= 3 * len(found) + 60


def check_purge_cost(
    owner: Connection, open_owner: Open, table: str, end_and_age: Callable[[], None]
) -> None:
    """Check that maintain does not read the rows it has purged beside an old snapshot."""
    holder = open_owner()
    holder.execute("begin isolation level repeatable read")
    holder.execute("select count(*) from rowq.message")
    watched = Watched(open_owner())
    costs: list[int] = []
    for _ in range(30):
        end_and_age()
        plans = watched.run(lambda session: call(session, "maintain", queue_name=QUEUE))
        costs.append(
            sum(
                int(plan["Plan"]["Shared Hit Blocks"]) + int(plan["Plan"]["Shared Read Blocks"])
                for plan in plans
                if f"from rowq.{table}" in plan["Query Text"] and "delete" not in plan["Query Text"]
            )
        )
        assert owner.execute(f"select count(*) from rowq.{table}").fetchone() == (0,)
    assert sum(costs[-5:]) <= 2 * sum(costs[5:10]), costs
    holder.execute("rollback")


@pytest.mark.slow("an old snapshot beside many rows")
@pytest.mark.promise("P13")
def test_maintain_skips_purged_rows_beside_an_old_snapshot(
    owner: Connection, open_owner: Open
) -> None:
    call(owner, "create_queue", queue_name=QUEUE, result_seconds=0.001)

    def end_and_age() -> None:
        fill(owner, 200)
        complete(owner, 200)
        owner.execute("select pg_sleep(0.01)")

    check_purge_cost(owner, open_owner, "result", end_and_age)
