"""Lost connections: no call has effect twice, no message is lost, safe calls are repeated."""

import asyncio
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

import pytest

import rowq
from rowq.session import OwnedSession
from tests.client.proxy import Relay, relay
from tests.engines.base import Connection, Server, wait_until, wait_until_blocked
from tests.helpers.queues import Connect


@pytest.fixture
def lossy(database_url: str) -> Iterator[Relay]:
    with relay(database_url) as started:
        yield started


@pytest.fixture
def queue(lossy: Relay, queue_name: str) -> Iterator[rowq.Queue]:
    with rowq.connect(lossy.url) as queue:
        queue.create_queue(queue_name, lease_seconds=60)
        yield queue


def driver_connection(queue: rowq.Queue) -> Connection:
    return queue._session.connection()


def test_dead_idle_connection_is_replaced_before_a_call(
    server: Server, database_url: str, queue_name: str
) -> None:
    with rowq.connect(database_url) as queue:
        queue.create_queue(queue_name)
        for number in range(3):
            server.kill_session(server.session_id(driver_connection(queue)))
            assert queue.enqueue(queue_name, number).outcome == "enqueued"
        assert [message.data for message in queue.peek(queue_name, max_messages=10)] == [0, 1, 2]


@pytest.mark.promise("P01")
@pytest.mark.parametrize("dedup_key", [None, "key"])
def test_enqueue_with_lost_reply_raises(
    lossy: Relay, queue: rowq.Queue, queue_name: str, dedup_key: str | None
) -> None:
    lossy.lose_next_reply()
    with pytest.raises(
        rowq.ConnectionLost, match="connection lost during enqueue; the call may or may not"
    ):
        queue.enqueue(queue_name, 1, dedup_key=dedup_key)
    assert lossy.lost == 1
    assert len(queue.peek(queue_name, max_messages=10)) == 1


@pytest.mark.promise("P02", "P03")
def test_dequeue_with_lost_reply_leases_other_messages(
    lossy: Relay, queue: rowq.Queue, queue_name: str
) -> None:
    for number in range(2):
        queue.enqueue(queue_name, number)
    lossy.lose_next_reply()
    assert [message.data for message in queue.dequeue_fast(queue_name)] == [1]
    assert queue.dequeue_fast(queue_name) == []
    assert lossy.lost == 1


@pytest.mark.promise("P04", "P08")
def test_complete_with_lost_reply_is_repeated(
    lossy: Relay, queue: rowq.Queue, queue_name: str
) -> None:
    queue.enqueue_batch(queue_name, [rowq.NewMessage(data=n) for n in range(2)])
    first, second = queue.dequeue_fast(queue_name, 2)
    lossy.lose_next_reply()
    outcomes = queue.complete(queue_name, first.claim_id, [first.message_id])
    assert [outcome.outcome for outcome in outcomes] == ["stale"]
    details = queue.get_message(queue_name, first.message_id)
    assert details is None or details.state == "completed"
    outcomes = queue.complete(queue_name, first.claim_id, [second.message_id])
    assert [outcome.outcome for outcome in outcomes] == ["completed"]


@pytest.mark.promise("P04")
@pytest.mark.requires("waits")
def test_killed_waiting_complete_is_repeated(
    server: Server, database_url: str, connect: Connect, queue_name: str
) -> None:
    with rowq.connect(database_url) as queue:
        queue.create_queue(queue_name)
        queue.enqueue_batch(queue_name, [rowq.NewMessage(data=n) for n in range(2)])
        mine, others = queue.dequeue_fast(queue_name, 2)
        blocker = connect(autocommit=False)
        rowq.Queue(blocker).complete(queue_name, mine.claim_id, [others.message_id])
        outcomes: list[rowq.Outcome] = []

        def complete() -> None:
            outcomes.extend(queue.complete(queue_name, mine.claim_id, [mine.message_id]))

        session = server.session_id(driver_connection(queue))
        thread = threading.Thread(target=complete)
        thread.start()
        wait_until_blocked(server, session)
        server.kill_session(session)
        blocker.rollback()
        thread.join(30)
        assert [outcome.outcome for outcome in outcomes] == ["completed"]


