"""What only a server can decide about groups; sql/sqlserver/README.md says what follows.

Sessions in which every wait for a lock is an error show that nobody waits.
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
    """Return how many rows a table has for a queue."""
    return dialect_of(connection).stored(connection, queue)[table]


def claim_of(connection: Connection, queue: str, *texts: str) -> int:
    """Enqueue messages of one group and lease what may be in work; return the claim."""
    enqueue(connection, queue, *texts, group_key="a")
    return int(dequeue(connection, queue, 10)[0].claim_id)


@pytest.mark.promise("P21", "P24")
def test_first_a_slot_that_a_producer_holds_shared_is_passed_over_by_who_wants_it_exclusively(
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
def test_first_a_producer_waits_for_a_slot_that_was_locked_exclusively_and_not_changed(
    server: Server, connection: Connection, connect: Connect, queue: str
) -> None:
    """A read under read committed may take no lock on a page without changes."""
    closing_it, producer = connect(), connect()
    enqueue(connection, queue, "1", group_key="a")
    with ThreadPoolExecutor(1) as pool:
        with rolled_back(closing_it):
            query = "select count(*) from rowq.group_slot with (rowlock, xlock)"
            assert value(closing_it, query) > 0
            running = pool.submit(lambda: enqueue(producer, queue, "2", group_key="a"))
            wait_until_blocked(
                server, server.session_id(producer), by=server.session_id(closing_it)
            )
        assert len(running.result(20)) == 1
    assert stored(connection, queue, "group_waiting") == 1


@pytest.mark.promise("P21")
def test_first_an_update_lock_on_a_slot_is_had_beside_the_shared_one_of_a_producer(
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
def test_first_a_message_that_is_not_committed_is_passed_over_and_one_withdrawn_is_not(
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
def test_first_a_producer_waits_for_no_transaction_of_a_caller_s_that_has_ended_the_group(
    connection: Connection, connect: Connect, queue: str
) -> None:
    guest, producer = connect(), impatient(connect())
    claim = claim_of(connection, queue, "1")
    with transaction(guest):
        call(guest, "complete", queue_name=queue, claim_id=claim)
        enqueue(producer, queue, "2", group_key="a")
    call(connection, "maintain", queue_name=queue)
    assert bodies(dequeue(connection, queue)) == ["2"]


@pytest.mark.promise("P21")
def test_first_a_shared_lock_that_would_have_to_be_converted_is_passed_over_too(
    connection: Connection, connect: Connect, queue: str
) -> None:
    """A handler sends the next message of its group and ends its own, in one transaction."""
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
def test_first_an_update_lock_that_would_have_to_be_converted_is_passed_over_too(
    connection: Connection, connect: Connect, queue: str
) -> None:
    """Two messages of one group end in one call while a producer holds all slots shared."""
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


def starting(session: Connection, queue: str) -> Callable[[], int]:
    """Return a call that promotes and says how many messages."""
    return lambda: int(call_one(session, "promote", queue_name=queue).promoted)


@pytest.mark.promise("P11")
def test_first_a_promotion_sees_the_slot_of_an_open_producer_and_does_not_wait(
    connection: Connection, connect: Connect, queue: str
) -> None:
    producer, worker = connect(), impatient(connect())
    enqueue(connection, queue, "delayed", group_key="a", delay_seconds=5)
    dialect_of(connection).pass_seconds(connection, queue, 10)
    with rolled_back(producer):
        enqueue(producer, queue, "new", group_key="a")
        assert starting(worker, queue)() == 0
        assert stored(connection, queue, "delayed") == 1
    dialect_of(connection).pass_seconds(connection, queue, 1)
    assert starting(worker, queue)() == 1


@pytest.mark.promise("P11", "P16")
def test_first_a_promotion_that_had_to_wait_for_a_slot_starts_again(
    server: Server, connection: Connection, connect: Connect, queue: str
) -> None:
    """Error 1222 dooms its transaction, and error_procedure says where that came from."""
    holder, keeper = connect(), connect()
    enqueue(connection, queue, "1", group_key="a")
    enqueue(connection, queue, "delayed", group_key="a", delay_seconds=5)
    dialect_of(connection).pass_seconds(connection, queue, 10)
    with ThreadPoolExecutor(1) as pool:
        with rolled_back(holder):
            # As a session does that is just closing the group; a rollback puts the slot back.
            dialect_of(holder).execute(holder, "delete from rowq.group_slot with (rowlock)")
            running = pool.submit(starting(keeper, queue))
            wait_until_blocked(server, server.session_id(keeper), by=server.session_id(holder))
            time.sleep(0.15)  # More than the tenth of a second that one try waits.
        assert running.result(20) == 1
    assert value(keeper, "select @@trancount") == 0
    assert stored(connection, queue, "group_waiting") == 1


@pytest.mark.promise("P21", "P24")
def test_first_a_group_goes_on_beside_its_open_producer_where_locking_is_optimized(
    server: Server, optimized: str
) -> None:
    """A new row has no lock of its own there, and slots are locked by hints only."""
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
