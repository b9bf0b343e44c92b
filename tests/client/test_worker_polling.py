"""Polling by the idle threads of a worker."""

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import rowq
from rowq.engines import engine_for_url
from rowq.errors import CannotConnect
from rowq.worker import polling
from rowq.worker.polling import NotificationDelay, Polling, PollingTurn, Turn
from tests.engines.base import wait_until
from tests.helpers.worker_queue import MakeQueue, WorkerQueue
from tests.helpers.workers import running

HOUR = 3600.0
RARELY = {"idle_min_seconds": HOUR, "idle_max_seconds": HOUR}
"""Options of a worker that polls once an hour."""


class Idle:
    """Threads that wait for one turn, record it, and pass it on after `go`."""

    def __init__(self, shared: Polling, count: int) -> None:
        self.polled: list[int] = []
        self.go = threading.Semaphore(0)
        self.threads = [
            threading.Thread(target=self._run, args=(shared, number), daemon=True)
            for number in range(count)
        ]
        for thread in self.threads:
            thread.start()

    def _run(self, shared: Polling, number: int) -> None:
        turn = PollingTurn(shared)
        if turn.wait() is Turn.POLL:
            self.polled.append(number)
            self.go.acquire()
            turn.pass_on()


def all_idle(shared: Polling, count: int) -> None:
    """Wait until one thread polls and the others wait for it."""

    def idle_now() -> bool:
        return shared._poller is not None and shared._waiting == count - 1

    wait_until(idle_now, "all threads are idle")


@contextmanager
def idle(shared: Polling, count: int) -> Iterator[Idle]:
    threads = Idle(shared, count)
    try:
        all_idle(shared, count)
        yield threads
    finally:
        shared.end()
        for _ in threads.threads:
            threads.go.release()
        for thread in threads.threads:
            thread.join(30)
    assert not any(thread.is_alive() for thread in threads.threads)


def test_end_wakes_every_thread() -> None:
    with idle(Polling(HOUR, HOUR), 20) as threads:
        assert threads.polled == []


def test_thread_that_finds_messages_wakes_the_next() -> None:
    shared = Polling(HOUR, HOUR)
    with idle(shared, 5) as threads:
        shared.hurry()
        for _ in range(5):
            threads.go.release()
        wait_until(lambda: len(threads.polled) == 5, "each has polled")
        assert sorted(threads.polled) == list(range(5))


def test_one_thread_polls_at_a_time() -> None:
    shared = Polling(0.001, 0.001)
    with idle(shared, 10) as threads:
        wait_until(lambda: len(threads.polled) == 1, "one polls")
        wait_until(lambda: shared._waiting == 9, "the others wait")
        assert len(threads.polled) == 1


def test_notification_during_a_poll_repeats_it() -> None:
    shared = Polling(HOUR, HOUR)
    turn = PollingTurn(shared)
    answers: list[Turn] = []

    def poll_twice() -> None:
        answers.append(turn.wait())
        shared.hurry()
        answers.append(turn.wait())

    thread = threading.Thread(target=poll_twice, daemon=True)
    thread.start()
    wait_until(lambda: shared._poller is turn, "it polls")
    shared.hurry()
    thread.join(30)
    assert answers == [Turn.POLL, Turn.POLL]


def test_notification_is_kept_for_the_next_idle_thread() -> None:
    shared = Polling(HOUR, HOUR)
    shared.hurry()
    turn = PollingTurn(shared)
    thread = threading.Thread(target=turn.wait, daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()


def test_hanging_poll_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polling, "_STUCK_SECONDS", 0.2)
    with idle(Polling(0.001, 0.001), 3) as threads:
        wait_until(lambda: len(threads.polled) == 3, "each polls while the earlier ones hang")
        assert sorted(threads.polled) == [0, 1, 2]


