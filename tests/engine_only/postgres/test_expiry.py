"""Expiry on PostgreSQL: plans, cost and old snapshots."""

from typing import Any

import pytest

from tests.engine_only.postgres.conftest import Open
from tests.engine_only.postgres.test_plans import Plan, Watched, faults, nodes
from tests.engines.base import Connection
from tests.helpers.calls import call, call_one, dequeue, enqueue
from tests.stored_times import pass_seconds

QUEUE = "expiring"

LAG = 25
"""Buffers of up to 2,000 dead rows between the safe floor and the first live row."""


def fill(connection: Connection, count: int, **options: Any) -> None:
    """Enqueue messages that expire, after 60 seconds by default."""
    messages = [{"body": "x", "expire_seconds": 60, **options}] * count
    call(connection, "enqueue_batch", queue_name=QUEUE, messages=messages)


def maintain(connection: Connection) -> int:
    """Call maintain and return how many messages expired."""
    return int(call_one(connection, "maintain", queue_name=QUEUE).expired)


def cycle(connection: Connection) -> None:
    """Let messages expire in each state, and check a leased one."""
    fill(connection, 3)
    fill(connection, 3, delay_seconds=1000)
    fill(connection, 3, group_key="a")
    [first] = enqueue(connection, QUEUE, "first", priority=9)
    enqueue(connection, QUEUE, "second", predecessor_ids=[first], expire_seconds=60)
    rows = dequeue(connection, QUEUE, 2, lease_seconds=1000)
    call(connection, "release", queue_name=QUEUE, claim_id=rows[0].claim_id)
    dequeue(connection, QUEUE, 1, lease_seconds=1000)
    pass_seconds(connection, QUEUE, 61)
    assert maintain(connection) >= 9


@pytest.mark.slow("100,000 messages")
@pytest.mark.promise("P13", "P36")
@pytest.mark.parametrize("archive_days", [0, 1])
def test_expiry_uses_indexes_with_plans_of_empty_tables(
    owner: Connection, open_owner: Open, archive_days: int
) -> None:
    call(owner, "create_queue", queue_name=QUEUE, archive_days=archive_days)
    early = Watched(open_owner())
    for _ in range(7):  # The first 5 calls may get a custom plan each.
        early.run(cycle)
    for _ in range(5):
        messages = [{"body": "x", "expire_seconds": 9000}] * 10000
        call(owner, "enqueue_batch", queue_name=QUEUE, messages=messages)
    assert faults(only_of_expiry(early.run(cycle))) == set(), "before analyze"
    owner.execute("analyze")
    plans = only_of_expiry(early.run(cycle))
    assert len(plans) > 10
    assert faults(plans) == set(), "after analyze"
    assert faults(only_of_expiry(Watched(open_owner()).run(cycle))) == set(), "in a new session"


@pytest.mark.promise("P13", "P32", "P36")
def test_expiry_does_not_compare_rows_of_the_same_time(owner: Connection, open_owner: Open) -> None:
    call(owner, "create_queue", queue_name=QUEUE, result_seconds=60)
    watched = Watched(open_owner())
    fill(owner, 5000)
    pass_seconds(owner, QUEUE, 61)
    plans = watched.run(maintain)
    pass_seconds(owner, QUEUE, 61)
    removed = max(thrown_away(plan) for plan in [*plans, *watched.run(maintain)])
    assert removed <= 1000


def thrown_away(plan: Plan) -> int:
    """Return the number of rows that a plan's filters removed."""
    kinds = ("Rows Removed by Filter", "Rows Removed by Join Filter")
    return sum(
        int(node.get(kind, 0) * node["Actual Loops"])
        for node in nodes(plan["Plan"])
        for kind in kinds
    )


def only_of_expiry(plans: list[Plan]) -> list[Plan]:
    """Leave out the statements that let time pass."""
    return [plan for plan in plans if "interval '61' second" not in plan["Query Text"]]


def cost(watched: Watched) -> int:
    """Return the buffers of expiry that maintain reads to expire one message: the least of 3."""
    costs: list[int] = []
    for _ in range(3):
        fill(watched.connection, 1, expire_seconds=0.001)
        tops = [
            plan["Plan"]
            for plan in watched.run(maintain)
            if "rowq.expiry" in plan["Query Text"] and "floor" not in plan["Query Text"]
        ]
        costs.append(sum(top["Shared Hit Blocks"] + top["Shared Read Blocks"] for top in tops))
    return min(costs)


@pytest.mark.slow("an old snapshot beside many rows")
@pytest.mark.promise("P13", "P36")
@pytest.mark.parametrize("leased", [False, True])
def test_held_snapshot_does_not_raise_the_cost_of_expiry(
    owner: Connection, open_owner: Open, leased: bool
) -> None:
    call(owner, "create_queue", queue_name=QUEUE)
    watched, holder = Watched(open_owner()), open_owner()
    if leased:
        fill(owner, 5, expire_seconds=0.5)
        dequeue(owner, QUEUE, 5, lease_seconds=80000)
    before = cost(watched)
    holder.execute("begin isolation level repeatable read")
    holder.execute("select 1")
    for _ in range(5):
        fill(owner, 1000, expire_seconds=0.001)
        assert maintain(owner) == 1000
    after = cost(watched)
    holder.execute("rollback")
    # Dead rows of the last two rounds may lie between the safe floor and the first live row.
    assert 0 < after <= 2 * before + LAG, f"{before} buffers before, {after} after"
