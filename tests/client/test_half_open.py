"""Calls over a network that stalls, drops packets, or truncates replies.

No call hangs forever, no work is done twice, and a client that lost its lease gets "stale".
"""

import sys
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest

import rowq
from rowq.engines import engine_for_url, sockets
from tests.client.proxy import Relay, relay, socket_option
from tests.dice import AGAIN, dice, times
from tests.engines.base import Connection, Server, wait_until
from tests.helpers.workers import running
from tests.stored_times import pass_seconds

BODY = "x" * 300
needs_filters = pytest.mark.skipif(
    sys.platform != "linux", reason="silence is made by Linux's packet filters; to run it: Linux"
)
SELDOM: dict[str, Any] = {"maintain_seconds": 0, "idle_min_seconds": 60, "idle_max_seconds": 60}
"""Options of a worker without maintain and listen."""


@pytest.fixture
def between(database_url: str) -> Iterator[Relay]:
    with relay(database_url) as started:
        yield started


@pytest.fixture
def queue(connection: Connection, queue_name: str) -> rowq.Queue:
    """Return the queue, without the relay, with three messages."""
    queue = rowq.Queue(connection)
    queue.create_queue(queue_name, lease_seconds=60)
    queue.enqueue_batch(queue_name, [rowq.NewMessage(data=BODY)] * 3)
    return queue


