"""Calls on a closed queue."""

import asyncio

import pytest

import rowq
from rowq.session import OwnedSession
from tests.engines.base import Connection


def test_closed_queue_refuses_all_calls(database_url: str, queue_name: str) -> None:
    with rowq.connect(database_url) as queue:
        queue.create_queue(queue_name)
    for call in (queue.version, lambda: queue.enqueue(queue_name, 1)):
        with pytest.raises(rowq.QueueClosed, match="this Queue is closed"):
            call()
    with pytest.raises(rowq.QueueClosed):
        queue.dequeue_wait(queue_name)
    assert isinstance(queue._session, OwnedSession)
    assert queue._session._connection is None
    queue.close()


def test_closed_queue_on_callers_connection_refuses_calls(connection: Connection) -> None:
    queue = rowq.Queue(connection)
    queue.close()
    with pytest.raises(rowq.QueueClosed):
        queue.version()
    assert rowq.Queue(connection).version().schema_version >= 1


@pytest.mark.requires("async")
def test_closed_async_queue_refuses_calls(database_url: str) -> None:
    async def life() -> None:
        async with await rowq.connect_async(database_url) as queue:
            await queue.version()
        with pytest.raises(rowq.QueueClosed):
            await queue.version()

    asyncio.run(life())
