"""AsyncStriped: a queue in several stripes, on one or more servers, as one object.

striped.py is made from this file by make generate.

It calls AsyncQueue's methods on the stripes of rowq.worker.stripes; docs/python/striped.md has the
guarantees.
"""

import asyncio
import logging
import random
import time
import weakref
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from rowq.arguments import Default, check_argument
from rowq.async_queue import AsyncQueue
from rowq.async_session import AsyncOwnedSession
from rowq.awaitable import may_be_entered
from rowq.backoff import Backoff
from rowq.bodies import check_batch
from rowq.engines import is_driver_error
from rowq.engines.base import LONGEST_WAIT_SECONDS
from rowq.errors import CannotConnect, ConnectionLost, InvalidArgument
from rowq.forks import after_fork
from rowq.messages import (
    Lease,
    Maintained,
    Message,
    MessageDetails,
    NewMessage,
    Outcome,
    QueueOutcome,
    RetryOutcome,
)
from rowq.options import MessageOptions, QueueSettings, takes, with_defaults
from rowq.worker.stripes import (
    Round,
    ServerCheck,
    ServerHealth,
    Stripe,
    StripeClaim,
    StripedEnqueued,
    StripedMessage,
    StripeStats,
    number_of_key,
    server_down,
    servers_of,
    stripes_of,
)

_T = TypeVar("_T")
_log = logging.getLogger("rowq")

# How long to wait at one stripe before all are polled again.
_WAIT_SECONDS = 1.0


@may_be_entered
async def connect_striped_async(
    queue_name: str,
    stripes: int,
    urls: str | Mapping[str, str],
    *,
    reconnect_seconds: float = 60.0,
    first_stripe: int | None = None,
    default: Default | None = None,
) -> "AsyncStriped":
    """Return an AsyncStriped with its own connection to each server, opened when needed.

    Args:
        queue_name: prefix of the stripes' names, which end in "/" and a number.
        stripes: number of stripes per server.
        urls: the URL of a server, or a mapping of names to URLs; all clients must use the same
            names.
        reconnect_seconds: how long to retry a call if only one server can answer it, no server
            answers, or the server rolled it back.
        first_stripe: as in AsyncStriped.
        default: as in AsyncQueue.

    Raises CannotConnect if no server can be reached.
    """
    sessions = {
        name: AsyncOwnedSession(url, reconnect_seconds=0, repeat_seconds=reconnect_seconds)
        for name, url in servers_of(urls).items()
    }
    queues = {name: AsyncQueue(session, default=default) for name, session in sessions.items()}
    striped = AsyncStriped(
        queue_name, stripes, queues, reconnect_seconds=reconnect_seconds, first_stripe=first_stripe
    )
    lost: Exception | None = None
    for name, session in sessions.items():
        try:
            await session.open()
        except CannotConnect as error:
            striped._server_health[name].record_failure()
            lost = error
        else:
            return striped
    raise lost or InvalidArgument("urls is empty; pass at least one server URL")


