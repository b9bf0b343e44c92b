"""A worker completes one claim and takes the next in one transaction; each is safe without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rowq
from rowq.engines import engine_for_url
from rowq.engines.postgres import PostgresEngine
from rowq.errors import ConnectionLost, InvalidArgument
from tests.engines.base import Connection

Calls = list[tuple[str, Any]]


@pytest.fixture
def queue(connection: Connection, queue_name: str) -> rowq.Queue:
    queue = rowq.Queue(connection)
    queue.create_queue(queue_name, lease_seconds=1)
    return queue


@pytest.fixture
def engine(database_url: str) -> PostgresEngine:
    engine = engine_for_url(database_url)
    assert isinstance(engine, PostgresEngine)
    return engine


def drained(database_url: str, queue_name: str) -> tuple[list[int], rowq.WorkerStats]:
    """Return what a worker of one thread handled, one by one, and its counts."""
    seen: list[int] = []
    worker = rowq.Worker(
        database_url,
        queue_name,
        lambda message: seen.append(message.data),
        batch_size=1,
        drain=True,
    )
    return seen, worker.run()


def counted(engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the routines that are called by themselves from now on."""
    called: list[str] = []
    call = engine.call

    def noted(connection: Any, routine: str, arguments: Any) -> Any:
        called.append(routine)
        return call(connection, routine, arguments)

    monkeypatch.setattr(engine, "call", noted)
    return called


@pytest.mark.promise("P04")
def test_a_message_costs_one_transaction(
    database_url: str,
    queue: rowq.Queue,
    queue_name: str,
    engine: PostgresEngine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queue.enqueue_batch(queue_name, [rowq.NewMessage(data=number) for number in range(50)])
    called = counted(engine, monkeypatch)
    seen, stats = drained(database_url, queue_name)
    assert seen == list(range(50))
    assert (stats.processed, stats.stale) == (50, 0)
    assert "complete" not in called


@pytest.mark.promise("P02", "P04")
def test_what_cannot_be_done_together_is_done_one_after_the_other(
    database_url: str,
    queue: rowq.Queue,
    queue_name: str,
    engine: PostgresEngine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queue.enqueue_batch(queue_name, [rowq.NewMessage(data=number) for number in range(10)])

    def fails(_connection: Any, _calls: Calls) -> Any:
        raise RuntimeError("not today")

    monkeypatch.setattr(engine, "call_all", fails)
    seen, stats = drained(database_url, queue_name)
    assert seen == list(range(10))
    assert (stats.processed, stats.stale) == (10, 0)


@pytest.mark.promise("P02", "P04")
def test_an_answer_that_is_lost_loses_no_message_and_repeats_none_that_was_completed(
    database_url: str,
    queue: rowq.Queue,
    queue_name: str,
    engine: PostgresEngine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queue.enqueue_batch(queue_name, [rowq.NewMessage(data=number) for number in range(10)])
    call_all: Callable[[Any, Calls], Any] = engine.call_all
    lost: list[int] = []

    def loses_one_answer(connection: Any, calls: Calls) -> Any:
        rows = call_all(connection, calls)
        if not lost:
            lost.append(1)
            raise ConnectionLost("the answer did not come")
        return rows

    monkeypatch.setattr(engine, "call_all", loses_one_answer)
    seen, stats = drained(database_url, queue_name)
    # The claim that nobody heard of came back when its lease had run out.
    assert sorted(seen) == list(range(10))
    assert (stats.processed, stats.stale) == (9, 1)
    assert queue.queue_stats(queue_name)[0].leased == 0


@pytest.mark.promise("P15")
def test_a_call_that_is_refused_undoes_the_one_before_it(
    connection: Connection, queue: rowq.Queue, queue_name: str, engine: PostgresEngine
) -> None:
    queue.enqueue(queue_name, 1)
    (message,) = queue.dequeue_fast(queue_name, lease_seconds=60)
    claim = {"queue_name": queue_name, "claim_id": message.claim_id, "message_ids": None}
    take = {"batch_size": 5000, "worker_name": None, "lease_seconds": None}
    with pytest.raises(InvalidArgument, match="batch_size must be between 1 and 1000"):
        engine.call_all(
            connection, [("complete", claim), ("dequeue_fast", {"queue_name": queue_name} | take)]
        )
    assert queue.queue_stats(queue_name)[0].leased == 1
    assert [one.outcome for one in queue.complete(queue_name, message.claim_id)] == ["completed"]
