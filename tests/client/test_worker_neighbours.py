"""Isolation of the messages of a claim in a transactional worker."""

import contextlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import rowq
from rowq.engines import engine_for_connection
from tests.client.handlers import insert
from tests.engines.base import Connection, Server
from tests.helpers.dialects import dialect_of
from tests.helpers.worker_queue import MakeQueue, WorkerQueue

Effects = Callable[[], Counter[int]]


@pytest.fixture
def queue(connection: Connection, make_queue: MakeQueue) -> WorkerQueue:
    dialect_of(connection).make_table(connection, "effect", "queue_name varchar(100), place int")
    options = {"transactional": True, "lease_seconds": 60}
    return make_queue(options, lease_seconds=60, backoff_base_seconds=0, max_attempts=1)


@pytest.fixture
def effects(connection: Connection, queue_name: str) -> Effects:
    """Return a function that counts the writes of each message."""

    def count() -> Counter[int]:
        query = "select place from effect where queue_name = %s"
        rows = dialect_of(connection).execute(connection, query, [queue_name]).fetchall()
        return Counter(place for (place,) in rows)

    return count


def fill(queue: WorkerQueue, count: int) -> list[int]:
    new = [rowq.NewMessage(data={"queue_name": queue.name, "number": n}) for n in range(count)]
    return [message.message_id for message in queue.enqueue_batch(new)]


def last_error(queue: WorkerQueue, message_id: int) -> str:
    details = queue.get_message(message_id)
    assert details
    return str(details.last_error)


@pytest.mark.promise("P10")
def test_swallowed_database_error_fails_only_its_message(
    connection: Connection, queue: WorkerQueue, effects: Effects
) -> None:
    ids = fill(queue, 6)
    calls: list[int] = []

    def handler(message: rowq.Message, own: Connection) -> None:
        number = message.data["number"]
        calls.append(number)
        insert(message, own)
        if number == 2:
            with contextlib.suppress(dialect_of(own).database_error):
                dialect_of(own).execute(own, "select nonsense")

    stats = queue.drain(handler)
    assert calls == [0, 1, 2, 3, 4, 5]
    is_aborted = engine_for_connection(connection).name == "postgres"
    assert (stats.processed, stats.failed) == ((5, 1) if is_aborted else (6, 0))
    assert effects() == Counter({0, 1, 2, 3, 4, 5} - ({2} if is_aborted else set()))
    if is_aborted:
        error = last_error(queue, ids[2])
        assert "continued after a database error" in error
        assert "nonsense" in error


@pytest.mark.promise("P02", "P04")
@pytest.mark.parametrize("count", [1, 3])
def test_message_with_one_lost_connection_costs_no_attempt(
    server: Server, queue: WorkerQueue, effects: Effects, count: int
) -> None:
    fill(queue, count)
    killed: list[int] = []

    def handler(message: rowq.Message, own: Connection) -> None:
        insert(message, own)
        if not killed:
            killed.append(server.session_id(own))
            server.kill_session(killed[0])
            dialect_of(own).execute(own, "select 1")

    stats = queue.drain(handler)
    assert (stats.processed, stats.retried, stats.failed) == (count, 0, 0)
    assert effects() == Counter(range(count))


@pytest.mark.promise("P10")
@pytest.mark.parametrize("swallows", [False, True])
def test_message_is_retried_after_three_lost_connections(
    server: Server, queue: WorkerQueue, effects: Effects, swallows: bool
) -> None:
    ids = fill(queue, 3)
    calls: list[int] = []

    def handler(message: rowq.Message, own: Connection) -> None:
        calls.append(message.data["number"])
        insert(message, own)
        if message.data["number"] == 1:
            server.kill_session(server.session_id(own))
            with contextlib.suppress(*[Exception] * swallows):
                dialect_of(own).execute(own, "select 1")

    stats = queue.drain(handler)
    assert (stats.processed, stats.failed) == (2, 1)
    assert effects() == Counter([0, 2])
    assert Counter(calls)[1] == 3
    assert last_error(queue, ids[1])


