"""A kombu channel: it publishes by enqueue, and receives by leases."""

import time
from collections.abc import Callable
from datetime import datetime
from queue import Empty
from typing import Any

from amqp.protocol import queue_declare_ok_t
from kombu.transport import virtual
from kombu.utils.json import dumps, loads
from kombu.utils.uuid import uuid

from rowq.contrib.celery.broker import Broker, Delivery, Options, log
from rowq.engines import without_password
from rowq.errors import CannotConnect, ConnectionLost, InvalidArgument
from rowq.messages import Message

_LONGEST_TYPE = 200
_LONGEST_ERROR = 500

NO_FANOUT = (
    "rowq has no fanout: celery inspect, control and events, flower and broadcast do not work;"
    " use rowq top, stats or claims"
)
NO_TEMPORARY = (
    "rowq has no temporary queues: rpc:// results, events and remote control do not work; use"
    " another result backend"
)

_has_warned = False


class QoS(virtual.QoS):  # type: ignore[misc]
    """Unacknowledged messages of a channel.

    After a lost connection closes the channel, a running task can still be acknowledged.
    """

    def __init__(self, channel: Any, prefetch_count: int = 0) -> None:
        super().__init__(channel, prefetch_count)
        self._deliveries: dict[str, Delivery] = {}

    def append(self, message: Any, delivery_tag: str) -> None:
        """Keep a message until it is acknowledged or rejected."""
        self._deliveries[delivery_tag] = delivery_of(message)
        super().append(message, delivery_tag)

    def ack(self, delivery_tag: str) -> None:
        """Complete a message; if that fails, it is delivered again after its lease."""
        delivery = self._deliveries.pop(delivery_tag)
        try:
            self._broker.complete(delivery)
        finally:
            super().ack(delivery_tag)

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        """Retry a message after the queue's backoff, or make it dead."""
        delivery = self._deliveries.pop(delivery_tag)
        try:
            if requeue:
                self._broker.retry(delivery, "requeued by its consumer")
            else:
                self._broker.fail(delivery, "rejected by its consumer")
        finally:
            super().ack(delivery_tag)

    def restore_unacked(self) -> list[Any]:
        """Release unacknowledged messages; on an error leave them until their leases expire."""
        self._flush()
        self._broker.release([delivery_of(message) for message in self._delivered.values()])
        self._delivered.clear()
        return []

    def leave(self) -> None:
        """Prevent the release of messages at exit."""
        self._on_collect.cancel()

    @property
    def _broker(self) -> Broker:
        broker: Broker = self.channel.broker
        return broker


class Channel(virtual.Channel):  # type: ignore[misc]
    """A virtual channel of kombu that calls rowq."""

    QoS = QoS

    def __init__(self, connection: Any, **kwargs: Any) -> None:
        """Use the broker of a transport, even after the channel is closed."""
        self.broker: Broker = connection.broker
        super().__init__(connection, **kwargs)

    # declarations

    def exchange_declare(
        self,
        exchange: str | None = None,
        type: str = "direct",  # noqa: A002 - the name is kombu's
        **kwargs: Any,
    ) -> None:
        """Declare an exchange in this process; raises NotImplementedError for type fanout."""
        if type == "fanout":
            raise NotImplementedError(NO_FANOUT)
        super().exchange_declare(exchange, type, **kwargs)

    def queue_declare(self, queue: str | None = None, passive: bool = False, **kwargs: Any) -> Any:
        """Create a queue, or with `passive` check that it exists and return its size."""
        if not queue or kwargs.get("auto_delete") or kwargs.get("exclusive"):
            raise NotImplementedError(NO_TEMPORARY)
        if passive:
            return super().queue_declare(queue, passive=True, **kwargs)
        self.broker.declare(queue)
        # A producer may not count messages, and no caller uses these numbers.
        return queue_declare_ok_t(queue, 0, 0)

    def queue_delete(
        self, queue: str, if_unused: bool = False, if_empty: bool = False, **kwargs: Any
    ) -> None:
        """Drop a queue with its messages."""
        del if_unused, kwargs
        self.broker.drop(queue, only_if_empty=if_empty)
        self.state.queue_bindings_delete(queue)

    def _new_queue(self, queue: str, **kwargs: Any) -> None:
        del kwargs
        self.broker.declare(queue)

    def _has_queue(self, queue: str, **kwargs: Any) -> bool:
        del kwargs
        return self.broker.has(queue)

    def _size(self, queue: str) -> int:
        return self.broker.size(queue)

    def _purge(self, queue: str) -> int:
        return self.broker.purge(queue)

    # sending

    def encode_body(self, body: Any, encoding: str | None = None) -> Any:
        """Send a text body unchanged, so that it is readable."""
        return super().encode_body(body, None if isinstance(body, str) else encoding)

    def _put(self, queue: str, message: dict[str, Any], **kwargs: Any) -> None:
        del kwargs
        headers, properties = message["headers"], message["properties"]
        milliseconds = properties.get("expiration")
        self.broker.put(
            queue,
            dumps(message),
            message_type=(headers.get("task") or "")[:_LONGEST_TYPE] or None,
            priority=self._get_message_priority(message, reverse=True),
            run_at=_timestamp(headers.get("eta")),
            expire_seconds=max(int(milliseconds), 1) / 1000 if milliseconds else None,
        )

    # receiving

    def basic_consume(
        self,
        queue: str,
        no_ack: bool,
        callback: Callable[[Any], Any],
        consumer_tag: str,
        **kwargs: Any,
    ) -> None:
        """Deliver messages to `callback`; with `no_ack` complete each first."""

        def deliver(message: Any) -> Any:
            if no_ack:
                self.basic_ack(message.delivery_tag)
            return callback(message)

        self.connection.warn_of_fanout()
        super().basic_consume(queue, False, deliver, consumer_tag, **kwargs)

    def basic_get(self, queue: str, no_ack: bool = False, **kwargs: Any) -> Any:
        """Return a message, or None; with `no_ack` complete it."""
        message = super().basic_get(queue, no_ack=False, **kwargs)
        if no_ack and message is not None:
            self.basic_ack(message.delivery_tag)
        return message

    def _get(self, queue: str, timeout: float | None = None) -> dict[str, Any]:
        """Lease a message; make messages of another format dead, and take the next one."""
        del timeout
        while message := self.broker.take(queue):
            try:
                raw = _raw(queue, message)
                # Parse it here, so that the consumer cannot fail to parse it.
                self.Message(raw, channel=self)
            except Exception as error:
                text = f"not a kombu message: {error}"[:_LONGEST_ERROR]
                log.error("%s: message %d is dead: %s", queue, message.message_id, text)
                self.broker.fail(Delivery(queue, message.claim_id, message.message_id), text)
            else:
                return raw
        raise Empty


