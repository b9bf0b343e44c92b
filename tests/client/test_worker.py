"""A worker in one process."""

import dataclasses
import pickle
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import rowq
from rowq.worker.batching import BatchSize
from rowq.worker.claim import LiveClaim
from tests.client.proxy import relay
from tests.engines.base import Connection, Server, wait_until, wait_until_blocked
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect
from tests.helpers.worker_queue import MakeQueue, WorkerQueue
from tests.helpers.workers import running
from tests.stored_times import pass_seconds

BATCH = BatchSize(1)


@pytest.fixture
def queue(make_queue: MakeQueue) -> WorkerQueue:
    return make_queue(lease_seconds=60, backoff_base_seconds=0, max_attempts=3)


@pytest.mark.parametrize("per", ["message", "batch"])
@pytest.mark.parametrize("threads", [1, 20])
def test_drain_handles_every_message_once(queue: WorkerQueue, per: Any, threads: int) -> None:
    queue.fill(100)
    seen: list[int] = []

    def handler(given: Any) -> None:
        seen.extend(message.data for message in (given if per == "batch" else [given]))

    worker = queue.worker(handler, per=per, threads=threads, drain=True, batch_size=7)
    stats = worker.run()
    assert sorted(seen) == list(range(100))
    assert (stats.processed, stats.retried, stats.failed, stats.stale) == (100, 0, 0, 0)
    assert stats == worker.stats
    assert queue.counts() == (0, 0, 0, 0)


def test_handler_decides_by_exceptions(queue: WorkerQueue) -> None:
    ids = queue.fill(4)

    def handler(message: rowq.Message) -> None:
        if message.data == 1:
            raise rowq.Retry(900, "not yet")
        if message.data == 2:
            raise rowq.Fail("never \0 \ud800")
        if message.data == 3:
            raise RuntimeError("broken \0 \ud800" + "x" * 5000)

    stats = queue.drain(handler)
    assert (stats.processed, stats.retried, stats.failed) == (1, 3, 2)
    later, never, broken = (queue.details_of(message_id) for message_id in ids[1:])
    assert (later.state, later.last_error) == ("delayed", "not yet")
    assert (never.state, never.last_error) == ("dead", r"never \0 \ud800")
    assert (broken.state, broken.attempt) == ("dead", 3)
    assert str(broken.last_error).endswith("x" * 1000)


def test_batch_handler_decides_for_single_messages(queue: WorkerQueue) -> None:
    ids = queue.fill(3)

    def handler(_messages: list[rowq.Message]) -> dict[int, Exception]:
        return {ids[0]: rowq.Retry(900), ids[1]: rowq.Fail("no")}

    worker = queue.worker(handler, per="batch", drain=True)
    stats = worker.run()
    assert (stats.processed, stats.retried, stats.failed) == (1, 1, 1)


def test_system_exit_in_a_handler_does_not_end_worker(queue: WorkerQueue) -> None:
    queue.fill(2)

    def handler(message: rowq.Message) -> None:
        if message.data == 0:
            raise SystemExit(1)

    stats = queue.drain(handler)
    assert (stats.processed, stats.failed) == (1, 1)


def test_drain_waits_for_leased_messages(queue: WorkerQueue) -> None:
    queue.fill(1)
    others = queue.dequeue_fast()
    progress: list[rowq.WorkerStats] = []

    def on_progress(stats: rowq.WorkerStats) -> None:
        progress.append(stats)
        if len(progress) == 3:
            queue.release(others[0].claim_id)

    worker = queue.worker(lambda _message: None, drain=True, on_progress=on_progress)
    assert worker.run().processed == 1
    assert len(progress) >= 3


def test_drain_ignores_later_messages_and_paused_queues(
    queue: WorkerQueue,
) -> None:
    queue.enqueue(1, run_at=datetime.now(UTC) + timedelta(days=1))
    assert queue.drain(print).processed == 0
    queue.enqueue(2)
    queue.pause_queue()
    assert queue.drain(print).processed == 0
    assert queue.counts() == (1, 1, 0, 0)


@pytest.mark.promise("P11")
def test_worker_calls_maintain(queue: WorkerQueue) -> None:
    queue.enqueue(1, delay_seconds=0.2)
    seen: list[int] = []
    worker = queue.worker(lambda message: seen.append(message.data), maintain_seconds=0.05)
    with running(worker):
        wait_until(lambda: seen == [1], "the delayed message is handled")