def test_listening_process_knows_when_all_is_polled() -> None:
    shared = Polling(HOUR, HOUR)
    before = time.monotonic()
    assert not shared.has_polled_all_since(before)
    shared.begin_listening(HOUR)
    assert not shared.has_polled_all_since(before)
    since = time.monotonic()
    assert shared.has_polled_all_since(since)
    shared.notify()
    assert not shared.has_polled_all_since(since)
    PollingTurn(shared).wait()
    assert shared.has_polled_all_since(since)
    shared.end_listening()
    assert not shared.has_polled_all_since(since)


@pytest.mark.parametrize(("is_listening", "is_doubted"), [(True, True), (False, False)])
def test_message_without_notification_raises_doubt(is_listening: bool, is_doubted: bool) -> None:
    shared = Polling(0.001, 0.001)
    if is_listening:
        shared.begin_listening(0.001)
    turn = PollingTurn(shared)
    shared.notify()
    turn.wait()
    turn.record_answer(found=True)
    assert not shared.is_doubted
    turn.wait()
    turn.record_answer(found=False)
    assert not shared.is_doubted
    turn.wait()
    turn.record_answer(found=True)
    assert shared.is_doubted is is_doubted


def test_fruitless_notifications_grow_the_delay() -> None:
    notification_delay = NotificationDelay()
    lengths = []
    for found in (False, True, False, False, False, False, False, False, False):
        notification_delay.record(found)
        lengths.append(notification_delay.seconds)
    assert lengths == [0, 0, 0, 0.002, 0.004, 0.008, 0.016, 0.025, 0.025]
    for _ in range(3):
        notification_delay.record(found=True)
    assert notification_delay.seconds == 0


