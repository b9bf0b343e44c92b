"""Reports of a worker."""

import logging
import os
import socket
from collections.abc import Callable
from typing import Any

import pytest

import rowq
from rowq.engines import engine_for_url
from rowq.worker import heartbeat
from rowq.worker.context import log
from rowq.worker.heartbeat import Reports
from tests.engines.base import Connection, wait_until
from tests.helpers.dialects import dialect_of
from tests.helpers.worker_queue import MakeQueue, WorkerQueue
from tests.helpers.workers import running

Break = Callable[[Any], None]


@pytest.fixture
def queue(make_queue: MakeQueue) -> WorkerQueue:
    return make_queue(lease_seconds=60, backoff_base_seconds=3600)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "_REPORT_SECONDS", 0.2)


@pytest.fixture
def asked(database_url: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the worker ids of this process's reports."""
    engine, ids = engine_for_url(database_url), list[str]()
    call = engine.call

    def counted(connection: Any, routine: str, arguments: Any) -> Any:
        if routine == "report_worker":
            ids.append(arguments["worker_id"])
        return call(connection, routine, arguments)

    monkeypatch.setattr(engine, "call", counted)
    return ids


def reported(queue: WorkerQueue) -> list[rowq.WorkerReport]:
    found: list[rowq.WorkerReport] = queue.list_workers()
    return found


def test_idle_worker_is_listed_until_its_end(queue: WorkerQueue) -> None:
    with running(queue.worker(print, threads=3)):
        wait_until(lambda: len(reported(queue)) == 1, "it is listed")
        (row,) = reported(queue)
    assert row.worker_name == f"{socket.gethostname()}:{os.getpid()}"
    assert (row.host_name, row.threads) == (socket.gethostname(), 3)
    assert row.worker_version == f"rowq {rowq.__version__}"
    assert (row.completed, row.failed) == (0, 0)
    assert reported(queue) == []


def test_idle_worker_reports_rarely(queue: WorkerQueue, asked: list[str]) -> None:
    with running(queue.worker(print)) as worker:
        wait_until(lambda: bool(asked), "it reports")
        polling = worker._context.polling
        wait_until(polling.was_idle, "it is idle")
        for number in range(3):
            queue.enqueue(number)
            wait_until(lambda: worker.stats.processed > number, "it works")  # noqa: B023
        assert len(asked) == 1
    assert asked == [worker._context.worker_id] * 2


@pytest.mark.usefixtures("often")
def test_worker_reports_its_counts(queue: WorkerQueue) -> None:
    def handler(message: rowq.Message) -> rowq.Fail | None:
        if message.data == 0:
            raise ValueError("another attempt")
        return rowq.Fail("dead") if message.data == 1 else None

    queue.fill(10)
    with running(queue.worker(handler, worker_name="busy")):

        def counts() -> list[tuple[str | None, int, int]]:
            return [(row.worker_name, row.completed, row.failed) for row in reported(queue)]

        wait_until(lambda: counts() == [("busy", 8, 2)], "it has reported all")
        # No message was handled between its last two reports.
        wait_until(lambda: reported(queue)[0].completed_per_second == 0, "it is idle")


def test_async_worker_reports_parallel_handlers(queue: WorkerQueue) -> None:
    async def handler(_: rowq.Message) -> None: ...

    options: dict[str, Any] = {"concurrent": True, "threads": 2, "batch_size": 5}
    with running(queue.worker(handler, **options)):
        wait_until(lambda: len(reported(queue)) == 1, "it is listed")
        assert reported(queue)[0].threads == 10


@pytest.mark.slow("waits for time limits")
def test_each_process_reports(queue: WorkerQueue) -> None:
    with running(queue.worker("tests.client.handlers:nothing", processes=2, worker_name="w")):
        wait_until(lambda: len(reported(queue)) == 2, "both are listed", 60)
        rows = reported(queue)
        assert sorted(row.worker_name or "" for row in rows) == ["w-1", "w-2"]
        assert len({row.worker_id for row in rows}) == 2
    assert reported(queue) == []


@pytest.mark.usefixtures("often")
def test_striped_worker_reports_per_stripe(
    connection: Connection, database_url: str, queue_name: str
) -> None:
    striped = rowq.Striped(queue_name, 3, rowq.Queue(connection))
    striped.create_queue()
    striped.enqueue_batch(range(4), stripe=striped.stripes[1])
    queue = rowq.Queue(connection)

    def completed() -> list[list[int]]:
        names = [part.queue_name for part in striped.stripes]
        return [[row.completed for row in queue.list_workers(name)] for name in names]

    with running(rowq.Worker(database_url, queue_name, print, stripes=3)):
        wait_until(lambda: completed() == [[0], [4], [0]], "it has reported to each")
    assert completed() == [[], [], []]


def test_failed_worker_stays_listed(queue: WorkerQueue) -> None:
    handled: list[int] = []
    worker = queue.worker(lambda message: handled.append(message.message_id))

    def fail() -> None:
        wait_until(lambda: len(reported(queue)) == 1, "it is listed")
        worker._context.fail(RuntimeError("broken"))

    worker._on_progress = lambda _: fail()
    with pytest.raises(rowq.WorkerFailed):
        worker.run()
    assert len(reported(queue)) == 1


def _no_such_routine(connection: Any) -> None:
    """Raise the server's error for a missing object."""
    dialect_of(connection).execute(connection, "select 1 from rowq.no_such_table", [])


def _no_text(_: Any) -> None:
    raise TypeError("an error\nof two lines")


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("break_down", [_no_such_routine, _no_text])
def test_failed_report_is_logged_once(
    queue: WorkerQueue,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    break_down: Break,
) -> None:
    """As if the account lacks the role, or the schema is older than the client."""
    engine = engine_for_url(database_url)
    call, sent = engine.call, list[str]()

    def failing(connection: Any, routine: str, arguments: Any) -> Any:
        if routine == "report_worker":
            sent.append(routine)
            break_down(connection)
        return call(connection, routine, arguments)

    monkeypatch.setattr(engine, "call", failing)
    queue.fill(3)
    with caplog.at_level(logging.WARNING, log.name), running(queue.worker(print)) as worker:
        wait_until(lambda: bool(sent) and worker.stats.processed == 3, "it works")
        for _ in range(3):
            queue.enqueue("more")
        wait_until(lambda: worker.stats.processed == 6, "it continues")
    answer = [text for text in caplog.messages if "cannot report the worker" in text]
    assert len(sent) == len(answer) == 1
    assert "\n" not in answer[0]


def test_report_during_an_outage_is_repeated(
    queue: WorkerQueue, caplog: pytest.LogCaptureFixture
) -> None:
    context = queue.worker(print)._context
    sender = Reports(context, context.servers[0])
    sent: list[str] = []

    class Client:
        def report_worker(self, name: str, *_: Any, **__: Any) -> None:
            sent.append(name)
            if len(sent) == 1:
                raise rowq.CannotConnect("unreachable")

    client: Any = Client()
    sender.send_due(client)
    sender.end(client)
    assert sent == [queue.name]
    sender._due_at = dict.fromkeys(sender._due_at, 0.0)
    sender.send_due(client)
    sender.end(client)
    assert len(sent) == 3
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
