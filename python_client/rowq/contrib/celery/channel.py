"""A channel of kombu's: what it publishes is enqueued, what it receives is leased."""

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
    "rowq carries no fanout, so there is no remote control (celery inspect, celery control), no"
    " event (celery events, flower) and no broadcast: look with rowq claims, rowq stats, rowq top"
)
NO_TEMPORARY = (
    "rowq has no queues that delete themselves, which rpc:// results, events and remote control"
    " need: choose another result backend"
)

_noted = False


class QoS(virtual.QoS):  # type: ignore[misc]
    """What was delivered on a channel and not acknowledged; each ending is a call of rowq's.

    A task may be at work when its channel is closed, after a lost connection: it can still be
    acknowledged then.
    """

    def __init__(self, channel: Any, prefetch_count: int = 0) -> None:
        super().__init__(channel, prefetch_count)
        self._deliveries: dict[str, Delivery] = {}

    def append(self, message: Any, delivery_tag: str) -> None:
        """Keep a message until it is acknowledged or rejected."""
        self._deliveries[delivery_tag] = delivery_of(message)
        super().append(message, delivery_tag)

    def ack(self, delivery_tag: str) -> None:
        """Complete a message; where that fails it comes again when its lease has run out."""
        delivery = self._deliveries.pop(delivery_tag)
        try:
            self._broker.complete(delivery)
        finally:
            super().ack(delivery_tag)

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        """Retry a message after the queue's backoff, or declare it dead."""
        delivery = self._deliveries.pop(delivery_tag)
        try:
            if requeue:
                self._broker.retry(delivery, "requeued by its consumer")
            else:
                self._broker.fail(delivery, "rejected by its consumer")
        finally:
            super().ack(delivery_tag)

    def restore_unacked(self) -> list[Any]:
        """Give back what was not acknowledged; what cannot be comes when its lease runs out."""
        self._flush()
        self._broker.release([delivery_of(message) for message in self._delivered.values()])
        self._delivered.clear()
        return []

    def leave(self) -> None:
        """Have nothing given back at the end of the program."""
        self._on_collect.cancel()

    @property
    def _broker(self) -> Broker:
        broker: Broker = self.channel.broker
        return broker


class Channel(virtual.Channel):  # type: ignore[misc]
    """What kombu asks of a virtual channel, by calls of rowq's."""

    QoS = QoS

    def __init__(self, connection: Any, **kwargs: Any) -> None:
        """Take the broker of a transport; it is used even after the channel was closed."""
        self.broker: Broker = connection.broker
        super().__init__(connection, **kwargs)

    # what kombu declares

    def exchange_declare(
        self,
        exchange: str | None = None,
        type: str = "direct",  # noqa: A002 - the name is kombu's
        **kwargs: Any,
    ) -> None:
        """Note an exchange in this process; raises NotImplementedError for one of type fanout."""
        if type == "fanout":
            raise NotImplementedError(NO_FANOUT)
        super().exchange_declare(exchange, type, **kwargs)

    def queue_declare(self, queue: str | None = None, passive: bool = False, **kwargs: Any) -> Any:
        """Make a queue, or with `passive` look whether it is there and how much it holds."""
        if not queue or kwargs.get("auto_delete") or kwargs.get("exclusive"):
            raise NotImplementedError(NO_TEMPORARY)
        if passive:
            return super().queue_declare(queue, passive=True, **kwargs)
        self.broker.declare(queue)
        # Who only sends may not count, and nobody asks when he declares.
        return queue_declare_ok_t(queue, 0, 0)

    def queue_delete(
        self, queue: str, if_unused: bool = False, if_empty: bool = False, **kwargs: Any
    ) -> None:
        """Drop a queue with what is in it."""
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
        """Leave a body that is text as it is, so that people can read it."""
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
            run_at=_moment(headers.get("eta")),
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
        """Deliver messages to `callback`; with `no_ack` each is completed before."""

        def deliver(message: Any) -> Any:
            if no_ack:
                self.basic_ack(message.delivery_tag)
            return callback(message)

        self.connection.note_consumer()
        super().basic_consume(queue, False, deliver, consumer_tag, **kwargs)

    def basic_get(self, queue: str, no_ack: bool = False, **kwargs: Any) -> Any:
        """Return a message, or None; with `no_ack` it is completed."""
        message = super().basic_get(queue, no_ack=False, **kwargs)
        if no_ack and message is not None:
            self.basic_ack(message.delivery_tag)
        return message

    def _get(self, queue: str, timeout: float | None = None) -> dict[str, Any]:
        """Lease a message; one that is not of kombu's is declared dead, and the next one taken."""
        del timeout
        while message := self.broker.take(queue):
            try:
                raw = _raw(queue, message)
                # What receives a message makes this of it, and must not be the one to fail.
                self.Message(raw, channel=self)
            except Exception as error:
                text = f"no message of kombu's: {error}"[:_LONGEST_ERROR]
                log.error("%s: message %d is dead: %s", queue, message.message_id, text)
                self.broker.fail(Delivery(queue, message.claim_id, message.message_id), text)
            else:
                return raw
        raise Empty


