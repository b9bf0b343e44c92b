"""Queue and AsyncQueue on the caller's connection."""

import asyncio
import dataclasses
import typing
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import rowq
from rowq.contract import load_contract
from rowq.engines import engine_for_connection
from tests.chaos.prepared import Prepared
from tests.engines.base import Connection
from tests.helpers.queues import Connect

HOSTILE = "é\n\t'\"; drop schema rowq cascade; -- %s $1 😀"


@pytest.fixture
def queue(connection: Connection, queue_name: str) -> rowq.Queue:
    queue = rowq.Queue(connection)
    queue.create_queue(queue_name, lease_seconds=60, backoff_base_seconds=0)
    return queue


def check_types(result: Any) -> None:
    """Check that each field has its annotated type, and times are in UTC."""
    for field, hint in typing.get_type_hints(type(result)).items():
        value = getattr(result, field)
        allowed = {typing.get_origin(part) or part for part in typing.get_args(hint)} or {hint}
        if typing.get_origin(hint) in {dict, list}:
            allowed = {typing.get_origin(hint)}
        assert hint is Any or type(value) in allowed, (field, value, hint)
        assert not isinstance(value, datetime) or value.tzinfo is UTC, field


def test_values_have_python_types(queue: rowq.Queue, queue_name: str) -> None:
    """Check each method's result during the life of messages."""
    results: list[Any] = [queue.alter_queue(queue_name, max_attempts=2), queue.version()]
    later = datetime.now(UTC) + timedelta(hours=1)
    results += [
        queue.enqueue(queue_name, {"a": 1}, headers={"h": [1]}, message_type="t", dedup_key="k"),
        queue.enqueue(queue_name, b"\0", run_at=later),
    ]
    results += queue.enqueue_batch(queue_name, [rowq.NewMessage(data=n) for n in range(5)])
    results += queue.peek(queue_name, max_messages=10)
    first = queue.dequeue_fast(queue_name, 4, worker_name="w")
    results += [*first, queue.extend_lease(queue_name, first[0].claim_id)]
    ids = [message.message_id for message in first]
    results.append(queue.get_message(queue_name, ids[0]))
    results += queue.complete(queue_name, first[0].claim_id, ids[:1])
    results += queue.retry_later(queue_name, first[0].claim_id, ids[1:2], delay_seconds=900)
    results += queue.fail_now(queue_name, first[0].claim_id, ids[2:3], error="e")
    results += queue.release(queue_name, first[0].claim_id)
    results += queue.queue_stats(queue_name)
    results += queue.list_dead(queue_name)
    results += queue.list_claims(queue_name)
    results += queue.list_delayed(queue_name)
    results.append(queue.find_message(queue_name, "k"))
    results += queue.reset(queue_name)
    results += queue.cancel(queue_name, [ids[1]])
    results += queue.maintain(queue_name)
    results += [queue.reap(queue_name), queue.promote(queue_name), queue.archive(queue_name)]
    results += [queue.purge_archive(queue_name), queue.pause_queue(queue_name)]
    results += [queue.resume_queue(queue_name), queue.purge_queue(queue_name)]
    results += queue.health()
    results += queue.after_failover()
    results.append(queue.drop_queue(queue_name, force=True))
    for result in results:
        check_types(result)


def test_methods_return_python_types(connection: Connection, queue_name: str) -> None:
    """Call every routine of the contract on a queue with rows to return."""
    for routine in load_contract().of(engine_for_connection(connection).name).values():
        if routine.is_own:
            continue
        prepared = Prepared(connection, f"{queue_name} {routine.name}", archive_days=1)
        given = prepared.arguments(routine)
        if "body" in given:
            given["text"] = given.pop("body")
        if "messages" in given:
            topic = prepared.topic if routine.name == "publish_batch" else None
            given["messages"] = [rowq.NewMessage(data=1, topic=topic)]
        result = getattr(rowq.Queue(connection), routine.name)(**given)
        if routine.name == "next_ticks":
            assert {(type(tick), tick.tzinfo) for tick in result} == {(datetime, UTC)}
            continue
        rows = result if isinstance(result, list) else [result]
        assert rows, routine.name
        if isinstance(result, rowq.NextMessages):
            rows = [result, *result.messages]
        for row in rows:
            check_types(row)


