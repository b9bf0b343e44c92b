"""Bodies: plain values in a batch, and `default`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

import rowq
from tests.engines.base import Connection

ORDER = {"id": 1, "lines": [{"price": Decimal("7.50"), "due": date(2030, 1, 31)}]}
STORED = {"id": 1, "lines": [{"price": "7.50", "due": "2030-01-31"}]}


def test_batch_accepts_plain_values_and_new_messages(connection: Connection, made: str) -> None:
    queue = rowq.Queue(connection)
    given = [{"a": 1}, [2], "three", b"\x04", 5, rowq.NewMessage(data=6, message_type="six")]
    queue.enqueue_batch(made, given)
    found = queue.dequeue_fast(made, 10)
    assert [message.data for message in found] == [{"a": 1}, [2], "three", b"\x04", 5, 6]
    assert [message.message_type for message in found] == [None] * 5 + ["six"]


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([{"a": 1}, None], r"messages\[1\] is None.*rowq\.NewMessage\(\)"),
        ([{"a": 1}, {2}], r"messages\[1\].*set.*rowq\.NewMessage"),
        ({"id": 1}, r"messages must be a list.*rowq\.NewMessage"),
        ("body", r"messages must be a list.*rowq\.NewMessage"),
        (b"body", r"messages must be a list.*rowq\.NewMessage"),
        (rowq.NewMessage(data=1), r"messages must be a list.*rowq\.NewMessage"),
        (7, r"messages must be a list.*rowq\.NewMessage"),
    ],
)
def test_invalid_batch_is_refused_and_adds_nothing(
    connection: Connection, made: str, messages: Any, expected: str
) -> None:
    queue = rowq.Queue(connection)
    with pytest.raises(rowq.InvalidArgument, match=expected):
        queue.enqueue_batch(made, messages)
    assert queue.queue_stats(made)[0].ready == 0


def test_default_converts_other_values(connection: Connection, made: str) -> None:
    queue = rowq.Queue(connection, default=str)
    queue.enqueue(made, ORDER, headers={"rate": Decimal("1.10")})
    queue.enqueue_batch(made, [ORDER, rowq.NewMessage(data=ORDER, headers={"r": Decimal(2)})])
    found = queue.dequeue_fast(made, 10)
    assert [message.data for message in found] == [STORED] * 3
    assert [message.headers for message in found] == [{"rate": "1.10"}, None, {"r": "2"}]


def test_owned_queue_uses_default(database_url: str, made: str) -> None:
    with rowq.connect(database_url, default=str) as queue:
        queue.enqueue(made, ORDER)
        assert queue.peek(made)[0].data == STORED


@pytest.mark.requires("async")
def test_async_queue_uses_default(database_url: str, made: str) -> None:
    async def life() -> Any:
        async with rowq.connect_async(database_url, default=str) as queue:
            await queue.enqueue(made, ORDER)
            return (await queue.peek(made))[0].data

    assert asyncio.run(life()) == STORED


@pytest.mark.parametrize(
    "send",
    [
        lambda queue, name: queue.enqueue(name, ORDER),
        lambda queue, name: queue.enqueue_batch(name, [ORDER]),
        lambda queue, name: queue.enqueue_batch(name, [rowq.NewMessage(data=ORDER)]),
    ],
)
def test_error_without_default_names_path_type_and_option(
    connection: Connection, made: str, send: Callable[[rowq.Queue, str], object]
) -> None:
    expected = r"\['lines'\]\[0\]\['price'\] is a Decimal; pass default=str to .*rowq\.Queue"
    with pytest.raises(rowq.InvalidArgument, match=expected):
        send(rowq.Queue(connection), made)


def test_error_of_default_is_shown(connection: Connection, made: str) -> None:
    def only_dates(value: object) -> str:
        if isinstance(value, date):
            return value.isoformat()
        raise TypeError(f"no JSON for {type(value).__name__}")

    with pytest.raises(rowq.InvalidArgument, match="no JSON for Decimal"):
        rowq.Queue(connection, default=only_dates).enqueue(made, ORDER)


@pytest.mark.requires("async")
def test_connect_async_is_entered_or_awaited(database_url: str) -> None:
    async def versions() -> list[int]:
        found = []
        async with rowq.connect_async(database_url) as queue:
            found.append((await queue.version()).schema_version)
        with pytest.raises(rowq.QueueClosed):
            await queue.version()
        async with await rowq.connect_async(database_url) as queue:
            found.append((await queue.version()).schema_version)
        queue = await asyncio.create_task(rowq.connect_async(database_url))
        found.append((await queue.version()).schema_version)
        await queue.close()
        return found

    assert len(set(asyncio.run(versions()))) == 1


def test_failed_connect_async_raises_on_enter() -> None:
    async def enter() -> None:
        async with rowq.connect_async("postgresql://me@127.0.0.1:1/x"):
            pass

    with pytest.raises(rowq.CannotConnect):
        asyncio.run(enter())
