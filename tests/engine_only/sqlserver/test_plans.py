"""Plans and costs of the hot routines on SQL Server: seeks only, no sort, no memory grant.

Plans compiled on empty tables must be good on large ones. The plans are actual, not estimated.
"""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from tests.engine_only.sqlserver.showplan import Plan, faults, logical_reads, run
from tests.engines.base import Connection
from tests.helpers.calls import call, call_one, dequeue, enqueue
from tests.helpers.queues import Connect

pytestmark = pytest.mark.requires("genuine")


LARGE = 20_000
"""Messages in a large queue."""

STEPS = frozenset({"meta", "queue", "queue_lock", "lane"})
"""Small tables: any plan is good."""


def fill(connection: Connection, queue: str, count: int, **settings: object) -> None:
    """Enqueue many small messages."""
    for _ in range(count // 5000):
        messages = [{"body": "x", **settings}] * 5000
        call(connection, "enqueue_batch", queue_name=queue, messages=messages)


def dequeue_with_plans(
    connection: Connection, queue: str, batch_size: int
) -> tuple[list[int], list[Plan]]:
    """Dequeue and return claim, ids and plans."""
    rows, plans = run(
        connection, "exec rowq.DequeueFast @queue_name = ?, @batch_size = ?", queue, batch_size
    )
    return [int(row[1]) for row in rows], plans


def reads(connection: Connection, queue: str, batch_size: int = 10) -> int:
    """Return the pages that one dequeue reads."""
    before = logical_reads(connection)
    assert len(dequeue(connection, queue, batch_size)) == batch_size
    asked = logical_reads(connection)
    return (asked - before) - (logical_reads(connection) - asked)


def compilations(connection: Connection, procedure: str) -> list[tuple[str, int]]:
    """Return how often each statement of a procedure was compiled, in order."""
    query = """
        select s.statement_start_offset, s.plan_generation_num
        from sys.dm_exec_procedure_stats p
        join sys.dm_exec_query_stats s on s.plan_handle = p.plan_handle
        where p.database_id = db_id() and p.object_id = object_id(?)
        order by s.statement_start_offset
        """
    with closing(connection.cursor()) as cursor:
        found = cursor.execute(query, f"rowq.{procedure}").fetchall()
    return [(str(place), int(number)) for place, number in found]


@contextmanager
def snapshot(connection: Connection) -> Iterator[None]:
    """Hold the row versions of all rows deleted from now on."""
    with closing(connection.cursor()) as cursor:
        cursor.execute("set transaction isolation level snapshot")
        cursor.execute("begin transaction")
        cursor.execute("select count(*) from rowq.meta").fetchall()
        yield
        cursor.execute("rollback transaction")
        cursor.execute("set transaction isolation level read committed")


@pytest.mark.pitfall("sqlserver 8", "sqlserver 17")
@pytest.mark.promise("P13")
@pytest.mark.parametrize("size", [0, LARGE])
def test_dequeue_uses_seeks_without_sorts(
    connection: Connection, connect: Connect, queue: str, size: int
) -> None:
    first = connect()
    enqueue(first, queue, "compiled while it was empty")
    dequeue_with_plans(first, queue, 10)
    fill(connection, queue, size)
    enqueue(connection, queue, *"abc")
    for session in (first, connect()):
        ids, plans = dequeue_with_plans(session, queue, 1)
        assert len(ids) == 1
        assert not faults(plans, small=STEPS)


@pytest.mark.pitfall("sqlserver 17")
@pytest.mark.promise("P13")
def test_dequeue_reads_only_the_leased_rows(connection: Connection, queue: str) -> None:
    fill(connection, queue, 5000)
    ids, plans = dequeue_with_plans(connection, queue, 50)
    assert len(ids) == 50
    # Only one of several lanes has messages.
    seeks = [
        access
        for plan in plans
        for access in plan.accesses
        if access.table == "ready" and access.operator == "Clustered Index Seek"
    ]
    assert seeks
    assert {access.seek[:3] for access in seeks} == {("queue_id", "lane", "seq")}
    assert sum(access.rows_read or 0 for access in seeks) == 50


@pytest.mark.pitfall("sqlserver 8")
@pytest.mark.promise("P13")
@pytest.mark.parametrize("sizes", [(1, 1000), (1000, 1)])
def test_plan_for_another_batch_size_is_as_good(
    connection: Connection, queue: str, sizes: tuple[int, int]
) -> None:
    with closing(connection.cursor()) as cursor:
        cursor.execute("exec sys.sp_recompile N'rowq.InternalPopReady'")
        cursor.execute("exec sys.sp_recompile N'rowq.DequeueFast'")
    fill(connection, queue, 5000)
    for size in sizes:
        ids, plans = dequeue_with_plans(connection, queue, size)
        assert len(ids) == size
        assert not faults(plans, small=STEPS)


@pytest.mark.pitfall("sqlserver 8")
@pytest.mark.promise("P13")
def test_changing_table_size_causes_no_recompile(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, *"abc")
    dequeue(connection, queue, 1)
    dequeue(connection, queue, 1)
    before = compilations(connection, "InternalPopReady")
    assert before
    for _ in range(2):
        fill(connection, queue, LARGE)
        for _ in range(LARGE // 1000):
            dequeue(connection, queue, 1000)
    # There may be more: the statements that move the floor run sometimes.
    assert set(before) <= set(compilations(connection, "InternalPopReady"))


@pytest.mark.promise("P13")
@pytest.mark.parametrize("batch_size", [1, 50])
def test_dequeue_runs_six_statements(connection: Connection, queue: str, batch_size: int) -> None:
    fill(connection, queue, 5000)
    dequeue(connection, queue, batch_size)
    counts = sorted(len(dequeue_with_plans(connection, queue, batch_size)[1]) for _ in range(12))
    # One dequeue in twelve moves the floor.
    assert counts[-2] <= 6


def test_complete_of_a_whole_claim_runs_six_statements(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, *"abc")
    claim = dequeue(connection, queue, 3)[0].claim_id
    _, plans = run(connection, "exec rowq.Complete @queue_name = ?, @claim_id = ?", queue, claim)
    assert len(plans) <= 6


@pytest.mark.promise("P19")
def test_maintain_of_an_idle_queue_runs_few_statements(connection: Connection, queue: str) -> None:
    for _ in range(2):
        call_one(connection, "maintain", queue_name=queue)
    _, plans = run(connection, "exec rowq.Maintain @queue_name = ?", queue)
    assert len(plans) <= 32
    assert not [access for plan in plans for access in plan.accesses if access.table == "archived"]


@pytest.mark.promise("P13")
def test_cancel_reads_leased_messages_once(connection: Connection, queue: str) -> None:
    fill(connection, queue, 5000)
    leased = dequeue(connection, queue, 1000)
    ids = json.dumps([row.message_id for row in leased])
    rows, plans = run(connection, "exec rowq.Cancel @queue_name = ?, @message_ids = ?", queue, ids)
    assert {row[1] for row in rows} == {"leased"}
    read = [
        access.rows_read or 0
        for plan in plans
        for access in plan.accesses
        if access.table == "leased"
    ]
    assert sum(read) <= 1000


@pytest.mark.pitfall("sqlserver 3")
@pytest.mark.promise("P05")
def test_results_are_in_order_without_sorts(connection: Connection, queue: str) -> None:
    for priority in (7, 3, 5):
        enqueue(connection, queue, *"ab", priority=priority)
    ids, plans = dequeue_with_plans(connection, queue, 10)
    assert len(ids) == 6
    last = next(plan for plan in reversed(plans) if "last_error" in plan.text)
    assert [access.table for access in last.accesses] == ["leased", "message"]
    assert not faults([last])


@pytest.mark.pitfall("sqlserver 8")
@pytest.mark.promise("P13")
@pytest.mark.parametrize("size", [0, LARGE])
@pytest.mark.parametrize(
    "statement",
    [
        "exec rowq.Complete @queue_name = ?, @claim_id = ?, @message_ids = ?",
        "exec rowq.Release @queue_name = ?, @claim_id = ?, @message_ids = ?",
        "exec rowq.RetryLater @queue_name = ?, @claim_id = ?, @message_ids = ?",
        "exec rowq.FailNow @queue_name = ?, @claim_id = ?, @message_ids = ?",
    ],
    ids=["complete", "release", "retry_later", "fail_now"],
)
def test_finishing_routines_find_rows_by_seeks(
    connection: Connection, queue: str, statement: str, size: int
) -> None:
    fill(connection, queue, size)
    enqueue(connection, queue, *"abcdefghij")
    leased = dequeue(connection, queue, 10)
    ids = json.dumps([row.message_id for row in leased[:5]])
    rows, plans = run(connection, statement, queue, leased[0].claim_id, ids)
    assert len(rows) == 5
    # Only lists of messages are sorted: they are narrow, and at most as long as the claim.
    found = [fault for fault in faults(plans, small=STEPS) if " on " in fault]
    assert not found


@pytest.mark.pitfall("sqlserver 8")
@pytest.mark.promise("P13")
@pytest.mark.parametrize("size", [0, LARGE])
def test_complete_and_dequeue_finds_rows_by_seeks(
    connection: Connection, queue: str, size: int
) -> None:
    enqueue(connection, queue, *"abcdefghij")
    leased = dequeue(connection, queue, 5)
    fill(connection, queue, size)
    ids = json.dumps([row.message_id for row in leased])
    statement = "exec rowq.CompleteAndDequeue @queue_name = ?, @claim_id = ?, @message_ids = ?"
    for count in (1, 6):
        # The second call finds all 5 stale.
        rows, plans = run(connection, statement, queue, leased[0].claim_id, ids)
        assert len(rows) == count
        assert not [fault for fault in faults(plans, small=STEPS) if " on " in fault]
        last = next(plan for plan in reversed(plans) if "last_error" in plan.text)
        assert not faults([last])


@pytest.mark.promise("P13")
@pytest.mark.parametrize("routine", ["Promote", "Reap"])
def test_idle_maintenance_reads_by_seeks(connection: Connection, queue: str, routine: str) -> None:
    fill(connection, queue, 5000, delay_seconds=3600)
    fill(connection, queue, 5000)
    dequeue(connection, queue, 100)
    _, plans = run(connection, f"exec rowq.{routine} @queue_name = ?", queue)
    assert not [fault for fault in faults(plans, small=STEPS) if " on " in fault]


@pytest.mark.pitfall("sqlserver 8")
@pytest.mark.promise("P13")
def test_enqueue_uses_seeks_and_inserts(connection: Connection, queue: str) -> None:
    fill(connection, queue, LARGE)
    enqueue(connection, queue, "taken", dedup_key="key")
    for key in ("key", "another"):
        statement = "exec rowq.Enqueue @queue_name = ?, @body = ?, @dedup_key = ?"
        _, plans = run(connection, statement, queue, "body", key)
        assert not faults(plans, small=STEPS)


@pytest.mark.promise("P13")
def test_dequeue_costs_the_same_beside_a_large_backlog(connection: Connection, queue: str) -> None:
    fill(connection, queue, 5000)
    dequeue(connection, queue, 10)
    small = min(reads(connection, queue) for _ in range(5))
    fill(connection, queue, LARGE)
    fill(connection, queue, LARGE, delay_seconds=3600)
    large = min(reads(connection, queue) for _ in range(5))
    # A large index may have one more level, which a call reads a few times.
    assert large <= small + 30


@pytest.mark.pitfall("sqlserver 5")
@pytest.mark.promise("P13")
def test_dequeue_costs_the_same_beside_an_old_snapshot(
    connection: Connection, connect: Connect, queue: str
) -> None:
    fill(connection, queue, LARGE)
    dequeue(connection, queue, 10)
    fresh = min(reads(connection, queue) for _ in range(5))
    with snapshot(connect()):
        for _ in range(15):
            claim = dequeue(connection, queue, 1000)[0].claim_id
            call(connection, "complete", queue_name=queue, claim_id=claim)
        call_one(connection, "maintain", queue_name=queue)
        beside = min(reads(connection, queue) for _ in range(5))
    # The 15,000 ghosts fill about 60 pages of ready; the floor skips all but the last half second.
    assert beside <= fresh + 30
