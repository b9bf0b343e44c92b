"""Who listens is told of new messages; where nobody does, producers notify nobody."""

from __future__ import annotations

import psycopg
import pytest

from rowq.engines.postgres import PostgresEar
from tests.engine_only.postgres.conftest import Open
from tests.engines.base import Connection, wait_until
from tests.helpers.calls import call, one, refused, rolled_back, send, transaction

SOON = 10.0
"""Seconds in which a notification must come; there is no test that waits for one that must not."""


class Listener:
    """A session that hears the channel; `told` ends with what this test itself notifies."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._ear = PostgresEar(connection)
        connection.execute("listen rowq")

    def told(self) -> list[str]:
        """Return the names told so far, those of `listen` itself left out."""
        self.connection.execute("notify rowq, 'the end'")
        heard: list[str] = []
        while "the end" not in heard:
            new = self._ear.hear(SOON)
            assert new, "not even the own notification came"
            heard += new
        return [name for name in heard if name not in {"", "the end"}]


@pytest.fixture
def producer(open_notifying: Open, queue_name: str) -> Connection:
    producer = open_notifying()
    call(producer, "create_queue", queue_name=queue_name)
    return producer


@pytest.fixture
def listener(open_notifying: Open) -> Listener:
    return Listener(open_notifying())


def listen(listener: Listener, queue: str) -> str:
    return str(one(listener.connection, "listen", queue_name=queue).outcome)


def unlisten(listener: Listener, queue: str) -> str:
    return str(one(listener.connection, "unlisten", queue_name=queue).outcome)


def test_a_message_is_told_of_from_listen_to_unlisten_only(
    producer: Connection, listener: Listener, queue_name: str
) -> None:
    send(producer, queue_name, "before")
    assert listener.told() == []
    assert listen(listener, queue_name) == "listening"
    send(producer, queue_name, "meanwhile")
    assert listener.told() == [queue_name]
    assert unlisten(listener, queue_name) == "stopped"
    send(producer, queue_name, "after")
    assert listener.told() == []


def test_listen_itself_is_heard_first(producer: Connection, open_notifying: Open) -> None:
    call(producer, "create_queue", queue_name="heard")
    session = open_notifying()
    ear = PostgresEar(session)
    one(session, "listen", queue_name="heard")
    assert ear.hear(SOON) == [""]


@pytest.mark.promise("P01")
def test_it_is_told_at_the_commit_and_never_of_what_was_rolled_back(
    producer: Connection, listener: Listener, queue_name: str
) -> None:
    listen(listener, queue_name)
    with rolled_back(producer):
        send(producer, queue_name, "taken back")
    assert listener.told() == []
    with transaction(producer):
        send(producer, queue_name, "one", "two")
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
def test_a_batch_is_told_of_once_if_any_of_it_is_ready(
    producer: Connection,
    listener: Listener,
    queue_name: str,
    messages: list[dict[str, object]],
    told: int,
) -> None:
    listen(listener, queue_name)
    call(producer, "enqueue_batch", queue_name=queue_name, messages=messages)
    assert listener.told() == [queue_name] * told


def test_a_delayed_message_and_a_duplicate_are_not_told_of(
    producer: Connection, listener: Listener, queue_name: str
) -> None:
    send(producer, queue_name, "first", dedup_key="k")
    listen(listener, queue_name)
    send(producer, queue_name, "later", delay_seconds=3600)
    send(producer, queue_name, "again", dedup_key="k")
    assert listener.told() == []


def test_each_listens_for_itself_and_to_each_queue_for_itself(
    producer: Connection, listener: Listener, open_notifying: Open, queue_name: str
) -> None:
    other = Listener(open_notifying())
    another = f"{queue_name} another"
    call(producer, "create_queue", queue_name=another)
    listen(listener, queue_name)
    listen(other, queue_name)
    assert unlisten(other, queue_name) == "stopped"
    send(producer, another, "nobody listens to this one")
    send(producer, queue_name, "one still listens")
    assert listener.told() == [queue_name]


def test_a_session_that_ends_listens_no_more(
    producer: Connection, listener: Listener, open_notifying: Open, queue_name: str
) -> None:
    dying = open_notifying()
    one(dying, "listen", queue_name=queue_name)
    dying.close()
    wait_until(lambda: not _is_listened(producer), "the server has seen the end of it")
    send(producer, queue_name, "nobody is told")
    assert listener.told() == []


def test_a_producer_keeps_no_lock_of_it_and_waits_for_none(
    producer: Connection, listener: Listener, open_notifying: Open, queue_name: str
) -> None:
    with transaction(producer):
        send(producer, queue_name, "open")
        assert not _is_listened(producer)
        # Nobody waits here: neither who begins to listen nor another producer.
        listener.connection.execute("set lock_timeout = '5s'")
        assert listen(listener, queue_name) == "listening"
        send(open_notifying(), queue_name, "beside")


def test_unlisten_without_listen_is_answered_without_a_warning(
    open_notifying: Open, queue_name: str
) -> None:
    session = open_notifying()
    call(session, "create_queue", queue_name=queue_name)
    notices: list[str | None] = []
    session.add_notice_handler(lambda notice: notices.append(notice.message_primary))
    assert one(session, "unlisten", queue_name=queue_name).outcome == "not_listening"
    assert notices == []


@pytest.mark.promise("P15")
@pytest.mark.parametrize("routine", ["listen", "unlisten"])
@pytest.mark.parametrize(("name", "number"), [("nowhere", "RQ701"), (None, "RQ711")])
def test_a_queue_that_is_none_is_refused(
    open_notifying: Open, routine: str, name: str | None, number: str
) -> None:
    refused(open_notifying(), number, routine, queue_name=name)


@pytest.mark.promise("P01")
def test_where_transactions_may_be_prepared_nobody_listens_and_all_can_be_prepared(
    server: object, lone: Connection, q: str
) -> None:
    row = lone.execute("select current_setting('max_prepared_transactions')").fetchone()
    if row == ("0",):
        pytest.skip(f"{server} prepares no transactions")
    assert one(lone, "listen", queue_name=q).outcome == "unavailable"
    lone.execute("begin")
    send(lone, q, "prepared")
    lone.execute("prepare transaction 'rowq_listen'")
    lone.execute("commit prepared 'rowq_listen'")


def test_a_cancelled_producer_leaves_no_lock(
    producer: Connection, open_notifying: Open, queue_name: str
) -> None:
    """A hundred cancels at chance moments of an enqueue: none may keep the lock it tries."""
    canceller = open_notifying()
    pid = producer.info.backend_pid
    for _ in range(100):
        canceller.execute("select pg_cancel_backend(%s)", [pid])
        try:
            send(producer, queue_name, "cancelled perhaps")
        except psycopg.errors.QueryCanceled:
            continue
    assert not _is_listened(canceller)


def _is_listened(connection: Connection) -> bool:
    query = "select from pg_locks where locktype = 'advisory' and classid = 1919907698"
    return connection.execute(query).fetchone() is not None
