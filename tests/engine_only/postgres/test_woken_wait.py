"""The client's dequeue_wait is notified of a message, and stops listening when it returns."""

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

import rowq
from rowq.engines import engine_for_url
from rowq.engines.postgres import async_waiting, waiting
from tests.engines.base import Connection, wait_until

LISTENERS = "select count(*) from pg_locks where locktype = 'advisory' and classid = 1919907698"


@pytest.fixture
def connection(notifying_url: str) -> Iterator[Connection]:
    with psycopg.connect(notifying_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def queue(connection: Connection, queue_name: str) -> rowq.Queue:
    queue = rowq.Queue(connection)
    queue.create_queue(queue_name)
    return queue


@pytest.fixture
def unpolled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let waits poll only before and after them."""
    for module in (waiting, async_waiting):
        monkeypatch.setattr(module, "_FIRST_PAUSE_SECONDS", 60.0)


@pytest.fixture
def waiter(notifying_url: str, unpolled: None) -> Iterator[rowq.Queue]:  # noqa: ARG001
    with rowq.connect(notifying_url) as waiter:
        yield waiter


def listeners(connection: Connection) -> int:
    ((count,),) = connection.execute(LISTENERS).fetchall()
    return int(count)


@pytest.mark.promise("P03")
def test_message_ends_a_wait_at_once(
    connection: Connection, queue: rowq.Queue, waiter: rowq.Queue, queue_name: str
) -> None:
    seconds = []
    for number in range(3):
        timer = threading.Timer(0.3, queue.enqueue, [queue_name, number])
        began_at = time.monotonic()
        timer.start()
        (message,) = waiter.dequeue_wait(queue_name, wait_seconds=5)
        seconds.append(time.monotonic() - began_at)
        assert message.data == number
        assert listeners(connection) == 0
    assert min(seconds) < 2


@pytest.mark.usefixtures("unpolled")
def test_message_ends_an_asynchronous_wait_at_once(
    notifying_url: str,
    connection: Connection,
    queue: rowq.Queue,
    queue_name: str,
) -> None:
    async def life() -> float:
        async with await rowq.connect_async(notifying_url) as own:
            began_at = time.monotonic()
            waits = asyncio.create_task(own.dequeue_wait(queue_name, wait_seconds=5))
            await asyncio.sleep(0.3)
            queue.enqueue(queue_name, 1)
            assert len(await waits) == 1
            return time.monotonic() - began_at

    assert asyncio.run(life()) < 4
    assert listeners(connection) == 0


@pytest.mark.promise("P03")
def test_message_enqueued_before_the_session_listens_is_found(
    notifying_url: str,
    queue: rowq.Queue,
    waiter: rowq.Queue,
    queue_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = engine_for_url(notifying_url)
    call, steps = engine.call, []

    def calling(connection: Any, routine: str, arguments: Any) -> Any:
        steps.append(routine)
        if routine == "listen":
            queue.enqueue(queue_name, "early")
        return call(connection, routine, arguments)

    monkeypatch.setattr(engine, "call", calling)
    began_at = time.monotonic()
    (message,) = waiter.dequeue_wait(queue_name, wait_seconds=5)
    assert message.data == "early"
    assert steps == ["dequeue_wait", "listen", "enqueue", "dequeue_wait", "unlisten"]
    assert time.monotonic() - began_at < 4


def test_wait_without_a_message_or_a_queue_stops_listening(
    connection: Connection, queue: rowq.Queue, queue_name: str, notifying_url: str
) -> None:
    with rowq.connect(notifying_url) as own:
        assert own.dequeue_wait(queue_name, wait_seconds=0.3) == []
        assert listeners(connection) == 0
        errors: list[Exception] = []

        def wait() -> None:
            try:
                own.dequeue_wait(queue_name, wait_seconds=5)
            except rowq.QueueNotFound as error:
                errors.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        wait_until(lambda: listeners(connection) == 1, "it listens")
        queue.drop_queue(queue_name)
        thread.join()
        assert len(errors) == 1


@pytest.mark.parametrize("seconds", [-1.0, 3601.0, float("inf"), float("nan")])
def test_wrong_wait_seconds_are_refused(
    notifying_url: str, queue: rowq.Queue, queue_name: str, seconds: float
) -> None:
    assert queue.queue_stats(queue_name)
    with rowq.connect(notifying_url) as own, pytest.raises(rowq.InvalidArgument):
        own.dequeue_wait(queue_name, wait_seconds=seconds)


def test_lost_unlisten_loses_no_message(
    notifying_url: str, queue: rowq.Queue, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engine_for_url(notifying_url)
    call = engine.call

    def calling(connection: Any, routine: str, arguments: Any) -> Any:
        if routine == "listen":
            queue.enqueue(queue_name, "kept")
        if routine == "unlisten":
            connection.close()
        return call(connection, routine, arguments)

    monkeypatch.setattr(engine, "call", calling)
    with rowq.connect(notifying_url) as own:
        (message,) = own.dequeue_wait(queue_name, wait_seconds=5)
        assert (message.data, message.attempt) == ("kept", 1)
        assert own.dequeue_fast(queue_name) == []