@pytest.mark.promise("P37")
def test_worker_repeats_maintain_while_there_is_a_backlog(
    queue: WorkerQueue, connection: Connection
) -> None:
    queue.alter_queue(history_days=2)
    queue.fill(2500)
    while messages := queue.dequeue_fast(1000):
        queue.complete(messages[0].claim_id)
    pass_seconds(connection, queue.name, 3 * 86400)
    with running(queue.worker(print, maintain_seconds=3600)):
        wait_until(
            lambda: not dialect_of(connection).stored(connection, queue.name)["history"],
            "all of the history is purged",
        )


def test_stop_finishes_running_message_and_releases_rest(queue: WorkerQueue) -> None:
    queue.fill(5)
    started, go = threading.Event(), threading.Event()

    def handler(_message: rowq.Message) -> None:
        started.set()
        go.wait()

    with running(queue.worker(handler)) as worker:
        started.wait()
        worker.stop()
        go.set()
    assert (worker.stats.processed, worker.stats.released) == (1, 4)
    assert queue.counts() == (4, 0, 0, 0)
    assert [message.attempt for message in queue.peek(max_messages=10)] == [0, 0, 0, 0]


def test_outcomes_do_not_wait_for_a_slow_handler(queue: WorkerQueue) -> None:
    queue.fill(3)
    go = threading.Event()

    def handler(message: rowq.Message) -> None:
        if message.data == 2:
            go.wait()

    with running(queue.worker(handler)) as worker:
        wait_until(lambda: worker.stats.processed == 2, "two of three are completed")
        wait_until(lambda: queue.counts() == (0, 0, 1, 0), "one is still leased")
        go.set()
    assert worker.stats.processed == 3


@pytest.mark.promise("P03")
@pytest.mark.parametrize("given", [1, None])
def test_heartbeat_extends_the_lease_of_a_handler(queue: WorkerQueue, given: int | None) -> None:
    queue.alter_queue(lease_seconds=1)
    ids = queue.fill(1)
    go = threading.Event()
    worker = queue.worker(lambda _message: go.wait(), lease_seconds=given)

    def lease() -> datetime | None:
        return queue.details_of(ids[0]).lease_until

    with running(worker):
        wait_until(lambda: lease() is not None, "the message is leased")
        first = lease()
        assert first
        wait_until(lambda: datetime.now(UTC) > first + timedelta(seconds=0.5), "the lease is over")
        queue.maintain()
        assert queue.counts() == (0, 0, 1, 0)
        go.set()
    assert (worker.stats.processed, worker.stats.stale) == (1, 0)


@pytest.mark.promise("P08")
def test_lost_claim_is_shown_and_outcomes_are_stale(
    queue: WorkerQueue,
) -> None:
    ids = queue.fill(3)
    first, go = threading.Event(), threading.Event()
    lost: list[bool] = []

    def handler(message: Any) -> None:
        if first.is_set():
            return
        first.set()
        go.wait()
        wait_until(lambda: message.lost, "the message knows that it is lost")
        lost.append(message.lost)

    with running(queue.worker(handler, lease_seconds=1)) as worker:
        first.wait()
        claim_id = queue.details_of(ids[0]).claim_id
        assert claim_id
        assert not lost
        queue.release(claim_id)
        mine = queue.dequeue_fast(2)
        go.set()
        wait_until(lambda: worker.stats.stale == 3, "all three count as stale")
        outcomes = queue.complete(mine[0].claim_id)
    assert lost == [True]
    assert [outcome.outcome for outcome in outcomes] == ["completed"] * 2
    assert worker.stats.processed in {0, 1}


@pytest.mark.promise("P34")
@pytest.mark.requires("cancel")
@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.parametrize("raises", [False, True])
def test_handler_sees_a_cancelled_message(
    queue: WorkerQueue, raises: bool, transactional: bool
) -> None:
    ids = queue.fill(2)
    answer: list[tuple[int, bool]] = []

    def handler(message: rowq.HeldMessage, *_: Any) -> None:
        if message.data == 0:
            assert not message.cancelled
            outcomes = queue.cancel([message.message_id], include_leased=True)
            assert [result.outcome for result in outcomes] == ["requested"]
            wait_until(lambda: message.cancelled, "the message knows that it is cancelled")
        answer.append((message.data, message.cancelled))
        if raises and message.data == 0:
            raise RuntimeError

    stats = queue.drain(handler, lease_seconds=1, transactional=transactional, batch_size=2)
    assert (0, True) in answer
    assert (1, True) not in answer
    assert queue.get_message(ids[0]) is None
    assert (stats.processed, stats.cancelled) == ((1, 1) if raises else (2, 0))