@pytest.mark.promise("P02", "P08")
@pytest.mark.parametrize("call", ["complete", "retry_later", "fail_now", "release", "extend_lease"])
@pytest.mark.parametrize("alone", [False, True], ids=["several", "alone"])
def test_handler_cannot_finish_or_extend_its_claim(
    queue: WorkerQueue, effects: Effects, call: str, alone: bool
) -> None:
    ids = fill(queue, 1 if alone else 3)

    def handler(message: rowq.Message, own: Connection) -> None:
        insert(message, own)
        if message.message_id == ids[-1]:
            getattr(rowq.Queue(own), call)(queue.name, message.claim_id)

    stats = queue.drain(handler, lease_seconds=3)
    assert (stats.processed, stats.failed) == (len(ids) - 1, 1)
    assert effects() == Counter(range(len(ids) - 1))
    assert f"ForbiddenInHandler: {call}" in last_error(queue, ids[-1])


@pytest.mark.promise("P02", "P10")
@pytest.mark.parametrize("raises", [False, True], ids=["returns", "raises"])
def test_batch_writes_are_kept_unless_it_raises(
    queue: WorkerQueue, effects: Effects, raises: bool
) -> None:
    ids = fill(queue, 3)

    def handler(messages: list[rowq.Message], own: Connection) -> Any:
        for message in messages:
            insert(message, own)
        if raises:
            raise rowq.Fail("all of them")
        return {ids[1]: rowq.Fail("this one")}

    stats = queue.drain(handler, per="batch")
    assert (stats.processed, stats.failed) == ((0, 3) if raises else (2, 1))
    assert effects() == Counter([] if raises else [0, 1, 2])


@pytest.mark.promise("P01")
def test_handler_can_call_other_routines(queue: WorkerQueue, effects: Effects) -> None:
    ids = fill(queue, 2)
    other = f"{queue.name[:90]}_other"
    queue.client.create_queue(other, max_attempts=1)
    queue.client.enqueue(other, 1)
    (taken,) = queue.client.dequeue_fast(other)

    def handler(message: rowq.Message, own: Connection) -> None:
        insert(message, own)
        mine = rowq.Queue(own)
        mine.enqueue(other, message.data)
        if message.message_id == ids[0]:
            mine.extend_lease(other, taken.claim_id)
            mine.complete(other, taken.claim_id)
        else:
            raise rowq.Fail("undone")

    stats = queue.drain(handler)
    assert (stats.processed, stats.failed) == (1, 1)
    assert [message.data["number"] for message in queue.client.peek(other, max_messages=5)] == [0]
    assert effects() == Counter([0])


def plain_sql_completes(own: Connection, queue_name: str, message: rowq.Message) -> None:
    """Complete a message by SQL, which rowq cannot refuse."""
    name = engine_for_connection(own).name
    if name == "postgres":
        statement = "select * from rowq.complete(%s, %s, array[%s]::bigint[])"
        own.execute(statement, [queue_name, message.claim_id, message.message_id])
    else:
        with own.cursor() as cursor:
            ids = f"[{message.message_id}]"
            cursor.execute(
                "call rowq.complete(%s, %s, %s, null)", [queue_name, message.claim_id, ids]
            )


@pytest.mark.requires("genuine")
@pytest.mark.promise("P02", "P08")
def test_handler_completing_by_sql_fails_alone(
    queue: WorkerQueue, effects: Effects, server: Server
) -> None:
    if server.engine not in {"postgres", "mysql"}:
        pytest.skip(
            "the statement is not written for this engine; to run it: --engine postgres18,mariadb"
        )
    ids = fill(queue, 3)

    def handler(message: rowq.Message, own: Connection) -> None:
        insert(message, own)
        if message.message_id == ids[1]:
            plain_sql_completes(own, queue.name, message)

    stats = queue.drain(handler)
    assert (stats.processed, stats.failed) == (2, 1)
    assert effects() == Counter([0, 2])
    assert "no longer holds" in last_error(queue, ids[1])