class Calls:
    """Counter of an engine's dequeues by thread, which may block them."""

    def __init__(self, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        engine = engine_for_url(database_url)
        self.polls: list[threading.Thread] = []
        self.before: Callable[[], None] = lambda: None
        self.before_connect: Callable[[], None] = lambda: None
        call, connect = engine.call, engine.connect

        def counted(connection: Any, routine: str, arguments: Any) -> Any:
            if routine == "dequeue_fast" and threading.current_thread().name == "rowq-consumer":
                self.polls.append(threading.current_thread())
                self.before()
            return call(connection, routine, arguments)

        def reconnect(url: str) -> Any:
            self.before_connect()
            return connect(url)

        monkeypatch.setattr(engine, "call", counted)
        monkeypatch.setattr(engine, "connect", reconnect)


@pytest.fixture
def calls(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Calls:
    return Calls(database_url, monkeypatch)


@pytest.fixture
def queue(make_queue: MakeQueue) -> WorkerQueue:
    return make_queue(lease_seconds=60)


@contextmanager
def working(worker: rowq.Worker) -> Iterator[Polling]:
    """Run the worker in a thread; start when all its threads are idle."""
    shared = worker._context.polling
    with running(worker):
        all_idle(shared, worker._context.settings.threads)
        yield shared


def test_twenty_idle_threads_poll_as_rarely_as_one(queue: WorkerQueue, calls: Calls) -> None:
    assert queue.peek() == []
    with working(queue.worker(print, threads=20, listen=False)):
        # The threads poll 20 times at the start, then after pauses that grow to 0.05 s.
        wait_until(lambda: len(calls.polls) >= 24, "the pauses are long")
        began_at, before = time.monotonic(), len(calls.polls)
        wait_until(lambda: len(calls.polls) >= before + 16, "it continues to poll")
        count, seconds = len(calls.polls) - before, time.monotonic() - began_at
        polls = calls.polls[before:]
    assert count / seconds < 20
    assert len(set(polls)) == 1


def test_idle_worker_starts_within_the_longest_pause(queue: WorkerQueue, calls: Calls) -> None:
    begun = threading.Event()
    worker = queue.worker(lambda _message: begun.set(), threads=5, idle_max_seconds=0.25)
    with working(worker):
        wait_until(lambda: len(calls.polls) >= 10, "the pauses are long")
        queue.enqueue(1)
        committed_at, before = time.monotonic(), len(calls.polls)
        assert begun.wait(30)
        count, seconds = len(calls.polls) - before, time.monotonic() - committed_at
    # The next poll finds the message, or the one after it.
    assert count <= 3
    assert seconds < 2


@pytest.mark.parametrize("batch_size", [1, 10])
def test_burst_is_handled_by_every_thread(queue: WorkerQueue, batch_size: int) -> None:
    together = threading.Barrier(5)
    calls = itertools.count()
    seen: list[int] = []

    def handler(messages: list[rowq.Message]) -> None:
        if next(calls) < 5:
            together.wait(60)
        seen.extend(message.data for message in messages)

    worker = queue.worker(
        handler,
        per="batch",
        threads=5,
        batch_size=batch_size,
        **RARELY,
    )
    with working(worker) as shared:
        queue.fill(100)
        shared.hurry()
        wait_until(lambda: worker.stats.processed == 100, "all of it is done", 60)
    assert sorted(seen) == list(range(100))


def test_reconnecting_thread_passes_the_polling_on(queue: WorkerQueue, calls: Calls) -> None:
    broken: list[threading.Thread] = []
    seen: list[threading.Thread] = []

    def break_once() -> None:
        if not broken:
            broken.append(threading.current_thread())
            raise CannotConnect("the connection is gone")

    def stay_broken() -> None:
        if threading.current_thread() in broken:
            raise CannotConnect("still away")

    worker = queue.worker(lambda _message: seen.append(threading.current_thread()), threads=3)
    with working(worker):
        calls.before_connect = stay_broken
        calls.before = break_once
        wait_until(lambda: bool(broken), "one loses its connection")
        queue.enqueue(1)
        wait_until(lambda: bool(seen), "another one has the message")
        calls.before_connect = lambda: None
    assert seen[0] not in broken


def test_hanging_thread_passes_the_polling_on(
    queue: WorkerQueue, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polling, "_STUCK_SECONDS", 0.2)
    hanging: list[threading.Thread] = []
    seen: list[threading.Thread] = []
    answered = threading.Event()

    def hang_once() -> None:
        if not hanging:
            hanging.append(threading.current_thread())
            answered.wait(60)

    worker = queue.worker(lambda _message: seen.append(threading.current_thread()), threads=3)
    with working(worker):
        calls.before = hang_once
        wait_until(lambda: bool(hanging), "one has no answer")
        queue.enqueue(1)
        wait_until(lambda: bool(seen), "another one has the message")
        answered.set()
    assert seen[0] not in hanging


def test_failing_thread_ends_the_worker(queue: WorkerQueue) -> None:
    dropped = threading.Event()

    def on_progress(_stats: rowq.WorkerStats) -> None:
        if worker._context.polling._waiting == 4 and not dropped.is_set():
            queue.drop_queue()
            dropped.set()
            worker._context.polling.hurry()

    worker = queue.worker(
        print,
        threads=5,
        maintain_seconds=0,
        on_progress=on_progress,
        **RARELY,
    )
    with pytest.raises(rowq.WorkerFailed, match="RQ701"):
        worker.run()


def test_resumed_queue_is_handled(queue: WorkerQueue) -> None:
    queue.pause_queue()
    queue.enqueue(1)
    worker = queue.worker(lambda _message: None, threads=3)
    with working(worker):
        assert worker.stats.processed == 0
        queue.resume_queue()
        wait_until(lambda: worker.stats.processed == 1, "the message is handled")


@pytest.mark.parametrize("url", ["postgresql:", "mariadb:", "mysql:", "sqlserver:", "oracle:"])
def test_idle_process_polls_10_to_20_times_a_second(url: str) -> None:
    worker = rowq.Worker(f"{url}//user@host/database", "orders", print, threads=50, listen=False)
    pauses = worker._context.polling._pauses
    pauses.next()
    drawn = [pauses.next() for _ in range(1000)]
    assert min(drawn) >= 0.05
    assert max(drawn) <= 0.1


def test_listen_requires_postgres() -> None:
    with pytest.raises(rowq.InvalidArgument, match="listen requires PostgreSQL"):
        rowq.Worker("mariadb://user@host", "orders", print, listen=True)