@pytest.mark.promise("P34")
@pytest.mark.requires("cancel")
def test_message_cancelled_early_is_not_handled(
    queue: WorkerQueue,
) -> None:
    ids = queue.fill(2)
    handled: list[int] = []

    def handler(message: rowq.HeldMessage) -> None:
        handled.append(message.data)
        queue.cancel(ids, include_leased=True)
        wait_until(lambda: message.cancelled, "the message knows that it is cancelled")

    stats = queue.drain(handler, lease_seconds=1, batch_size=2)
    assert handled == [0]
    assert (stats.processed, stats.cancelled) == (1, 1)
    assert queue.counts() == (0, 0, 0, 0)


def test_held_message_has_every_value() -> None:
    noon = datetime(2024, 1, 1, 12, tzinfo=UTC)
    later = noon + timedelta(seconds=1)
    row = (1, 2, 3, "type", {"a": 4}, "body", b"bytes", noon, later, "error")
    context = rowq.Worker("postgresql://host/db", "q", print)._context
    held = LiveClaim(context, context.stripes[0], [row], time.monotonic(), 30, BATCH).messages[0]
    assert isinstance(held, rowq.Message)
    assert dataclasses.asdict(held) == dataclasses.asdict(rowq.Message(*row))
    assert pickle.loads(pickle.dumps(held)).message_id == 2  # noqa: S301 - our own bytes
    assert not held.lost
    assert not held.cancelled


@pytest.mark.promise("P02", "P04")
def test_worker_continues_after_lost_connections(database_url: str, queue: WorkerQueue) -> None:
    queue.fill(20)
    seen: list[int] = []
    with relay(database_url) as lossy:

        def handler(message: rowq.Message) -> None:
            if len(seen) % 7 == 3:
                lossy.cut()
            seen.append(message.data)

        stats = rowq.Worker(lossy.url, queue.name, handler, batch_size=4, drain=True).run()
    assert sorted(seen) == list(range(20))
    assert stats.processed + stats.stale == 20
    assert queue.counts() == (0, 0, 0, 0)


@pytest.mark.promise("P04")
def test_worker_repeats_a_killed_complete(
    server: Server, connect: Connect, queue: WorkerQueue
) -> None:
    ids = queue.fill(2)
    blocker = connect(autocommit=False)

    def handler(message: rowq.Message) -> None:
        if message.data == 0:
            rowq.Queue(blocker).release(queue.name, message.claim_id, [ids[1]])

    with running(queue.worker(handler, batch_size=2)) as worker:
        blocking = server.session_id(blocker)

        def blocked() -> list[int]:
            return [session for session, by in server.waiting_sessions().items() if blocking in by]

        wait_until(lambda: bool(blocked()), "the worker waits for the claim")
        session = blocked()[0]
        wait_until_blocked(server, session, blocking)
        server.kill_session(session)
        blocker.rollback()
        wait_until(lambda: worker.stats.processed == 2, "both are completed")
    assert worker.stats.stale == 0


def test_worker_fails_at_once_if_it_cannot_work(database_url: str, queue: WorkerQueue) -> None:
    with pytest.raises(rowq.WorkerFailed, match="RQ701 queue_not_found") as raised:
        rowq.Worker(database_url, queue.name + "?", print).run()
    assert isinstance(raised.value.__cause__, rowq.QueueNotFound)
    with pytest.raises(rowq.WorkerFailed, match="PostgreSQL"):
        rowq.Worker("postgresql://me:secret@127.0.0.1:1/db", queue.name, print).run()
    for handler in ("nowhere:f", "os:nothing", "os", "os:sep"):
        with pytest.raises(rowq.WorkerFailed, match="handler"):
            queue.worker(handler).run()
    assert queue.peek() == []


def test_dropped_queue_ends_the_worker(queue: WorkerQueue) -> None:
    dropped = threading.Event()

    def drop(_stats: rowq.WorkerStats) -> None:
        if not dropped.is_set():
            queue.drop_queue()
            dropped.set()

    worker = queue.worker(print, on_progress=drop)
    with pytest.raises(rowq.WorkerFailed, match="RQ701"):
        worker.run()
