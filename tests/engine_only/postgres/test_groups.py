"""Groups: plans, number of statements and buffers."""

import pytest

from tests.engine_only.postgres.conftest import Open
from tests.engine_only.postgres.test_plans import (
    FLOOR_LAG,
    STORED,
    Plan,
    Watched,
    faults,
    nodes,
)
from tests.engines.base import Connection
from tests.helpers.calls import call, call_one, dequeue, enqueue, transaction
from tests.stored_times import pass_seconds, tick

GROUPS = 100
TABLES = {"group_waiting", "group_slot", "deferred"}


def cycle(connection: Connection, other: Connection) -> None:
    """Run every statement about groups whose plan is cached."""
    keyed = [{"body": "x", "group_key": f"new {number % 3}"} for number in range(9)]
    call(connection, "enqueue_batch", queue_name="hot", messages=keyed)
    enqueue(connection, "hot", "first", "second", "third", group_key="one", priority=1)
    enqueue(connection, "hot", "late", group_key="late", delay_seconds=1)
    pass_seconds(other, "hot", 2)
    call(connection, "promote", queue_name="hot")
    for routine in ("complete", "fail_now", "retry_later", "release", "complete", "complete"):
        [row] = dequeue(connection, "hot", 1)
        call(connection, routine, queue_name="hot", claim_id=row.claim_id)
    rows = dequeue(connection, "hot", 50)
    call(connection, "complete", queue_name="hot", claim_id=rows[0].claim_id)
    enqueue(connection, "hot", "held", group_key="open", priority=0)
    [row] = dequeue(connection, "hot", 1)
    with transaction(other):
        enqueue(other, "hot", "coming", group_key="open")
        call(connection, "complete", queue_name="hot", claim_id=row.claim_id)
    tick(other, "hot")
    call(connection, "maintain", queue_name="hot")


def rare(connection: Connection) -> None:
    """Run statements that get a custom plan each time."""
    call(connection, "reset", queue_name="hot")
    ids = enqueue(connection, "hot", "a", "b", "c", group_key="cancelled")
    call(connection, "cancel", queue_name="hot", message_ids=ids[1:])
    call(connection, "get_message", queue_name="hot", message_id=ids[0])


def fill(connection: Connection) -> None:
    """Enqueue 100,000 messages that wait in 10,000 groups."""
    for turn in range(10):
        messages = [
            {"body": "x" * 50, "group_key": f"group {number}", "priority": 9 - turn % 2}
            for number in range(10000)
        ]
        call(connection, "enqueue_batch", queue_name="hot", messages=messages)
    same = [{"body": "x", "group_key": "group 1", "priority": 9}] * 10000
    call(connection, "enqueue_batch", queue_name="hot", messages=same)


@pytest.mark.slow("100,000 messages")
@pytest.mark.promise("P13")
def test_groups_use_indexes_with_plans_of_empty_tables(owner: Connection, open_owner: Open) -> None:
    call(owner, "create_queue", queue_name="hot")
    early, other = Watched(open_owner()), open_owner()
    for _ in range(7):  # The first 5 calls may get a custom plan each.
        early.run(lambda own: cycle(own, other))
    early.run(rare)
    fill(owner)
    assert of_groups(faults(early.run(rare))) == set(), "before analyze"
    assert faults(early.run(lambda own: cycle(own, other))) == set(), "before analyze"
    owner.execute("analyze")
    plans = early.run(lambda own: cycle(own, other))
    assert set(map(str, tables(plans))) >= TABLES
    assert of_groups(faults(early.run(rare))) == set(), "after analyze"
    assert faults(plans) == set(), "after analyze"
    assert sorts(plans) == set()
    late = Watched(open_owner())
    assert faults(late.run(lambda own: cycle(own, other))) == set(), "in a new session"


def of_groups(found: set[str]) -> set[str]:
    """Return the faults about tables of groups."""
    return {fault for fault in found if any(table in fault.split(":")[0] for table in TABLES)}


def tables(plans: list[Plan]) -> set[object]:
    """Return the tables that plans name."""
    return {node.get("Relation Name") for plan in plans for node in nodes(plan["Plan"])}


def sorts(plans: list[Plan]) -> set[str]:
    """Return the statements that sort rows of a table of groups."""
    found = set()
    for plan in plans:
        for node in nodes(plan["Plan"]):
            below = {str(each.get("Relation Name")) for each in nodes(node)}
            if "Sort" in node["Node Type"] and below & TABLES:
                found.add(plan["Query Text"])
    return found


