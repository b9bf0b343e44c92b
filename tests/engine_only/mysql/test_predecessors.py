"""Predecessors: plans, number of statements and locks."""

import time

import pytest

from tests.engine_only.mysql.costs import pages, until_quiet
from tests.engine_only.mysql.statements import accesses, run_by
from tests.engines.base import Connection
from tests.helpers.calls import (
    call,
    call_one,
    dequeue,
    dequeue_one,
    enqueue,
    transaction,
)
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect
from tests.stored_times import tick

LINKED = {"blocked", "successor", "deferred"}
BY_KEY = LINKED | {"message", "finished", "dead"}
TIME_SHIFT = " - interval "
"""Part of statements by which the tests move stored times."""


@pytest.fixture
def queue(connection: Connection, queue_name: str) -> str:
    call(connection, "create_queue", queue_name=queue_name)
    return queue_name


def complete_next(session: Connection, queue: str, routine: str = "complete") -> None:
    """Dequeue one message and end it."""
    claim = dequeue_one(session, queue).claim_id
    call(session, routine, queue_name=queue, claim_id=claim)


def cycle(connection: Connection, other: Connection, queue: str) -> None:
    """Run every statement about predecessors."""
    first, second, third = enqueue(connection, queue, "1", "2", "3", priority=0)
    for asked in ("hold", "continue", "fail"):
        enqueue(connection, queue, asked, predecessor_ids=[first, third], on_predecessor_dead=asked)
    enqueue(connection, queue, "delayed", predecessor_ids=[second], delay_seconds=60)
    enqueue(connection, queue, "group_waiting", predecessor_ids=[second], group_key="g")
    messages = [
        {"body": "begins", "priority": 0},
        {"body": "ends", "predecessor_positions": [1], "predecessor_ids": [first]},
    ]
    call(connection, "enqueue_batch", queue_name=queue, messages=messages)
    complete_next(connection, queue, "fail_now")
    enqueue(connection, queue, "late", predecessor_ids=[first], on_predecessor_dead="fail")
    [waits] = enqueue(connection, queue, "waits", predecessor_ids=[first])
    call(connection, "get_message", queue_name=queue, message_id=waits)
    call(connection, "queue_stats", queue_name=queue)
    call(connection, "health")
    call(connection, "cancel", queue_name=queue, message_ids=[waits])
    complete_next(connection, queue)
    complete_next(connection, queue, "retry_later")
    call(connection, "alter_queue", queue_name=queue, archive_days=1)
    rows = dequeue(connection, queue, 50)
    call(connection, "complete", queue_name=queue, claim_id=rows[0].claim_id)
    [named] = enqueue(connection, queue, "named", priority=0)
    with transaction(other):
        enqueue(other, queue, "names it", predecessor_ids=[named], on_predecessor_dead="fail")
        enqueue(connection, queue, "unsure", predecessor_ids=[named])
        call(connection, "archive", queue_name=queue)
    complete_next(connection, queue, "fail_now")
    tick(other, queue)
    call(connection, "maintain", queue_name=queue)
    call(connection, "purge_queue", queue_name=queue, max_messages=1)
    call(connection, "alter_queue", queue_name=queue, archive_days=0)


@pytest.mark.promise("P13")
def test_statements_about_predecessors_use_the_primary_key(
    connection: Connection, connect: Connect, queue: str
) -> None:
    [first] = enqueue(connection, queue, "first", priority=9)
    messages = [{"body": "x", "predecessor_ids": [first], "priority": 9}] * 2000
    messages += [{"body": "x", "priority": 9}] * 2000
    call(connection, "enqueue_batch", queue_name=queue, messages=messages)
    session, other = connect(), connect()
    connection.execute("use rowq")
    ran = run_by(connection, session, lambda: cycle(session, other, queue))
    found = [
        access
        for statement in ran
        if TIME_SHIFT not in statement or "rowq.deferred" in statement
        for access in accesses(connection, statement)
        if access.table in BY_KEY
        and not statement.lstrip().startswith("insert")
        and "Impossible" not in (access.extra or "")
    ]
    assert {access.table for access in found} == BY_KEY
    for access in found:
        assert access.key == "PRIMARY", access
        assert access.type in {"const", "eq_ref", "ref", "range"}, access
        assert "filesort" not in access.extra, access
        assert "temporary" not in access.extra, access