@pytest.mark.promise("P20")
def test_bodies_and_headers_roundtrip(queue: rowq.Queue, queue_name: str) -> None:
    everything: list[Any] = [
        None,
        {"é\0": [1, 2.5, None, True, HOSTILE]},
        HOSTILE,
        b"",
        b"\0\xff" * 1000,
        [],
    ]
    for data in everything:
        queue.enqueue(queue_name, data, headers={HOSTILE: HOSTILE}, message_type="é")
    queue.enqueue_batch(queue_name, [rowq.NewMessage(data=data) for data in everything])
    queue.enqueue(queue_name, text=HOSTILE)
    messages = queue.dequeue_fast(queue_name, 100)
    assert [message.data for message in messages[:-1]] == everything * 2
    assert messages[-1].body == HOSTILE
    assert messages[0].headers == {HOSTILE: HOSTILE}
    assert messages[0].message_type == "é"


@pytest.mark.promise("P01")
def test_enqueue_shares_callers_transaction(
    queue: rowq.Queue, queue_name: str, connect: Connect
) -> None:
    transaction = connect(autocommit=False)
    rowq.Queue(transaction).enqueue(queue_name, "rolled back")
    transaction.rollback()
    rowq.Queue(transaction).enqueue(queue_name, "committed")
    assert queue.peek(queue_name, max_messages=10) == []
    transaction.commit()
    assert [message.data for message in queue.peek(queue_name, max_messages=10)] == ["committed"]


@pytest.mark.promise("P07")
@pytest.mark.requires("genuine")
def test_rolled_back_dequeue_returns_messages(
    queue: rowq.Queue, queue_name: str, connect: Connect
) -> None:
    queue.enqueue(queue_name, 1)
    transaction = connect(autocommit=False)
    assert [message.data for message in rowq.Queue(transaction).dequeue_fast(queue_name)] == [1]
    assert queue.dequeue_fast(queue_name) == []
    transaction.rollback()
    assert [message.attempt for message in queue.dequeue_fast(queue_name)] == [1]


@pytest.mark.promise("P15")
def test_refusals_have_their_class_and_the_drivers_cause(
    queue: rowq.Queue, queue_name: str
) -> None:
    queue.enqueue(queue_name, 1)
    refusals: list[tuple[type[rowq.Refused], Callable[[], Any]]] = [
        (rowq.QueueNotFound, lambda: queue.enqueue(queue_name + HOSTILE, 1)),
        (rowq.QueueNotEmpty, lambda: queue.drop_queue(queue_name)),
        (rowq.InvalidArgument, lambda: queue.enqueue(queue_name, 1, priority=10)),
        (rowq.StaleClaim, lambda: queue.complete(queue_name, 2**62)),
    ]
    for refusal, call in refusals:
        with pytest.raises(refusal, match=rf"^{refusal.number} {refusal.name}: ") as raised:
            call()
        assert raised.value.__cause__ is not None


@pytest.mark.promise("P15")
@pytest.mark.parametrize(
    "arguments",
    [
        {"text": "\ud800"},
        {"data": "\ud800"},
        {"data": 1, "headers": {"a": "\ud800"}},
        {"data": 1, "message_type": "\udc80"},
        {"data": 1, "priority": 10**10},
    ],
    ids=str,
)
def test_unsendable_value_is_refused_and_connection_usable(
    connect: Connect, queue: rowq.Queue, queue_name: str, arguments: dict[str, Any]
) -> None:
    transaction = rowq.Queue(connect(autocommit=False))
    with pytest.raises(rowq.InvalidArgument):
        transaction.enqueue(queue_name, **arguments)
    assert transaction.enqueue(queue_name, 1).outcome == "enqueued"
    assert queue.peek(queue_name, max_messages=10) == []