def test_killed_dequeue_wait_continues(server: Server, database_url: str, queue_name: str) -> None:
    with rowq.connect(database_url) as queue, rowq.connect(database_url) as other:
        queue.create_queue(queue_name)
        session = server.session_id(driver_connection(queue))
        messages: list[rowq.Message] = []

        def wait() -> None:
            messages.extend(queue.dequeue_wait(queue_name, wait_seconds=30))

        thread = threading.Thread(target=wait)
        thread.start()
        server.kill_session(session)
        other.enqueue(queue_name, "after")
        thread.join(30)
        assert [message.data for message in messages] == ["after"]


@pytest.mark.usefixtures("queue")
def test_late_lost_wait_repeats_with_the_remaining_time(lossy: Relay, queue_name: str) -> None:
    with rowq.connect(lossy.url, reconnect_seconds=0.5) as waiter:
        began = time.monotonic()
        threading.Timer(1.5, lossy.cut).start()
        assert waiter.dequeue_wait(queue_name, wait_seconds=3) == []
        assert 3 <= time.monotonic() - began < 4.2
    assert lossy.accepted == 3


@pytest.mark.parametrize("waits", [False, True])
def test_reconnect_retries_with_growing_pauses(lossy: Relay, queue_name: str, waits: bool) -> None:
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        lossy.refuse(connections=len(pauses) < 5)

    session = OwnedSession(lossy.url, sleep=pause)
    with rowq.Queue(session) as queue:
        assert queue.create_queue(queue_name).outcome == "created"
        lossy.refuse(connections=True)
        lossy.cut()
        if waits:
            assert queue.dequeue_wait(queue_name, wait_seconds=0.1) == []
        else:
            assert queue.create_queue(queue_name).outcome == "exists"
    assert len(pauses) == 5
    assert all(0.05 * 2**n <= pause <= 0.1 * 2**n for n, pause in enumerate(pauses))


def test_reconnect_ends_after_reconnect_seconds(lossy: Relay, queue_name: str) -> None:
    with rowq.connect(lossy.url, reconnect_seconds=0.2) as queue:
        lossy.refuse(connections=True)
        lossy.cut()
        with pytest.raises(rowq.ConnectionLost, match=r"no connection for enqueue within 0\.2 s"):
            queue.enqueue(queue_name, 1)
        lossy.refuse(connections=False)
        assert queue.create_queue(queue_name).outcome == "created"


def test_queue_on_callers_connection_never_reconnects(server: Server, connect: Connect) -> None:
    connection = connect()
    queue = rowq.Queue(connection)
    server.kill_session(server.session_id(connection))
    for _ in range(2):
        with pytest.raises(Exception) as raised:  # noqa: PT011 - whatever the driver calls it
            queue.version()
        assert not isinstance(raised.value, rowq.RowqError)


@pytest.mark.requires("async")
def test_async_queue_reconnects(lossy: Relay, queue_name: str) -> None:
    async def life() -> None:
        async with await rowq.connect_async(lossy.url) as queue:
            await queue.create_queue(queue_name)
            lossy.cut()
            await queue.enqueue(queue_name, 1)
            lossy.lose_next_reply()
            with pytest.raises(rowq.ConnectionLost):
                await queue.enqueue(queue_name, 2)
            assert len(await queue.peek(queue_name, max_messages=10)) == 2

    asyncio.run(life())


def test_lost_connection_is_logged_without_password(
    lossy: Relay, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    parts = urlsplit(lossy.url)
    secret = parts.password or "hidden-word"
    netloc = f"{parts.username}:{secret}@{parts.hostname}:{parts.port}"
    with rowq.connect(urlunsplit(parts._replace(netloc=netloc))) as queue:
        queue.create_queue(queue_name)
        lossy.lose_next_reply()
        queue.peek(queue_name)
    wait_until(lambda: "connection lost" in caplog.text, "the loss is logged")
    expected = [record.getMessage() for record in caplog.records if record.name == "rowq"]
    assert ["peek: connection lost" in expected[0], expected[-1].endswith("peek: reconnected")] == [
        True,
        True,
    ]
    assert not any("\n" in line for line in expected)
    assert secret not in caplog.text