def delivery_of(message: Any) -> Delivery:
    """Return which delivery of rowq's a message of kombu's is."""
    info = message.delivery_info
    return Delivery(info["queue"], info["claim_id"], info["message_id"])


def _raw(queue: str, message: Message) -> dict[str, Any]:
    """Return what was published, with how it was delivered.

    The tag is a new one: the message may come to this worker twice, when its lease had run out.
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


def _moment(eta: Any) -> datetime | None:
    """Return when a task is due; None, which is at once, where only its worker can say that."""
    try:
        moment = datetime.fromisoformat(eta)
    except (TypeError, ValueError):
        return None
    return moment if moment.tzinfo else None


class Transport(virtual.Transport):  # type: ignore[misc]
    """A connection of kombu's: its channels share a connection to the database."""

    Channel = Channel
    can_parse_url = True
    driver_type = "rowq"
    driver_name = "rowq"
    connection_errors = (*virtual.Transport.connection_errors, CannotConnect, ConnectionLost)

    def __init__(self, client: Any, **kwargs: Any) -> None:
        """Prepare for the URL of `client`; raises EngineUnknown, InvalidArgument."""
        if client.alt:
            raise InvalidArgument(
                "rowq takes one broker URL; name the servers of a cluster in it, as"
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
        """Give back what was not acknowledged, and close."""
        super().close_connection(connection)
        self.broker.close()

    def _collect(self, connection: Any) -> None:
        """Let go without a call, as kombu asks after an error and in a forked process.

        A task may be at work on what is held: it is not given back, but comes when its lease runs
        out, unless its worker acknowledges it before.
        """
        del connection
        for channel in self.channels:
            channel.qos.leave()
        self.broker.close()

    def drain_events(self, connection: Any, timeout: float | None = None) -> None:
        """Deliver what there is; wait for it, and raise socket.timeout when the time is up.

        It looks again at once when a message was acknowledged, as there may be room for another.
        """
        del connection
        give_up_at = float("inf") if timeout is None else time.monotonic() + timeout
        while True:
            self.broker.freed.clear()
            try:
                self.cycle.get(self._deliver, timeout=timeout)
            except Empty:
                left = give_up_at - time.monotonic()
                if left <= 0:
                    raise TimeoutError from None
                self.broker.freed.wait(min(left, self.options.polling_interval))
            else:
                return

    def note_consumer(self) -> None:
        """Say, once in a process that receives, what is not there."""
        global _noted
        if not _noted:
            _noted = True
            log.warning("%s", NO_FANOUT)

    def as_uri(self, uri: str, include_password: bool = False, mask: str = "**") -> str:
        """Return the URL as it may be shown."""
        del mask
        return f"rowq+{uri if include_password else without_password(uri)}"
