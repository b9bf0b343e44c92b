"""Workers with concurrent=True."""

import asyncio
import contextvars
import threading
from typing import Any

import pytest

import rowq
from tests.engines.base import wait_until
from tests.helpers.worker_queue import MakeQueue, WorkerQueue
from tests.helpers.workers import running

CURRENT = contextvars.ContextVar[int]("CURRENT")


@pytest.fixture
def queue(make_queue: MakeQueue) -> WorkerQueue:
    options = {"concurrent": True, "idle_max_seconds": 0.05}
    return make_queue(options, lease_seconds=60, backoff_base_seconds=0, max_attempts=1)


@pytest.mark.slow("waits for time limits")
def test_concurrent_messages_share_one_loop(queue: WorkerQueue) -> None:
    """No handler continues before all have started."""
    queue.fill(20)
    begun: list[int] = []
    all_begun = asyncio.Event()
    threads = set()

    async def handler(message: rowq.Message) -> None:
        CURRENT.set(message.data)
        threads.add(threading.get_ident())
        begun.append(message.data)
        if len(begun) == 20:
            all_begun.set()
        await all_begun.wait()
        assert CURRENT.get() == message.data

    stats = queue.drain(handler, batch_size=20)
    assert (stats.processed, len(threads)) == (20, 1)


def test_concurrent_messages_have_their_own_outcomes(queue: WorkerQueue) -> None:
    queue.alter_queue(max_attempts=2)
    queue.fill(6)
    failed_before: set[int] = set()

    async def handler(message: rowq.Message) -> rowq.Fail | None:
        await asyncio.sleep(0)
        if message.data in failed_before:
            return None
        failed_before.add(message.data)
        match message.data:
            case 1:
                raise SystemExit(1)
            case 2:
                raise asyncio.CancelledError
            case 3:
                raise rowq.Retry(0)
            case 4:
                return rowq.Fail("no")
        return None

    stats = queue.drain(handler)
    assert (stats.processed, stats.retried, stats.failed) == (5, 3, 1)
    assert [dead.last_error for dead in queue.list_dead()] == ["no"]


def test_concurrent_outcomes_are_reported_early(queue: WorkerQueue) -> None:
    queue.fill(3)
    go = threading.Event()

    async def handler(message: rowq.Message) -> None:
        if message.data == 1:
            await asyncio.sleep(1.2)
        while message.data == 2 and not go.is_set():
            await asyncio.sleep(0.01)

    with running(queue.worker(handler)):
        wait_until(lambda: queue.counts()[2] == 1, "two are reported")
        go.set()
        wait_until(lambda: queue.counts()[2] == 0, "the third is reported")


def test_stop_lets_concurrent_handlers_finish(queue: WorkerQueue) -> None:
    queue.fill(5)
    begun, go = [], threading.Event()

    async def handler(message: rowq.Message) -> None:
        begun.append(message.data)
        while not go.is_set():
            await asyncio.sleep(0.01)

    with running(queue.worker(handler)) as started:
        wait_until(lambda: len(begun) == 5, "all have begun")
        started.stop()
        go.set()
    assert started.stats.processed == 5


def test_interrupt_costs_only_its_message_an_attempt(
    queue: WorkerQueue,
) -> None:
    """The other messages are released."""
    queue.fill(3)
    at_work: list[int] = []

    async def handler(message: rowq.Message) -> None:
        if message.data == 1:
            while len(at_work) < 2:
                await asyncio.sleep(0.01)
            raise KeyboardInterrupt
        at_work.append(message.data)
        await asyncio.Event().wait()

    interrupted = queue.worker(handler, drain=True)
    with pytest.raises((KeyboardInterrupt, rowq.WorkerFailed)):
        interrupted.run()
    assert (interrupted.stats.failed, interrupted.stats.released) == (1, 2)
    assert interrupted.stats.stale == 0
    assert [message.attempt for message in queue.peek(max_messages=9)] == [0, 0]


def test_plain_handler_is_not_concurrent(queue: WorkerQueue) -> None:
    queue.fill(3)
    handled: list[int] = []
    stats = queue.drain(lambda message: handled.append(message.data))
    assert (stats.processed, handled) == (3, [0, 1, 2])


@pytest.mark.parametrize("option", [{"transactional": True}, {"per": "batch"}])
def test_concurrent_with_other_options_is_refused(option: dict[str, Any]) -> None:
    with pytest.raises(rowq.InvalidArgument, match="concurrent"):
        rowq.Worker("postgresql://host/db", "q", print, concurrent=True, **option)
