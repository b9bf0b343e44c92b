"""A worker completes one claim and leases the next in one call."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

import rowq
from rowq.engines import engine_for_url
from rowq.engines.base import Engine
from rowq.errors import ConnectionLost
from tests.engines.base import Server, wait_until
from tests.helpers.worker_queue import MakeQueue, WorkerQueue
from tests.helpers.workers import running

EXCHANGE = "complete_and_dequeue"

Exchange = Callable[[], Any]
Replacement = Callable[[Exchange, Any, dict[str, Any]], Any]
"""Takes the real exchange, its connection and its arguments; returns the rows."""


@pytest.fixture
def queue(make_queue: MakeQueue) -> WorkerQueue:
    return make_queue(lease_seconds=60)


@pytest.fixture
def engine(database_url: str) -> Engine:
    return engine_for_url(database_url)


def drained(queue: WorkerQueue) -> tuple[list[int], rowq.WorkerStats]:
    """Return what a worker with one thread handled, and its counts."""
    seen: list[int] = []
    return seen, queue.drain(lambda message: seen.append(message.data), batch_size=1)


def replace_exchange(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, replacement: Replacement
) -> list[str]:
    """Replace the exchanges of workers; return the routines that their threads call from now on."""
    called: list[str] = []
    call = engine.call

    def recorded(connection: Any, routine: str, arguments: Any) -> Any:
        if threading.current_thread().name == "rowq-consumer":
            called.append(routine)
        if routine != EXCHANGE:
            return call(connection, routine, arguments)
        return replacement(lambda: call(connection, routine, arguments), connection, arguments)

    monkeypatch.setattr(engine, "call", recorded)
    return called


@pytest.mark.promise("P04")
def test_message_costs_one_call(
    queue: WorkerQueue, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.fill(50)
    called = replace_exchange(engine, monkeypatch, lambda exchange, *_: exchange())
    seen, stats = drained(queue)
    assert seen == list(range(50))
    assert (stats.processed, stats.stale) == (50, 0)
    assert called.count(EXCHANGE) == 50
    assert "complete" not in called


@pytest.mark.promise("P04", "P10")
def test_other_decisions_are_reported_before_the_exchange(
    queue: WorkerQueue, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.fill(10)
    called = replace_exchange(engine, monkeypatch, lambda exchange, *_: exchange())

    def fails_even(message: rowq.HeldMessage) -> None:
        if message.data % 2 == 0:
            raise rowq.Fail("even")

    stats = queue.drain(fails_even, batch_size=5)
    assert (stats.processed, stats.failed, stats.stale) == (5, 5, 0)
    finished = [routine for routine in called if routine in {"complete", "fail_now", EXCHANGE}]
    assert finished == ["fail_now", EXCHANGE] * 2


@pytest.mark.promise("P08")
def test_stale_messages_of_an_exchange_are_counted(queue: WorkerQueue) -> None:
    queue.fill(4)

    def handle(message: rowq.HeldMessage) -> None:
        if message.data == 0:
            others = [message.message_id, message.message_id + 1]
            queue.fail_now(message.claim_id, others)

    stats = queue.drain(handle, batch_size=3)
    assert (stats.processed, stats.stale) == (2, 2)
    assert queue.counts() == (0, 0, 0, 2)


@pytest.mark.promise("P02", "P04")
def test_failed_exchange_is_repeated_as_single_calls(
    queue: WorkerQueue, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.fill(10)

    def fails(*_: Any) -> Any:
        raise RuntimeError("not today")

    called = replace_exchange(engine, monkeypatch, fails)
    seen, stats = drained(queue)
    assert seen == list(range(10))
    assert (stats.processed, stats.stale) == (10, 0)
    assert called.count(EXCHANGE) == 1


@pytest.mark.promise("P02", "P04")
def test_lost_answer_loses_and_repeats_no_message(
    queue: WorkerQueue, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.alter_queue(lease_seconds=5)
    queue.fill(10)
    lost: list[int] = []

    def loses_one_answer(exchange: Exchange, *_: Any) -> Any:
        rows = exchange()
        if not lost:
            lost.append(1)
            raise ConnectionLost("the answer did not come")
        return rows

    replace_exchange(engine, monkeypatch, loses_one_answer)
    seen, stats = drained(queue)
    # The claim whose answer was lost returned when its lease had expired.
    assert sorted(seen) == list(range(10))
    assert (stats.processed, stats.stale) == (9, 1)
    assert queue.queue_stats()[0].leased == 0


@pytest.mark.promise("P22")
def test_refused_result_costs_only_the_result(queue: WorkerQueue) -> None:
    queue.fill(4)
    stats = queue.drain(lambda message: message.set_result(message.data), batch_size=2)
    assert (stats.processed, stats.stale) == (4, 0)
    assert queue.counts() == (0, 0, 0, 0)


def test_stopping_worker_completes_without_a_dequeue(
    queue: WorkerQueue, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.fill(2)
    called = replace_exchange(engine, monkeypatch, lambda exchange, *_: exchange())
    worker: rowq.Worker = queue.worker(lambda _message: worker.stop(), batch_size=1)
    assert worker.run().processed == 1
    assert EXCHANGE not in called
    assert queue.counts() == (1, 0, 0, 0)


@pytest.mark.promise("P02", "P04")
@pytest.mark.parametrize("fails_at", range(1, 8))
def test_refused_exchange_leaves_a_usable_connection(
    queue: WorkerQueue, engine: Engine, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    queue.fill(10)
    made: list[int] = []

    def refused_once(exchange: Exchange, _connection: Any, arguments: dict[str, Any]) -> Any:
        made.append(1)
        if len(made) == fails_at:
            arguments["batch_size"] = 5000
        return exchange()

    replace_exchange(engine, monkeypatch, refused_once)
    seen, stats = drained(queue)
    assert seen == list(range(10))
    assert (stats.processed, stats.stale) == (10, 0)
    assert len(made) == fails_at


@pytest.mark.promise("P02", "P04")
def test_session_killed_in_a_call_is_replaced(
    server: Server, queue: WorkerQueue, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.fill(10)
    killed: list[int] = []

    def dies_once(exchange: Exchange, connection: Any, _arguments: dict[str, Any]) -> Any:
        if not killed:
            killed.append(server.session_id(connection))
            server.kill_session(killed[0])
        return exchange()

    replace_exchange(engine, monkeypatch, dies_once)
    seen, stats = drained(queue)
    assert seen == list(range(10))
    assert (stats.processed, stats.stale) == (10, 0)


def test_full_claim_wakes_an_idle_thread(queue: WorkerQueue) -> None:
    """Pauses are an hour: without a wake-up the second thread would sleep on."""
    go, both = threading.Event(), threading.Barrier(2)
    seen: list[int] = []

    def handle(message: rowq.Message) -> None:
        if message.data == 0:
            go.wait(60)
        elif message.data <= 2:
            both.wait(60)
        seen.append(message.data)

    queue.enqueue(0)
    worker = queue.worker(
        handle,
        batch_size=1,
        threads=2,
        lease_seconds=60,
        idle_min_seconds=3600,
        idle_max_seconds=3600,
    )
    polling = worker._context.polling
    with running(worker):
        wait_until(lambda: queue.queue_stats()[0].leased == 1, "one is busy")
        wait_until(lambda: polling._poller is not None and not polling._at_once, "one is idle")
        queue.enqueue_batch([rowq.NewMessage(data=number) for number in (1, 2)])
        go.set()
        wait_until(lambda: sorted(seen) == [0, 1, 2], "both have worked at the same time", 60)