def statements(admin: Connection, session: Connection, queue: str, waiting: int) -> list[str]:
    """Return the statements on rows when a predecessor ends."""
    [ends] = enqueue(session, queue, "ends")
    for _ in range(waiting):
        enqueue(session, queue, "waits", predecessor_ids=[ends])
    claim = dequeue_one(session, queue).claim_id
    ran = run_by(
        admin, session, lambda: call(session, "complete", queue_name=queue, claim_id=claim)
    )
    if rows := dequeue(session, queue, 10):
        call(session, "complete", queue_name=queue, claim_id=rows[0].claim_id)
    return [
        statement for statement in ran if "rowq." in statement and not statement.startswith("call ")
    ]


def test_end_of_a_predecessor_takes_constant_statements(
    connection: Connection, connect: Connect, queue: str
) -> None:
    session = connect()
    alone = statements(connection, session, queue, waiting=0)
    assert len(alone) == 3, alone
    statements(connection, session, queue, waiting=1)  # opens the front lane
    awaited = statements(connection, session, queue, waiting=1)
    assert len(awaited) - len(alone) <= 9, awaited
    assert len(statements(connection, session, queue, waiting=5)) == len(awaited)


@pytest.mark.parametrize("level", ["read committed", "repeatable read"])
def test_naming_an_ended_message_blocks_no_session(
    connection: Connection, connect: Connect, queue: str, level: str
) -> None:
    caller, other = connect(), connect()
    [waits] = enqueue(connection, queue, "waits")
    [ended] = enqueue(connection, queue, "ended")
    call(connection, "cancel", queue_name=queue, message_ids=[ended])
    other.execute("set session innodb_lock_wait_timeout = 1")
    caller.execute(f"set transaction isolation level {level}")
    with transaction(caller):
        [named] = enqueue(caller, queue, "after ended", predecessor_ids=[ended])
        enqueue(caller, queue, "after waiting", predecessor_ids=[waits])
        [beside] = enqueue(other, queue, "beside")
        enqueue(other, queue, "waits 2", predecessor_ids=[waits])
        enqueue(other, queue, "waits 3", predecessor_ids=[beside])
        assert call(caller, "get_message", queue_name=queue, message_id=named)[0].state == "blocked"
    tick(other, queue)
    call(other, "maintain", queue_name=queue)
    assert call(other, "get_message", queue_name=queue, message_id=named)[0].state == "ready"


@pytest.mark.slow("an old view beside many rows", ci="mariadb")
@pytest.mark.promise("P13")
def test_old_read_view_does_not_raise_the_cost_of_resuming(
    connection: Connection, connect: Connect, queue: str
) -> None:
    viewer = connect()
    viewer.execute("set transaction isolation level repeatable read")
    viewer.execute("begin")
    viewer.execute("select count(*) from rowq.message")

    def step() -> int:
        """Return the pages read to end 10 predecessors, each with a successor."""
        for _ in range(10):
            [ends] = enqueue(connection, queue, "ends")
            enqueue(connection, queue, "waits", predecessor_ids=[ends])

        def work() -> None:
            for row in dequeue(connection, queue, 10):
                own = {"claim_id": row.claim_id, "message_ids": [row.message_id]}
                call(connection, "complete", queue_name=queue, **own)

        until_quiet(connection)
        cost = pages(connection, work)
        work()
        return cost

    step()
    early = min(step() for _ in range(3))
    for _ in range(40):
        step_of_load(connection, queue)
    call(connection, "maintain", queue_name=queue)
    time.sleep(0.6)
    call(connection, "maintain", queue_name=queue)
    assert min(step() for _ in range(3)) < 1.5 * early
    viewer.rollback()


def step_of_load(connection: Connection, queue: str) -> None:
    """Enqueue 20 messages with a successor each, and complete all."""
    messages: list[dict[str, object]] = [{"body": "x"}] * 20
    messages += [{"body": "x", "predecessor_positions": [number]} for number in range(1, 21)]
    call(connection, "enqueue_batch", queue_name=queue, messages=messages)
    while rows := dequeue(connection, queue, 50):
        call(connection, "complete", queue_name=queue, claim_id=rows[0].claim_id)