@pytest.fixture
def impatient_url(between: Relay, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a URL through the relay with a silence timeout of 1 to 2 seconds."""
    if engine_for_url(between.url).name == "postgres":
        options = "keepalives_idle=1&keepalives_interval=1&keepalives_count=1&tcp_user_timeout=2000"
        return with_options(between.url, options)
    monkeypatch.setattr(sockets, "IDLE_SECONDS", 1)
    monkeypatch.setattr(sockets, "INTERVAL_SECONDS", 1)
    monkeypatch.setattr(sockets, "PROBES", 1)
    monkeypatch.setattr(sockets, "SILENT_SECONDS", 2)
    return between.url


@pytest.fixture
def _sockets_are_ours(server: Server) -> None:
    """Skip if the driver has its own timeouts."""
    if server.engine == "oracle":
        pytest.skip(
            "python-oracledb asks after a minute at the soonest"
            "; to run it: test_oracle_connecting.py"
        )


def with_options(url: str, options: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(query="&".join(filter(None, [parts.query, options]))))


@needs_filters
@pytest.mark.usefixtures("_sockets_are_ours")
def test_connection_has_keepalive_of_one_minute(between: Relay) -> None:
    with rowq.connect(between.url):
        port = urlsplit(between.url).port
        assert socket_option(port, "TCP_USER_TIMEOUT") == 60_000
        assert socket_option(port, "TCP_KEEPIDLE") == 30
        assert socket_option(port, "TCP_KEEPINTVL") == 10
        assert socket_option(port, "TCP_KEEPCNT") == 3


@needs_filters
@pytest.mark.usefixtures("_sockets_are_ours")
@pytest.mark.promise("P04", "P08")
def test_call_to_silent_server_is_repeated(
    between: Relay, impatient_url: str, queue: rowq.Queue, queue_name: str
) -> None:
    with rowq.connect(impatient_url) as half_open:
        claim_id = half_open.dequeue_fast(queue_name)[0].claim_id
        between.vanish()
        assert [outcome.outcome for outcome in half_open.complete(queue_name, claim_id)] == [
            "completed"
        ]
        between.vanish()
        with pytest.raises(
            rowq.ConnectionLost, match="connection lost during enqueue; the call may or may not"
        ):
            half_open.enqueue(queue_name, BODY)
    assert len(queue.peek(queue_name, max_messages=10)) == 2


@needs_filters
@pytest.mark.usefixtures("_sockets_are_ours")
@pytest.mark.promise("P02")
def test_waiting_client_detects_a_vanished_server(
    between: Relay, impatient_url: str, connection: Connection, queue_name: str
) -> None:
    other = rowq.Queue(connection)
    other.create_queue(queue_name)
    with rowq.connect(impatient_url) as half_open:
        half_open.version()
        sent = between.requests
        taken: list[rowq.Message] = []

        def wait() -> None:
            taken.extend(half_open.dequeue_wait(queue_name, lease_seconds=60, wait_seconds=3600))

        waiting = threading.Thread(target=wait, daemon=True)
        waiting.start()
        wait_until(lambda: between.requests > sent, "the call is on its way")
        between.vanish()
        # The server may lease one message to the lost session.
        for number in range(2):
            other.enqueue(queue_name, number)
        waiting.join(60)
        assert len(taken) == 1


def test_silent_server_raises_cannot_connect(between: Relay) -> None:
    between.stall()
    with pytest.raises(rowq.CannotConnect):
        rowq.connect(with_options(between.url, "connect_timeout=2"))


def test_connect_timeout_does_not_limit_calls(
    between: Relay, connection: Connection, queue_name: str
) -> None:
    rowq.Queue(connection).create_queue(queue_name)
    with rowq.connect(with_options(between.url, "connect_timeout=2")) as queue:
        assert queue.dequeue_wait(queue_name, wait_seconds=3) == []
        assert between.accepted == 1


@pytest.mark.promise("P03", "P04", "P08")
def test_truncated_reply_is_a_lost_connection(
    between: Relay, queue: rowq.Queue, queue_name: str
) -> None:
    drawn = dice("reply that breaks off")
    with rowq.connect(between.url) as broken:
        whole = [message.message_id for message in broken.peek(queue_name, max_messages=10)]
        for _ in range(times(20)):
            lost, after = between.lost, drawn.randint(0, 900)
            between.cut_next_reply(after)
            assert [
                message.message_id for message in broken.peek(queue_name, max_messages=10)
            ] == whole, (
                after,
                AGAIN,
            )
            wait_until(lambda: between.lost > lost, "the reply is cut")  # noqa: B023 - ends here
        for after in (0, 1, 5):
            there = len(broken.peek(queue_name, max_messages=1000))
            between.cut_next_reply(after)
            with pytest.raises(rowq.ConnectionLost):
                broken.enqueue(queue_name, BODY)
            assert len(queue.peek(queue_name, max_messages=1000)) == there + 1


@pytest.mark.promise("P04", "P08")
def test_slow_network_changes_no_result(between: Relay, queue: rowq.Queue, queue_name: str) -> None:
    between.delay_seconds = 0.02
    done: list[int] = []
    stats = rowq.Worker(
        between.url, queue_name, lambda message: done.append(message.message_id), drain=True
    ).run()
    assert (stats.processed, len(set(done))) == (3, 3)
    assert queue.queue_stats(queue_name)[0].leased == 0


@pytest.mark.promise("P03", "P04", "P08", "P09")
@pytest.mark.parametrize("transactional", [False, True])
def test_worker_loses_its_lease_in_a_stalled_network(
    between: Relay,
    queue: rowq.Queue,
    connection: Connection,
    queue_name: str,
    *,
    transactional: bool,
) -> None:
    handling, go_on = threading.Event(), threading.Event()

    def handle(*_: Any) -> None:
        handling.set()
        go_on.wait(60)

    worker = rowq.Worker(
        between.url,
        queue_name,
        handle,
        batch_size=3,
        lease_seconds=3,
        transactional=transactional,
        **SELDOM,
    )
    with running(worker):
        try:
            assert handling.wait(30)
            between.stall()
            taken = _take_over(queue, connection, queue_name)
            go_on.set()
            between.cut()
            between.go_on()
            wait_until(lambda: worker.stats.stale == 3, "three stale outcomes", 30)
            done = queue.complete(queue_name, taken[0].claim_id)
            assert {outcome.outcome for outcome in done} == {"completed"}
        finally:
            go_on.set()
    assert worker.stats.processed == 0


@pytest.mark.promise("P08")
@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.parametrize("per", ["message", "batch"])
def test_handler_sees_lost_lease_in_a_stalled_network(
    between: Relay, queue: rowq.Queue, queue_name: str, *, transactional: bool, per: Any
) -> None:
    """The heartbeat hangs; no other worker leased the messages, so they can be completed."""
    seen: list[bool] = []

    def handle(given: Any, *_: Any) -> None:
        message = given[0] if per == "batch" else given
        seen.append(message.lost)
        between.stall()
        wait_until(lambda: message.lost, "the lease is over by the handler's own clock", 20)
        seen.append(message.lost)
        between.go_on()

    worker = rowq.Worker(
        between.url,
        queue_name,
        handle,
        per=per,
        batch_size=3,
        lease_seconds=2,
        transactional=transactional,
        **SELDOM,
    )
    with running(worker):
        try:
            wait_until(lambda: worker.stats.stale == 3, "what it decided has no effect", 60)
        finally:
            between.go_on()
    assert seen == [False, True]
    assert (worker.stats.processed, queue.queue_stats(queue_name)[0].leased) == (0, 3)


def _take_over(queue: rowq.Queue, connection: Connection, name: str) -> list[rowq.Message]:
    """Let the worker's lease expire, and lease its messages."""
    taken: list[rowq.Message] = []

    def has_all() -> bool:
        # A heartbeat that is already under way may arrive later.
        pass_seconds(connection, name, 30)
        queue.maintain(name)
        taken.extend(queue.dequeue_fast(name, 3, lease_seconds=600))
        return len(taken) == 3

    wait_until(has_all, "another has the messages", 30)
    return taken
