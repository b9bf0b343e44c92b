"""Handlers that exceed timeout_seconds."""

import asyncio
import contextlib
import random
import sys
import threading
import time
from collections.abc import Callable
from cProfile import Profile
from datetime import datetime
from typing import Any

import pytest

import rowq
from rowq.worker import timeouts
from rowq.worker.batching import BatchSize
from rowq.worker.claim import LiveClaim
from rowq.worker.handlers import COMPLETED
from rowq.worker.handling import HandlerCaller
from rowq.worker.timeouts import HandlerHung
from tests.engines.base import wait_until
from tests.helpers.worker_queue import MakeQueue, WorkerQueue

each_mode = pytest.mark.parametrize("transactional", [False, True])


@pytest.fixture
def queue(make_queue: MakeQueue) -> WorkerQueue:
    """Return a queue with a timeout of 0.5 s and delayed retries."""
    return make_queue({"timeout_seconds": 0.5}, lease_seconds=60, backoff_base_seconds=900)


def work_on(*_: Any) -> None:
    """Loop forever in Python code."""
    while True:
        time.sleep(0.01)


def error_of(queue: WorkerQueue, message_id: int) -> str:
    return queue.details_of(message_id).last_error or ""


@each_mode
def test_timed_out_handler_is_ended_and_retried(queue: WorkerQueue, transactional: bool) -> None:
    ids = queue.fill(3)

    def handler(message: rowq.HeldMessage, *_: Any) -> None:
        if message.data == 1:
            work_on()

    stats = queue.drain(handler, transactional=transactional)
    assert (stats.processed, stats.retried, stats.failed) == (2, 1, 0)
    assert queue.counts() == (0, 1, 0, 0)
    error = error_of(queue, ids[1])
    assert error.endswith("HandlerTimedOut: the handler took longer than 0.5 s")
    assert "in work_on" in error


def interrupt_after(seconds: float) -> None:
    """End a call before or after the exception is raised."""
    call = timeouts.Call([], 0)
    with contextlib.suppress(rowq.HandlerTimedOut):
        call.allow()
        threading.Thread(target=call.interrupt).start()
        wait_until(lambda: call.has_interrupted, "it is interrupted")
        time.sleep(seconds)
    with contextlib.suppress(rowq.HandlerTimedOut):
        call.forbid()


@pytest.mark.timeout(60)
def test_profiler_works_after_a_timeout(queue: WorkerQueue) -> None:
    """In CPython 3.11 a profiled call did not return after its pending exception was cleared."""
    queue.fill(2)
    assert queue.drain(work_on).retried == 2
    interrupt_after(0.0)
    interrupt_after(0.01)
    with Profile() as profile:
        error_of(queue, queue.list_delayed()[0].message_id)
    assert len(profile.getstats()) > 10


def test_timed_out_transaction_is_rolled_back(queue: WorkerQueue) -> None:
    ids = queue.fill(2)

    def handler(message: rowq.HeldMessage, own: Any) -> None:
        rowq.Queue(own).enqueue(queue.name, "effect", delay_seconds=900)
        if message.data == 1:
            work_on()

    stats = queue.drain(handler, transactional=True)
    assert (stats.processed, stats.retried) == (1, 1)
    assert [message.message_id for message in queue.list_delayed()].count(ids[1]) == 1
    assert len(queue.list_delayed()) == 2


def test_timed_out_handler_may_decide(queue: WorkerQueue) -> None:
    queue.fill(3)

    def handler(message: rowq.HeldMessage) -> Any:
        try:
            work_on()
        except rowq.HandlerTimedOut:
            assert message.timed_out
            return [None, rowq.Fail("too long"), rowq.Retry(900)][message.data]

    stats = queue.drain(handler)
    assert (stats.processed, stats.failed, stats.retried) == (1, 1, 1)


def test_except_exception_does_not_hide_the_timeout(queue: WorkerQueue) -> None:
    queue.fill(1)

    def handler(_message: rowq.HeldMessage) -> None:
        while True:
            with contextlib.suppress(Exception):
                work_on()

    assert queue.drain(handler).retried == 1


def test_timed_out_task_is_cancelled(queue: WorkerQueue) -> None:
    ids = queue.fill(2)
    cancelled: list[int] = []

    async def handler(message: rowq.HeldMessage) -> None:
        try:
            await asyncio.sleep(0 if message.data else 3600)
        except asyncio.CancelledError:
            cancelled.append(message.data)
            raise

    stats = queue.drain(handler)
    assert (stats.processed, stats.retried, cancelled) == (1, 1, [0])
    assert error_of(queue, ids[0]).endswith("HandlerTimedOut: the handler took longer than 0.5 s")


def test_timeout_error_of_a_handler_is_kept(queue: WorkerQueue) -> None:
    ids = queue.fill(1)

    async def handler(_message: rowq.HeldMessage) -> None:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(3600)

    assert queue.drain(handler).retried == 1
    assert error_of(queue, ids[0]).endswith("TimeoutError")