@pytest.mark.promise("P10", "P26")
def test_return_of_a_message_a_producer_names_drops_its_error(
    connection: Connection, connect: Connect, queue: str
) -> None:
    producer, other = connect(), connect()
    [leased] = enqueue(connection, queue, "leased first", priority=0)
    claim = dequeue(connection, queue)[0].claim_id
    other.execute("set session innodb_lock_wait_timeout = 1")
    with transaction(producer):
        enqueue(producer, queue, "after", predecessor_ids=[leased])
        options = {"claim_id": claim, "delay_seconds": 0.5, "error": "broken"}
        done = call_one(other, "retry_later", queue_name=queue, **options)
        assert done.outcome == "retrying"
        assert dequeue(connection, queue) == []
        time.sleep(0.6)
        [row] = dequeue(connection, queue)
        assert (row.message_id, row.attempt, row.last_error) == (leased, 2, None)
        dialect_of(connection).expire_claim(connection, row.claim_id)
        assert call_one(other, "reap", queue_name=queue).reaped == 1
    [row] = dequeue(connection, queue)
    assert (row.message_id, row.attempt, row.last_error) == (leased, 3, None)


@pytest.mark.promise("P10", "P27")
@pytest.mark.parametrize("end", ["fail_now", "retry_later", "reap"])
def test_death_does_not_wait_for_a_producer_and_keeps_its_error(
    connection: Connection, connect: Connect, queue: str, end: str
) -> None:
    producer, other = connect(), connect()
    call(connection, "alter_queue", queue_name=queue, max_attempts=1, result_seconds=600)
    [first] = enqueue(connection, queue, "first")
    claim = dequeue_one(connection, queue).claim_id
    other.execute("set session innodb_lock_wait_timeout = 1")
    with transaction(producer):
        asked = {"predecessor_ids": [first], "on_predecessor_dead": "fail"}
        [second] = enqueue(producer, queue, "second", dedup_key="second", **asked)
        if end == "reap":
            dialect_of(connection).expire_claim(connection, claim)
            assert call_one(other, "reap", queue_name=queue).died == 1
        else:
            call(other, end, queue_name=queue, claim_id=claim, error="broken")
        error = "lease expired" if end == "reap" else "broken"
        [dead] = call(other, "list_dead", queue_name=queue)
        message = call_one(other, "get_message", queue_name=queue, message_id=first)
        result = call_one(other, "get_result", queue_name=queue, message_id=first)
        assert {row.last_error for row in (dead, message, result)} == {error}
    tick(other, queue)
    call(other, "maintain", queue_name=queue)
    rows = call(other, "list_dead", queue_name=queue)
    assert [row.last_error for row in rows] == [error, f"predecessor {first} is dead"]
    assert call_one(other, "get_result", queue_name=queue, message_id=second).last_error == (
        f"predecessor {first} is dead"
    )
    call(other, "reset", queue_name=queue)
    assert [row.last_error for row in dequeue(other, queue, 2)] == [row.last_error for row in rows]


@pytest.mark.promise("P13")
def test_health_checks_the_newest_10000_dead_messages(connection: Connection, queue: str) -> None:
    [first] = enqueue(connection, queue, "first")
    enqueue(connection, queue, "second", predecessor_ids=[first])
    complete_next(connection, queue, "fail_now")
    ((queue_id,),) = connection.execute(
        "select queue_id from rowq.queue where queue_name = %s", [queue]
    ).fetchall()

    def waiting() -> float:
        [value] = [
            row.value
            for row in call(connection, "health")
            if (row.check_name, row.queue_name) == ("waits_for_dead", queue)
        ]
        return float(value)

    assert waiting() == 1
    connection.execute(
        "insert into rowq.dead (queue_id, message_id, lane, attempt, died_at)"
        " select %s, %s + j.place, 11, 1, utc_timestamp(6)"
        " from json_table(concat('[0', repeat(',0', 9999), ']'),"
        " '$[*]' columns (place for ordinality)) j",
        [queue_id, first + 10],
    )
    assert waiting() == 0
    connection.execute(
        "delete from rowq.dead where queue_id = %s and message_id = %s", [queue_id, first + 11]
    )
    assert waiting() == 1
