"""A worker that listens hears of new messages at once, and only while it has nothing to do."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

import rowq
from rowq.postgres.notifications import PostgresNotifications
from rowq.worker import listener
from rowq.worker.listener import Rate
from tests.cli.conftest import run_app
from tests.engines.base import Connection, wait_until
from tests.helpers.worker_queue import WorkerQueue
from tests.helpers.workers import running

HOUR = 3600.0
RARELY = {"idle_min_seconds": HOUR, "idle_max_seconds": HOUR}
"""Options of a worker that would poll once an hour."""
LISTENERS = """
    select l.pid from pg_locks l join rowq.queue q on q.part_id = l.objid::bigint
    where l.locktype = 'advisory' and l.classid = 1919907698 and q.queue_name = %s
    """


@pytest.fixture
def connection(notifying_url: str) -> Iterator[Connection]:
    with psycopg.connect(notifying_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def queue(notifying_url: str, connection: Connection, queue_name: str) -> WorkerQueue:
    queue = WorkerQueue(notifying_url, rowq.Queue(connection), queue_name, {"listen": True})
    queue.create_queue()
    return queue


def listeners(connection: Connection, queue: WorkerQueue) -> set[int]:
    return {pid for (pid,) in connection.execute(LISTENERS, [queue.name])}


@contextmanager
def listening(connection: Connection, queue: WorkerQueue, **options: Any) -> Iterator[list[int]]:
    """Run a worker, from the moment when it listens; yield the data that it has handled."""
    seen: list[int] = []
    with running(queue.worker(lambda message: seen.append(message.data), **options)):
        wait_until(lambda: bool(listeners(connection, queue)), "it listens")
        yield seen


def cut_off(connection: Connection, queue: WorkerQueue) -> set[int]:
    """End the sessions that listen, and return them."""
    found = listeners(connection, queue)
    for pid in found:
        connection.execute("select pg_terminate_backend(%s)", [pid])
    return found


def test_a_message_is_handled_though_the_next_poll_is_an_hour_away(
    connection: Connection, queue: WorkerQueue
) -> None:
    with listening(connection, queue, threads=2, **RARELY) as seen:
        for number in range(20):
            queue.enqueue(number)
            wait_until(lambda: len(seen) > number, "the message is handled")  # noqa: B023
    assert seen == list(range(20))
    wait_until(lambda: not listeners(connection, queue), "its connection is gone")


def test_it_listens_again_when_its_connection_is_cut(
    connection: Connection, queue: WorkerQueue
) -> None:
    with listening(connection, queue, **RARELY) as seen:
        cut = cut_off(connection, queue)
        wait_until(lambda: bool(listeners(connection, queue) - cut), "it listens again")
        queue.enqueue(1)
        wait_until(lambda: seen == [1], "the message is handled")


def test_a_busy_worker_does_not_listen(connection: Connection, queue: WorkerQueue) -> None:
    go = threading.Event()
    worker = queue.worker(lambda _message: go.wait(60), batch_size=1)
    with running(worker):
        wait_until(lambda: bool(listeners(connection, queue)), "it listens while it is idle")
        queue.enqueue(1)
        wait_until(lambda: not listeners(connection, queue), "it listens no more")
        go.set()
        wait_until(lambda: bool(listeners(connection, queue)), "it listens again")


def test_where_too_many_come_it_polls_for_a_while(
    connection: Connection, queue: WorkerQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "_MOST_A_SECOND", 0)
    with listening(connection, queue) as seen:

        def rests() -> bool:
            queue.enqueue(1)
            return not listeners(connection, queue)

        wait_until(rests, "it rests from listening")
        queue.enqueue(2)
        wait_until(lambda: 2 in seen, "the message is handled")
        wait_until(lambda: bool(listeners(connection, queue)), "it listens again")


def test_a_worker_that_has_listened_before_polls_while_it_hears_nothing(
    connection: Connection, queue: WorkerQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "_AGAIN_SECONDS", 0.1)
    is_deaf = PostgresNotifications.is_deaf
    with listening(connection, queue) as seen:
        tried: list[float] = []

        def hears_nothing(_ear: PostgresNotifications, _other: Connection, seconds: float) -> bool:
            tried.append(seconds)
            return True

        monkeypatch.setattr(PostgresNotifications, "is_deaf", hears_nothing)
        cut = cut_off(connection, queue)
        wait_until(lambda: len(tried) > 1, "it tries again and again")
        queue.enqueue(1)
        wait_until(lambda: seen == [1], "the message is handled")
        monkeypatch.setattr(PostgresNotifications, "is_deaf", is_deaf)
        wait_until(lambda: bool(listeners(connection, queue) - cut), "it listens again")


@pytest.mark.promise("P16")
def test_it_polls_while_a_stranger_holds_the_lock_and_listens_afterwards(
    notifying_url: str, connection: Connection, queue: WorkerQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "_AGAIN_SECONDS", 0.1)
    seen: list[int] = []
    worker = queue.worker(lambda message: seen.append(message.data))
    with psycopg.connect(notifying_url, autocommit=True) as stranger:
        stranger.execute(
            "select pg_advisory_lock(1919907698, part_id) from rowq.queue where queue_name = %s",
            [queue.name],
        )
        own = {stranger.info.backend_pid}
        with running(worker):
            queue.enqueue(1)
            wait_until(lambda: seen == [1], "the message is handled")
            assert listeners(connection, queue) == own
            stranger.close()
            wait_until(lambda: bool(listeners(connection, queue) - own), "it listens")


def test_a_rate_is_over_only_once_there_were_too_many() -> None:
    rate = Rate(2)
    for expected in (False, False, True):
        rate.count()
        assert rate.is_over is expected


def test_it_ends_with_a_named_error_where_transactions_may_be_prepared(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as there:
        if there.execute("show max_prepared_transactions").fetchone() == ("0",):
            pytest.skip(
                "this server prepares no transactions"
                "; to run it: start it with max_prepared_transactions = 10"
            )
        rowq.Queue(there).create_queue("prepared")
    with pytest.raises(rowq.WorkerFailed, match="prepared transactions"):
        rowq.Worker(database_url, "prepared", print, listen=True).run()


def test_the_command_line_lets_a_worker_listen(notifying_url: str, queue: WorkerQueue) -> None:
    queue.enqueue(1)
    ran = run_app(
        "work", queue.name, "--exec", "true", "--listen", "--drain", "--json", url=notifying_url
    )
    assert (ran.code, ran.row["processed"]) == (0, 1)