def test_headers_may_contain_escaped_backslash_u0000(queue: rowq.Queue, queue_name: str) -> None:
    queue.enqueue(queue_name, 1, headers={"a": r"\u0000"})
    assert queue.peek(queue_name)[0].headers == {"a": r"\u0000"}


def test_other_driver_error_passes_through(connect: Connect, queue_name: str) -> None:
    connection = connect()
    connection.close()
    with pytest.raises(Exception) as raised:  # noqa: PT011 - whatever the driver calls it
        rowq.Queue(connection).peek(queue_name)
    assert not isinstance(raised.value, rowq.RowqError)


@pytest.mark.promise("P17")
def test_dequeue_wait_refuses_a_transaction(
    queue: rowq.Queue, queue_name: str, connect: Connect
) -> None:
    queue.enqueue(queue_name, 1)
    with pytest.raises(rowq.WrongTransactionState, match="autocommit"):
        rowq.Queue(connect(autocommit=False)).dequeue_wait(queue_name)
    assert len(queue.peek(queue_name)) == 1


def test_dequeue_wait_returns_messages_as_dequeue_fast(queue: rowq.Queue, queue_name: str) -> None:
    queue.enqueue(queue_name, b"\0\xff" * 100, headers={"a": None}, message_type="t")
    queue.enqueue(queue_name, HOSTILE)
    waited = queue.dequeue_wait(queue_name, 10)
    for message in waited:
        check_types(message)
    queue.release(queue_name, waited[0].claim_id)
    fast = queue.dequeue_fast(queue_name, 10)
    same: dict[str, Any] = {"claim_id": 0, "lease_until": fast[0].lease_until}
    assert [dataclasses.replace(message, **same) for message in waited] == [
        dataclasses.replace(message, **same) for message in fast
    ]


def test_dequeue_wait_returns_nothing_after_timeout(queue: rowq.Queue, queue_name: str) -> None:
    assert queue.dequeue_wait(queue_name, wait_seconds=0.05) == []


def test_get_message_returns_none_for_unknown_message(queue: rowq.Queue, queue_name: str) -> None:
    assert queue.get_message(queue_name, 2**62) is None


def test_close_leaves_callers_connection_open(connection: Connection, queue: rowq.Queue) -> None:
    with queue:
        queue.version()
    assert rowq.Queue(connection).version().schema_version >= 1


def test_queue_refuses_a_connection_of_the_other_kind(connection: Connection) -> None:
    with pytest.raises(rowq.EngineUnknown, match="Queue takes this one"):
        rowq.AsyncQueue(connection)


@pytest.mark.requires("async")
def test_async_queue_makes_the_same_calls(database_url: str, queue_name: str) -> None:
    async def life() -> None:
        async with await rowq.connect_async(database_url) as queue:
            await queue.create_queue(queue_name)
            await queue.enqueue(queue_name, b"\0")
            messages = await queue.dequeue_wait(queue_name, 10)
            check_types(messages[0])
            done = await queue.complete(queue_name, messages[0].claim_id)
            assert [outcome.outcome for outcome in done] == ["completed"]
            with pytest.raises(rowq.QueueNotFound):
                await queue.peek(queue_name + HOSTILE)
            with pytest.raises(rowq.EngineUnknown, match="AsyncQueue takes this one"):
                rowq.Queue(await queue._session.connection())

    asyncio.run(life())


@pytest.mark.requires("async")
def test_async_calls_run_in_parallel(database_url: str, queue_name: str) -> None:
    async def life() -> None:
        async with (
            await rowq.connect_async(database_url) as consumer,
            await rowq.connect_async(database_url) as producer,
        ):
            await producer.create_queue(queue_name)
            waiting = asyncio.create_task(consumer.dequeue_wait(queue_name, wait_seconds=30))
            await producer.enqueue(queue_name, "woke")
            assert [message.data for message in await waiting] == ["woke"]

    asyncio.run(life())
