"""A worker listens only while it is idle, and is notified of new messages at once."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import psycopg
import pytest

import rowq
from rowq.engines import engine_for_url
from rowq.engines.postgres.engine import PostgresEngine
from rowq.worker import consumer, listener, sessions
from rowq.worker.engines.postgres import PostgresNotifications
from rowq.worker.listener import Rate
from tests.cli.conftest import run_app
from tests.engines.base import Connection, wait_until
from tests.helpers.dialects import dialect_of
from tests.helpers.worker_queue import WorkerQueue
from tests.helpers.workers import running

HOUR = 3600.0
RARELY = {"idle_min_seconds": HOUR, "idle_max_seconds": HOUR}
"""Options of a worker that polls once an hour."""
LISTENERS = """
    select l.pid from pg_locks l join rowq.queue q on q.queue_id = l.objid::bigint
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
    """Run a worker once it listens; yield the data that it has handled."""
    seen: list[int] = []
    with running(queue.worker(lambda message: seen.append(message.data), **options)) as worker:
        wait_until(lambda: bool(listeners(connection, queue)), "it listens")
        # Its session has the lock before the worker has the answer.
        polling = worker._context.polling
        wait_until(
            lambda: polling.has_polled_all_since(time.monotonic()), "it knows that it listens"
        )
        yield seen


def cut_off(connection: Connection, queue: WorkerQueue) -> set[int]:
    """End the listening sessions, and return them."""
    found = listeners(connection, queue)
    for pid in found:
        connection.execute("select pg_terminate_backend(%s)", [pid])
    return found


def test_notified_worker_handles_a_message_at_once(
    connection: Connection, queue: WorkerQueue
) -> None:
    with listening(connection, queue, threads=2, **RARELY) as seen:
        for number in range(20):
            queue.enqueue(number)
            wait_until(lambda: len(seen) > number, "the message is handled")  # noqa: B023
    assert seen == list(range(20))
    wait_until(lambda: not listeners(connection, queue), "its connection is gone")


def test_worker_listens_again_after_a_lost_connection(
    connection: Connection, queue: WorkerQueue
) -> None:
    with listening(connection, queue, **RARELY) as seen:
        cut = cut_off(connection, queue)
        wait_until(lambda: bool(listeners(connection, queue) - cut), "it listens again")
        queue.enqueue(1)
        wait_until(lambda: seen == [1], "the message is handled")


@pytest.mark.pitfall("postgres 10")
def test_stopping_worker_stops_listening(connection: Connection, queue: WorkerQueue) -> None:
    begun, go = threading.Event(), threading.Event()

    def handler(_message: rowq.Message) -> None:
        begun.set()
        go.wait(60)

    with running(queue.worker(handler, threads=2, **RARELY)) as worker:
        wait_until(lambda: bool(listeners(connection, queue)), "it listens")
        queue.enqueue(1)
        assert begun.wait(60)
        wait_until(lambda: bool(listeners(connection, queue)), "its other thread listens")
        worker.stop()
        wait_until(lambda: not listeners(connection, queue), "it stops listening")
        go.set()


def test_busy_worker_does_not_listen(connection: Connection, queue: WorkerQueue) -> None:
    go = threading.Event()
    worker = queue.worker(lambda _message: go.wait(60), batch_size=1)
    with running(worker):
        wait_until(lambda: bool(listeners(connection, queue)), "it listens while it is idle")
        queue.enqueue(1)
        wait_until(lambda: not listeners(connection, queue), "it stops listening")
        go.set()
        wait_until(lambda: bool(listeners(connection, queue)), "it listens again")


@pytest.fixture
def notification_objects(monkeypatch: pytest.MonkeyPatch) -> list[PostgresNotifications]:
    """Record the notifications objects of listening connections."""
    made: list[PostgresNotifications] = []
    prepare = PostgresNotifications.__init__

    def recorded(notifications: PostgresNotifications, connection: Connection) -> None:
        prepare(notifications, connection)
        made.append(notifications)

    monkeypatch.setattr(PostgresNotifications, "__init__", recorded)
    return made


def flood(connection: Connection, queue: WorkerQueue, count: int) -> None:
    """Notify the channel of the queue's workers, as the owner of rowq can."""
    connection.execute(
        "select count(pg_notify(rowq.internal_channel(q.queue_id), g::text))"
        " from rowq.queue q, generate_series(1, %s) g where q.queue_name = %s",
        [count, queue.name],
    )


