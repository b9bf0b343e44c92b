"""The database behind one connection of kombu's: its calls, and what is held by leases.

Celery acknowledges in other threads than the one that receives, so everything here may be called
from any thread. Nothing here knows kombu.
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
# A lease that cannot be extended for another reason than a lost connection is tried so often.
_REFUSED_SECONDS = 1.0
_PURGE_BATCH_SIZE = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What Celery's broker_transport_options may say; other keys are kombu's.

    polling_interval: seconds between two looks at queues that were empty.
    lease_seconds: length of the leases; None is each queue's setting.
    reconnect_seconds: how long a call goes on trying when the connection breaks, before Celery is
        told.
    """

    polling_interval: float = 0.2
    lease_seconds: int | None = None
    reconnect_seconds: float = 10.0

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "Options":
        """Return the options of a transport; raises InvalidArgument for what cannot work."""
        if "visibility_timeout" in given:
            raise InvalidArgument(
                "rowq has no visibility_timeout: lease_seconds is the length of a lease, which is"
                " extended for as long as the worker lives"
            )
        names = cls.__dataclass_fields__.keys() & given.keys()
        options = cls(**{name: given[name] for name in names})
        for name in ("polling_interval", "reconnect_seconds"):
            value = getattr(options, name)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not is_number or not 0 <= value < float("inf"):
                raise InvalidArgument(f"{name} must be a number of seconds, got {value!r}")
        if options.polling_interval == 0:
            raise InvalidArgument("polling_interval must be more than 0")
        return options


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message in the hands of this process."""

    queue_name: str
    claim_id: int
    message_id: int


@dataclass(slots=True)
class _Lease:
    """How long a message is held; it is extended after a third of that.

    refused_at: when the database last refused to extend it, None if it did not.
    """

    seconds: int
    asked_at: float
    refused_at: float | None = None

    @property
    def is_due(self) -> bool:
        if self.refused_at is not None:
            pause = min(_REFUSED_SECONDS, self.seconds / 3)
            return time.monotonic() >= self.refused_at + pause
        return time.monotonic() >= self.asked_at + self.seconds / 3

    @property
    def urgency(self) -> tuple[bool, float]:
        return self.refused_at is not None, self.asked_at + self.seconds


class Broker:
    """Calls rowq for one transport, and keeps alive what was received and not finished.

    Who receives starts two threads, each with a connection of its own: one extends leases, one
    keeps house. A forked process holds nothing of its parent's.
    """

    def __init__(self, url: str, options: Options) -> None:
        """Prepare for the database of a URL; raises EngineUnknown. Nothing is opened yet."""
        self.options = options
        self._url = url
        self._session = OwnedSession(
            url, reconnect_seconds=options.reconnect_seconds, repeats_passing=True
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
        """Set when a message was finished, so that there may be room for another one."""

    # queues

    def open(self) -> None:
        """Connect; raises CannotConnect."""
        self._session.connection()

    def declare(self, queue_name: str) -> None:
        """Make a queue unless it is there; raises QueueNotFound where the account may not."""
        if queue_name in self._declared:
            return
        try:
            self._call(lambda: self._queue.create_queue(queue_name))
        except Exception as error:
            if not self._engine.is_denied(error):
                raise
            if not self.has(queue_name):
                raise QueueNotFound(
                    f"{queue_name}, and this account may not create it: let an admin run"
                    f" rowq queue create {queue_name}"
                ) from error
        self._declared.add(queue_name)

    def has(self, queue_name: str) -> bool:
        """Whether there is such a queue; no look is granted to producers and consumers both."""
        looks: tuple[Callable[[], Any], ...] = (
            lambda: self._queue.queue_stats(queue_name, max_count=1),
            lambda: self._queue.enqueue_batch(queue_name, []),
        )
        denied: Exception | None = None
        for look in looks:
            try:
                self._call(look)
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
        """Return how many messages are ready."""
        return self._call(lambda: self._queue.queue_stats(queue_name))[0].ready

    def purge(self, queue_name: str) -> int:
        """Delete what waits, ready and delayed; return how many."""
        removed = 0
        while True:
            purged = self._call(
                lambda: self._queue.purge_queue(queue_name, max_messages=_PURGE_BATCH_SIZE)
            )
            removed += purged.removed
            if purged.removed < _PURGE_BATCH_SIZE:
                return removed

    def drop(self, queue_name: str, *, only_if_empty: bool) -> None:
        """Drop a queue with all that is in it; what is not empty stays, if asked."""
        try:
            self._call(lambda: self._queue.drop_queue(queue_name, force=not only_if_empty))
        except QueueNotEmpty:
            return
        except QueueNotFound:
            pass
        self._declared.discard(queue_name)

    # messages

    def put(self, queue_name: str, text: str, **options: Unpack[MessageOptions]) -> None:
        """Enqueue a message; the options are those of rowq.Queue.enqueue."""
        self._call(lambda: self._queue.enqueue(queue_name, text=text, **options))

    def take(self, queue_name: str) -> Message | None:
        """Lease a message, which is kept alive until it is finished; None where none is ready.

        One at a time, so that each has a claim of its own: it is finished, extended and lost by
        itself.
        """
        self._start()
        lease_seconds = self._lease_seconds(queue_name)
        asked_at = time.monotonic()
        messages = self._call(
            lambda: self._queue.dequeue_fast(
                queue_name, worker_name=default_name(), lease_seconds=lease_seconds
            )
        )
        for message in messages:
            delivery = Delivery(queue_name, message.claim_id, message.message_id)
            with self._lock:
                self._held[delivery] = _Lease(lease_seconds, asked_at)
            return message
        return None

    def complete(self, delivery: Delivery) -> None:
        """Finish a message that was done."""
        self._finish(delivery, self._queue.complete)

    def retry(self, delivery: Delivery, error: str) -> None:
        """Give a message back for another attempt, after the queue's backoff."""
        self._finish(delivery, partial(self._queue.retry_later, error=error))

    def fail(self, delivery: Delivery, error: str) -> None:
        """Declare a message dead."""
        self._finish(delivery, partial(self._queue.fail_now, error=error))

    def release(self, deliveries: Iterable[Delivery]) -> None:
        """Give messages back that nobody has begun; where that fails their leases run out.

        Once the connection cannot be made again, the rest is not tried, so that a stop is short.
        """
        held = [delivery for delivery in deliveries if self._forget(delivery)]
        for number, delivery in enumerate(held):
            try:
                self._call(partial(self._queue.release, delivery.queue_name, delivery.claim_id))
            except StaleClaim:
                continue
            except ConnectionLost as error:
                log.warning(
                    "%d messages were not given back, and come when their leases run out: %s",
                    len(held) - number,
                    error,
                )
                return
            except Exception as error:
                log.warning(
                    "%s: message %d was not given back, and comes when its lease runs out: %s",
                    delivery.queue_name,
                    delivery.message_id,
                    error,
                )

    def _finish(self, delivery: Delivery, routine: Callable[[str, int], Any]) -> None:
        """Make the call that ends a delivery; one that is another worker's by now is only logged.

        Its lease is not extended any more from before the call, whatever comes of that.
        """
        self._forget(delivery)
        try:
            self._call(lambda: routine(delivery.queue_name, delivery.claim_id))
        except StaleClaim:
            self._warn_of_loss(delivery)
        finally:
            self.freed.set()

    def _forget(self, delivery: Delivery) -> bool:
        """Hold a message no longer; return whether it was held."""
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
        """Make a call; what was refused for a reason that passes is a connection lost to Celery."""
        try:
            return call()
        except RowqError as error:
            if error.retryable:
                raise ConnectionLost(f"the database refuses for now: {error}") from error
            raise
        except Exception as error:
            if self._engine.is_transient(error):
                raise ConnectionLost(f"the database refuses for now: {error}") from error
            raise

    # threads

    def _start(self) -> None:
        """Start the threads of who receives, unless they run."""
        if self._threads or self._is_closed:
            return
        for name, run in (("heartbeat", self._extend_all), ("maintenance", self._keep_house)):
            thread = threading.Thread(target=run, name=f"rowq-{name}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _extend_all(self) -> None:
        """Extend each lease after a third of it, until the end."""
        self._repeat("heartbeat", self._extend_due, lambda: _TICK_SECONDS)

    def _keep_house(self) -> None:
        """Call maintain once a second, and at once while there is more to do, until the end."""
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
                    log.warning("%s: trying again in %.1f s: %s", what, delay, error)
                ended.wait(delay)

    def _extend_due(self, queue: Queue) -> None:
        """Extend what is due, the most urgent first, and what was refused before at the end."""
        with self._lock:
            due = [(delivery, lease) for delivery, lease in self._held.items() if lease.is_due]
        for delivery, lease in sorted(due, key=lambda one: one[1].urgency):
            self._extend(queue, delivery, lease)

    def _extend(self, queue: Queue, delivery: Delivery, lease: _Lease) -> None:
        """Extend a lease; raises ConnectionLost, as then no other one can be extended either."""
        asked_at = time.monotonic()
        try:
            queue.extend_lease(delivery.queue_name, delivery.claim_id, lease_seconds=lease.seconds)
        except (StaleClaim, QueueNotFound):
            # Or the message was finished meanwhile, which ends its claim as well.
            if self._forget(delivery):
                self._warn_of_loss(delivery)
        except ConnectionLost:
            raise
        except Exception as error:
            log.log(
                logging.WARNING if lease.refused_at is None else logging.DEBUG,
                "%s: the lease of message %d cannot be extended now: %s",
                delivery.queue_name,
                delivery.message_id,
                error,
            )
            lease.refused_at = time.monotonic()
        else:
            lease.asked_at, lease.refused_at = asked_at, None

    def _warn_of_loss(self, delivery: Delivery) -> None:
        log.warning(
            "%s: the lease of message %d has run out: it is delivered again",
            delivery.queue_name,
            delivery.message_id,
        )

    # the end

    def close(self) -> None:
        """End the threads and close the connection; what is held comes when its lease runs out.

        A message may still be finished after that, by who works on it. The threads end by
        themselves: where the database is away, one of them may be about to connect.
        """
        self._is_closed = True
        self._ended.set()
        with self._lock:
            self._held.clear()
        self._session.close_after_calls()

    def forget(self) -> None:
        """In a forked process: hold nothing, and leave threads and claims to the parent."""
        self._begin_empty()


_brokers: weakref.WeakSet[Broker] = weakref.WeakSet()


def _forget_all() -> None:
    for broker in list(_brokers):
        broker.forget()


after_fork(_forget_all)