def statements(plans: list[Plan]) -> int:
    """Return the number of statements that read or write a table."""
    return sum(
        any(node.get("Relation Name") in STORED for node in nodes(plan["Plan"])) for plan in plans
    )


def cost_of_complete(watched: Watched, count: int, group: bool, behind: bool) -> int:
    """Return the number of statements to complete `count` messages, in groups or without."""
    messages = [{"group_key": f"g {number}"} if group else {} for number in range(count)]
    call(watched.connection, "enqueue_batch", queue_name="hot", messages=messages)
    if behind:
        call(watched.connection, "enqueue_batch", queue_name="hot", messages=messages)
    claim = dequeue(watched.connection, "hot", count)[0].claim_id
    found = statements(
        watched.run(lambda own: call(own, "complete", queue_name="hot", claim_id=claim))
    )
    if rest := dequeue(watched.connection, "hot", 100):
        call(watched.connection, "complete", queue_name="hot", claim_id=rest[0].claim_id)
    return found


@pytest.mark.parametrize(("count", "most"), [(1, 4), (50, 50 + 5)])
@pytest.mark.parametrize("behind", [True, False], ids=["passed", "deleted"])
def test_complete_takes_few_statements_more_in_groups(
    owner: Connection, behind: bool, count: int, most: int
) -> None:
    call(owner, "create_queue", queue_name="hot")
    watched = Watched(owner)
    for _ in range(3):
        cost_of_complete(watched, count, True, behind)
    plain = cost_of_complete(watched, count, False, False)
    assert 0 < cost_of_complete(watched, count, True, behind) - plain <= most


def end_cost(connection: Connection) -> int:
    """Return the buffers to complete a message and pass its slot on: the least of 5."""
    costs: list[int] = []
    for _ in range(5):
        [row] = dequeue(connection, "hot", 1)
        [plans] = connection.execute(
            "explain (analyze, buffers, timing off, format json) select rowq.complete('hot', %s)",
            [row.claim_id],
        ).fetchone()
        top = plans[0]["Plan"]
        costs.append(top["Shared Hit Blocks"] + top["Shared Read Blocks"])
    return min(costs)


@pytest.mark.slow("an old snapshot beside many rows")
@pytest.mark.promise("P13")
def test_held_snapshot_does_not_raise_the_cost_of_groups(
    owner: Connection, open_owner: Open
) -> None:
    call(owner, "create_queue", queue_name="hot")
    turns = 80
    for _ in range(turns + 1):
        messages = [{"body": "x" * 50, "group_key": f"group {number}"} for number in range(GROUPS)]
        call(owner, "enqueue_batch", queue_name="hot", messages=messages)
    session, holder = open_owner(), open_owner()
    for _ in range(2):
        end_cost(session)
        dequeue_cost_of(session)
    holder.execute("begin isolation level repeatable read")
    holder.execute("select 1")
    dequeue_before, end_before = dequeue_cost_of(session), end_cost(session)
    for turn in range(2 * turns - 10):
        rows = dequeue(owner, "hot", GROUPS // 2)
        call(owner, "complete", queue_name="hot", claim_id=rows[0].claim_id)
        if turn % 10 == 0:
            tick(owner, "hot")
            call_one(owner, "maintain", queue_name="hot")
    dequeue_after, end_after = dequeue_cost_of(session), end_cost(session)
    assert dequeue_after <= 1.5 * dequeue_before + FLOOR_LAG, (dequeue_before, dequeue_after)
    # Ending a message scans the dead rows of its own group only.
    assert end_after <= end_before + turns + FLOOR_LAG, (end_before, end_after)
    holder.execute("rollback")


def dequeue_cost_of(connection: Connection) -> int:
    """Return the buffers of a dequeue that is rolled back: the least of 6."""
    costs: list[int] = []
    for _ in range(6):
        connection.execute("begin")
        [plans] = connection.execute(
            "explain (analyze, buffers, timing off, format json)"
            " select * from rowq.dequeue_fast('hot')"
        ).fetchone()
        connection.execute("rollback")
        top = plans[0]["Plan"]
        assert top["Actual Rows"] == 1
        costs.append(top["Shared Hit Blocks"] + top["Shared Read Blocks"])
    return min(costs)