def test_concurrent_handlers_have_their_own_timeout(queue: WorkerQueue) -> None:
    ids = queue.fill(5)

    async def handler(message: rowq.HeldMessage) -> None:
        await asyncio.sleep(3600 if message.data == 3 else 0.01)

    stats = queue.drain(handler, concurrent=True)
    assert (stats.processed, stats.retried) == (4, 1)
    assert "took longer than 0.5 s" in error_of(queue, ids[3])


def test_batch_has_one_timeout(queue: WorkerQueue) -> None:
    queue.fill(3)
    assert queue.drain(work_on, per="batch").retried == 3


@pytest.fixture
def hung_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeouts, "_HUNG_SECONDS", 0.5)


def hang(kind: str, go: threading.Event) -> Callable[..., Any]:
    """Return a handler that hangs with message 1 until `go` is set."""

    def handler(message: rowq.HeldMessage, *_: Any) -> None:
        if message.data == 1:
            # Waits in C code.
            go.wait()

    async def blocking(message: rowq.HeldMessage) -> None:
        handler(message)

    return blocking if kind == "blocks its loop" else handler


@pytest.mark.usefixtures("hung_soon")
@pytest.mark.parametrize("kind", ["plain", "blocks its loop"])
def test_lease_of_a_hanging_handler_is_ended(queue: WorkerQueue, kind: str) -> None:
    ids = queue.fill(3)
    go = threading.Event()
    worker = queue.worker(hang(kind, go))
    with pytest.raises(
        rowq.WorkerFailed, match=r"has not ended 0\.5 s after its timeout"
    ) as failed:
        worker.run()
    assert isinstance(failed.value.__cause__, HandlerHung)
    assert str(ids[1]) in str(failed.value)
    # The first is completed and the last released; neither waits for the lease.
    assert queue.counts() == (1, 1, 0, 0)
    assert "has not ended 0.5 s after its timeout" in error_of(queue, ids[1])
    assert (worker.stats.processed, worker.stats.retried, worker.stats.released) == (1, 1, 1)
    go.set()
    wait_until(
        lambda: all(thread.name != "rowq-consumer" for thread in threading.enumerate()),
        "the thread of the handler has ended",
    )
    assert queue.counts() == (1, 1, 0, 0)


@pytest.mark.usefixtures("hung_soon")
def test_transaction_of_a_hung_handler_is_not_committed(queue: WorkerQueue) -> None:
    (message_id,) = queue.fill(1)
    go = threading.Event()

    def handler(_message: rowq.HeldMessage, own: Any) -> None:
        rowq.Queue(own).enqueue(queue.name, "effect")
        with contextlib.suppress(rowq.HandlerTimedOut):
            go.wait()

    with pytest.raises(rowq.WorkerFailed, match="has not ended"):
        queue.worker(handler, transactional=True).run()
    assert queue.details_of(message_id).state == "delayed"
    go.set()
    wait_until(
        lambda: all(thread.name != "rowq-consumer" for thread in threading.enumerate()),
        "the thread of the handler has ended",
    )
    assert queue.counts() == (0, 1, 0, 0)


@pytest.mark.slow("waits for time limits")
def test_timeout_is_raised_only_in_the_handler() -> None:
    """Many calls time out just as they end."""
    noon = datetime.now().astimezone()
    worker = rowq.Worker("postgresql://host/db", "q", print, timeout_seconds=0.001)
    row = (1, 2, 3, None, None, "", None, noon, noon, None)
    context = worker._context
    claim = LiveClaim(context, context.stripes[0], [row], time.monotonic(), 30, BatchSize(1))
    dice = random.Random(0)
    ended = threading.Event()

    def watch() -> None:
        while not ended.is_set():
            context.timeouts.check()

    def handler(_message: rowq.HeldMessage) -> None:
        until = time.monotonic() + dice.uniform(0.0008, 0.0012)
        while time.monotonic() < until:
            pass

    watcher = threading.Thread(target=watch)
    interval = sys.getswitchinterval()  # 5 ms: longer than a call, so the watcher may never run.
    sys.setswitchinterval(0.0001)
    try:
        watcher.start()
        caller = HandlerCaller(context, handler)
        outcomes = [caller.call(claim.messages) for _ in range(2000)]
    finally:
        sys.setswitchinterval(interval)
        ended.set()
        watcher.join()
    timed_out = [outcome.timed_out for outcome in outcomes]
    assert 0 < sum(timed_out) < 2000
    assert all(outcome.timed_out or outcome.decisions == {2: COMPLETED} for outcome in outcomes)
    assert not context.timeouts.check()


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), "1", True])
def test_invalid_timeout_is_refused(seconds: Any) -> None:
    with pytest.raises(rowq.InvalidArgument, match="timeout_seconds must be greater than 0"):
        rowq.Worker("postgresql://host/db", "q", print, timeout_seconds=seconds)
