"""Results and progress set by handlers."""

import logging
import time
from collections.abc import Sequence

import pytest

import rowq
from tests.helpers.worker_queue import MakeQueue, WorkerQueue

pytestmark = pytest.mark.requires("results")

each_mode = pytest.mark.parametrize("transactional", [False, True], ids=["plain", "transactional"])


@pytest.fixture
def queue(make_queue: MakeQueue) -> WorkerQueue:
    return make_queue(lease_seconds=60, backoff_base_seconds=0, max_attempts=2, result_seconds=60)


def results(queue: WorkerQueue, ids: list[int]) -> list[object]:
    """Return the results of completed messages."""
    found = [queue.get_result(message_id) for message_id in ids]
    assert {result.state for result in found} == {"completed"}
    return [result.result for result in found]


@each_mode
@pytest.mark.parametrize("batch_size", [1, 4])
@pytest.mark.promise("P32")
def test_result_is_stored_with_the_completion(
    queue: WorkerQueue, transactional: bool, batch_size: int
) -> None:
    ids = queue.fill(9)

    def handle(message: rowq.worker.HeldMessage, *_: object) -> None:
        if message.data % 3:
            message.set_result({"square": message.data**2})

    queue.drain(handle, batch_size=batch_size, transactional=transactional)
    wanted = [{"square": number**2} if number % 3 else None for number in range(9)]
    assert results(queue, ids) == wanted


@each_mode
@pytest.mark.promise("P32")
def test_only_the_completing_attempt_sets_the_result(
    queue: WorkerQueue, transactional: bool
) -> None:
    (message_id,) = queue.fill(1)

    def handle(message: rowq.worker.HeldMessage, *_: object) -> None:
        message.set_result("first")
        if message.attempt == 1:
            raise ValueError("not yet")
        message.set_result("second")

    queue.drain(handle, transactional=transactional)
    assert results(queue, [message_id]) == ["second"]


@each_mode
def test_result_is_logged_if_the_queue_keeps_none(
    queue: WorkerQueue, transactional: bool, caplog: pytest.LogCaptureFixture
) -> None:
    queue.alter_queue(result_seconds=0)
    queue.fill(3)

    def handle(message: rowq.worker.HeldMessage, *_: object) -> None:
        message.set_result(1)

    with caplog.at_level(logging.ERROR, "rowq"):
        stats = queue.drain(handle, transactional=transactional)
    assert (stats.processed, stats.failed) == (3, 0)
    assert "result_seconds" in caplog.text


@pytest.mark.promise("P32")
def test_too_long_result_is_dropped_alone(
    queue: WorkerQueue, caplog: pytest.LogCaptureFixture
) -> None:
    ids = queue.fill(5)

    def handle(messages: Sequence[rowq.worker.HeldMessage]) -> None:
        for message in messages:
            message.set_result("x" * 2_000_000 if message.data == 2 else -message.data)

    with caplog.at_level(logging.ERROR, "rowq"):
        stats = queue.drain(handle, per="batch", batch_size=5)
    assert stats.processed == 5
    assert results(queue, ids) == [0, -1, None, -3, -4]
    assert f"the result of message {ids[2]} is lost" in caplog.text


def test_result_that_is_not_json_is_refused(queue: WorkerQueue) -> None:
    (message_id,) = queue.fill(1)

    def handle(message: rowq.worker.HeldMessage) -> None:
        message.set_result(object())

    stats = queue.drain(handle)
    assert stats.failed == 1
    assert "JSON" in str(queue.get_result(message_id).last_error)


def test_progress_is_sent_by_the_heartbeat(make_queue: MakeQueue) -> None:
    queue = make_queue(lease_seconds=3, max_attempts=1)
    (message_id,) = queue.fill(1)
    seen: list[str | None] = []

    def handle(message: rowq.worker.HeldMessage) -> None:
        message.progress("half of it")
        end = time.monotonic() + 10
        while time.monotonic() < end and not seen:
            with rowq.connect(queue.url) as own:
                details = own.get_message(queue.name, message_id)
            if details is not None and details.progress:
                seen.append(details.progress)
            time.sleep(0.1)

    stats = queue.drain(handle)
    assert seen == ["half of it"]
    assert stats.processed == 1
