"""Headers that Python cannot read, beyond the limits of enqueue."""

import asyncio
import copy
import json
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import rowq
from rowq.engines import engine_for_connection
from tests.engines.base import Connection
from tests.helpers.hard_headers import HARD, put_headers
from tests.helpers.worker_queue import MakeQueue, WorkerQueue

each_hard = pytest.mark.parametrize("hard", HARD.values(), ids=HARD)


@pytest.fixture
def queue(make_queue: MakeQueue) -> WorkerQueue:
    return make_queue(lease_seconds=60, backoff_base_seconds=0, max_attempts=3)


def fill(queue: WorkerQueue, connection: Connection, hard: str) -> list[int]:
    """Enqueue three messages, the second with unreadable headers; return their ids."""
    news = [rowq.NewMessage(data=n, headers={"n": [n, '"[{\\']}) for n in range(3)]
    ids = [sent.message_id for sent in queue.enqueue_batch(news)]
    put_headers(connection, ids[1], hard)
    return ids


def check(rows: Sequence[rowq.Message | rowq.PeekedMessage], hard: str) -> None:
    """Check the messages of a filled queue."""
    assert [row.data for row in rows] == [0, 1, 2]
    first, unreadable, last = (row.headers for row in rows)
    assert (first, last) == ({"n": [0, '"[{\\']}, {"n": [2, '"[{\\']})
    check_unreadable(unreadable, hard)


def check_unreadable(headers: Any, hard: str) -> None:
    assert isinstance(headers, rowq.UnreadableHeaders)
    assert headers.text.replace(" ", "") == hard.replace(" ", "")
    reads: list[Callable[[Any], Any]] = [
        *(bool, len, list, dict, json.dumps),
        lambda headers: headers["n"],
        lambda headers: headers.get("n"),
        lambda headers: {**headers},
        lambda headers: headers | {},
        lambda headers: {} | headers,
    ]
    for read in reads:
        with pytest.raises(ValueError, match="headers cannot be read"):
            read(headers)


@each_hard
def test_methods_return_unreadable_headers_as_text(
    connection: Connection, queue: WorkerQueue, hard: str
) -> None:
    ids = fill(queue, connection, hard)
    check(queue.peek(max_messages=9), hard)
    details = queue.get_message(ids[1])
    assert details
    check_unreadable(details.headers, hard)
    for take in (queue.dequeue_fast, queue.dequeue_wait):
        rows = take(9)
        check(rows, hard)
        queue.release(rows[0].claim_id)


@each_hard
def test_async_queue_returns_unreadable_headers(
    connection: Connection, queue: WorkerQueue, database_url: str, hard: str
) -> None:
    if engine_for_connection(connection).name != "postgres":
        pytest.skip("AsyncQueue is for PostgreSQL; to run it: --engine postgres18")
    fill(queue, connection, hard)

    async def main() -> None:
        async with await rowq.connect_async(database_url) as other:
            check(await other.peek(queue.name, max_messages=9), hard)
            rows = await other.dequeue_fast(queue.name, 9)
            check(rows, hard)
            await other.release(queue.name, rows[0].claim_id)
            check(await other.dequeue_wait(queue.name, 9), hard)

    asyncio.run(main())


@each_hard
@pytest.mark.parametrize("per", ["message", "batch"])
@pytest.mark.parametrize("transactional", [False, True], ids=["plain", "transactional"])
def test_worker_makes_message_dead_and_handles_the_others(
    connection: Connection, queue: WorkerQueue, hard: str, per: Any, transactional: bool
) -> None:
    ids = fill(queue, connection, hard)
    handled: list[int] = []

    def handler(given: Any, *_: Any) -> None:
        messages = given if per == "batch" else [given]
        assert messages
        handled.extend(message.message_id for message in messages)

    stats = queue.drain(handler, batch_size=9, per=per, transactional=transactional)
    assert handled == [ids[0], ids[2]]
    assert (stats.processed, stats.failed, stats.retried, stats.stale) == (2, 1, 0, 0)
    [dead] = queue.list_dead()
    assert (dead.message_id, dead.attempt) == (ids[1], 1)
    assert str(dead.last_error).startswith("headers cannot be read: ")


@pytest.mark.parametrize("transactional", [False, True], ids=["plain", "transactional"])
@pytest.mark.parametrize("per", ["message", "batch"])
def test_handler_is_not_called_for_unreadable_claim(
    connection: Connection, queue: WorkerQueue, per: Any, transactional: bool
) -> None:
    sent = queue.enqueue(headers={})
    put_headers(connection, sent.message_id, HARD["digits"])
    handled: list[Any] = []
    stats = queue.drain(lambda *given: handled.append(given), per=per, transactional=transactional)
    assert (stats.failed, handled) == (1, [])


def test_unreadable_headers_can_be_copied_and_pickled() -> None:
    headers = rowq.UnreadableHeaders('{"n": 1}', "why")
    copies: list[Callable[[Any], Any]] = [
        copy.copy,
        copy.deepcopy,
        lambda message: pickle.loads(pickle.dumps(message)),  # noqa: S301 - our own
    ]
    for made in (make(headers) for make in copies):
        assert (made, made.text, made.reason) == (headers, headers.text, headers.reason)
    assert headers != {}
    assert headers != rowq.UnreadableHeaders("{}", "why")
    assert "why" in repr(headers)
