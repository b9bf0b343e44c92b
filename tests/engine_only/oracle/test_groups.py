"""Groups on Oracle: replacements for shared row locks and lock timeouts."""

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import (
    Row,
    bodies,
    call,
    call_one,
    dequeue,
    dequeue_one,
    enqueue,
    rolled_back,
    transaction,
)
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect
from tests.stored_times import pass_seconds, tick

TIMEOUT_MS = 5000
"""Timeout that only a wait for a lock reaches."""
OF_QUEUE = "queue_id = (select q.queue_id from rowq_queue q where q.queue_name = %s)"


def deferred_checks(connection: Connection, queue: str) -> int:
    """Return the number of committed checks for new slots."""
    query = f"select count(*) from rowq_deferred where is_hint = 1 and {OF_QUEUE}"
    ((count,),) = dialect_of(connection).execute(connection, query, [queue]).fetchall()
    return int(count)


def lock_buckets(connection: Connection, queue: str) -> int:
    """Lock the lock buckets of a queue and return their number."""
    query = f"select d.bucket_no from rowq_lock_bucket d where {OF_QUEUE} for update"
    return len(dialect_of(connection).execute(connection, query, [queue]).fetchall())


def maintain_later(connection: Connection, queue: str) -> None:
    """Call maintain 2 seconds later."""
    tick(connection, queue)
    assert call_one(connection, "maintain", queue_name=queue).elected


def finish(connection: Connection, queue: str, row: Row) -> None:
    call(connection, "complete", queue_name=queue, claim_id=row.claim_id)


def work_off(connection: Connection, queue: str) -> list[str]:
    """Dequeue and complete all ready messages, one by one; return their bodies."""
    found = []
    while rows := dequeue(connection, queue):
        finish(connection, queue, rows[0])
        found.append(str(rows[0].body))
    return found


@pytest.mark.pitfall("oracle 25")
@pytest.mark.promise("P24")
def test_producer_defers_a_check_only_if_it_can_lock_no_slot(
    connection: Connection, connect: Connect, queue: str
) -> None:
    first, second = connect(), connect()
    second.call_timeout = TIMEOUT_MS
    enqueue(connection, queue, "1", group_key="a")
    enqueue(connection, queue, "2", group_key="a")
    assert deferred_checks(connection, queue) == 0
    with transaction(first):
        enqueue(first, queue, "3", group_key="a")
        enqueue(second, queue, "4", group_key="a")
        assert deferred_checks(connection, queue) == 1
        maintain_later(connection, queue)
        assert deferred_checks(connection, queue) == 1, "the slot is locked"
    enqueue(second, queue, "5", group_key="a")
    assert deferred_checks(connection, queue) == 1
    maintain_later(connection, queue)
    assert deferred_checks(connection, queue) == 0, "the slot can be locked"
    assert work_off(connection, queue) == ["1", "2", "3", "4", "5"]


@pytest.mark.pitfall("oracle 25")
@pytest.mark.promise("P21", "P24")
def test_message_committed_after_the_last_slot_ended_keeps_order(
    connection: Connection, connect: Connect, queue: str
) -> None:
    first, second, worker = connect(), connect(), connect()
    worker.call_timeout = TIMEOUT_MS
    enqueue(connection, queue, "1", group_key="a")
    row = dequeue_one(worker, queue)
    dialect = dialect_of(connection)
    dialect.begin(first)
    enqueue(first, queue, "never", group_key="a")
    dialect.begin(second)
    enqueue(second, queue, "2", group_key="a")
    dialect.rollback(first)
    finish(worker, queue, row)
    query = f"select count(*) from rowq_group_slot where {OF_QUEUE}"
    assert dialect.execute(connection, query, [queue]).fetchall() == [(0,)], "the group is closed"
    dialect.commit(second)
    enqueue(connection, queue, "3", group_key="a")
    assert work_off(worker, queue) == ["2", "3"]


@pytest.mark.pitfall("oracle 26")
@pytest.mark.promise("P11", "P24")
def test_worker_adds_no_slot_if_the_bucket_is_locked(
    connection: Connection, connect: Connect, queue: str
) -> None:
    holder, producer = connect(), connect()
    for session in (connection, producer):
        session.call_timeout = TIMEOUT_MS
    enqueue(connection, queue, "late", group_key="a", delay_seconds=5)
    pass_seconds(connection, queue, 10)
    with rolled_back(holder):
        assert lock_buckets(holder, queue) == 64
        assert call_one(connection, "promote", queue_name=queue).promoted == 0
        enqueue(producer, queue, "soon", group_key="b")
    pass_seconds(connection, queue, 1)
    assert call_one(connection, "promote", queue_name=queue).promoted == 1
    assert sorted(work_off(connection, queue)) == ["late", "soon"]


@pytest.mark.pitfall("oracle 26")
@pytest.mark.promise("P22")
def test_raised_limit_adds_no_slot_if_the_bucket_is_locked(
    connection: Connection, connect: Connect, queue: str
) -> None:
    holder = connect()
    connection.call_timeout = TIMEOUT_MS
    enqueue(connection, queue, "1", "2", "3", group_key="a")
    call(connection, "alter_queue", queue_name=queue, group_limit=2)
    with rolled_back(holder):
        lock_buckets(holder, queue)
        maintain_later(connection, queue)
        assert bodies(dequeue(connection, queue, 10)) == ["1"]
    maintain_later(connection, queue)
    assert bodies(dequeue(connection, queue, 10)) == ["2"]
