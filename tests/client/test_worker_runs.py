"""Runs of a worker: repeated runs, their ends, and freed memory."""

import gc
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import rowq
from rowq.worker.claim import HeldMessage, LiveClaim
from rowq.worker.context import log
from rowq.worker.transactional import TransactionalWork
from tests.engines.base import wait_until
from tests.helpers.worker_queue import MakeQueue, WorkerQueue
from tests.helpers.workers import running

each_mode = pytest.mark.parametrize("transactional", [False, True], ids=["plain", "transactional"])


@pytest.fixture
def queue(make_queue: MakeQueue) -> WorkerQueue:
    return make_queue(lease_seconds=60, backoff_base_seconds=0)


def threads_of_workers() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("rowq-")]


@pytest.mark.slow("waits for time limits")
@pytest.mark.parametrize("processes", [0, 1])
def test_second_run_works(queue: WorkerQueue, processes: int) -> None:
    worker = queue.worker("tests.client.handlers:nothing", drain=True, processes=processes)
    for count in (2, 3):
        queue.fill(count)
        assert worker.run().processed == count
        assert worker.stats.processed == count


@pytest.mark.parametrize("has_failed", [False, True])
def test_second_run_can_be_stopped(queue: WorkerQueue, has_failed: bool) -> None:
    worker = queue.worker(lambda _message: None)
    if has_failed:
        queue.drop_queue(force=True)
        with pytest.raises(rowq.WorkerFailed, match="RQ701"):
            worker.run()
        queue.create_queue()
    for _ in range(2):
        queue.fill(1)
        with running(worker):
            wait_until(lambda: worker.stats.processed == 1, "it works")
    assert threads_of_workers() == []


@pytest.mark.parametrize("runs", [0, 1])
def test_stop_before_a_run_ends_only_that_run(queue: WorkerQueue, runs: int) -> None:
    worker = queue.worker(lambda _message: None, drain=True)
    for _ in range(runs):
        worker.run()
    queue.fill(1)
    worker.stop()
    assert worker.run().processed == 0
    assert worker.run().processed == 1


def test_stop_after_a_failed_run_ends_no_later_run(queue: WorkerQueue) -> None:
    worker = queue.worker(lambda _message: None, drain=True)
    queue.drop_queue(force=True)
    for _ in range(2):
        with pytest.raises(rowq.WorkerFailed, match="RQ701"):
            worker.run()
        worker.stop()
    queue.create_queue()
    queue.fill(1)
    assert worker.run().processed == 1
    queue.fill(1)
    worker.stop()
    assert worker.run().processed == 0


