"""An idle worker process has one connection per server, which its threads share."""

import threading
import time
from typing import Any

import pytest

import rowq
from rowq.engines import engine_for_url
from rowq.errors import CannotConnect
from rowq.worker import consumer, sessions
from rowq.worker.sessions import BriefSession, GuestSession, SharedSession
from tests.engines.base import Connection, Server, wait_until
from tests.helpers.dialects import dialect_of
from tests.helpers.worker_queue import MakeQueue, WorkerQueue
from tests.helpers.workers import running

ONE_QUEUE = {"max_count": 1, "after_queue_name": None, "max_queues": None}
"""Arguments of queue_stats beside the queue's name."""


@pytest.fixture
def queue(make_queue: MakeQueue) -> WorkerQueue:
    return make_queue(lease_seconds=60)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let connections rest after half a second without work."""
    for module in (consumer, sessions):
        monkeypatch.setattr(module, "REST_SECONDS", 0.5)


class Sessions:
    """Counter of the sessions of a server that the test itself did not open."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._before = self._all()

    def _all(self) -> int:
        return dialect_of(self._connection).other_sessions(self._connection)

    def wait_for(self, count: int) -> None:
        wait_until(lambda: self._all() - self._before == count, f"{count} sessions", 60)


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("transactional", [False, True])
def test_idle_process_keeps_one_connection(
    connection: Connection, queue: WorkerQueue, transactional: bool
) -> None:
    def handle(*_: Any) -> None:
        time.sleep(0.01)

    counted = Sessions(connection)
    worker = queue.worker(handle, threads=3, batch_size=1, transactional=transactional)
    with running(worker):
        wait_until(lambda: worker._context.polling.was_idle(), "it is idle")
        counted.wait_for(1)
        queue.fill(100)
        wait_until(lambda: worker.stats.processed == 100, "it works", 60)
        counted.wait_for(1)
    counted.wait_for(0)


@pytest.mark.usefixtures("soon")
def test_lost_shared_connection_is_replaced(
    server: Server, connection: Connection, queue: WorkerQueue
) -> None:
    counted = Sessions(connection)
    with running(queue.worker(lambda _message: None, threads=3)) as worker:
        counted.wait_for(1)
        (shared,) = [one.shared for one in worker._context.servers]
        with shared.lent() as lost:
            server.kill_session(server.session_id(lost))
        queue.fill(20)
        wait_until(lambda: worker.stats.processed == 20, "it works", 60)
        counted.wait_for(1)


def test_shared_connection_makes_one_call_at_a_time(database_url: str, queue: WorkerQueue) -> None:
    shared = SharedSession(database_url)
    arguments = ONE_QUEUE | {"queue_name": queue.name}
    rows = shared.call_if_free("queue_stats", arguments)
    assert rows
    with shared.lent() as connection:
        assert shared.call_if_free("queue_stats", arguments) is None
    shared.discard(connection)
    assert not shared.is_open
    with pytest.raises(CannotConnect), shared.lent_again(connection):
        pass
    assert shared.call_if_free("queue_stats", arguments) == rows
    with pytest.raises(rowq.QueueNotFound):
        shared.call_if_free("queue_stats", ONE_QUEUE | {"queue_name": "no such"})
    shared.end()


def test_busy_shared_connection_is_not_awaited(database_url: str, queue: WorkerQueue) -> None:
    shared, own = SharedSession(database_url), BriefSession(database_url)
    guest = GuestSession(own, shared)
    arguments = ONE_QUEUE | {"queue_name": queue.name}
    assert guest.call("queue_stats", arguments)
    assert (shared.is_open, own.is_open) == (True, False)
    with shared.lent():
        assert guest.call("queue_stats", arguments)
    assert own.is_open
    guest.close()
    shared.end()
    assert not guest.is_open


@pytest.mark.usefixtures("soon")
def test_hanging_call_stops_no_other_thread(
    database_url: str, queue: WorkerQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first maintain has no answer until the messages are handled by rested threads."""
    engine = engine_for_url(database_url)
    call, connect = engine.call, engine.connect
    go, hangs = threading.Event(), threading.Event()
    connected: list[float] = []

    def hanging(connection: Any, routine: str, arguments: Any) -> Any:
        if routine == "maintain":
            hangs.set()
            go.wait(60)
        return call(connection, routine, arguments)

    def counted(url: str) -> Any:
        connected.append(time.monotonic())
        return connect(url)

    monkeypatch.setattr(engine, "call", hanging)
    monkeypatch.setattr(engine, "connect", counted)
    with running(queue.worker(lambda _message: None, threads=2, listen=False)) as worker:
        assert hangs.wait(60)
        # The threads have rested, and the shared connection stays busy.
        time.sleep(2)
        for number in range(2):
            queue.enqueue(number)
        wait_until(lambda: worker.stats.processed == 2, "they are handled")
        # A resting thread connects for its poll, and keeps that connection for half a second.
        time.sleep(2)
        recent = [at for at in connected if at > time.monotonic() - 2]
        assert len(recent) <= 2 * 2 / 0.5
        go.set()
