"""Decisions of rowq's own handlers: Release and GiveUp."""

import threading

import pytest

import rowq
from rowq.worker.claim import HeldMessage
from rowq.worker.handlers import GiveUp, Release
from tests.helpers.worker_queue import MakeQueue, WorkerQueue


@pytest.fixture
def queue(make_queue: MakeQueue) -> WorkerQueue:
    queue = make_queue(max_attempts=1)
    for n in range(3):
        queue.enqueue(n)
    return queue


def attempts(queue: WorkerQueue) -> dict[int, int]:
    """Return the attempts of ready messages by body."""
    return {message.data: message.attempt for message in queue.peek(max_messages=10)}


@pytest.mark.slow("waits for time limits")
@pytest.mark.parametrize("transactional", [False, True])
def test_released_message_spends_no_attempt(queue: WorkerQueue, transactional: bool) -> None:
    worker: rowq.Worker

    def handler(message: rowq.Message, *_: object) -> None:
        if message.data == 1:
            raise Release
        if message.data == 2:
            worker.stop()

    worker = queue.worker(handler, transactional=transactional)
    stats = worker.run()
    assert (stats.processed, stats.released) == (2, 1)
    assert attempts(queue) == {1: 0}


def test_give_up_ends_the_worker_and_loses_nothing(
    queue: WorkerQueue,
) -> None:
    def handler(message: rowq.Message) -> None:
        if message.data == 1:
            raise GiveUp("no program")

    worker = queue.worker(handler)
    with pytest.raises(rowq.WorkerFailed, match="no program"):
        worker.run()
    assert (worker.stats.processed, worker.stats.released) == (1, 2)
    assert attempts(queue) == {1: 0, 2: 0}


def test_nested_worker_failure_costs_one_attempt(database_url: str, queue: WorkerQueue) -> None:
    def handler(message: rowq.Message) -> None:
        if message.data == 1:
            rowq.Worker(database_url, f"no {queue.name}"[:100], print).run()

    stats = queue.drain(handler)
    assert (stats.processed, stats.failed) == (2, 1)
    (dead,) = queue.list_dead()
    assert "WorkerFailed" in str(dead.last_error)


def test_handler_can_wait_for_the_stop(queue: WorkerQueue) -> None:
    answer: list[bool] = []
    worker: rowq.Worker

    def handler(message: HeldMessage) -> None:
        answer.append(message.is_stopping())
        threading.Timer(0.1, worker.stop).start()
        answer.append(message.is_stopping(within_seconds=30))

    worker = queue.worker(handler)
    assert worker.run().processed == 1
    assert answer == [False, True]
    assert attempts(queue) == {1: 0, 2: 0}
