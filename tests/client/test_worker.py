"""A worker inside one process."""

import dataclasses
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import rowq
from rowq.worker.claim import LiveClaim
from tests.client.proxy import relay
from tests.engines.base import Connection, Server, wait_until, wait_until_blocked


@pytest.fixture
def queue(connection: Connection, queue_name: str) -> rowq.Queue:
    queue = rowq.Queue(connection)
    queue.create_queue(queue_name, lease_seconds=60, backoff_base_seconds=0, max_attempts=3)
    return queue


@contextmanager
def running(worker: rowq.Worker) -> Iterator[rowq.Worker]:
    """Run the worker in a thread; it is stopped at the end, and must end without an error."""
    failures: list[Exception] = []

    def run() -> None:
        try:
            worker.run()
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield worker
    finally:
        worker.stop()
        thread.join(30)
    assert not thread.is_alive()
    assert not failures


def fill(queue: rowq.Queue, queue_name: str, count: int) -> list[int]:
    sent = queue.enqueue_batch(queue_name, [rowq.NewMessage(data=n) for n in range(count)])
    return [message.message_id for message in sent]


def details_of(queue: rowq.Queue, queue_name: str, message_id: int) -> rowq.MessageDetails:
    details = queue.get_message(queue_name, message_id)
    assert details is not None
    return details


def stats_of(queue: rowq.Queue, queue_name: str) -> tuple[int, int, int, int]:
    stats = queue.queue_stats(queue_name)[0]
    return stats.ready, stats.delayed, stats.leased, stats.dead


@pytest.mark.parametrize("per", ["message", "batch"])
@pytest.mark.parametrize("threads", [1, 3])
def test_draining_handles_every_message_once_and_ends(
    database_url: str, queue: rowq.Queue, queue_name: str, per: Any, threads: int
) -> None:
    fill(queue, queue_name, 100)
    seen: list[int] = []

    def handler(given: Any) -> None:
        seen.extend(message.data for message in (given if per == "batch" else [given]))

    worker = rowq.Worker(
        database_url, queue_name, handler, per=per, threads=threads, drain=True, batch_size=7
    )
    stats = worker.run()
    assert sorted(seen) == list(range(100))
    assert (stats.processed, stats.retried, stats.failed, stats.stale) == (100, 0, 0, 0)
    assert stats == worker.stats
    assert stats_of(queue, queue_name) == (0, 0, 0, 0)


def test_a_handler_decides_by_what_it_raises(
    database_url: str, queue: rowq.Queue, queue_name: str
) -> None:
    ids = fill(queue, queue_name, 4)

    def handler(message: rowq.Message) -> None:
        if message.data == 1:
            raise rowq.Retry(900, "not yet")
        if message.data == 2:
            raise rowq.Fail("never \0 \ud800")
        if message.data == 3:
            raise RuntimeError("broken \0 \ud800" + "x" * 5000)

    stats = rowq.Worker(database_url, queue_name, handler, drain=True).run()
    assert (stats.processed, stats.retried, stats.failed) == (1, 3, 2)
    later, never, broken = (details_of(queue, queue_name, message_id) for message_id in ids[1:])
    assert (later.state, later.last_error) == ("delayed", "not yet")
    assert (never.state, never.last_error) == ("dead", r"never \0 \ud800")
    assert (broken.state, broken.attempt) == ("dead", 3)
    assert str(broken.last_error).endswith("x" * 1000)


def test_a_batch_handler_may_decide_for_single_messages(
    database_url: str, queue: rowq.Queue, queue_name: str
) -> None:
    ids = fill(queue, queue_name, 3)

    def handler(_messages: list[rowq.Message]) -> dict[int, Exception]:
        return {ids[0]: rowq.Retry(900), ids[1]: rowq.Fail("no")}

    worker = rowq.Worker(database_url, queue_name, handler, per="batch", drain=True)
    stats = worker.run()
    assert (stats.processed, stats.retried, stats.failed) == (1, 1, 1)


def test_a_handler_that_exits_does_not_end_the_worker(
    database_url: str, queue: rowq.Queue, queue_name: str
) -> None:
    fill(queue, queue_name, 2)

    def handler(message: rowq.Message) -> None:
        if message.data == 0:
            raise SystemExit(1)

    stats = rowq.Worker(database_url, queue_name, handler, drain=True).run()
    assert (stats.processed, stats.failed) == (1, 1)


