"""The kombu transport: its calls, and unsupported features."""

import importlib
import os
import socket
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import kombu
import pytest
from celery import Celery

import rowq
import rowq.contrib.celery
from tests.celery.conftest import Shop
from tests.client.proxy import relay
from tests.engines.base import wait_until


@pytest.fixture
def opened(shop: Shop) -> Iterator[kombu.Connection]:
    with kombu.Connection(f"rowq+{shop.url}") as connection:
        yield connection


def publish(connection: kombu.Connection, shop: Shop, *bodies: Any, **options: Any) -> None:
    with connection.Producer() as producer:
        for body in bodies:
            producer.publish(body, routing_key=shop.queue_name, **options)


def received(connection: kombu.Connection, shop: Shop) -> Any:
    """Return the next message of the queue, or None."""
    return connection.default_channel.basic_get(shop.queue_name)


def test_message_is_readable_in_the_database(opened: kombu.Connection, shop: Shop) -> None:
    publish(opened, shop, {"total": 7}, headers={"task": "shop.sell"}, priority=9)
    publish(opened, shop, b"\x00\xff", content_type="application/data", content_encoding="binary")
    first, second = shop.rowq.peek(shop.queue_name, max_messages=2)
    assert (first.priority, first.message_type, second.priority) == (0, "shop.sell", 9)
    assert first.data["body"] == '{"total": 7}'
    message = received(opened, shop)
    assert message.payload == {"total": 7}
    assert message.headers == {"task": "shop.sell"}
    message.ack()
    message = received(opened, shop)
    assert message.body == b"\x00\xff"
    message.ack()
    assert shop.counts() == (0, 0, 0, 0)


def test_higher_priority_is_delivered_first(opened: kombu.Connection, shop: Shop) -> None:
    for priority in (None, 3, 9, 0, 12):
        publish(opened, shop, priority, priority=priority)
    order = []
    while message := received(opened, shop):
        order.append(message.payload)
        message.ack()
    assert order == [9, 12, 3, None, 0]


def test_task_with_eta_is_delayed(opened: kombu.Connection, shop: Shop) -> None:
    due_at = datetime.now(UTC).replace(microsecond=5) + timedelta(days=1)
    for eta in (due_at.isoformat(), due_at.replace(tzinfo=None).isoformat(), "tomorrow"):
        publish(opened, shop, eta, headers={"eta": eta})
    assert shop.counts() == (2, 1, 0, 0)
    (delayed,) = shop.rowq.list_delayed(shop.queue_name)
    assert delayed.due_at == due_at


def test_expired_message_is_cancelled(opened: kombu.Connection, shop: Shop) -> None:
    publish(opened, shop, "for a moment", expiration=0.001)
    publish(opened, shop, "for no time", expiration=0)

    def is_gone() -> bool:
        shop.rowq.maintain(shop.queue_name)
        return shop.counts() == (0, 0, 0, 0)

    wait_until(is_gone, "the message has expired")


def test_rejected_message_is_retried_or_dead(opened: kombu.Connection, shop: Shop) -> None:
    publish(opened, shop, 1)
    for attempt in (1, 2):
        message = received(opened, shop)
        assert message.delivery_info["attempt"] == attempt
        assert message.delivery_info["redelivered"] == (attempt > 1)
        message.reject(requeue=attempt == 1)
        shop.rowq.maintain(shop.queue_name)
    (dead,) = shop.rowq.list_dead(shop.queue_name)
    assert (dead.attempt, dead.last_error) == (2, "rejected by its consumer")


def test_unacknowledged_message_is_released(
    shop: Shop,
) -> None:
    with kombu.Connection(f"rowq+{shop.url}") as connection:
        publish(connection, shop, 1, 2)
        with connection.channel() as channel:
            assert channel.basic_get(shop.queue_name).payload == 1
            assert shop.counts() == (1, 0, 1, 0)
        assert shop.counts() == (2, 0, 0, 0)
        assert received(connection, shop).delivery_info["attempt"] == 1
    assert shop.counts() == (2, 0, 0, 0)