class AsyncStriped:
    """A queue in several stripes, each of which is a queue.

    A message without a key goes to the object's own stripe, chosen at random, or to the next one
    while that server is unreachable. A message with a group_key, or else with a dedup_key, always
    goes to the stripe of that key. Tasks that share it take turns at each server.
    """

    def __init__(
        self,
        queue_name: str,
        stripes: int,
        queues: AsyncQueue | Mapping[Any, AsyncQueue],
        *,
        reconnect_seconds: float = 60.0,
        first_stripe: int | None = None,
    ) -> None:
        """Use queue objects, with the caller's connections or their own; make no call.

        Args:
            queue_name: prefix of the stripes' names, which end in "/" and a number.
            stripes: number of stripes per server.
            queues: the server's queue object, or a mapping of server names to them. In a caller's
                transaction all messages go to one server, without failover.
            reconnect_seconds: as in connect_striped_async, for queues that reconnect.
            first_stripe: the number of this consumer, from 0: the stripe where each dequeue starts.
                Default: the stripes take turns.

        Raises:
            InvalidArgument: queue_name or stripes is invalid.
        """
        self._queues: Mapping[Any, AsyncQueue] = (
            queues if isinstance(queues, Mapping) else {None: queues}
        )
        if not self._queues:
            raise InvalidArgument("queues is empty; pass at least one queue object")
        self.stripes = stripes_of(queue_name, stripes, self._queues)
        """All stripes, by number."""
        self._reconnect_seconds = reconnect_seconds
        self._first_stripe = first_stripe
        self._restart()
        _striped.add(self)

    def _restart(self) -> None:
        """Choose the own stripe, and assume that all servers are reachable; also after a fork."""
        self._server_health = {name: ServerHealth() for name in self._queues}
        self._round = Round(self.stripes, self._first_stripe)
        drawn = random.randrange(len(self.stripes))  # noqa: S311 - no secret
        self._own = self.stripes[drawn:] + self.stripes[:drawn]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the queue objects; see AsyncQueue.close."""
        for queue in self._queues.values():
            await queue.close()

    def queue_of(self, stripe: Stripe) -> AsyncQueue:
        """Return the queue object of a stripe's server, for other methods such as get_message.

        Pass them the stripe's queue_name.
        """
        return self._queues[stripe.server]

    def stripe_of_key(self, key: str) -> Stripe:
        """Return the stripe of a group_key, or of a dedup_key if there is no group_key."""
        checked: str = check_argument("key", "text", key)
        return self.stripes[number_of_key(checked, len(self.stripes))]

    # all stripes

    @takes(QueueSettings)
    async def create_queue(self, **settings: Unpack[QueueSettings]) -> list[QueueOutcome]:
        """Create the missing stripes, with settings as of AsyncQueue.create_queue."""
        return await self._each(lambda queue, name: queue.create_queue(name, **settings))

    @takes(QueueSettings)
    async def alter_queue(self, **settings: Unpack[QueueSettings]) -> list[QueueOutcome]:
        """Change settings of all stripes, as AsyncQueue.alter_queue does."""
        return await self._each(lambda queue, name: queue.alter_queue(name, **settings))

    async def drop_queue(self, *, force: bool = False) -> list[QueueOutcome]:
        """Drop all stripes; stop at a stripe that is not empty, without `force`: QueueNotEmpty."""
        return await self._each(lambda queue, name: queue.drop_queue(name, force=force))

    async def pause_queue(self) -> list[QueueOutcome]:
        """Stop delivery of all stripes."""
        return await self._each(lambda queue, name: queue.pause_queue(name))

    async def resume_queue(self) -> list[QueueOutcome]:
        """Resume delivery of all stripes."""
        return await self._each(lambda queue, name: queue.resume_queue(name))

    async def maintain(self, batch_size: int = 1000) -> list[Maintained]:
        """Run the maintenance of all stripes; call it about once a second.

        Skip servers that are unreachable, and raise ConnectionLost at the end.
        """
        done: list[Maintained] = []
        lost: dict[Any, ConnectionLost] = {}
        for stripe in _without(lost, self.stripes):
            try:
                done += await self._once(
                    stripe, lambda queue, name: queue.maintain(name, batch_size)
                )
            except ConnectionLost as error:
                lost[stripe.server] = error
        if lost:
            raise next(iter(lost.values()))
        return done

    async def queue_stats(self, *, max_count: int = 100000) -> list[StripeStats]:
        """Return counts, age and settings of each stripe, or the error of its server."""
        found: list[StripeStats] = []
        lost: dict[Any, str] = {}
        for stripe in self.stripes:
            if stripe.server in lost:
                found.append(StripeStats(stripe, None, lost[stripe.server]))
                continue
            try:
                (stats,) = await self._once(
                    stripe, lambda queue, name: queue.queue_stats(name, max_count=max_count)
                )
                found.append(StripeStats(stripe, stats, None))
            except ConnectionLost as error:
                lost[stripe.server] = str(error)
                found.append(StripeStats(stripe, None, str(error)))
        return found

    async def undrained(self) -> list[StripeStats]:
        """Return the stripes with messages whose keys still count.

        With another number of stripes, a key goes to another stripe, which does not know its
        earlier messages or their order. So stop all producers of messages with keys, wait until
        this returns an empty list for the old stripes, and start them with the new number.
        """
        return [stripe for stripe in await self.queue_stats(max_count=1) if not stripe.is_drained]

    async def health(self) -> list[ServerCheck]:
        """Return the health checks of each server; an unreachable server is a critical one."""
        found: list[ServerCheck] = []
        for stripe in self.stripes[: len(self._queues)]:
            try:
                checks = await self._once(stripe, lambda queue, _: queue.health())
            except ConnectionLost as error:
                checks = [server_down(error)]
            found += [ServerCheck(stripe.server, check) for check in checks]
        return found

    # produce

    @takes(MessageOptions)
    async def enqueue(
        self,
        data: Any = None,
        *,
        text: str | None = None,
        stripe: Stripe | None = None,
        **options: Unpack[MessageOptions],
    ) -> StripedEnqueued:
        """Enqueue a message, as AsyncQueue.enqueue does, and return its stripe and id.

        stripe: use this stripe, regardless of keys; required with `predecessor_ids`.

        Raises ConnectionLost if its effect is unknown; then no other stripe is tried.
        """
        whole = with_defaults(MessageOptions, options, "enqueue")

        def call(queue: AsyncQueue, name: str) -> Awaitable[Any]:
            return queue.enqueue(name, data, text=text, **options)

        if stripe is None and whole["predecessor_ids"] is not None:
            raise InvalidArgument(
                "predecessor_ids requires stripe: message ids are unique within a stripe only"
            )
        target = stripe or self._stripe_of(whole["group_key"], whole["dedup_key"])
        found, sent = await self._put(target, call)
        return StripedEnqueued(found, sent.message_id, sent.outcome)

    async def enqueue_batch(
        self, messages: Iterable[NewMessage | Any], *, stripe: Stripe | None = None
    ) -> list[StripedEnqueued]:
        """Enqueue messages, as AsyncQueue.enqueue_batch does, and return the stripe of each.

        Messages without a key are sent in one call, the others in one call per stripe. Each call is
        all or nothing. If a call raises, the messages of earlier calls remain.

        stripe: use this stripe for all messages; required for messages with predecessors.

        Raises ConnectionLost, with is_unknown also if only some messages were enqueued.
        """
        check_batch(messages)
        batch = list(messages)
        targets: dict[Stripe | None, list[int]] = {}
        for number, message in enumerate(batch):
            targets.setdefault(stripe or self._stripe_of_new(message), []).append(number)
        enqueued: dict[int, StripedEnqueued] = {}
        for target, numbers in targets.items():
            some = [batch[number] for number in numbers]
            try:
                found, sent = await self._put(target, _batch_call(some))
            except ConnectionLost as error:
                if not enqueued:
                    raise
                raise ConnectionLost(
                    f"{len(enqueued)} of {len(batch)} messages were enqueued: {error}",
                    is_unknown=True,
                ) from error
            for one in sent:
                number = numbers[one.position - 1]
                enqueued[number] = StripedEnqueued(found, one.message_id, one.outcome)
        return [enqueued[number] for number in sorted(enqueued)]

    # consume

    async def dequeue_fast(
        self,
        batch_size: int = 1,
        *,
        worker_name: str | None = None,
        lease_seconds: int | None = None,
    ) -> list[StripedMessage]:
        """Lease up to `batch_size` messages from one stripe, and the rest from the next ones.

        They may belong to several claims; pass `message.claim` to the finishing methods. An
        unreachable server is skipped; if all are, raises ConnectionLost after reconnect_seconds.
        """
        size = check_argument("batch_size", "int32", batch_size)
        if size is None:
            raise InvalidArgument("batch_size is required")

        async def dequeue() -> list[StripedMessage]:
            return await self._dequeue(size, worker_name, lease_seconds)

        return await self._persist(dequeue)

    async def dequeue_wait(
        self,
        batch_size: int = 1,
        *,
        worker_name: str | None = None,
        lease_seconds: int | None = None,
        wait_seconds: float = 20,
    ) -> list[StripedMessage]:
        """Dequeue messages, and wait if there are none; return an empty list after the wait.

        It waits at one stripe for a second at a time, and polls all of them in between. Raises
        WrongTransactionState unless the connection is in autocommit, outside a transaction.
        """
        total = check_argument("wait_seconds", "float", wait_seconds)
        if total is None or not 0 <= total <= LONGEST_WAIT_SECONDS:
            raise InvalidArgument(
                f"wait_seconds must be between 0 and {LONGEST_WAIT_SECONDS:g}, got {wait_seconds}"
            )
        until = time.monotonic() + total
        while True:
            found = await self.dequeue_fast(
                batch_size, worker_name=worker_name, lease_seconds=lease_seconds
            )
            remaining = until - time.monotonic()
            if found or remaining <= 0:
                return found
            seconds = min(remaining, _WAIT_SECONDS)
            stripe = self._reachable(self._round.next())[0]

            def call(queue: AsyncQueue, name: str, seconds: float = seconds) -> Awaitable[Any]:
                return queue.dequeue_wait(
                    name,
                    batch_size,
                    worker_name=worker_name,
                    lease_seconds=lease_seconds,
                    wait_seconds=seconds,
                )

            try:
                if messages := await self._once(stripe, call):
                    return [StripedMessage.of(message, stripe) for message in messages]
            except ConnectionLost as error:
                _log.warning("%s: %s", stripe, error)
                await asyncio.sleep(min(seconds, 0.1))

    # finish: without message_ids, a method finishes every message that the claim still holds.

    async def complete(
        self,
        claim: StripeClaim,
        message_ids: Sequence[int] | None = None,
        *,
        results: Sequence[Any] | None = None,
    ) -> list[Outcome]:
        """Complete messages of a claim, as AsyncQueue.complete does."""
        return await self._at(
            claim.stripe,
            lambda queue, name: queue.complete(name, claim.claim_id, message_ids, results=results),
        )

    async def retry_later(
        self,
        claim: StripeClaim,
        message_ids: Sequence[int] | None = None,
        *,
        delay_seconds: float | None = None,
        error: str | None = None,
    ) -> list[RetryOutcome]:
        """Retry messages of a claim, as AsyncQueue.retry_later does."""
        return await self._at(
            claim.stripe,
            lambda queue, name: queue.retry_later(
                name, claim.claim_id, message_ids, delay_seconds=delay_seconds, error=error
            ),
        )

    async def fail_now(
        self,
        claim: StripeClaim,
        message_ids: Sequence[int] | None = None,
        *,
        error: str | None = None,
    ) -> list[Outcome]:
        """Make messages of a claim dead, as AsyncQueue.fail_now does."""
        return await self._at(
            claim.stripe,
            lambda queue, name: queue.fail_now(name, claim.claim_id, message_ids, error=error),
        )

    async def release(
        self,
        claim: StripeClaim,
        message_ids: Sequence[int] | None = None,
        *,
        delay_seconds: float | None = None,
    ) -> list[RetryOutcome]:
        """Release messages of a claim, as AsyncQueue.release does."""
        return await self._at(
            claim.stripe,
            lambda queue, name: queue.release(
                name, claim.claim_id, message_ids, delay_seconds=delay_seconds
            ),
        )

    async def extend_lease(
        self,
        claim: StripeClaim,
        *,
        lease_seconds: int | None = None,
        progress: str | None = None,
    ) -> Lease:
        """Extend the lease of a claim, as AsyncQueue.extend_lease does."""
        return await self._at(
            claim.stripe,
            lambda queue, name: queue.extend_lease(
                name, claim.claim_id, lease_seconds=lease_seconds, progress=progress
            ),
        )

    # inspect

    async def find_message(
        self, dedup_key: str, *, group_key: str | None = None
    ) -> MessageDetails | None:
        """Find a message in the stripe of its keys, as AsyncQueue.find_message does."""
        return await self._at(
            self.stripe_of_key(dedup_key if group_key is None else group_key),
            lambda queue, name: queue.find_message(name, dedup_key),
        )

    # stripes and retries

    def _stripe_of(self, group_key: str | None, dedup_key: str | None) -> Stripe | None:
        """Return the stripe of a message with these keys, or None for any."""
        key = dedup_key if group_key is None else group_key
        return None if key is None else self.stripe_of_key(key)

    def _stripe_of_new(self, message: Any) -> Stripe | None:
        if not isinstance(message, NewMessage):
            return None
        if message.predecessor_ids is not None or message.predecessor_positions is not None:
            raise InvalidArgument(
                "predecessors require stripe: message ids are unique within a stripe only"
            )
        return self._stripe_of(message.group_key, message.dedup_key)

    def _reachable(self, stripes: Sequence[Stripe]) -> list[Stripe]:
        """Return the stripes of reachable servers, or all if there are none."""
        found = [
            stripe for stripe in stripes if not self._server_health[stripe.server].is_backing_off
        ]
        return found or list(stripes)

    async def _dequeue(
        self, batch_size: int, worker_name: str | None, lease_seconds: int | None
    ) -> list[StripedMessage]:
        """Poll each stripe once until the batch is full."""
        found: list[StripedMessage] = []
        lost: dict[Any, ConnectionLost] = {}
        has_answered = False
        for stripe in _without(lost, self._reachable(self._round.next())):
            size = batch_size - len(found)

            def call(queue: AsyncQueue, name: str, size: int = size) -> Awaitable[list[Message]]:
                return queue.dequeue_fast(
                    name, size, worker_name=worker_name, lease_seconds=lease_seconds
                )

            try:
                messages = await self._once(stripe, call)
            except Exception as error:
                if isinstance(error, ConnectionLost):
                    lost[stripe.server] = error
                    continue
                if not found:
                    raise
                # The messages of earlier stripes are leased: return them.
                _log.warning("%s: %s", stripe, error)
                break
            has_answered = True
            found += [StripedMessage.of(message, stripe) for message in messages]
            self._round.record(stripe, is_full=len(messages) == size)
            if len(found) >= batch_size:
                break
        if lost and not has_answered:
            raise next(iter(lost.values()))
        return found

    async def _put(
        self, stripe: Stripe | None, call: Callable[[AsyncQueue, str], Awaitable[_T]]
    ) -> tuple[Stripe, _T]:
        """Make a call at a stripe, or at any; return the stripe and the answer."""
        if stripe is not None:
            return stripe, await self._at(stripe, call)

        async def put() -> tuple[Stripe, _T]:
            return await self._put_anywhere(call)

        return await self._persist(put)

    async def _put_anywhere(
        self, call: Callable[[AsyncQueue, str], Awaitable[_T]]
    ) -> tuple[Stripe, _T]:
        """Make a call at the object's own stripe, or at the next one with a reachable server."""
        lost: dict[Any, ConnectionLost] = {}
        for stripe in _without(lost, self._reachable(self._own)):
            try:
                return stripe, await self._once(stripe, call)
            except ConnectionLost as error:
                if error.is_unknown:
                    raise
                lost[stripe.server] = error
            except Exception as error:
                # Another stripe may have space or fewer locks: use it for the next call.
                if is_driver_error(error):
                    self._own = self._own[1:] + self._own[:1]
                raise
        raise next(iter(lost.values()))

    async def _each(self, call: Callable[[AsyncQueue, str], Awaitable[_T]]) -> list[_T]:
        """Make a call at each stripe in turn."""
        return [await self._at(stripe, call) for stripe in self.stripes]

    async def _at(self, stripe: Stripe, call: Callable[[AsyncQueue, str], Awaitable[_T]]) -> _T:
        """Make a call that only this stripe can answer."""

        async def once() -> _T:
            return await self._once(stripe, call)

        return await self._persist(once)

    async def _once(self, stripe: Stripe, call: Callable[[AsyncQueue, str], Awaitable[_T]]) -> _T:
        """Make a call at a stripe once, and record whether its server answered."""
        try:
            found = await call(self._queues[stripe.server], stripe.queue_name)
        except ConnectionLost:
            self._server_health[stripe.server].record_failure()
            raise
        self._server_health[stripe.server].record_success()
        return found

    async def _persist(self, call: Callable[[], Awaitable[_T]]) -> _T:
        """Retry a call, if that is safe, until it succeeds or times out."""
        backoff = Backoff(first=0.1, cap=5.0)
        deadline = float("inf")
        while True:
            try:
                return await call()
            except ConnectionLost as error:
                deadline = min(deadline, time.monotonic() + self._reconnect_seconds)
                if error.is_unknown or time.monotonic() >= deadline:
                    raise
                delay = backoff.next()
                _log.warning("retrying in %.1f s: %s", delay, error)
            await asyncio.sleep(delay)


def _without(lost: Mapping[Any, object], stripes: Iterable[Stripe]) -> Iterator[Stripe]:
    """Yield the stripes whose server is not in `lost` at their turn."""
    for stripe in stripes:
        if stripe.server not in lost:
            yield stripe


def _batch_call(messages: list[Any]) -> Callable[[AsyncQueue, str], Awaitable[Any]]:
    """Return a call that enqueues these messages."""
    return lambda queue, name: queue.enqueue_batch(name, messages)


_striped: weakref.WeakSet[AsyncStriped] = weakref.WeakSet()


def _restart_all() -> None:
    for striped in list(_striped):
        striped._restart()


after_fork(_restart_all)
