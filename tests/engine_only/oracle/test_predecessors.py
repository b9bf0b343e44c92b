"""Predecessors on Oracle: replacements for shared row locks, and old snapshots."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import oracledb
import pytest

from tests.engine_only.oracle.test_groups import (
    OF_QUEUE,
    TIMEOUT_MS,
    finish,
    maintain_later,
    work_off,
)
from tests.engines.base import Connection, wait_until_blocked
from tests.engines.oracle.server import OracleServer
from tests.engines.oracle.session import number_of
from tests.helpers.calls import call, call_one, dequeue, dequeue_one, enqueue, transaction
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect

CANNOT_SERIALIZE = 8177
FAILURES: dict[str, dict[str, Any]] = {"fail_now": {}, "retry_later": {"delay_seconds": 60}}
"""Routines that write an error to the message row, and their arguments."""


def deferred_checks(connection: Connection, queue: str) -> int:
    """Return the number of committed deferred checks of messages."""
    query = f"select count(*) from rowq_deferred where message_id is not null and {OF_QUEUE}"
    ((count,),) = dialect_of(connection).execute(connection, query, [queue]).fetchall()
    return int(count)


@pytest.mark.pitfall("oracle 30")
@pytest.mark.promise("P25", "P26")
def test_second_producer_naming_a_message_defers_without_waiting(
    connection: Connection, connect: Connect, queue: str
) -> None:
    first, second = connect(), connect()
    second.call_timeout = TIMEOUT_MS
    [named] = enqueue(connection, queue, "named")
    with transaction(first):
        enqueue(first, queue, "a", predecessor_ids=[named])
        enqueue(second, queue, "b", predecessor_ids=[named])
        assert deferred_checks(connection, queue) == 1
        maintain_later(connection, queue)
        assert deferred_checks(connection, queue) == 1, "the row is locked"
    maintain_later(connection, queue)
    assert deferred_checks(connection, queue) == 0
    assert sorted(work_off(connection, queue)) == ["a", "b", "named"]


@pytest.mark.pitfall("oracle 31")
@pytest.mark.promise("P26")
@pytest.mark.parametrize("ending", ["commit", "rollback"])
def test_complete_defers_a_row_that_a_producer_has_locked(
    connection: Connection, connect: Connect, queue: str, ending: str
) -> None:
    producer, worker = connect(), connect()
    worker.call_timeout = TIMEOUT_MS
    [named] = enqueue(connection, queue, "named")
    row = dequeue_one(connection, queue)
    dialect_of(producer).begin(producer)
    enqueue(producer, queue, "waits", predecessor_ids=[named])
    finish(worker, queue, row)
    assert deferred_checks(connection, queue) == 1
    maintain_later(worker, queue)
    assert deferred_checks(connection, queue) == 1, "the row is locked"
    getattr(dialect_of(producer), ending)(producer)
    maintain_later(worker, queue)
    assert deferred_checks(connection, queue) == 0
    assert not call(connection, "get_message", queue_name=queue, message_id=named)
    assert work_off(connection, queue) == (["waits"] if ending == "commit" else [])


@pytest.mark.pitfall("oracle 31")
@pytest.mark.promise("P10", "P27")
@pytest.mark.parametrize("ending", ["commit", "rollback"])
@pytest.mark.parametrize("routine", FAILURES)
def test_failure_waits_for_a_producer_and_sees_its_successor(
    server: OracleServer,
    connection: Connection,
    connect: Connect,
    queue: str,
    routine: str,
    ending: str,
) -> None:
    """The error is stored in the row only, so the row is not skipped."""
    producer, worker = connect(), connect()
    [named] = enqueue(connection, queue, "named")
    claim = dequeue_one(connection, queue).claim_id
    arguments = {"queue_name": queue, "claim_id": claim, "error": "broken", **FAILURES[routine]}
    dialect_of(producer).begin(producer)
    enqueue(producer, queue, "waits", predecessor_ids=[named], on_predecessor_dead="continue")
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(lambda: call(worker, routine, **arguments))
        wait_until_blocked(server, server.session_id(worker))
        getattr(dialect_of(producer), ending)(producer)
        running.result(20)
    row = call_one(connection, "get_message", queue_name=queue, message_id=named)
    is_dead = routine == "fail_now"
    assert (row.state, row.last_error) == ("dead" if is_dead else "delayed", "broken")
    resumes = is_dead and ending == "commit"
    assert work_off(connection, queue) == (["waits"] if resumes else [])


@pytest.mark.pitfall("oracle 31")
@pytest.mark.promise("P25", "P26")
@pytest.mark.parametrize("shown", [[], ["shown"]], ids=["no successor", "one successor"])
def test_serializable_complete_defers_successors_added_since(
    connection: Connection, connect: Connect, queue: str, shown: list[str]
) -> None:
    """It cannot lock the row, which was named again since, and treats it as locked."""
    strict = connect()
    dialect = dialect_of(strict)
    [named] = enqueue(connection, queue, "named")
    for text in shown:
        enqueue(connection, queue, text, predecessor_ids=[named])
    row = dequeue_one(connection, queue)
    dialect.begin(strict, "serializable")
    dialect.execute(strict, "select count(*) from rowq_queue")
    enqueue(connection, queue, "not shown", predecessor_ids=[named])
    finish(strict, queue, row)
    dialect.commit(strict)
    assert deferred_checks(connection, queue) == 1
    assert work_off(connection, queue) == shown
    maintain_later(connection, queue)
    assert deferred_checks(connection, queue) == 0
    assert work_off(connection, queue) == ["not shown"]


@pytest.mark.pitfall("oracle 31")
@pytest.mark.promise("P25")
@pytest.mark.parametrize("routine", FAILURES)
@pytest.mark.parametrize("shown", [[], ["shown"]], ids=["no successor", "one successor"])
def test_serializable_end_fails_if_a_successor_was_added_since(
    connection: Connection, connect: Connect, queue: str, shown: list[str], routine: str
) -> None:
    strict = connect()
    dialect = dialect_of(strict)
    [named] = enqueue(connection, queue, "named")
    for text in shown:
        enqueue(connection, queue, text, predecessor_ids=[named])
    row = dequeue_one(connection, queue)
    dialect.begin(strict, "serializable")
    dialect.execute(strict, "select count(*) from rowq_queue")
    enqueue(connection, queue, "not shown", predecessor_ids=[named])
    with pytest.raises(oracledb.DatabaseError) as caught:
        call(strict, routine, queue_name=queue, claim_id=row.claim_id, **FAILURES[routine])
    assert number_of(caught.value) == CANNOT_SERIALIZE
    dialect.rollback(strict)
    finish(connection, queue, row)
    assert sorted(work_off(connection, queue)) == sorted([*shown, "not shown"])


@pytest.mark.pitfall("oracle 31")
@pytest.mark.promise("P25")
def test_serializable_transaction_locks_no_message_named_since(
    connection: Connection, connect: Connect, queue: str
) -> None:
    """The flag is already set, but an update to the same value is a change."""
    strict = connect()
    dialect = dialect_of(strict)
    [named] = enqueue(connection, queue, "named")
    enqueue(connection, queue, "first", predecessor_ids=[named])
    dialect.begin(strict, "serializable")
    dialect.execute(strict, "select count(*) from rowq_queue")
    enqueue(connection, queue, "second", predecessor_ids=[named])
    query = "select m.message_id from rowq_message m where m.message_id = %s for update skip locked"
    locked: list[Any] = []
    try:
        locked = dialect.execute(strict, query, [named]).fetchall()
    except oracledb.DatabaseError as error:
        if number_of(error) != CANNOT_SERIALIZE:
            raise
    dialect.rollback(strict)
    assert locked == []


@pytest.mark.promise("P25", "P26")
def test_list_of_5000_predecessors_is_stored_and_read(connection: Connection, queue: str) -> None:
    rows = call(connection, "enqueue_batch", queue_name=queue, messages=[{"body": "x"}] * 5000)
    ids = [row.message_id for row in rows]
    [last] = enqueue(connection, queue, "last", predecessor_ids=ids)
    claims = {
        row.message_id: row.claim_id for _ in range(5) for row in dequeue(connection, queue, 1000)
    }
    for message_id in reversed(ids[-3:]):
        own = {"claim_id": claims[message_id], "message_ids": [message_id]}
        call(connection, "complete", queue_name=queue, **own)
    row = call_one(connection, "get_message", queue_name=queue, message_id=last)
    assert (row.state, row.waits_for) == ("blocked", ids[-4])
    for claim in set(claims.values()):
        call(connection, "complete", queue_name=queue, claim_id=claim)
    assert work_off(connection, queue) == ["last"]
