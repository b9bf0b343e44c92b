"""A worker whose asynchronous handlers run together, those of one claim in one event loop."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import Any

import pytest

import rowq
from tests.client.test_worker import fill, running
from tests.engines.base import Connection, wait_until

CURRENT = contextvars.ContextVar[int]("CURRENT")


@pytest.fixture
def queue(connection: Connection, queue_name: str) -> rowq.Queue:
    queue = rowq.Queue(connection)
    queue.create_queue(queue_name, lease_seconds=60, backoff_base_seconds=0, max_attempts=1)
    return queue


def worker(url: str, queue_name: str, handler: Any, **options: Any) -> rowq.Worker:
    given = {"concurrent": True, "drain": True, "idle_max_seconds": 0.05, **options}
    return rowq.Worker(url, queue_name, handler, **given)


def test_the_messages_of_a_claim_are_handled_together_in_one_loop(
    database_url: str, queue: rowq.Queue, queue_name: str
) -> None:
    """No handler goes on before all of them have begun."""
    fill(queue, queue_name, 20)
    begun: list[int] = []
    everybody = asyncio.Event()
    threads = set()

    async def handler(message: rowq.Message) -> None:
        CURRENT.set(message.data)
        threads.add(threading.get_ident())
        begun.append(message.data)
        if len(begun) == 20:
            everybody.set()
        await everybody.wait()
        assert CURRENT.get() == message.data

    stats = worker(database_url, queue_name, handler, batch_size=20).run()
    assert (stats.processed, len(threads)) == (20, 1)


def test_each_message_has_the_outcome_that_its_own_handler_decides(
    database_url: str, queue: rowq.Queue, queue_name: str
) -> None:
    queue.alter_queue(queue_name, max_attempts=2)
    fill(queue, queue_name, 6)
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

    stats = worker(database_url, queue_name, handler).run()
    assert (stats.processed, stats.retried, stats.failed) == (5, 3, 1)
    assert [dead.last_error for dead in queue.list_dead(queue_name)] == ["no"]


def test_what_is_done_is_handed_in_while_others_go_on(
    database_url: str, queue: rowq.Queue, queue_name: str
) -> None:
    fill(queue, queue_name, 3)
    go = threading.Event()

    async def handler(message: rowq.Message) -> None:
        if message.data == 1:
            await asyncio.sleep(1.2)
        while message.data == 2 and not go.is_set():
            await asyncio.sleep(0.01)

    with running(worker(database_url, queue_name, handler, drain=False)):
        wait_until(lambda: queue.queue_stats(queue_name)[0].leased == 1, "two are handed in")
        go.set()
        wait_until(lambda: queue.queue_stats(queue_name)[0].leased == 0, "the third is, too")


def test_a_worker_that_is_stopped_lets_all_that_has_begun_finish(
    database_url: str, queue: rowq.Queue, queue_name: str
) -> None:
    fill(queue, queue_name, 5)
    begun, go = [], threading.Event()

    async def handler(message: rowq.Message) -> None:
        begun.append(message.data)
        while not go.is_set():
            await asyncio.sleep(0.01)

    with running(worker(database_url, queue_name, handler, drain=False)) as started:
        wait_until(lambda: len(begun) == 5, "all have begun")
        started.stop()
        go.set()
    assert started.stats.processed == 5


def test_an_interrupt_costs_its_own_message_an_attempt_and_the_others_nothing(
    database_url: str, queue: rowq.Queue, queue_name: str
) -> None:
    """The others were at work, and are given back."""
    fill(queue, queue_name, 3)
    at_work: list[int] = []

    async def handler(message: rowq.Message) -> None:
        if message.data == 1:
            while len(at_work) < 2:
                await asyncio.sleep(0.01)
            raise KeyboardInterrupt
        at_work.append(message.data)
        await asyncio.Event().wait()

    interrupted = worker(database_url, queue_name, handler)
    with pytest.raises((KeyboardInterrupt, rowq.WorkerFailed)):
        interrupted.run()
    assert (interrupted.stats.failed, interrupted.stats.released) == (1, 2)
    assert interrupted.stats.stale == 0
    assert [message.attempt for message in queue.peek(queue_name, 9)] == [0, 0]


def test_a_handler_that_is_not_asynchronous_handles_one_after_the_other(
    database_url: str, queue: rowq.Queue, queue_name: str
) -> None:
    fill(queue, queue_name, 3)
    handled: list[int] = []
    stats = worker(database_url, queue_name, lambda message: handled.append(message.data)).run()
    assert (stats.processed, handled) == (3, [0, 1, 2])


@pytest.mark.parametrize("option", [{"transactional": True}, {"per": "batch"}])
def test_what_does_not_go_together_is_refused(option: dict[str, Any]) -> None:
    with pytest.raises(rowq.InvalidArgument, match="concurrent"):
        worker("postgresql://host/db", "q", print, **option)