def test_draining_waits_for_what_other_workers_hold(
    database_url: str, queue: rowq.Queue, queue_name: str
) -> None:
    fill(queue, queue_name, 1)
    others = queue.dequeue_fast(queue_name)
    progress: list[rowq.WorkerStats] = []

    def on_progress(stats: rowq.WorkerStats) -> None:
        progress.append(stats)
        if len(progress) == 3:
            queue.release(queue_name, others[0].claim_id)

    worker = rowq.Worker(
        database_url, queue_name, lambda _message: None, drain=True, on_progress=on_progress
    )
    assert worker.run().processed == 1
    assert len(progress) >= 3


def test_draining_leaves_what_is_due_later_and_ends_when_the_queue_is_paused(
    database_url: str, queue: rowq.Queue, queue_name: str
) -> None:
    queue.enqueue(queue_name, 1, run_at=datetime.now(UTC) + timedelta(days=1))
    assert rowq.Worker(database_url, queue_name, print, drain=True).run().processed == 0
    queue.enqueue(queue_name, 2)
    queue.pause_queue(queue_name)
    assert rowq.Worker(database_url, queue_name, print, drain=True).run().processed == 0
    assert stats_of(queue, queue_name) == (1, 1, 0, 0)


@pytest.mark.promise("P11")
def test_a_worker_keeps_house_by_itself(
    database_url: str, queue: rowq.Queue, queue_name: str
) -> None:
    queue.enqueue(queue_name, 1, delay_seconds=0.2)
    seen: list[int] = []
    worker = rowq.Worker(
        database_url, queue_name, lambda message: seen.append(message.data), maintain_seconds=0.05
    )
    with running(worker):
        wait_until(lambda: seen == [1], "the delayed message is handled")


def test_stopping_finishes_the_running_message_and_releases_the_rest(
    database_url: str, queue: rowq.Queue, queue_name: str
) -> None:
    fill(queue, queue_name, 5)
    started, go = threading.Event(), threading.Event()

    def handler(_message: rowq.Message) -> None:
        started.set()
        go.wait()

    with running(rowq.Worker(database_url, queue_name, handler)) as worker:
        started.wait()
        worker.stop()
        go.set()
    assert (worker.stats.processed, worker.stats.released) == (1, 4)
    assert stats_of(queue, queue_name) == (4, 0, 0, 0)
    assert [message.attempt for message in queue.peek(queue_name, 10)] == [0, 0, 0, 0]


def test_results_do_not_wait_for_a_slow_handler(
    database_url: str, queue: rowq.Queue, queue_name: str
) -> None:
    fill(queue, queue_name, 3)
    go = threading.Event()

    def handler(message: rowq.Message) -> None:
        if message.data == 2:
            go.wait()

    with running(rowq.Worker(database_url, queue_name, handler)) as worker:
        wait_until(lambda: worker.stats.processed == 2, "two of three are completed")
        wait_until(lambda: stats_of(queue, queue_name) == (0, 0, 1, 0), "one is still leased")
        go.set()
    assert worker.stats.processed == 3


@pytest.mark.promise("P03")
@pytest.mark.parametrize("given", [1, None])
def test_the_heartbeat_holds_a_lease_for_as_long_as_the_handler_runs(
    database_url: str, queue: rowq.Queue, queue_name: str, given: int | None
) -> None:
    queue.alter_queue(queue_name, lease_seconds=1)
    ids = fill(queue, queue_name, 1)
    go = threading.Event()
    worker = rowq.Worker(database_url, queue_name, lambda _message: go.wait(), lease_seconds=given)

    def lease() -> datetime | None:
        return details_of(queue, queue_name, ids[0]).lease_until

    with running(worker):
        wait_until(lambda: lease() is not None, "the message is leased")
        first = lease()
        assert first
        wait_until(lambda: datetime.now(UTC) > first + timedelta(seconds=0.5), "the lease is over")
        queue.maintain(queue_name)
        assert stats_of(queue, queue_name) == (0, 0, 1, 0)
        go.set()
    assert (worker.stats.processed, worker.stats.stale) == (1, 0)


@pytest.mark.promise("P08")
def test_a_lost_claim_is_told_to_the_handler_and_its_results_do_not_count(
    database_url: str, queue: rowq.Queue, queue_name: str
) -> None:
    ids = fill(queue, queue_name, 3)
    first, go = threading.Event(), threading.Event()
    lost: list[bool] = []

    def handler(message: Any) -> None:
        if first.is_set():
            return
        first.set()
        go.wait()
        wait_until(lambda: message.lost, "the message knows that it is lost")
        lost.append(message.lost)

    with running(rowq.Worker(database_url, queue_name, handler, lease_seconds=1)) as worker:
        first.wait()
        claim_id = details_of(queue, queue_name, ids[0]).claim_id
        assert claim_id
        assert not lost
        queue.release(queue_name, claim_id)
        mine = queue.dequeue_fast(queue_name, 2)
        go.set()
        wait_until(lambda: worker.stats.stale == 3, "all three count as stale")
        outcomes = queue.complete(queue_name, mine[0].claim_id)
    assert lost == [True]
    assert [outcome.outcome for outcome in outcomes] == ["completed"] * 2
    assert worker.stats.processed in {0, 1}


