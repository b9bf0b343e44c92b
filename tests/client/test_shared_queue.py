"""Queues shared by threads or tasks."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import rowq
from rowq.async_session import AsyncOwnedSession
from rowq.session import OwnedSession
from tests.engines.base import Connection, Server

CALLERS, CALLS = 10, 30


def test_threads_sharing_a_queue_continue_after_a_loss(
    server: Server, database_url: str, connection: Connection, queue_name: str
) -> None:
    rowq.Queue(connection).create_queue(queue_name)
    with rowq.connect(database_url) as queue:
        session = queue._session
        assert isinstance(session, OwnedSession)

        def number() -> int:
            """Return the server's session id while no thread calls."""
            with session._lock:
                return server.session_id(session._idle_connection())

        killed = [number()]
        go = threading.Barrier(CALLERS + 1)

        def work(_: int) -> tuple[int, int]:
            done, unknown = 0, 0
            go.wait()
            for number in range(CALLS):
                try:
                    queue.enqueue(queue_name, number)
                    done += 1
                except rowq.ConnectionLost:
                    unknown += 1
                queue.peek(queue_name)
            return done, unknown

        with ThreadPoolExecutor(CALLERS) as callers:
            results = callers.map(work, range(CALLERS), timeout=60)
            go.wait()
            for _ in range(3):
                server.kill_session(killed[-1])
                time.sleep(0.05)
                killed.append(number())
            sums = [sum(column) for column in zip(*results, strict=True)]
    done, unknown = sums
    assert done + unknown == CALLERS * CALLS
    assert unknown <= len(killed)
    assert done <= rowq.Queue(connection).queue_stats(queue_name)[0].ready <= done + unknown


@pytest.mark.slow("waits for time limits")
def test_waiting_thread_does_not_block_other_threads(database_url: str, queue_name: str) -> None:
    with rowq.connect(database_url) as queue, ThreadPoolExecutor(1) as waiters:
        queue.create_queue(queue_name)
        waiting = waiters.submit(queue.dequeue_wait, queue_name, wait_seconds=60)
        time.sleep(0.2)
        began = time.monotonic()
        queue.enqueue(queue_name, "late")
        assert time.monotonic() - began < 15
        assert [message.data for message in waiting.result(30)] == ["late"]


@pytest.mark.slow("waits for time limits")
def test_close_by_another_thread_ends_a_wait(database_url: str, queue_name: str) -> None:
    queue = rowq.connect(database_url)
    queue.create_queue(queue_name)
    with ThreadPoolExecutor(1) as waiters:
        waiting = waiters.submit(queue.dequeue_wait, queue_name, wait_seconds=60)
        time.sleep(0.2)
        queue.close()
        with pytest.raises(rowq.QueueClosed):
            waiting.result(30)


@pytest.mark.requires("async")
def test_tasks_sharing_a_queue_continue_after_a_loss(
    server: Server, database_url: str, queue_name: str
) -> None:
    async def life() -> tuple[int, int]:
        async with await rowq.connect_async(database_url) as queue:
            await queue.create_queue(queue_name)

            async def work() -> tuple[int, int]:
                done, unknown = 0, 0
                for number in range(CALLS):
                    try:
                        await queue.enqueue(queue_name, number)
                        done += 1
                    except rowq.ConnectionLost:
                        unknown += 1
                    await queue.peek(queue_name)
                return done, unknown

            tasks = [asyncio.create_task(work()) for _ in range(CALLERS)]
            for _ in range(3):
                await asyncio.sleep(0.05)
                session = server.session_id(await queue._session.connection())
                await asyncio.to_thread(server.kill_session, session)
            async with asyncio.timeout(60):
                results = await asyncio.gather(*tasks)
            ready = (await queue.queue_stats(queue_name))[0].ready
            done, unknown = (sum(column) for column in zip(*results, strict=True))
            assert done <= ready <= done + unknown
            return done, unknown

    done, unknown = asyncio.run(life())
    assert done + unknown == CALLERS * CALLS
    assert unknown <= 3


@pytest.mark.requires("async")
def test_task_cancelled_while_queued_harms_no_other(database_url: str, queue_name: str) -> None:
    async def life() -> None:
        async with await rowq.connect_async(database_url) as queue:
            await queue.create_queue(queue_name)
            waiting = asyncio.create_task(queue.dequeue_wait(queue_name, wait_seconds=2))
            await asyncio.sleep(0.1)
            session = queue._session
            assert isinstance(session, AsyncOwnedSession)
            connection = session._connection
            for _ in range(20):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.01):
                        await queue.enqueue(queue_name, "never sent")
            assert await waiting == []
            assert session._connection is connection
            assert await queue.peek(queue_name) == []

    asyncio.run(life())
