"""A worker completes one claim and leases the next in one transaction."""

import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

import rowq
from rowq.engines import engine_for_url
from rowq.engines.postgres.engine import PostgresEngine
from rowq.errors import ConnectionLost, InvalidArgument
from tests.engines.base import Connection, Server, wait_until
from tests.helpers.queues import CheckedQueue
from tests.helpers.worker_queue import MakeQueue, WorkerQueue
from tests.helpers.workers import running

Calls = list[tuple[str, Any]]


@pytest.fixture
def queue(make_queue: MakeQueue) -> WorkerQueue:
    return make_queue(lease_seconds=60)


@pytest.fixture
def engine(database_url: str) -> PostgresEngine:
    engine = engine_for_url(database_url)
    assert isinstance(engine, PostgresEngine)
    return engine


def drained(queue: WorkerQueue) -> tuple[list[int], rowq.WorkerStats]:
    """Return what a worker with one thread handled, and its counts."""
    seen: list[int] = []
    return seen, queue.drain(lambda message: seen.append(message.data), batch_size=1)


def counted(engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the routines that workers' threads call from now on."""
    called: list[str] = []
    call = engine.call

    def recorded(connection: Any, routine: str, arguments: Any) -> Any:
        if threading.current_thread().name == "rowq-consumer":
            called.append(routine)
        return call(connection, routine, arguments)

    monkeypatch.setattr(engine, "call", recorded)
    return called


@pytest.mark.promise("P04")
def test_message_costs_one_call(
    queue: WorkerQueue, engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.fill(50)
    called = counted(engine, monkeypatch)
    seen, stats = drained(queue)
    assert seen == list(range(50))
    assert (stats.processed, stats.stale) == (50, 0)
    assert "complete" not in called


@pytest.mark.promise("P02", "P04")
def test_failed_exchange_is_repeated_as_single_calls(
    queue: WorkerQueue, engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.fill(10)

    def fails(_connection: Any, _calls: Calls) -> Any:
        raise RuntimeError("not today")

    monkeypatch.setattr(engine, "call_all", fails)
    seen, stats = drained(queue)
    assert seen == list(range(10))
    assert (stats.processed, stats.stale) == (10, 0)


@pytest.mark.promise("P02", "P04")
def test_lost_answer_loses_and_repeats_no_message(
    queue: WorkerQueue, engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.alter_queue(lease_seconds=5)
    queue.fill(10)
    call_all: Callable[[Any, Calls], Any] = engine.call_all
    lost: list[int] = []

    def loses_one_answer(connection: Any, calls: Calls) -> Any:
        rows = call_all(connection, calls)
        if not lost:
            lost.append(1)
            raise ConnectionLost("the answer did not come")
        return rows

    monkeypatch.setattr(engine, "call_all", loses_one_answer)
    seen, stats = drained(queue)
    # The claim whose answer was lost returned when its lease had expired.
    assert sorted(seen) == list(range(10))
    assert (stats.processed, stats.stale) == (9, 1)
    assert queue.queue_stats()[0].leased == 0


@pytest.mark.promise("P15")
def test_refused_call_rolls_back_the_previous_one(
    database_url: str, queue: WorkerQueue, engine: PostgresEngine
) -> None:
    queue.enqueue(1)
    (message,) = queue.dequeue_fast(lease_seconds=60)
    claim = {
        "queue_name": queue.name,
        "claim_id": message.claim_id,
        "message_ids": None,
        "results": None,
    }
    take = {"batch_size": 5000, "worker_name": None, "lease_seconds": None}
    with (
        psycopg.connect(database_url, autocommit=True) as other,
        pytest.raises(InvalidArgument, match="batch_size must be between 1 and 1000"),
    ):
        engine.call_all(
            other, [("complete", claim), ("dequeue_fast", {"queue_name": queue.name} | take)]
        )
    assert queue.queue_stats()[0].leased == 1
    assert [outcome.outcome for outcome in queue.complete(message.claim_id)] == ["completed"]


@pytest.mark.promise("P02", "P04")
def test_commit_error_costs_only_a_connection(
    empty_database: str, owner: Connection, own_queue: CheckedQueue
) -> None:
    owner.execute(FAILS_ONCE_AT_COMMIT)
    queue = WorkerQueue(empty_database, rowq.Queue(owner), own_queue.name)
    queue.fill(10)
    seen, stats = drained(queue)
    assert seen == list(range(10))
    assert (stats.processed, stats.stale) == (10, 0)
    tried = owner.execute("select last_value, is_called from public.tried").fetchone()
    assert tried == (11, True)


FAILS_ONCE_AT_COMMIT = """
    create sequence public.tried;
    grant usage on sequence public.tried to public;
    create function public.fails_once() returns trigger language plpgsql as $$
    begin
        if nextval('public.tried') = 3 then
            raise exception 'at the commit' using errcode = '40001';
        end if;
        return null;
    end $$;
    create constraint trigger fails_once after delete on rowq.claim
    deferrable initially deferred for each row execute function public.fails_once();
    """


@pytest.mark.promise("P02", "P04")
@pytest.mark.parametrize("fails_at", range(1, 8))
def test_error_leaves_no_half_prepared_statement(
    queue: WorkerQueue, engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    queue.fill(10)
    call_all: Callable[[Any, Calls], Any] = engine.call_all
    made: list[int] = []

    def fails_once(connection: Any, calls: Calls) -> Any:
        made.append(1)
        if len(made) == fails_at:
            (complete, arguments), take = calls
            no_claim = {"claim_id": 2**62, "message_ids": None}
            calls = [(complete, arguments | no_claim), take]
        return call_all(connection, calls)

    monkeypatch.setattr(engine, "call_all", fails_once)
    seen, stats = drained(queue)
    assert seen == list(range(10))
    assert (stats.processed, stats.stale) == (10, 0)
    assert len(made) == fails_at


@pytest.mark.promise("P02", "P04")
def test_session_killed_in_a_call_is_replaced(
    server: Server, queue: WorkerQueue, engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.fill(10)
    call_all: Callable[[Any, Calls], Any] = engine.call_all
    killed: list[int] = []

    def dies_once(connection: Any, calls: Calls) -> Any:
        if not killed:
            killed.append(server.session_id(connection))
            server.kill_session(killed[0])
        return call_all(connection, calls)

    monkeypatch.setattr(engine, "call_all", dies_once)
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
