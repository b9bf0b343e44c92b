"""Decisions about predecessors that need a SQL Server; docstrings name remedies.

In an impatient session every wait for a lock is an error.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

import rowq
from tests.engine_only.sqlserver.sessions import impatient, value
from tests.engines.base import Connection, Server, wait_until_blocked
from tests.helpers.calls import bodies, call, call_one, dequeue, enqueue, rolled_back, transaction
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect

pytestmark = [pytest.mark.requires("genuine"), pytest.mark.pitfall("sqlserver 24")]

FAILURES: dict[str, dict[str, object]] = {"fail_now": {}, "retry_later": {"delay_seconds": 60}}
"""Routines that write an error to the message row, and their arguments."""


def stored(connection: Connection, queue: str, table: str) -> int:
    """Return the number of rows of a queue in one table; other tables may be locked."""
    dialect = dialect_of(connection)
    ((count,),) = dialect.rows_of(connection, dialect.counts[table], queue)
    return int(count)


def leased(connection: Connection, queue: str, body: str) -> tuple[int, int]:
    """Enqueue a message and lease it; return its id and the claim."""
    [message_id] = enqueue(connection, queue, body)
    return message_id, int(dequeue(connection, queue)[0].claim_id)


@pytest.mark.promise("P15", "P25", "P26")
@pytest.mark.parametrize("in_transaction", [False, True])
def test_producer_naming_an_open_complete_keeps_its_transaction(
    connection: Connection, connect: Connect, queue: str, in_transaction: bool
) -> None:
    """Error 1222 by nowait, caught with xact_abort off, must not end the transaction.

    If it fails: use no predecessor_ids and no expire_seconds on that server.
    """
    worker, producer = connect(), connect()
    first, claim = leased(worker, queue, "first")
    with transaction(worker):
        call(worker, "complete", queue_name=queue, claim_id=claim)
        if in_transaction:
            with transaction(producer):
                enqueue(producer, queue, "before")
                enqueue(producer, queue, "second", predecessor_ids=[first])
                assert value(producer, "select xact_state()") == 1
                enqueue(producer, queue, "after")
        else:
            enqueue(producer, queue, "second", predecessor_ids=[first])
            assert value(producer, "select @@trancount") == 0
        assert stored(connection, queue, "deferred") == 1
    call(connection, "maintain", queue_name=queue)
    found = sorted(str(body) for body in bodies(dequeue(connection, queue, 9)))
    assert found == (["after", "before", "second"] if in_transaction else ["second"])


@pytest.mark.promise("P25")
def test_rolled_back_complete_does_not_end_a_predecessor(
    connection: Connection, connect: Connect, queue: str
) -> None:
    """An uncommitted delete must not look like a missing row."""
    worker, producer = connect(), connect()
    first, claim = leased(worker, queue, "first")
    with rolled_back(worker):
        call(worker, "complete", queue_name=queue, claim_id=claim)
        enqueue(producer, queue, "second", predecessor_ids=[first])
        assert dequeue(producer, queue) == []
    call(connection, "maintain", queue_name=queue)
    assert dequeue(connection, queue) == []
    call(connection, "complete", queue_name=queue, claim_id=claim)
    assert bodies(dequeue(connection, queue)) == ["second"]


@pytest.mark.promise("P26")
def test_complete_locks_the_message_before_reading_successors(
    server: Server, connection: Connection, connect: Connect, queue: str
) -> None:
    """In the other order a producer could add a successor that is never resumed.

    If it fails: InternalFinish must lock the messages in a statement of its own.
    """
    holder, worker, producer = connect(), connect(), impatient(connect())
    first, claim = leased(worker, queue, "first")
    enqueue(connection, queue, "second", predecessor_ids=[first])
    change = f"update rowq.successor set on_dead = N'continue' where predecessor_id = {first}"
    with ThreadPoolExecutor(1) as pool:
        with rolled_back(holder):
            dialect_of(holder).execute(holder, change)
            running = pool.submit(call, worker, "complete", queue_name=queue, claim_id=claim)
            wait_until_blocked(server, server.session_id(worker), by=server.session_id(holder))
            enqueue(producer, queue, "third", predecessor_ids=[first])
            assert stored(producer, queue, "deferred") == 1, "the row is locked"
        running.result(20)
    call(connection, "maintain", queue_name=queue)
    found = sorted(str(body) for body in bodies(dequeue(connection, queue, 9)))
    assert found == ["second", "third"]


@pytest.mark.promise("P26")
@pytest.mark.parametrize("ending", ["commit", "rollback"])
def test_complete_defers_a_row_that_a_producer_has_locked(
    connection: Connection, connect: Connect, queue: str, ending: str
) -> None:
    """The delete skips the locked row; maintain deletes it and resumes successors.

    If it fails: readpast does not skip a shared lock, and the end of a message waits for
    producers.
    """
    producer, worker = connect(), impatient(connect())
    first, claim = leased(worker, queue, "first")
    dialect_of(producer).begin(producer)
    enqueue(producer, queue, "second", predecessor_ids=[first])
    call(worker, "complete", queue_name=queue, claim_id=claim)
    assert stored(worker, queue, "deferred") == 1
    call(worker, "maintain", queue_name=queue)
    assert dequeue(worker, queue) == []
    assert stored(worker, queue, "deferred") == 1, "the row is still locked"
    getattr(dialect_of(producer), ending)(producer)
    call(worker, "maintain", queue_name=queue)
    assert bodies(dequeue(connection, queue)) == (["second"] if ending == "commit" else [])
    assert not call(connection, "get_message", queue_name=queue, message_id=first)
    assert stored(connection, queue, "successor") == stored(connection, queue, "deferred") == 0


@pytest.mark.promise("P10", "P27")
@pytest.mark.parametrize("ending", ["commit", "rollback"])
@pytest.mark.parametrize("routine", FAILURES)
def test_failure_waits_for_a_producer_and_sees_its_successor(
    server: Server, connection: Connection, connect: Connect, queue: str, routine: str, ending: str
) -> None:
    """The error is stored in the row only, so the row is not skipped."""
    producer, worker = connect(), connect()
    first, claim = leased(worker, queue, "first")
    arguments = {"queue_name": queue, "claim_id": claim, "error": "broken", **FAILURES[routine]}
    dialect_of(producer).begin(producer)
    enqueue(producer, queue, "second", predecessor_ids=[first], on_predecessor_dead="continue")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(lambda: call(worker, routine, **arguments))
        wait_until_blocked(server, server.session_id(worker), by=server.session_id(producer))
        getattr(dialect_of(producer), ending)(producer)
        running.result(20)
    row = call_one(connection, "get_message", queue_name=queue, message_id=first)
    is_dead = routine == "fail_now"
    assert (row.state, row.last_error) == ("dead" if is_dead else "delayed", "broken")
    resumes = is_dead and ending == "commit"
    assert bodies(dequeue(connection, queue)) == (["second"] if resumes else [])


@pytest.mark.promise("P06")
def test_without_row_versions_readers_do_not_wait_for_a_producer(
    server: Server, unversioned: str
) -> None:
    """Shared locks are compatible, and no row that readers need is changed."""
    with (
        closing(server.connect(unversioned)) as producer,
        closing(server.connect(unversioned)) as worker,
    ):
        rowq.Queue(worker).create_queue("q")
        impatient(worker)
        [first] = enqueue(worker, "q", "first")
        with rolled_back(producer):
            enqueue(producer, "q", "second", predecessor_ids=[first])
            assert call_one(worker, "get_message", queue_name="q", message_id=first)
            assert len(call(worker, "peek", queue_name="q")) == 1
            assert bodies(dequeue(worker, "q")) == ["first"]
            enqueue(worker, "q", "third", predecessor_ids=[first])
            assert stored(worker, "q", "deferred") == 0


@pytest.mark.promise("P26")
def test_complete_defers_a_successor_that_is_being_cancelled(
    connection: Connection, connect: Connect, queue: str
) -> None:
    other, worker = connect(), impatient(connect())
    first, claim = leased(worker, queue, "first")
    second, _ = enqueue(connection, queue, "second", "third", predecessor_ids=[first])
    with rolled_back(other):
        call(other, "cancel", queue_name=queue, message_ids=[second])
        call(worker, "complete", queue_name=queue, claim_id=claim)
        assert bodies(dequeue(worker, queue, 9)) == ["third"]
        assert stored(connection, queue, "deferred") == 1
    call(worker, "maintain", queue_name=queue)
    assert bodies(dequeue(worker, queue, 9)) == ["second"]


@pytest.mark.promise("P27")
def test_expired_lease_ends_in_death_despite_an_open_producer(
    connection: Connection, connect: Connect, queue: str
) -> None:
    producer, worker = connect(), impatient(connect())
    call(connection, "alter_queue", queue_name=queue, max_attempts=1)
    first, _ = leased(worker, queue, "first")
    dialect_of(connection).pass_seconds(connection, queue, 60)
    with transaction(producer):
        enqueue(producer, queue, "second", predecessor_ids=[first], on_predecessor_dead="continue")
        assert call_one(worker, "maintain", queue_name=queue).died == 1
    call(worker, "maintain", queue_name=queue)
    assert bodies(dequeue(worker, queue)) == ["second"]


@pytest.mark.promise("P19", "P26")
def test_archive_skips_a_message_that_a_producer_has_named(
    connection: Connection, connect: Connect, queue: str
) -> None:
    producer, worker = connect(), impatient(connect())
    call(connection, "alter_queue", queue_name=queue, archive_days=1)
    first, claim = leased(worker, queue, "first")
    with transaction(producer):
        enqueue(producer, queue, "second", predecessor_ids=[first])
        call(worker, "complete", queue_name=queue, claim_id=claim)
        assert call_one(worker, "archive", queue_name=queue).archived == 0
    assert call_one(worker, "archive", queue_name=queue).archived == 1
    assert bodies(dequeue(worker, queue)) == ["second"]


@pytest.mark.promise("P25", "P26")
def test_producer_defers_with_optimized_locking(server: Server, optimized: str) -> None:
    """With optimized locking a deleted row has no lock: nowait must see its transaction's.

    If it fails: use no predecessor_ids and no expire_seconds on that server.
    """
    with closing(server.connect(optimized)) as one, closing(server.connect(optimized)) as other:
        rowq.Queue(one).create_queue("q")
        impatient(other)
        first, claim = leased(one, "q", "first")
        with rolled_back(one):
            call(one, "complete", queue_name="q", claim_id=claim)
            enqueue(other, "q", "second", predecessor_ids=[first])
            assert dequeue(other, "q") == []
        with rolled_back(other):
            enqueue(other, "q", "third", predecessor_ids=[first])
            impatient(one)
            call(one, "complete", queue_name="q", claim_id=claim)
            assert stored(one, "q", "deferred") == 2, "the first message's row is deferred as well"
        call(one, "maintain", queue_name="q")
        assert bodies(dequeue(one, "q")) == ["second"]