def test_parallel_run_is_refused(queue: WorkerQueue) -> None:
    queue.fill(1)
    worker = queue.worker(lambda _message: None)
    with running(worker):
        wait_until(lambda: worker.stats.processed == 1, "it works")
        with pytest.raises(rowq.WorkerFailed, match="already running"):
            worker.run()
        queue.fill(1)
        wait_until(lambda: worker.stats.processed == 2, "it works on")


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
def test_run_without_threads_leaves_none_behind(
    queue: WorkerQueue, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    ids = queue.fill(10)
    start = threading.Thread.start
    started: list[str] = []

    def starts_some(thread: threading.Thread) -> None:
        if thread.name.startswith("rowq-"):
            started.append(thread.name)
            if len(started) == number:
                raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", starts_some)
    worker = queue.worker(lambda _message: None, threads=3)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        worker.run()
    assert started[0] == "rowq-heartbeat"
    assert threads_of_workers() == []
    stats = queue.queue_stats()[0]
    assert (stats.leased, stats.ready) == (0, len(ids) - worker.stats.processed)


class Fault(BaseException):
    """An error of rowq itself."""


@pytest.mark.promise("P02")
@pytest.mark.parametrize(
    ("transactional", "place", "call", "done"),
    [(False, LiveClaim, "is_held", 2), (True, TransactionalWork, "_report", 0)],
    ids=["plain", "transactional"],
)
def test_dying_thread_reports_and_releases(
    queue: WorkerQueue,
    monkeypatch: pytest.MonkeyPatch,
    transactional: bool,
    place: type,
    call: str,
    done: int,
) -> None:
    queue.fill(4)
    original = getattr(place, call)
    calls: list[int] = []

    def dies(*args: Any) -> Any:
        calls.append(1)
        if len(calls) > done:
            raise Fault("here")
        return original(*args)

    monkeypatch.setattr(place, call, dies)
    worker = queue.worker(lambda *_: None, transactional=transactional, drain=True)
    with pytest.raises(rowq.WorkerFailed, match="Fault: here"):
        worker.run()
    stats = queue.queue_stats()[0]
    assert (stats.leased, stats.ready) == (0, 4 - done)
    assert worker.stats.processed == done
    assert [message.attempt for message in queue.peek(max_messages=5)] == [0] * stats.ready


Count = Callable[[type], int]


@contextmanager
def without_collector() -> Iterator[Count]:
    """Disable the garbage collector; yield a function that counts new objects."""

    def alive(kind: type) -> int:
        return sum(type(thing) is kind for thing in gc.get_objects())

    gc.collect()
    gc.disable()
    # Hide existing objects: a process with all tests has millions.
    gc.freeze()
    try:
        yield alive
    finally:
        gc.unfreeze()
        gc.enable()


@each_mode
@pytest.mark.parametrize("per", ["message", "batch"])
def test_handled_messages_are_freed(
    queue: WorkerQueue, monkeypatch: pytest.MonkeyPatch, per: Any, transactional: bool
) -> None:
    # pytest keeps log records with their tracebacks.
    monkeypatch.setattr(log, "propagate", False)
    monkeypatch.setattr(logging, "lastResort", None)
    queue.fill(12)
    most: list[int] = []

    def handler(given: Any, *_: Any) -> None:
        most.append(alive(HeldMessage))
        number = (given[0] if per == "batch" else given).data
        if number == 3:
            raise rowq.Retry(900)
        if number == 5:
            raise ValueError("kept with its traceback")

    with without_collector() as alive:
        stats = queue.drain(handler, batch_size=1, per=per, transactional=transactional)
        assert stats.processed == 10
        assert max(most) <= 2
        assert alive(HeldMessage) == alive(LiveClaim) == 0


def test_idle_worker_keeps_no_message(queue: WorkerQueue) -> None:
    queue.fill(3)
    worker = queue.worker(lambda _message: None)
    with without_collector() as alive, running(worker):
        wait_until(lambda: worker.stats.processed == 3, "all are handled")
        wait_until(lambda: alive(HeldMessage) == 0, "they are gone")


ARGUMENTS: dict[str, Any] = {"url": "postgresql://host/db", "queue_name": "q", "handler": print}


@pytest.mark.parametrize(
    "options",
    [
        {"per": "page"},
        {"batch_size": 0},
        {"threads": 0},
        {"processes": -1},
        {"idle_min_seconds": 0},
        {"idle_max_seconds": 0.001},
        {"maintain_seconds": -1},
        {"lease_seconds": 0},
        {"lease_seconds": 86401},
        {"lease_seconds": 2.5},
        {"lease_seconds": "60"},
        {"lease_seconds": True},
        {"batch_size": 1001},
        {"batch_size": 2.0},
        {"threads": 1.5},
        {"threads": "2"},
        {"processes": None},
        {"idle_min_seconds": float("nan")},
        {"idle_max_seconds": float("nan")},
        {"idle_max_seconds": "1"},
        {"maintain_seconds": float("nan")},
        {"maintain_seconds": None},
        {"queue_name": ""},
        {"queue_name": "q" * 101},
        {"queue_name": 5},
        {"worker_name": "w" * 201},
        {"worker_name": "w" * 199, "threads": 10},
        {"worker_name": "w" * 199, "processes": 10},
        {"worker_name": 5},
    ],
    ids=lambda options: str(options)[:40],
)
def test_out_of_range_worker_arguments_are_refused(
    options: dict[str, Any],
) -> None:
    with pytest.raises(rowq.InvalidArgument):
        rowq.Worker(**(ARGUMENTS | options))
    with pytest.raises(rowq.EngineUnknown):
        rowq.Worker("host/db", "q", print)


def test_limits_of_worker_arguments_are_accepted() -> None:
    taken: list[dict[str, Any]] = [
        {"lease_seconds": 1, "batch_size": 1, "worker_name": ""},
        {"lease_seconds": 86400, "batch_size": 1000, "worker_name": "w" * 200},
        {"idle_max_seconds": float("inf"), "maintain_seconds": 0},
        {"queue_name": "q" * 100, "worker_name": "w" * 196, "threads": 9, "processes": 1},
    ]
    for options in taken:
        assert rowq.Worker(**(ARGUMENTS | options)).stats.processed == 0
