"""Decisions about groups that need a SQL Server. If one fails, use no group_key on it.

In an impatient session every wait for a lock is an error.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

import rowq
from tests.engine_only.sqlserver.sessions import impatient, value
from tests.engines.base import Connection, Server, wait_until_blocked
from tests.helpers.calls import bodies, call, call_one, dequeue, enqueue, rolled_back, transaction
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect

pytestmark = [pytest.mark.requires("genuine"), pytest.mark.pitfall("sqlserver 21")]


def stored(connection: Connection, queue: str, table: str) -> int:
    """Return the number of rows that a table has for a queue."""
    return dialect_of(connection).stored(connection, queue)[table]


def claim_of(connection: Connection, queue: str, *texts: str) -> int:
    """Enqueue messages of one group and lease as many as allowed; return the claim."""
    enqueue(connection, queue, *texts, group_key="a")
    return int(dequeue(connection, queue, 10)[0].claim_id)


@pytest.mark.promise("P21", "P24")
def test_exclusive_lock_skips_a_slot_locked_shared(
    connection: Connection, connect: Connect, queue: str
) -> None:
    producer, worker = connect(), impatient(connect())
    claim = claim_of(connection, queue, "1")
    with transaction(producer):
        enqueue(producer, queue, "2", group_key="a")
        call(worker, "complete", queue_name=queue, claim_id=claim)
        assert stored(connection, queue, "deferred") == 1
        assert stored(connection, queue, "group_slot") == 1
    call(worker, "maintain", queue_name=queue)
    assert bodies(dequeue(worker, queue)) == ["2"]


@pytest.mark.promise("P21", "P24")
def test_producer_waits_for_an_exclusively_locked_slot(
    server: Server, connection: Connection, connect: Connect, queue: str
) -> None:
    """A READ COMMITTED read may skip locks on a page without changes."""
    closer, producer = connect(), connect()
    enqueue(connection, queue, "1", group_key="a")
    with ThreadPoolExecutor(1) as pool:
        with rolled_back(closer):
            query = "select count(*) from rowq.group_slot with (rowlock, xlock)"
            assert value(closer, query) > 0
            running = pool.submit(lambda: enqueue(producer, queue, "2", group_key="a"))
            wait_until_blocked(server, server.session_id(producer), by=server.session_id(closer))
        assert len(running.result(20)) == 1
    assert stored(connection, queue, "group_waiting") == 1


@pytest.mark.promise("P21")
def test_update_lock_is_compatible_with_a_shared_slot(
    connection: Connection, connect: Connect, queue: str
) -> None:
    producer, worker = connect(), impatient(connect())
    claim = claim_of(connection, queue, "1", "2")
    with rolled_back(producer):
        enqueue(producer, queue, "3", group_key="a")
        call(worker, "complete", queue_name=queue, claim_id=claim)
        assert bodies(dequeue(worker, queue)) == ["2"]
        assert stored(connection, queue, "deferred") == 0


@pytest.mark.promise("P21")
def test_complete_skips_uncommitted_but_not_cancelled_messages(
    connection: Connection, connect: Connect, queue: str
) -> None:
    late, other, worker = connect(), connect(), impatient(connect())
    claim = claim_of(connection, queue, "1")
    with rolled_back(late):
        enqueue(late, queue, "late", group_key="a")
        [second, _] = enqueue(connection, queue, "2", "3", group_key="a")
        with rolled_back(other):
            call(other, "cancel", queue_name=queue, message_ids=[second])
            call(worker, "complete", queue_name=queue, claim_id=claim)
            assert dequeue(worker, queue) == []
        call(worker, "maintain", queue_name=queue)
        assert bodies(dequeue(worker, queue)) == ["2"]


@pytest.mark.pitfall("sqlserver 22")
@pytest.mark.promise("P24")
def test_producer_does_not_wait_for_a_callers_transaction(
    connection: Connection, connect: Connect, queue: str
) -> None:
    caller, producer = connect(), impatient(connect())
    claim = claim_of(connection, queue, "1")
    with transaction(caller):
        call(caller, "complete", queue_name=queue, claim_id=claim)
        enqueue(producer, queue, "2", group_key="a")
    call(connection, "maintain", queue_name=queue)
    assert bodies(dequeue(connection, queue)) == ["2"]


@pytest.mark.promise("P21")
def test_conversion_of_a_shared_slot_lock_is_skipped(
    connection: Connection, connect: Connect, queue: str
) -> None:
    """A handler enqueues the next message of its group and ends its own in one transaction.

    If it fails: such slots must go to deferred.
    """
    other, worker = connect(), impatient(connect())
    enqueue(connection, queue, "1", group_key="a")
    [second] = enqueue(connection, queue, "2", group_key="a")
    claim = dequeue(connection, queue)[0].claim_id
    with rolled_back(other):
        call(other, "cancel", queue_name=queue, message_ids=[second])
        with transaction(worker):
            enqueue(worker, queue, "3", group_key="a")
            call(worker, "complete", queue_name=queue, claim_id=claim)
    call(connection, "maintain", queue_name=queue)
    assert bodies(dequeue(connection, queue)) == ["2"]


@pytest.mark.promise("P22", "P24")
def test_conversion_of_an_update_slot_lock_is_skipped(
    connection: Connection, connect: Connect, queue: str
) -> None:
    """Two messages of one group end in one call while a producer has locked all slots shared.

    If it fails: such slots must go to deferred.
    """
    producer, worker = connect(), impatient(connect())
    call(connection, "alter_queue", queue_name=queue, group_limit=2)
    claim = claim_of(connection, queue, "1", "2", "3")
    with transaction(producer):
        enqueue(producer, queue, "4", group_key="a")
        call(worker, "complete", queue_name=queue, claim_id=claim)
        assert bodies(dequeue(worker, queue, 10)) == ["3"]
        assert stored(connection, queue, "deferred") == 1
    call(worker, "maintain", queue_name=queue)
    assert bodies(dequeue(worker, queue, 10)) == ["4"]


def promoting(session: Connection, queue: str) -> Callable[[], int]:
    """Return a call that returns how many messages it promotes."""
    return lambda: int(call_one(session, "promote", queue_name=queue).promoted)


@pytest.mark.promise("P11")
def test_promote_sees_an_open_producers_slot_without_waiting(
    connection: Connection, connect: Connect, queue: str
) -> None:
    producer, worker = connect(), impatient(connect())
    enqueue(connection, queue, "delayed", group_key="a", delay_seconds=5)
    dialect_of(connection).pass_seconds(connection, queue, 10)
    with rolled_back(producer):
        enqueue(producer, queue, "new", group_key="a")
        assert promoting(worker, queue)() == 0
        assert stored(connection, queue, "delayed") == 1
    dialect_of(connection).pass_seconds(connection, queue, 1)
    assert promoting(worker, queue)() == 1


@pytest.mark.promise("P11", "P16")
def test_promote_retries_after_a_lock_timeout_on_a_slot(
    server: Server, connection: Connection, connect: Connect, queue: str
) -> None:
    """Error 1222 makes the transaction uncommittable, and error_procedure names its origin.

    If it fails: error_procedure() names another procedure; compare with that name.
    """
    holder, maintainer = connect(), connect()
    enqueue(connection, queue, "1", group_key="a")
    enqueue(connection, queue, "delayed", group_key="a", delay_seconds=5)
    dialect_of(connection).pass_seconds(connection, queue, 10)
    with ThreadPoolExecutor(1) as pool:
        with rolled_back(holder):
            # Like a session that deletes the last slot; a rollback restores it.
            dialect_of(holder).execute(holder, "delete from rowq.group_slot with (rowlock)")
            running = pool.submit(promoting(maintainer, queue))
            wait_until_blocked(server, server.session_id(maintainer), by=server.session_id(holder))
            time.sleep(0.15)  # Longer than the 0.1 seconds that one attempt waits.
        assert running.result(20) == 1
    assert value(maintainer, "select @@trancount") == 0
    assert stored(connection, queue, "group_waiting") == 1


@pytest.mark.promise("P21", "P24")
def test_group_continues_with_optimized_locking(server: Server, optimized: str) -> None:
    """With optimized locking a new row has no lock, and slots are locked by hints only.

    If it fails: turn optimized_locking off.
    """
    with closing(server.connect(optimized)) as one, closing(server.connect(optimized)) as other:
        rowq.Queue(one).create_queue("q")
        impatient(other)
        claim = claim_of(other, "q", "1", "2")
        with rolled_back(one):
            enqueue(one, "q", "3", group_key="a")
            call(other, "complete", queue_name="q", claim_id=claim)
            [row] = dequeue(other, "q", 10)
            assert row.body == "2"
            call(other, "complete", queue_name="q", claim_id=row.claim_id)
            assert stored(other, "q", "group_slot") == 1
        call(other, "maintain", queue_name="q")
        assert stored(other, "q", "group_slot") == 0