def test_forked_process_holds_nothing(opened: kombu.Connection, shop: Shop) -> None:
    publish(opened, shop, 1)
    message = received(opened, shop)
    child = os.fork()
    if not child:
        try:
            opened.collect()
            opened.close()
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert shop.counts() == (0, 0, 1, 0)
    message.ack()
    assert shop.counts() == (0, 0, 0, 0)


def test_task_is_completed_after_its_connection_closed(
    opened: kombu.Connection, shop: Shop
) -> None:
    publish(opened, shop, 1, 2)
    first, second = received(opened, shop), received(opened, shop)
    channel = opened.default_channel
    opened.collect()
    assert not channel.qos._on_collect.still_active()
    opened.close()
    first.ack()
    assert shop.counts() == (0, 0, 1, 0)
    second.reject()
    assert shop.counts() == (0, 0, 0, 1)


def test_lost_lease_is_logged_and_message_stays_leased(
    opened: kombu.Connection, shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    publish(opened, shop, 1)
    late = received(opened, shop)
    shop.rowq.release(shop.queue_name, late.delivery_info["claim_id"])
    again = received(opened, shop)
    late.ack()
    assert "its lease expired" in caplog.text
    assert shop.counts() == (0, 0, 1, 0)
    again.ack()
    assert shop.counts() == (0, 0, 0, 0)


def test_prefetch_limits_unacknowledged_messages(opened: kombu.Connection, shop: Shop) -> None:
    publish(opened, shop, *range(3))
    messages: list[Any] = []
    queue = kombu.Queue(shop.queue_name)
    with opened.Consumer(queue, on_message=messages.append, prefetch_count=2, auto_declare=False):
        for _ in range(2):
            opened.drain_events(timeout=10)
        with pytest.raises(socket.timeout):
            opened.drain_events(timeout=0)
        assert shop.counts() == (1, 0, 2, 0)
        messages[0].ack()
        opened.drain_events(timeout=10)
    assert [message.payload for message in messages] == [0, 1, 2]


def test_consumer_without_ack_completes_messages(opened: kombu.Connection, shop: Shop) -> None:
    publish(opened, shop, 1)
    messages: list[Any] = []
    queue = kombu.Queue(shop.queue_name, no_ack=True)
    with opened.Consumer(queue, on_message=messages.append, auto_declare=False):
        opened.drain_events(timeout=10)
    assert [message.payload for message in messages] == [1]
    assert shop.counts() == (0, 0, 0, 0)
    publish(opened, shop, 2)
    assert opened.default_channel.basic_get(shop.queue_name, no_ack=True).payload == 2
    assert shop.counts() == (0, 0, 0, 0)


def test_foreign_message_is_dead_and_blocks_no_other(opened: kombu.Connection, shop: Shop) -> None:
    properties = {"delivery_info": {}, "body_encoding": "base64"}
    for body in (
        {"id": 1},
        "secret",
        [1],
        {"body": "secret", "properties": {**properties, "body_encoding": "rot13"}},
        {"body": "secret", "properties": properties},
    ):
        shop.rowq.enqueue(shop.queue_name, body, priority=0)
    publish(opened, shop, 1)
    received(opened, shop).ack()
    dead = shop.rowq.list_dead(shop.queue_name)
    assert len(dead) == 5
    for message in dead:
        assert message.last_error is not None
        assert message.last_error.startswith("not a kombu message")
        assert "secret" not in message.last_error


def test_queue_is_declared_counted_purged_and_dropped(opened: kombu.Connection, shop: Shop) -> None:
    name = f"{shop.queue_name} other"
    channel = opened.default_channel
    with pytest.raises(opened.channel_errors, match="no queue"):
        channel.queue_declare(name, passive=True)
    queue = kombu.Queue(name, channel=channel)
    queue.declare()
    for number in range(2):
        opened.Producer().publish(number, routing_key=name)
    assert queue.queue_declare(passive=True).message_count == 2
    queue.delete(if_empty=True)
    assert queue.purge() == 2
    queue.delete(if_empty=True)
    shop.send("say", "never")
    assert shop.client.control.purge() == 1
    with pytest.raises(rowq.QueueNotFound):
        opened.Producer().publish(1, routing_key=name)


def test_fanout_is_refused(opened: kombu.Connection, shop: Shop) -> None:
    channel = opened.default_channel
    assert not opened.supports_exchange_type("fanout")
    with pytest.raises(NotImplementedError, match="rowq has no fanout"):
        kombu.Exchange("all", type="fanout", channel=channel).declare()
    with pytest.raises(NotImplementedError, match="use another result backend"):
        kombu.Queue("for once", auto_delete=True, channel=channel).declare()
    with pytest.raises(NotImplementedError, match="rowq has no fanout"):
        shop.client.control.broadcast("ping")
    with pytest.raises(NotImplementedError, match="rowq has no temporary queues"):
        shop.client.control.ping()


@pytest.mark.parametrize(
    ("url", "options", "expected"),
    [
        ("rowq+kafka://host", {}, "the URL must begin with one of"),
        ("rowq+mysql://a;rowq+mysql://b", {}, "rowq accepts one broker URL"),
        ("rowq+mysql://a", {"visibility_timeout": 60}, "visibility_timeout is not supported"),
        ("rowq+mysql://a", {"polling_interval": 0}, "polling_interval must be greater than 0"),
        ("rowq+mysql://a", {"polling_interval": "1"}, "must be a number of seconds"),
        ("rowq+mysql://a", {"reconnect_seconds": -1}, "must be a number of seconds"),
    ],
)
def test_invalid_options_are_refused_before_connecting(
    url: str, options: dict[str, Any], expected: str
) -> None:
    with pytest.raises(rowq.RowqError, match=expected):
        kombu.Connection(url, transport_options=options).connect()


def test_password_is_never_shown() -> None:
    connection = kombu.Connection("rowq+mysql://user:hidden@localhost:1/shop?ssl_key=hidden2")
    shown = Celery(broker=connection.as_uri(include_password=True)).conf.humanize()
    assert "hidden" not in shown
    assert connection.as_uri() == "rowq+mysql://user:***@localhost:1/shop?ssl_key=***"
    assert "hidden@" in connection.as_uri(include_password=True)
    with pytest.raises(rowq.CannotConnect) as refused:
        connection.transport.establish_connection()
    assert "hidden" not in str(refused.value)
    assert isinstance(refused.value, connection.connection_errors)


def test_failed_ack_frees_capacity(shop: Shop) -> None:
    options = {"reconnect_seconds": 0}
    with (
        relay(shop.url) as lossy,
        kombu.Connection(f"rowq+{lossy.url}", transport_options=options) as connection,
    ):
        publish(connection, shop, 1, 2)
        channel = connection.default_channel
        channel.basic_qos(prefetch_count=1)
        message = received(connection, shop)
        assert not channel.qos.can_consume()
        lossy.refuse(connections=True)
        lossy.cut()
        with pytest.raises(connection.connection_errors):
            message.ack()
        assert channel.qos.can_consume()
        lossy.calm()
        assert received(connection, shop).payload == 2


def test_simple_queue_uses_rowq(opened: kombu.Connection, shop: Shop) -> None:
    with opened.SimpleQueue(shop.queue_name) as simple:
        simple.put({"total": 7})
        assert simple.qsize() == 1
        message = simple.get(timeout=10)
        assert message.payload == {"total": 7}
        message.ack()
        with pytest.raises(simple.Empty):
            simple.get_nowait()


def test_missing_kombu_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("rowq.contrib.celery")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "kombu.transport", None)
    with pytest.raises(rowq.PackageMissing, match=r"pip install 'rowq\[celery\]'"):
        importlib.import_module("rowq.contrib.celery")