def test_a_message_in_a_workers_hands_is_a_plain_message_otherwise(
    database_url: str, queue: rowq.Queue, queue_name: str
) -> None:
    fill(queue, queue_name, 1)
    seen: list[Any] = []
    rowq.Worker(database_url, queue_name, seen.append, drain=True).run()
    assert isinstance(seen[0], rowq.Message)
    assert dataclasses.asdict(seen[0])["body"] == "0"
    assert pickle.loads(pickle.dumps(seen[0])).data == 0  # noqa: S301 - our own bytes


def test_a_message_in_a_workers_hands_has_every_value_of_the_plain_one() -> None:
    noon = datetime(2024, 1, 1, 12, tzinfo=UTC)
    later = noon + timedelta(seconds=1)
    row = (1, 2, 3, "type", {"a": 4}, "body", b"bytes", noon, later, "error")
    context = rowq.Worker("postgresql://host/db", "q", print)._context
    held = LiveClaim(context, [row], time.monotonic(), 30).messages[0]
    assert dataclasses.asdict(held) == dataclasses.asdict(rowq.Message(*row))
    assert not held.lost


@pytest.mark.promise("P02", "P04")
def test_a_worker_whose_every_connection_breaks_goes_on_where_it_was(
    database_url: str, queue: rowq.Queue, queue_name: str
) -> None:
    fill(queue, queue_name, 20)
    seen: list[int] = []
    with relay(database_url) as lossy:

        def handler(message: rowq.Message) -> None:
            if len(seen) % 7 == 3:
                lossy.cut()
            seen.append(message.data)

        stats = rowq.Worker(lossy.url, queue_name, handler, batch_size=4, drain=True).run()
    assert sorted(seen) == list(range(20))
    assert stats.processed + stats.stale == 20
    assert stats_of(queue, queue_name) == (0, 0, 0, 0)


@pytest.mark.promise("P04")
def test_a_worker_killed_in_the_middle_of_complete_hands_its_results_in_again(
    server: Server,
    database_url: str,
    connect: Callable[..., Connection],
    queue: rowq.Queue,
    queue_name: str,
) -> None:
    ids = fill(queue, queue_name, 2)
    blocker = connect(autocommit=False)

    def handler(message: rowq.Message) -> None:
        if message.data == 0:
            rowq.Queue(blocker).release(queue_name, message.claim_id, [ids[1]])

    with running(rowq.Worker(database_url, queue_name, handler, batch_size=2)) as worker:
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


def test_a_worker_fails_at_once_when_going_on_makes_no_sense(
    database_url: str, queue: rowq.Queue, queue_name: str
) -> None:
    with pytest.raises(rowq.WorkerFailed, match="RQ701 queue_not_found") as raised:
        rowq.Worker(database_url, queue_name + "?", print).run()
    assert isinstance(raised.value.__cause__, rowq.QueueNotFound)
    with pytest.raises(rowq.WorkerFailed, match="PostgreSQL"):
        rowq.Worker("postgresql://me:secret@127.0.0.1:1/db", queue_name, print).run()
    for handler in ("nowhere:f", "os:nothing", "os", "os:sep"):
        with pytest.raises(rowq.WorkerFailed, match="handler"):
            rowq.Worker(database_url, queue_name, handler).run()
    assert queue.peek(queue_name) == []


def test_a_queue_dropped_under_a_worker_ends_it(
    database_url: str, queue: rowq.Queue, queue_name: str
) -> None:
    dropped = threading.Event()

    def drop(_stats: rowq.WorkerStats) -> None:
        if not dropped.is_set():
            queue.drop_queue(queue_name)
            dropped.set()

    worker = rowq.Worker(database_url, queue_name, print, on_progress=drop)
    with pytest.raises(rowq.WorkerFailed, match="RQ701"):
        worker.run()


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
    ],
    ids=str,
)
def test_a_worker_that_cannot_work_is_refused_when_it_is_made(options: dict[str, Any]) -> None:
    with pytest.raises(rowq.InvalidArgument):
        rowq.Worker("postgresql://host/db", "q", print, **options)
    with pytest.raises(rowq.EngineUnknown):
        rowq.Worker("host/db", "q", print)
