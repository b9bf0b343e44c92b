"""Workers of a queue with limits."""

import threading
import time
from contextlib import ExitStack

import pytest

import rowq
from tests.client.test_worker_polling import Calls
from tests.engines.base import wait_until
from tests.helpers.worker_queue import MakeQueue, WorkerQueue
from tests.helpers.workers import running

pytestmark = pytest.mark.requires("limits")


@pytest.fixture
def calls(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Calls:
    return Calls(database_url, monkeypatch)


class Crowd:
    """A handler that counts parallel calls."""

    def __init__(self) -> None:
        self.most = self.now = self.done = 0
        self._lock = threading.Lock()

    def __call__(self, _message: rowq.Message) -> None:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(0.002)
        with self._lock:
            self.now -= 1
            self.done += 1


@pytest.mark.promise("P28")
def test_workers_respect_max_leased(make_queue: MakeQueue) -> None:
    queue = make_queue(max_leased=3)
    queue.fill(200)
    crowd = Crowd()
    workers = [queue.worker(crowd, threads=3, batch_size=2) for _ in range(2)]
    with ExitStack() as stack:
        for worker in workers:
            stack.enter_context(running(worker))
        wait_until(lambda: crowd.done == 200, "all is done", seconds=60)
    assert 1 <= crowd.most <= 3


@pytest.mark.promise("P29")
def test_worker_delivers_at_the_rate_limit(
    make_queue: MakeQueue,
) -> None:
    queue = make_queue(rate_limit=5, rate_seconds=0.5)
    queue.fill(1000)
    begun: list[float] = []
    worker = queue.worker(lambda _message: begun.append(time.monotonic()), batch_size=10)
    with running(worker):
        wait_until(lambda: len(begun) >= 25, "25 messages", seconds=60)
    seconds = begun[24] - begun[0]
    # At least four windows have passed, each followed by a poll.
    assert seconds >= 1.9
    assert seconds < 10


@pytest.fixture
def full(make_queue: MakeQueue) -> WorkerQueue:
    """Return a queue whose capacity another worker uses."""
    queue = make_queue(max_leased=2, lease_seconds=600)
    queue.fill(50)
    assert len(queue.dequeue_fast(2)) == 2
    return queue


@pytest.mark.slow("waits for time limits")
@pytest.mark.promise("P28")
def test_process_polls_a_full_queue_20_times_a_second(full: WorkerQueue, calls: Calls) -> None:
    with running(full.worker(print, threads=8, batch_size=10)):
        wait_until(lambda: len(calls.polls) >= 14, "the pauses are long")
        began_at, before = time.monotonic(), len(calls.polls)
        time.sleep(2)
        asked, seconds = len(calls.polls) - before, time.monotonic() - began_at
    assert asked / seconds <= 21


@pytest.mark.slow("waits for time limits")
@pytest.mark.promise("P28")
def test_process_polls_rarely_if_it_fills_the_queue(make_queue: MakeQueue, calls: Calls) -> None:
    queue = make_queue(max_leased=2, lease_seconds=600)
    queue.fill(50)
    go = threading.Event()
    with running(queue.worker(lambda _message: go.wait(60), threads=8, batch_size=1)):
        wait_until(lambda: queue.counts()[2] == 2, "the queue is full")
        time.sleep(1)
        began_at, before = time.monotonic(), len(calls.polls)
        time.sleep(2)
        asked, seconds = len(calls.polls) - before, time.monotonic() - began_at
        go.set()
    assert asked / seconds <= 21


@pytest.mark.promise("P28")
def test_freed_capacity_is_used_at_once(full: WorkerQueue) -> None:
    seen = threading.Event()
    with running(full.worker(lambda _message: seen.set(), batch_size=10)):
        assert not seen.wait(0.5)
        full.alter_queue(max_leased=3)
        assert seen.wait(5)
