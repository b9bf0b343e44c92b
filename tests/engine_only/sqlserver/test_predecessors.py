"""Predecessors on SQL Server: plans, cost and the caller's transaction."""

import pytest

from tests.engine_only.sqlserver.showplan import STEPS, Plan, called, faults, run, tables
from tests.engines.base import Connection
from tests.helpers.calls import bodies, call, dequeue, enqueue, rolled_back, transaction
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect
from tests.stored_times import pass_seconds, tick

LINKED = {"blocked", "successor", "deferred"}
genuine = pytest.mark.requires("genuine")


def stored(connection: Connection, queue: str) -> dict[str, int]:
    """Return the number of rows in each table of blocked messages."""
    found = dialect_of(connection).stored(connection, queue)
    return {table: found[table] for table in LINKED}


def end_next(connection: Connection, queue: str, routine: str = "Complete") -> list[Plan]:
    """Dequeue one message and end it; return the plans of the ending call."""
    [row] = dequeue(connection, queue)
    return called(connection, routine, queue_name=queue, claim_id=row.claim_id)


def cycle(connection: Connection, other: Connection, queue: str) -> list[Plan]:
    """Run every statement about predecessors and return the plans."""
    name = {"queue_name": queue}
    first, second, third = enqueue(connection, queue, "1", "2", "3", priority=0)
    plans: list[Plan] = []
    for asked in ("hold", "continue", "fail"):
        plans += called(
            connection, "Enqueue", **name, body=asked, predecessor_ids=str([first, third]),
            on_predecessor_dead=asked,
        )  # fmt: skip
    enqueue(connection, queue, "delayed", predecessor_ids=[second], delay_seconds=60)
    enqueue(connection, queue, "group_waiting", predecessor_ids=[second], group_key="g")
    messages = (
        '[{"body": "begins", "priority": 0},'
        f' {{"body": "ends", "predecessor_positions": [1], "predecessor_ids": [{first}]}}]'
    )
    plans += called(connection, "EnqueueBatch", **name, messages=messages)
    plans += end_next(connection, queue, "FailNow")
    plans += called(
        connection, "Enqueue", **name, body="late", predecessor_ids=str([first]),
        on_predecessor_dead="fail",
    )  # fmt: skip
    [waits] = enqueue(connection, queue, "waits", predecessor_ids=[first])
    plans += called(connection, "GetMessage", **name, message_id=waits)
    plans += called(connection, "QueueStats", **name)
    plans += called(connection, "Cancel", **name, message_ids=str([waits]))
    plans += end_next(connection, queue)
    plans += end_next(connection, queue, "RetryLater")
    call(connection, "alter_queue", queue_name=queue, archive_days=1)
    [named] = enqueue(connection, queue, "named", priority=0)
    with transaction(other):
        enqueue(other, queue, "names it", predecessor_ids=[named])
        plans += end_next(connection, queue)
        plans += called(connection, "Archive", **name)
    tick(other, queue)
    pass_seconds(other, queue, 1)
    plans += called(connection, "Maintain", **name)
    plans += called(connection, "PurgeQueue", **name, max_messages=1)
    call(connection, "alter_queue", queue_name=queue, archive_days=0)
    return plans


@pytest.mark.pitfall("sqlserver 25")
@genuine
@pytest.mark.promise("P13")
def test_predecessors_seek_with_plans_of_empty_tables(
    connection: Connection, connect: Connect, queue: str
) -> None:
    session, other = connect(), connect()
    plans = cycle(session, other, queue)
    [first] = enqueue(connection, queue, "first", priority=9)
    messages = [{"body": "x", "predecessor_ids": [first], "priority": 9}] * 2000
    messages += [{"body": "x", "priority": 9}] * 2000
    call(connection, "enqueue_batch", queue_name=queue, messages=messages)
    plans += cycle(session, other, queue)
    assert tables(plans) >= LINKED
    about = [plan for plan in plans if LINKED & {access.table for access in plan.accesses}]
    assert not [fault for fault in faults(about, small=STEPS) if " on " in fault]


@pytest.mark.pitfall("sqlserver 25")
@genuine
def test_queue_without_predecessors_checks_successors_once(
    connection: Connection, queue: str
) -> None:
    """The check is part of a delete or a read that is needed anyway."""
    plans = called(connection, "Enqueue", queue_name=queue, body="a")
    plans += called(connection, "EnqueueBatch", queue_name=queue, messages='[{"body": "b"}, {}]')
    assert not tables(plans) & LINKED
    for routine in ("Complete", "RetryLater", "FailNow"):
        found, taken = run(connection, "exec rowq.DequeueFast @queue_name = ?", queue)
        assert not tables(taken) & LINKED
        plans = called(connection, routine, queue_name=queue, claim_id=found[0][0])
        about = [plan for plan in plans if LINKED & {access.table for access in plan.accesses}]
        assert len(about) == (0 if routine == "RetryLater" else 1)
        for plan in about:
            assert {access.table for access in plan.accesses} == {"message", "successor"}
            [check] = [access for access in plan.accesses if access.table == "successor"]
            assert (check.seek, check.rows_read) == (("queue_id", "predecessor_id"), 0)


@genuine
@pytest.mark.promise("P01", "P02", "P25")
@pytest.mark.parametrize("routine", ["complete", "fail_now", "enqueue", "cancel"])
@pytest.mark.parametrize("table", ["successor", "blocked"])
def test_aborted_call_with_predecessors_leaves_nothing_to_commit(
    connection: Connection, connect: Connect, queue: str, routine: str, table: str
) -> None:
    caller = connect()
    dialect = dialect_of(connection)
    [first] = enqueue(connection, queue, "first")
    [second] = enqueue(
        connection, queue, "second", predecessor_ids=[first], on_predecessor_dead="fail"
    )
    enqueue(connection, queue, "third", predecessor_ids=[second])
    claim = dequeue(connection, queue)[0].claim_id
    arguments: dict[str, dict[str, object]] = {
        "enqueue": {"body": "fourth", "predecessor_ids": [first]},
        "cancel": {"message_ids": [second]},
    }
    options = arguments.get(routine, {"claim_id": claim})
    before = dialect.stored(connection, queue)
    dialect.begin(caller)
    with rolled_back(connection):
        dialect.execute(connection, f"select count(*) from rowq.{table} with (tablockx)")
        caller.timeout = 1
        with pytest.raises(dialect.database_error):
            call(caller, routine, queue_name=queue, **options)
        caller.timeout = 0
    assert dialect.execute(caller, "select @@trancount").fetchone() == (0,)
    assert dialect.stored(connection, queue) == before


@pytest.mark.pitfall("sqlserver 26")
@pytest.mark.promise("P26")
def test_call_in_a_callers_transaction_resumes_but_defers_groups(
    connection: Connection, queue: str
) -> None:
    first, second = enqueue(connection, queue, "first", "second")
    enqueue(connection, queue, "alone", predecessor_ids=[first])
    enqueue(connection, queue, "both", predecessor_ids=[first, second])
    enqueue(connection, queue, "group_waiting", predecessor_ids=[first], group_key="a")
    with transaction(connection):
        [row] = dequeue(connection, queue)
        call(connection, "complete", queue_name=queue, claim_id=row.claim_id)
        assert bodies(dequeue(connection, queue, 9)) == ["alone", "second"]
    assert stored(connection, queue) == {"blocked": 2, "successor": 1, "deferred": 1}
    call(connection, "maintain", queue_name=queue)
    assert bodies(dequeue(connection, queue, 9)) == ["group_waiting"]
    assert stored(connection, queue) == {"blocked": 1, "successor": 1, "deferred": 0}
