"""The database calls of one kombu connection, and its leases; independent of kombu.

Celery acknowledges in other threads than it receives, so everything here is thread-safe.
"""

import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, Unpack

from rowq.backoff import Backoff
from rowq.errors import (
    ConnectionLost,
    InvalidArgument,
    QueueNotEmpty,
    QueueNotFound,
    RowqError,
    StaleClaim,
)
from rowq.forks import after_fork
from rowq.messages import Message
from rowq.options import MessageOptions
from rowq.queue import Queue
from rowq.session import OwnedSession
from rowq.worker.batching import MAINTAIN_BATCH_SIZE, has_more
from rowq.worker.context import default_name

_T = TypeVar("_T")

log = logging.getLogger("rowq.celery")

_TICK_SECONDS = 0.1
_MAINTAIN_SECONDS = 1.0
# Pause before a refused extension of a lease is retried.
_REFUSED_SECONDS = 1.0
_PURGE_BATCH_SIZE = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Keys of Celery's broker_transport_options; other keys are kombu's.

    polling_interval: seconds between polls of empty queues. Default 0.2.
    lease_seconds: length of the leases. Default: the queue's.
    reconnect_seconds: how long a call retries after a lost connection before Celery gets the error.
        Default 10.
    """

    polling_interval: float = 0.2
    lease_seconds: int | None = None
    reconnect_seconds: float = 10.0

    @classmethod
    def of(cls, transport_options: Mapping[str, Any]) -> "Options":
        """Return the options of a transport; raises InvalidArgument."""
        if "visibility_timeout" in transport_options:
            raise InvalidArgument(
                "visibility_timeout is not supported; use lease_seconds, which the worker extends"
            )
        names = cls.__dataclass_fields__.keys() & transport_options.keys()
        options = cls(**{name: transport_options[name] for name in names})
        for name in ("polling_interval", "reconnect_seconds"):
            value = getattr(options, name)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not is_number or not 0 <= value < float("inf"):
                raise InvalidArgument(f"{name} must be a number of seconds, got {value!r}")
        if options.polling_interval == 0:
            raise InvalidArgument("polling_interval must be greater than 0")
        return options


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message leased by this process."""

    queue_name: str
    claim_id: int
    message_id: int


@dataclass(slots=True)
class _Lease:
    """The lease of a message, extended after a third of its length.

    refused_at: when the database last refused to extend it, or None.
    """

    seconds: int
    called_at: float
    refused_at: float | None = None

    @property
    def is_due(self) -> bool:
        if self.refused_at is not None:
            pause = min(_REFUSED_SECONDS, self.seconds / 3)
            return time.monotonic() >= self.refused_at + pause
        return time.monotonic() >= self.called_at + self.seconds / 3

    @property
    def urgency(self) -> tuple[bool, float]:
        return self.refused_at is not None, self.called_at + self.seconds


