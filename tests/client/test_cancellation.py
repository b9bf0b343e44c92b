"""Cancelled calls of an AsyncQueue."""

import asyncio
from typing import Any

import pytest

import rowq
from tests.dice import AGAIN, dice, times

pytestmark = [pytest.mark.requires("async"), pytest.mark.pitfall("postgres 22")]


@pytest.mark.slow("waits for time limits")
@pytest.mark.promise("P01", "P02", "P03")
def test_queue_stays_consistent_after_cancelled_calls(database_url: str, queue_name: str) -> None:
    """A returned message is stored; others may be stored, but only once."""
    drawn = dice("moment of a cancellation")
    sent = times(100)

    async def life() -> None:
        async with await rowq.connect_async(database_url) as queue:
            await queue.create_queue(queue_name)
            answer: dict[int, Any] = {}
            for number in range(sent):
                try:
                    async with asyncio.timeout(drawn.uniform(0.0002, 0.0025)):
                        answer[(await queue.enqueue(queue_name, number)).message_id] = number
                except TimeoutError:
                    assert (await queue.version()).schema_version >= 1
            there: dict[int, Any] = {}
            for _ in range(sent):
                try:
                    async with asyncio.timeout(drawn.uniform(0.0002, 0.0025)):
                        taken = await queue.dequeue_fast(queue_name)
                except TimeoutError:
                    continue
                there |= {message.message_id: message.data for message in taken}
            while taken := await queue.dequeue_fast(queue_name, 100):
                there |= {message.message_id: message.data for message in taken}
            stats = (await queue.queue_stats(queue_name))[0]
            assert stats.ready == 0
            assert len(answer) <= stats.leased <= sent, AGAIN
            assert all(
                answer[message_id] == data
                for message_id, data in there.items()
                if message_id in answer
            ), AGAIN

    asyncio.run(life())


def test_cancelled_wait_takes_no_message(database_url: str, queue_name: str) -> None:
    async def life() -> None:
        async with await rowq.connect_async(database_url) as queue:
            await queue.create_queue(queue_name)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await queue.dequeue_wait(queue_name, wait_seconds=60)
            await queue.enqueue(queue_name, 1)
            await asyncio.sleep(0.5)
            assert len(await queue.peek(queue_name)) == 1

    asyncio.run(life())


def test_call_cancelled_twice_leaves_a_usable_connection(
    database_url: str, queue_name: str
) -> None:
    async def life() -> None:
        async with await rowq.connect_async(database_url) as queue:
            await queue.create_queue(queue_name)
            for pause in (0.0, 0.0005, 0.001, 0.002):
                task = asyncio.create_task(queue.dequeue_wait(queue_name, wait_seconds=60))
                await asyncio.sleep(0.05)
                task.cancel()
                await asyncio.sleep(pause)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert (await queue.version()).schema_version >= 1

    asyncio.run(life())
