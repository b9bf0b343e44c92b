"""Listening sessions are notified of new messages; without one, producers do not notify."""

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from rowq.worker.engines.postgres import PostgresNotifications
from tests.engine_only.postgres.conftest import Open
from tests.engines.base import Connection, wait_until
from tests.helpers.calls import (
    call,
    call_one,
    dequeue_one,
    enqueue,
    refused,
    rolled_back,
    transaction,
)
from tests.helpers.queues import CheckedQueue

SOON = 10.0
"""Seconds in which a notification must arrive. No test waits for one that must not."""


class Listener:
    """A listening session; `told` stops at a notification that the test itself sends."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._notifications = PostgresNotifications(connection)
        connection.execute("listen rowq")

    def told(self) -> list[str]:
        """Return the notified queue names so far."""
        self.connection.execute("notify rowq, 'the end'")
        heard: list[str] = []
        while "the end" not in heard:
            new = self._notifications.wait(SOON)
            assert new, "not even the own notification came"
            heard += new
        return [name for name in heard if name != "the end"]


@pytest.fixture
def producer(open_notifying: Open, queue_name: str) -> Connection:
    producer = open_notifying()
    call(producer, "create_queue", queue_name=queue_name)
    return producer


@pytest.fixture
def listener(open_notifying: Open) -> Listener:
    return Listener(open_notifying())


def listen(listener: Listener, queue: str) -> str:
    return str(call_one(listener.connection, "listen", queue_name=queue).outcome)


def unlisten(listener: Listener, queue: str) -> str:
    return str(call_one(listener.connection, "unlisten", queue_name=queue).outcome)


@pytest.mark.pitfall("postgres 10")
def test_notifications_arrive_from_listen_to_unlisten(
    producer: Connection, listener: Listener, queue_name: str
) -> None:
    enqueue(producer, queue_name, "before")
    assert listener.told() == []
    assert listen(listener, queue_name) == "listening"
    enqueue(producer, queue_name, "while listening")
    assert listener.told() == [queue_name]
    assert unlisten(listener, queue_name) == "stopped"
    enqueue(producer, queue_name, "after")
    assert listener.told() == []


def test_connection_of_the_same_server_is_not_deaf(open_notifying: Open) -> None:
    notifications = PostgresNotifications(open_notifying())
    assert not notifications.is_deaf(open_notifying(), SOON)


def test_connection_of_another_server_is_deaf(open_notifying: Open, owner: Connection) -> None:
    """The two connections are to different servers."""
    assert PostgresNotifications(open_notifying()).is_deaf(owner, 0.2)


def test_stopped_listener_has_no_channel(open_notifying: Open) -> None:
    own = open_notifying()
    notifications = PostgresNotifications(own)
    own.execute("listen rowq")
    notifications.end()
    assert own.execute("select pg_listening_channels()").fetchall() == []


@pytest.mark.parametrize(
    ("payload", "count", "kept"), [("repeat('x', 7000)", 2000, 0), ("'q'", 12_000, 10_000)]
)
def test_foreign_notifications_are_discarded(
    open_notifying: Open, payload: str, count: int, kept: int
) -> None:
    own, other = open_notifying(), open_notifying()
    notifications = PostgresNotifications(own)
    own.execute("listen rowq")
    other.execute(
        f"select count(pg_notify('rowq', {payload} || g)) from generate_series(1, {count}) g"
    )
    # All of them arrive with the answer to a call.
    own.execute("select 1")
    while notifications.received < count:
        notifications._collect()
        own.execute("select 1")
    assert len(notifications._names) == kept


@pytest.mark.promise("P01")
def test_notification_arrives_at_commit_and_never_after_rollback(
    producer: Connection, listener: Listener, queue_name: str
) -> None:
    listen(listener, queue_name)
    with rolled_back(producer):
        enqueue(producer, queue_name, "taken back")
    assert listener.told() == []
    with transaction(producer):
        enqueue(producer, queue_name, "one", "two")
        assert listener.told() == []
    assert listener.told() == [queue_name]


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        ([{"body": "a"}, {"body": "b"}], 1),
        ([{"body": "a", "dedup_key": "k"}, {"body": "b"}], 1),
        ([{"body": "a", "delay_seconds": 3600}], 0),
        ([{"body": "a", "delay_seconds": 3600, "dedup_key": "k"}], 0),
        ([], 0),
    ],
)
def test_batch_with_ready_messages_notifies_once(
    producer: Connection,
    listener: Listener,
    queue_name: str,
    messages: list[dict[str, object]],
    told: int,
) -> None:
    listen(listener, queue_name)
    call(producer, "enqueue_batch", queue_name=queue_name, messages=messages)
    assert listener.told() == [queue_name] * told


def test_delayed_message_and_duplicate_do_not_notify(
    producer: Connection, listener: Listener, queue_name: str
) -> None:
    enqueue(producer, queue_name, "first", dedup_key="k")
    listen(listener, queue_name)
    enqueue(producer, queue_name, "later", delay_seconds=3600)
    enqueue(producer, queue_name, "again", dedup_key="k")
    assert listener.told() == []


@pytest.mark.promise("P10", "P11", "P13")
def test_returned_or_promoted_message_notifies(
    producer: Connection, listener: Listener, queue_name: str
) -> None:
    listen(listener, queue_name)

    def told_of(routine: str, **arguments: Any) -> int:
        call(producer, routine, queue_name=queue_name, **arguments)
        return listener.told().count(queue_name)

    def claim(**arguments: Any) -> dict[str, int]:
        return {"claim_id": dequeue_one(producer, queue_name, **arguments).claim_id}

    (message_id,) = enqueue(producer, queue_name, "comes back")
    assert listener.told() == [queue_name]
    assert told_of("release", **claim()) == 1
    assert told_of("retry_later", **claim(), delay_seconds=0) == 1
    assert told_of("fail_now", **claim()) == 0
    assert told_of("reset", message_ids=[message_id]) == 1
    assert told_of("retry_later", **claim(), delay_seconds=0.01) == 0
    producer.execute("select pg_sleep(0.02)")
    assert told_of("maintain") == 1
    claim(lease_seconds=1)
    producer.execute("select pg_sleep(1.1)")
    assert told_of("maintain") == 1
    assert told_of("maintain") == 0


@pytest.mark.promise("P18")
def test_resume_queue_notifies(producer: Connection, listener: Listener, queue_name: str) -> None:
    listen(listener, queue_name)
    call(producer, "pause_queue", queue_name=queue_name)
    assert listener.told() == []
    call(producer, "resume_queue", queue_name=queue_name)
    assert listener.told() == [queue_name]


@pytest.mark.promise("P19")
def test_one_session_is_elected_leader_until_it_ends(
    producer: Connection, open_notifying: Open, queue_name: str
) -> None:
    def is_elected(session: Connection, name: str = queue_name) -> bool:
        return bool(call_one(session, "elect_leader", queue_name=name).elected)

    another = f"{queue_name} another"
    call(producer, "create_queue", queue_name=another)
    first, second = open_notifying(), open_notifying()
    assert is_elected(first)
    assert is_elected(first)
    assert not is_elected(second)
    assert is_elected(second, another)
    # The election does not stop other sessions from calling maintain.
    assert call_one(second, "maintain", queue_name=queue_name).elected
    first.close()
    wait_until(lambda: is_elected(second), "the server has seen the end of the first")


def test_own_messages_notify_if_another_session_listens(
    producer: Connection, listener: Listener, queue_name: str
) -> None:
    listen(listener, queue_name)
    enqueue(listener.connection, queue_name, "its own")
    assert listener.told() == []
    call_one(producer, "listen", queue_name=queue_name)
    enqueue(listener.connection, queue_name, "its own, beside another that listens")
    assert listener.told() == [queue_name]


def test_listen_is_per_session_and_queue(
    producer: Connection, listener: Listener, open_notifying: Open, queue_name: str
) -> None:
    other = Listener(open_notifying())
    another = f"{queue_name} another"
    call(producer, "create_queue", queue_name=another)
    listen(listener, queue_name)
    listen(other, queue_name)
    assert unlisten(other, queue_name) == "stopped"
    enqueue(producer, another, "no session listens")
    enqueue(producer, queue_name, "one session listens")
    assert listener.told() == [queue_name]


def test_ended_session_stops_listening(
    producer: Connection, listener: Listener, open_notifying: Open, queue_name: str
) -> None:
    dying = open_notifying()
    call_one(dying, "listen", queue_name=queue_name)
    dying.close()
    wait_until(lambda: not _is_listened(producer), "the server has seen the end of it")
    enqueue(producer, queue_name, "no session listens")
    assert listener.told() == []


def test_producer_holds_no_lock_of_listen(
    producer: Connection, listener: Listener, open_notifying: Open, queue_name: str
) -> None:
    with transaction(producer):
        enqueue(producer, queue_name, "open")
        assert not _is_listened(producer)
        # Neither the listening session nor another producer waits.
        listener.connection.execute("set lock_timeout = '5s'")
        assert listen(listener, queue_name) == "listening"
        enqueue(open_notifying(), queue_name, "beside")


def test_unlisten_without_listen_raises_no_warning(open_notifying: Open, queue_name: str) -> None:
    session = open_notifying()
    call(session, "create_queue", queue_name=queue_name)
    notices: list[str | None] = []
    session.add_notice_handler(lambda notice: notices.append(notice.message_primary))
    assert call_one(session, "unlisten", queue_name=queue_name).outcome == "not_listening"
    assert notices == []


@pytest.mark.promise("P15")
@pytest.mark.parametrize("routine", ["elect_leader", "listen", "unlisten"])
@pytest.mark.parametrize(("name", "number"), [("nowhere", "RQ701"), (None, "RQ711")])
def test_listen_to_an_unknown_queue_is_refused(
    open_notifying: Open, routine: str, name: str | None, number: str
) -> None:
    refused(open_notifying(), number, routine, queue_name=name)


@pytest.mark.pitfall("postgres 10")
@pytest.mark.promise("P01")
def test_listen_is_unavailable_with_prepared_transactions(
    owner: Connection, open_owner: Open, own_queue: CheckedQueue
) -> None:
    row = owner.execute("select current_setting('max_prepared_transactions')").fetchone()
    if row == ("0",):
        pytest.skip(
            "this server prepares no transactions"
            "; to run it: start it with max_prepared_transactions = 10"
        )
    assert own_queue.call_one("listen").outcome == "unavailable"
    # Hold the lock that another producer would hold while it tries it.
    held = "select pg_advisory_lock_shared(1919907698, queue_id) from rowq.queue"
    open_owner().execute(held)
    owner.execute("begin")
    own_queue.enqueue("prepared")
    owner.execute("prepare transaction 'rowq_listen'")
    owner.execute("commit prepared 'rowq_listen'")


@pytest.mark.promise("P16")
def test_listen_is_busy_while_another_session_holds_the_lock(
    producer: Connection, open_notifying: Open, queue_name: str
) -> None:
    held = "select pg_advisory_lock(1919907698, queue_id) from rowq.queue where queue_name = %s"
    other = open_notifying()
    other.execute(held, [queue_name])
    producer.execute("set lock_timeout = '1ms'")
    assert call_one(producer, "listen", queue_name=queue_name).outcome == "busy"
    other.close()
    wait_until(
        lambda: call_one(producer, "listen", queue_name=queue_name).outcome == "listening",
        "the lock is free",
    )


def test_listen_succeeds_while_producers_try_the_lock(
    producer: Connection, open_notifying: Open, queue_name: str
) -> None:
    tries = """
        select count(*) filter (where rowq.internal_is_listened(q.queue_id + 0 * g))
        from rowq.queue q, generate_series(1, 500000) g
        where q.queue_name = %s
        """
    listener = open_notifying()
    with ThreadPoolExecutor(1) as threads:
        trying = threads.submit(producer.execute, tries, [queue_name])
        while not trying.done():
            assert call_one(listener, "listen", queue_name=queue_name).outcome == "listening"
            assert call_one(listener, "unlisten", queue_name=queue_name).outcome == "stopped"
        trying.result()


def test_cancelled_producer_leaves_no_lock(
    producer: Connection, open_notifying: Open, queue_name: str
) -> None:
    """Cancel many times during many tries."""
    canceller = open_notifying()
    tries = """
        select count(*) filter (where rowq.internal_is_listened(q.queue_id + 0 * g))
        from rowq.queue q, generate_series(1, 100000000) g
        where q.queue_name = %s
        """
    for _ in range(20):
        with ThreadPoolExecutor(1) as threads:
            trying = threads.submit(producer.execute, tries, [queue_name])

            def is_cancelled(trying: Future[Any] = trying) -> bool:
                canceller.execute(CANCEL, [producer.info.backend_pid])
                return trying.done()

            wait_until(is_cancelled, "it is cancelled")
            with pytest.raises(psycopg.errors.QueryCanceled):
                trying.result()
        assert not _is_listened(canceller)


CANCEL = """
    select pg_cancel_backend(pid) from pg_stat_activity
    where pid = %s and state = 'active' and clock_timestamp() > query_start + interval '10 ms'
    """


def _is_listened(connection: Connection) -> bool:
    query = "select from pg_locks where locktype = 'advisory' and classid = 1919907698"
    return connection.execute(query).fetchone() is not None