def test_busy_worker_receives_no_notifications(
    connection: Connection, queue: WorkerQueue, notification_objects: list[PostgresNotifications]
) -> None:
    go = threading.Event()
    with running(queue.worker(lambda _message: go.wait(60), batch_size=1)):
        wait_until(lambda: bool(listeners(connection, queue)), "it listens while it is idle")
        queue.enqueue(1)
        wait_until(lambda: not listeners(connection, queue), "it stops listening")
        flood(connection, queue, 1000)
        go.set()
        wait_until(lambda: bool(listeners(connection, queue)), "it listens again")
        assert sum(notifications.received for notifications in notification_objects) < 1000


def test_worker_leaves_a_flood_of_notifications_and_polls(
    connection: Connection,
    queue: WorkerQueue,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(listener, "_FLOOD_PER_SECOND", 100)
    monkeypatch.setattr(listener, "_RETRY_SECONDS", 0.1)
    with listening(connection, queue) as seen:
        flooded = listeners(connection, queue)
        flood(connection, queue, 1000)
        wait_until(lambda: "too many notifications" in caplog.text, "it notices the flood")
        queue.enqueue(1)
        wait_until(lambda: seen == [1], "the message is handled")
        wait_until(lambda: bool(listeners(connection, queue) - flooded), "it listens again")


def test_worker_polls_while_notifications_are_too_many(
    connection: Connection, queue: WorkerQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "_MOST_PER_SECOND", 0)
    with listening(connection, queue) as seen:

        def rests() -> bool:
            queue.enqueue(1)
            return not listeners(connection, queue)

        wait_until(rests, "it rests from listening")
        queue.enqueue(2)
        wait_until(lambda: 2 in seen, "the message is handled")
        wait_until(lambda: bool(listeners(connection, queue)), "it listens again")


def test_worker_polls_a_limited_queue(
    connection: Connection, queue: WorkerQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "_SETTING_SECONDS", 0.2)
    with listening(connection, queue) as seen:
        queue.alter_queue(max_leased=1)
        wait_until(lambda: not listeners(connection, queue), "it stops listening")
        queue.enqueue(1)
        wait_until(lambda: seen == [1], "the message is handled")
        assert not listeners(connection, queue)
        queue.alter_queue(max_leased=0)
        wait_until(lambda: bool(listeners(connection, queue)), "it listens again")


def test_limit_in_one_of_several_queues_ends_listening(
    connection: Connection, queue: WorkerQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "_SETTING_SECONDS", 0.2)
    limited = WorkerQueue(queue.url, queue.client, f"{queue.name}/limited")
    limited.create_queue()
    with running(rowq.Worker(queue.url, [queue.name, limited.name], print, listen=True)):
        for limit in (0, 1, 0):
            limited.alter_queue(max_leased=limit)
            wait_until(
                lambda: bool(listeners(connection, queue)) is (limit == 0),  # noqa: B023
                f"it has a limit of {limit}",
            )


def test_worker_polls_while_its_connection_is_deaf(
    connection: Connection, queue: WorkerQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "_RETRY_SECONDS", 0.1)
    is_deaf = PostgresNotifications.is_deaf
    with listening(connection, queue) as seen:
        tried: list[float] = []

        def receives_nothing(
            _ear: PostgresNotifications, _other: Connection, seconds: float
        ) -> bool:
            tried.append(seconds)
            return True

        monkeypatch.setattr(PostgresNotifications, "is_deaf", receives_nothing)
        cut = cut_off(connection, queue)
        wait_until(lambda: len(tried) > 1, "it tries again and again")
        queue.enqueue(1)
        wait_until(lambda: seen == [1], "the message is handled")
        monkeypatch.setattr(PostgresNotifications, "is_deaf", is_deaf)
        wait_until(lambda: bool(listeners(connection, queue) - cut), "it listens again")


@pytest.mark.promise("P16")
def test_worker_polls_while_another_session_holds_the_lock(
    notifying_url: str, connection: Connection, queue: WorkerQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "_RETRY_SECONDS", 0.1)
    seen: list[int] = []
    worker = queue.worker(lambda message: seen.append(message.data))
    with psycopg.connect(notifying_url, autocommit=True) as stranger:
        stranger.execute(
            "select pg_advisory_lock(1919907698, queue_id) from rowq.queue where queue_name = %s",
            [queue.name],
        )
        own = {stranger.info.backend_pid}
        with running(worker):
            queue.enqueue(1)
            wait_until(lambda: seen == [1], "the message is handled")
            assert listeners(connection, queue) == own
            stranger.close()
            wait_until(lambda: bool(listeners(connection, queue) - own), "it listens")


def test_rate_is_exceeded_above_its_limit_only() -> None:
    rate = Rate(2)
    for expected in (False, False, True):
        rate.count()
        assert rate.is_over is expected


def test_one_session_listens_to_three_queues(connection: Connection, queue: WorkerQueue) -> None:
    queues = [WorkerQueue(queue.url, queue.client, f"{queue.name}/{part}") for part in "abc"]
    for one in queues:
        one.create_queue()
    seen: list[str] = []
    names = [one.name for one in queues]
    worker = rowq.Worker(
        queue.url,
        names,
        lambda message: seen.append(message.stripe.queue_name),
        listen=True,
        idle_min_seconds=HOUR,
        idle_max_seconds=HOUR,
    )
    with running(worker):
        polling = worker._context.polling
        wait_until(lambda: polling.has_polled_all_since(time.monotonic()), "it listens")
        sessions_of = [listeners(connection, one) for one in queues]
        assert len(sessions_of[0]) == 1
        assert sessions_of[1:] == sessions_of[:1] * 2
        for number in range(12):
            one = queues[number % 3]
            one.enqueue(number)
            wait_until(lambda: len(seen) > number, "the message is handled")  # noqa: B023
    assert seen == names * 4
    wait_until(lambda: not any(listeners(connection, one) for one in queues), "it has stopped")


class Calls:
    """Count the calls of workers on their connections."""

    def __init__(self, engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: Counter[str] = Counter()
        call = engine.call

        def counted(connection: Any, routine: str, arguments: Any) -> Any:
            if threading.current_thread().name.startswith("rowq-"):
                self.made[routine] += 1
            return call(connection, routine, arguments)

        monkeypatch.setattr(engine, "call", counted)


@pytest.fixture
def calls(notifying_url: str, monkeypatch: pytest.MonkeyPatch) -> Calls:
    engine = engine_for_url(notifying_url)
    assert isinstance(engine, PostgresEngine)
    return Calls(engine, monkeypatch)


def test_worker_listens_by_default(connection: Connection, queue: WorkerQueue) -> None:
    with listening(connection, queue, listen=None, **RARELY) as seen:
        queue.enqueue(1)
        wait_until(lambda: seen == [1], "the message is handled")
    with running(queue.worker(print, listen=False, threads=2)) as worker:
        wait_until(lambda: worker._context.polling._waiting == 1, "it is idle")
        assert not [thread for thread in threading.enumerate() if thread.name == "rowq-listener"]
    assert queue.drain(print, listen=None).processed == 0


def test_message_costs_one_dequeue_and_one_complete(
    connection: Connection, queue: WorkerQueue, calls: Calls
) -> None:
    with listening(connection, queue, threads=2, **RARELY) as seen:
        queue.enqueue(0)
        wait_until(lambda: seen == [0], "the first message is handled")
        calls.made.clear()
        for number in range(1, 101):
            queue.enqueue(number)
            wait_until(lambda: len(seen) > number, "the message is handled")  # noqa: B023
    # The last complete may be missing; some polls find nothing after a late notification.
    exchanged = calls.made["complete_and_dequeue"]
    assert calls.made["complete"] + exchanged <= 101
    assert calls.made["dequeue_fast"] + exchanged <= 125


def test_idle_process_listens_on_its_only_connection(
    notifying_url: str, connection: Connection, queue: WorkerQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (consumer, sessions):
        monkeypatch.setattr(module, "REST_SECONDS", 0.5)
    sessions_of = dialect_of(connection).other_sessions
    before = sessions_of(connection)
    with listening(connection, queue, listen=None, threads=3, **RARELY) as seen:
        wait_until(lambda: sessions_of(connection) == before + 1, "it has one connection")
        opened: list[str] = []
        engine = engine_for_url(notifying_url)
        connect = engine.connect

        def counted(url: str) -> Any:
            opened.append(url)
            return connect(url)

        monkeypatch.setattr(engine, "connect", counted)
        for number in range(20):
            queue.enqueue(number)
            wait_until(lambda: len(seen) > number, "the message is handled")  # noqa: B023
        assert len(listeners(connection, queue)) == 1
        assert opened == []


@contextmanager
def settled(queue: WorkerQueue, count: int) -> Iterator[list[rowq.Worker]]:
    """Run workers as if each were a process, once all but one of them are resting."""
    with ExitStack() as stack:
        workers = [
            stack.enter_context(running(queue.worker(print, listen=None, threads=10)))
            for _ in range(count)
        ]
        wait_until(lambda: len(resting(workers)) == count - 1, "all but one rest")
        yield workers


def resting(workers: list[rowq.Worker]) -> list[rowq.Worker]:
    return [worker for worker in workers if worker._context.follower_seconds]


def test_idle_workers_make_one_call_a_second_per_process(queue: WorkerQueue, calls: Calls) -> None:
    with settled(queue, 5) as workers:
        for worker in workers:
            wait_until(lambda: worker._context.polling._pauses._nominal > 1, "pauses are long")  # noqa: B023
        calls.made.clear()
        began_at = time.monotonic()
        wait_until(lambda: calls.made["maintain"] >= 8, "maintain runs", 60)
        # When they end, all workers call routines, which is not idle time.
        made, seconds = calls.made.total(), time.monotonic() - began_at
    # Each of the five may be about to call.
    assert made <= 5 * seconds + 5
    assert seconds < 30


def test_another_worker_is_elected_when_the_leader_ends(
    queue: WorkerQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "_FOLLOWER_SECONDS", 2.0)
    with settled(queue, 2) as workers:
        (rests,) = resting(workers)
        (elected,) = (worker for worker in workers if worker is not rests)
        elected.stop()
        wait_until(lambda: not rests._context.follower_seconds, "the other one is elected")


def test_due_message_wakes_every_idle_process(connection: Connection, queue: WorkerQueue) -> None:
    with listening(connection, queue, listen=None, **RARELY) as seen:
        queue.enqueue(1, delay_seconds=0.1)
        wait_until(lambda: seen == [1], "the message is handled")


def test_missed_notification_reveals_a_silent_connection(
    connection: Connection, queue: WorkerQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait = PostgresNotifications.wait
    with listening(connection, queue, listen=None, threads=2) as seen:
        own = listeners(connection, queue)

        def receives_nothing(notifications: PostgresNotifications, seconds: float) -> list[str]:
            wait(notifications, seconds)
            return []

        proved: list[bool] = []
        prove = listener.Listener._restart

        def recorded(thread: listener.Listener, *given: Any) -> None:
            monkeypatch.setattr(PostgresNotifications, "wait", wait)
            prove(thread, *given)
            proved.append(True)

        monkeypatch.setattr(listener.Listener, "_restart", recorded)
        monkeypatch.setattr(PostgresNotifications, "wait", receives_nothing)
        for number in range(1000):
            queue.enqueue(number)
            wait_until(lambda: len(seen) > number, "the message is handled")  # noqa: B023
            if proved:
                break
        wait_until(lambda: listeners(connection, queue) == own, "it listens")
    assert proved


def test_stop_ends_a_waiting_worker_at_once(connection: Connection, queue: WorkerQueue) -> None:
    with listening(connection, queue, listen=None, **RARELY):
        began_at = time.monotonic()
    assert time.monotonic() - began_at < 5


def test_worker_polls_with_prepared_transactions(
    database_url: str, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with psycopg.connect(database_url, autocommit=True) as there:
        if there.execute("show max_prepared_transactions").fetchone() == ("0",):
            pytest.skip(
                "this server prepares no transactions"
                "; to run it: start it with max_prepared_transactions = 10"
            )
        client = rowq.Queue(there)
        client.create_queue(queue_name)
        seen: list[int] = []
        with running(rowq.Worker(database_url, queue_name, lambda m: seen.append(m.data))):
            wait_until(lambda: bool(caplog.records), "it logs that it polls")
            for number in range(5):
                client.enqueue(queue_name, number)
                wait_until(lambda: len(seen) > number, "the message is handled")  # noqa: B023
    (said,) = (record for record in caplog.records if "polling" in record.message)
    assert "prepared" in said.message


def test_worker_without_the_right_to_listen_polls(
    connection: Connection, queue: WorkerQueue, caplog: pytest.LogCaptureFixture
) -> None:
    connection.execute("alter function rowq.listen(text) rename to listen_no_more")
    try:
        with running(queue.worker(print, listen=None)) as worker:
            wait_until(lambda: bool(caplog.records), "it logs that it polls")
            queue.enqueue(1)
            wait_until(lambda: worker.stats.processed == 1, "the message is handled")
    finally:
        connection.execute("alter function rowq.listen_no_more(text) rename to listen")
    assert "polling" in caplog.records[0].message


def test_worker_without_the_right_to_elect_leader_polls(
    connection: Connection, queue: WorkerQueue, caplog: pytest.LogCaptureFixture
) -> None:
    connection.execute("alter function rowq.elect_leader(text) rename to elect_nobody")
    try:
        with running(queue.worker(print, listen=None)) as worker:
            wait_until(lambda: bool(caplog.records), "it logs that it polls")
            queue.enqueue(1)
            wait_until(lambda: worker.stats.processed == 1, "the message is handled")
    finally:
        connection.execute("alter function rowq.elect_nobody(text) rename to elect_leader")
    assert "polling" in caplog.records[0].message


def test_worker_polls_normally_after_a_listen_error(
    connection: Connection, queue: WorkerQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, connect = PostgresEngine.call, PostgresEngine.connect
    is_broken = threading.Event()

    def fail_election(self: PostgresEngine, used: Any, routine: str, given: Any) -> Any:
        if routine != "elect_leader":
            return call(self, used, routine, given)
        is_broken.set()
        raise psycopg.errors.QueryCanceled("canceling statement due to statement timeout")

    def fail_to_connect(self: PostgresEngine, url: str) -> Any:
        if is_broken.is_set() and threading.current_thread().name == "rowq-listener":
            raise psycopg.errors.TooManyConnections("sorry, too many clients already")
        return connect(self, url)

    monkeypatch.setattr(listener, "_FOLLOWER_SECONDS", 2.0)
    with psycopg.connect(queue.url, autocommit=True) as leader:
        leader.execute("select rowq.elect_leader(%s)", [queue.name])
        with listening(connection, queue, listen=None, maintain_seconds=1) as seen:
            monkeypatch.setattr(PostgresEngine, "call", fail_election)
            monkeypatch.setattr(PostgresEngine, "connect", fail_to_connect)
            wait_until(is_broken.is_set, "the election fails")
            wait_until(lambda: not listeners(connection, queue), "it stops listening")
            waited = []
            for number in range(3):
                # Its pauses grow to their maximum.
                time.sleep(1.5)
                sent_at = time.monotonic()
                queue.enqueue(number)
                wait_until(lambda: len(seen) > number, "the message is handled")  # noqa: B023
                waited.append(time.monotonic() - sent_at)
            monkeypatch.setattr(PostgresEngine, "connect", connect)
            monkeypatch.setattr(PostgresEngine, "call", call)
    assert max(waited) < 0.4


def test_forced_listen_fails_with_prepared_transactions(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as there:
        if there.execute("show max_prepared_transactions").fetchone() == ("0",):
            pytest.skip(
                "this server prepares no transactions"
                "; to run it: start it with max_prepared_transactions = 10"
            )
        rowq.Queue(there).create_queue("prepared")
    with pytest.raises(rowq.WorkerFailed, match="prepared transactions"):
        rowq.Worker(database_url, "prepared", print, listen=True).run()


def test_cli_option_makes_a_worker_listen(notifying_url: str, queue: WorkerQueue) -> None:
    queue.enqueue(1)
    ran = run_app(
        "work", queue.name, "--exec", "true", "--listen", "--drain", "--json", url=notifying_url
    )
    assert (ran.code, ran.row["processed"]) == (0, 1)


@pytest.mark.parametrize(("option", "is_on"), [((), True), (("--no-listen",), False)])
def test_cli_logs_if_a_worker_listens(
    queue: WorkerQueue, option: tuple[str, ...], is_on: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[bool] = []

    def recorded(worker: rowq.Worker) -> rowq.WorkerStats:
        made.append(worker._context.listening_engine is not None)
        return worker.stats

    monkeypatch.setattr(rowq.Worker, "run", recorded)
    assert run_app("work", queue.name, "--exec", "true", *option, url=queue.url).code == 0
    assert made == [is_on]