def delivery_of(message: Any) -> Delivery:
    """Return the delivery of a kombu message."""
    info = message.delivery_info
    return Delivery(info["queue"], info["claim_id"], info["message_id"])


def _raw(queue: str, message: Message) -> dict[str, Any]:
    """Return the published message with its delivery.

    The tag is new, because after an expired lease this worker may get the message twice.
    """
    raw: dict[str, Any] = loads(message.body)
    properties = raw["properties"]
    properties["delivery_tag"] = uuid()
    properties["delivery_info"].update(
        queue=queue,
        claim_id=message.claim_id,
        message_id=message.message_id,
        attempt=message.attempt,
        redelivered=message.attempt > 1,
    )
    return raw


def _timestamp(eta: Any) -> datetime | None:
    """Return when a task is due; None (now) if only its worker knows the time zone."""
    try:
        time = datetime.fromisoformat(eta)
    except (TypeError, ValueError):
        return None
    return time if time.tzinfo else None


class Transport(virtual.Transport):  # type: ignore[misc]
    """A kombu connection; its channels share a database connection."""

    Channel = Channel
    can_parse_url = True
    driver_type = "rowq"
    driver_name = "rowq"
    connection_errors = (*virtual.Transport.connection_errors, CannotConnect, ConnectionLost)

    def __init__(self, client: Any, **kwargs: Any) -> None:
        """Prepare for the URL of `client`; raises EngineUnknown, InvalidArgument."""
        if client.alt:
            raise InvalidArgument(
                "rowq accepts one broker URL; for a cluster use"
                " rowq+postgresql://first,second/database"
            )
        self.options = Options.of(client.transport_options)
        self.broker = Broker(client.hostname, self.options)
        super().__init__(client, **kwargs)

    def establish_connection(self) -> Any:
        """Connect; raises CannotConnect."""
        self.broker.open()
        return super().establish_connection()

    def close_connection(self, connection: Any) -> None:
        """Release unacknowledged messages, and close."""
        super().close_connection(connection)
        self.broker.close()

    def _collect(self, connection: Any) -> None:
        """Close without a call, after an error or in a forked process.

        Tasks may still be running, so nothing is released: messages are delivered again after their
        leases, unless they are acknowledged.
        """
        del connection
        for channel in self.channels:
            channel.qos.leave()
        self.broker.close()

    def drain_events(self, connection: Any, timeout: float | None = None) -> None:
        """Deliver messages, waiting for them; raise TimeoutError after `timeout` seconds.

        Poll at once after an acknowledgement, because there may be capacity for another message.
        """
        del connection
        deadline = float("inf") if timeout is None else time.monotonic() + timeout
        while True:
            self.broker.freed.clear()
            try:
                self.cycle.get(self._deliver, timeout=timeout)
            except Empty:
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    raise TimeoutError from None
                self.broker.freed.wait(min(remaining, self.options.polling_interval))
            else:
                return

    def warn_of_fanout(self) -> None:
        """Log, once per process that receives, what is not supported."""
        global _has_warned
        if not _has_warned:
            _has_warned = True
            log.warning("%s", NO_FANOUT)

    def as_uri(self, uri: str, include_password: bool = False, mask: str = "**") -> str:
        """Return the URL for display."""
        del mask
        return f"rowq+{uri if include_password else without_password(uri)}"