class Broker:
    """The calls of one transport, and the leases of its unfinished messages.

    The first receive starts two threads, each with its own connection: one extends leases, one
    calls maintain. A forked process does not keep its parent's messages.
    """

    def __init__(self, url: str, options: Options) -> None:
        """Prepare for the database of a URL, without connecting; raises EngineUnknown."""
        self.options = options
        self._url = url
        self._session = OwnedSession(
            url, reconnect_seconds=options.reconnect_seconds, retries_transient=True
        )
        self._engine = self._session.engine
        self._queue = Queue(self._session)
        self._declared: set[str] = set()
        self._lease_settings: dict[str, int] = {}
        self._is_closed = False
        self._begin_empty()
        _brokers.add(self)

    def _begin_empty(self) -> None:
        self._held: dict[Delivery, _Lease] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []
        self.freed = threading.Event()
        """Set when a message is finished, and there may be capacity for another one."""

    # queues

    def open(self) -> None:
        """Connect; raises CannotConnect."""
        self._session.connection()

    def declare(self, queue_name: str) -> None:
        """Create a queue unless it exists; raises QueueNotFound if the account may not."""
        if queue_name in self._declared:
            return
        try:
            self._call(lambda: self._queue.create_queue(queue_name))
        except Exception as error:
            if not self._engine.is_denied(error):
                raise
            if not self.has(queue_name):
                raise QueueNotFound(
                    f'queue "{queue_name}" does not exist, and this account may not create it;'
                    f" ask an admin to run rowq queue create {queue_name}"
                ) from error
        self._declared.add(queue_name)

    def has(self, queue_name: str) -> bool:
        """Whether the queue exists; no single routine is granted to producers and consumers."""
        checks: tuple[Callable[[], Any], ...] = (
            lambda: self._queue.queue_stats(queue_name, max_count=1),
            lambda: self._queue.enqueue_batch(queue_name, []),
        )
        denied: Exception | None = None
        for check in checks:
            try:
                self._call(check)
            except QueueNotFound:
                return False
            except Exception as error:
                if not self._engine.is_denied(error):
                    raise
                denied = error
            else:
                return True
        assert denied
        raise denied

    def size(self, queue_name: str) -> int:
        """Return the number of ready messages."""
        return self._call(lambda: self._queue.queue_stats(queue_name))[0].ready

    def purge(self, queue_name: str) -> int:
        """Delete waiting messages, ready and delayed; return their number."""
        removed = 0
        while True:
            purged = self._call(
                lambda: self._queue.purge_queue(queue_name, max_messages=_PURGE_BATCH_SIZE)
            )
            removed += purged.removed
            if purged.removed < _PURGE_BATCH_SIZE:
                return removed

    def drop(self, queue_name: str, *, only_if_empty: bool) -> None:
        """Drop a queue with its messages; with `only_if_empty` keep one with messages."""
        try:
            self._call(lambda: self._queue.drop_queue(queue_name, force=not only_if_empty))
        except QueueNotEmpty:
            return
        except QueueNotFound:
            pass
        self._declared.discard(queue_name)

    # messages

    def put(self, queue_name: str, text: str, **options: Unpack[MessageOptions]) -> None:
        """Enqueue a message; options as in rowq.Queue.enqueue."""
        self._call(lambda: self._queue.enqueue(queue_name, text=text, **options))

    def take(self, queue_name: str) -> Message | None:
        """Lease a message until it is finished, or return None if none is ready.

        Each message has its own claim, so it is finished, extended and lost separately.
        """
        self._start()
        lease_seconds = self._lease_seconds(queue_name)
        called_at = time.monotonic()
        messages = self._call(
            lambda: self._queue.dequeue_fast(
                queue_name, worker_name=default_name(), lease_seconds=lease_seconds
            )
        )
        for message in messages:
            delivery = Delivery(queue_name, message.claim_id, message.message_id)
            with self._lock:
                self._held[delivery] = _Lease(lease_seconds, called_at)
            return message
        return None

    def complete(self, delivery: Delivery) -> None:
        """Complete a message."""
        self._finish(delivery, self._queue.complete)

    def retry(self, delivery: Delivery, error: str) -> None:
        """Retry a message after the queue's backoff."""
        self._finish(delivery, partial(self._queue.retry_later, error=error))

    def fail(self, delivery: Delivery, error: str) -> None:
        """Make a message dead."""
        self._finish(delivery, partial(self._queue.fail_now, error=error))

    def release(self, deliveries: Iterable[Delivery]) -> None:
        """Release unstarted messages; on an error leave them until their leases expire.

        Stop after a lost connection, so that a shutdown is short.
        """
        held = [delivery for delivery in deliveries if self._forget(delivery)]
        for number, delivery in enumerate(held):
            try:
                self._call(partial(self._queue.release, delivery.queue_name, delivery.claim_id))
            except StaleClaim:
                continue
            except ConnectionLost as error:
                log.warning(
                    "%d messages not released, their leases will expire: %s",
                    len(held) - number,
                    error,
                )
                return
            except Exception as error:
                log.warning(
                    "%s: message %d not released, its lease will expire: %s",
                    delivery.queue_name,
                    delivery.message_id,
                    error,
                )

    def _finish(self, delivery: Delivery, routine: Callable[[str, int], Any]) -> None:
        """Finish a delivery; only log if it belongs to another worker now.

        Stop extending its lease before the call, regardless of the outcome.
        """
        self._forget(delivery)
        try:
            self._call(lambda: routine(delivery.queue_name, delivery.claim_id))
        except StaleClaim:
            _warn_of_loss(delivery)
        finally:
            self.freed.set()

    def _forget(self, delivery: Delivery) -> bool:
        """Stop extending a message's lease; return whether it was held."""
        with self._lock:
            return self._held.pop(delivery, None) is not None

    def _lease_seconds(self, queue_name: str) -> int:
        if self.options.lease_seconds is not None:
            return self.options.lease_seconds
        if queue_name not in self._lease_settings:
            (stats,) = self._call(lambda: self._queue.queue_stats(queue_name, max_count=1))
            self._lease_settings[queue_name] = stats.lease_seconds
        return self._lease_settings[queue_name]

    def _call(self, call: Callable[[], _T]) -> _T:
        """Make a call; raise transient errors as ConnectionLost, which Celery retries."""
        try:
            return call()
        except Exception as error:
            if isinstance(error, RowqError):
                is_transient = error.retryable
            else:
                is_transient = self._engine.is_transient(error)
            if is_transient:
                raise ConnectionLost(f"transient database error: {error}") from error
            raise

    # threads

    def _start(self) -> None:
        """Start the threads for receiving, unless they run."""
        if self._threads or self._is_closed:
            return
        for name, run in (("heartbeat", self._extend_all), ("maintenance", self._maintain)):
            thread = threading.Thread(target=run, name=f"rowq-{name}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _extend_all(self) -> None:
        """Extend each lease after a third of its length, until the end."""
        self._repeat("heartbeat", self._extend_due, lambda: _TICK_SECONDS)

    def _maintain(self) -> None:
        """Call maintain once a second, or at once for a backlog, until the end."""
        more = False

        def maintain(queue: Queue) -> None:
            nonlocal more
            more = has_more(queue.maintain(batch_size=MAINTAIN_BATCH_SIZE))

        self._repeat("maintain", maintain, lambda: 0.0 if more else _MAINTAIN_SECONDS)

    def _repeat(self, what: str, work: Callable[[Queue], None], pause: Callable[[], float]) -> None:
        backoff = Backoff(first=0.1, cap=5.0)
        ended = self._ended
        with Queue(OwnedSession(self._url, reconnect_seconds=0)) as queue:
            while not ended.is_set():
                try:
                    work(queue)
                    backoff.reset()
                    delay = pause()
                except Exception as error:
                    delay = backoff.next()
                    log.warning("%s: retrying in %.1f s: %s", what, delay, error)
                ended.wait(delay)

    def _extend_due(self, queue: Queue) -> None:
        """Extend due leases, the most urgent first, and previously refused ones last."""
        with self._lock:
            due = [(delivery, lease) for delivery, lease in self._held.items() if lease.is_due]
        for delivery, lease in sorted(due, key=lambda one: one[1].urgency):
            self._extend(queue, delivery, lease)

    def _extend(self, queue: Queue, delivery: Delivery, lease: _Lease) -> None:
        """Extend a lease; raises ConnectionLost, which also prevents the other extensions."""
        called_at = time.monotonic()
        try:
            queue.extend_lease(delivery.queue_name, delivery.claim_id, lease_seconds=lease.seconds)
        except (StaleClaim, QueueNotFound):
            # If the message was finished during the call, it is no longer held.
            if self._forget(delivery):
                _warn_of_loss(delivery)
        except ConnectionLost:
            raise
        except Exception as error:
            log.log(
                logging.WARNING if lease.refused_at is None else logging.DEBUG,
                "%s: cannot extend the lease of message %d, will retry: %s",
                delivery.queue_name,
                delivery.message_id,
                error,
            )
            lease.refused_at = time.monotonic()
        else:
            lease.called_at, lease.refused_at = called_at, None

    # the end

    def close(self) -> None:
        """End the threads and close the connection; leave held messages to their leases.

        A running task can still finish its message. Do not wait for the threads: one may be waiting
        for an unreachable database.
        """
        self._is_closed = True
        self._ended.set()
        with self._lock:
            self._held.clear()
        self._session.close_after_calls()

    def forget(self) -> None:
        """In a forked process, leave threads and claims to the parent."""
        self._begin_empty()


def _warn_of_loss(delivery: Delivery) -> None:
    log.warning(
        "%s: message %d lost: its lease expired, so it is delivered again",
        delivery.queue_name,
        delivery.message_id,
    )


_brokers: weakref.WeakSet[Broker] = weakref.WeakSet()


def _forget_all() -> None:
    for broker in list(_brokers):
        broker.forget()


after_fork(_forget_all)
