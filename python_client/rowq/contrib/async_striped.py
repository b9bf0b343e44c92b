"""AsyncStriped: a queue in several stripes, on one server or on several, as one object.

striped.py is made from this file by make generate.

It calls AsyncQueue's methods and knows where: rowq.worker.stripes says which stripes there are.
What holds of a striped queue, and what does not, stands on the client's page under "Striped
queues".
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
from rowq.async_session import LONGEST_WAIT_SECONDS, AsyncOwnedSession
from rowq.awaitable import may_be_entered
from rowq.backoff import Backoff
from rowq.bodies import check_batch
from rowq.engines import is_driver_error
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
    server_away,
    servers_of,
    stripes_of,
)

_T = TypeVar("_T")
_log = logging.getLogger("rowq")

# One stripe is waited at for so long before all are asked again.
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
    """Return an AsyncStriped with a connection of its own to each server, made when it is needed.

    Args:
        queue_name: what its stripes are called after, by "/" and a number.
        stripes: how many stripes each server has.
        urls: the URL of a server, or of several by their names, which clients must agree on.
        reconnect_seconds: for so long a call is tried again that only one server can answer, or
            that none has answered, or that a server undid because of what others did.
        first_stripe: as for AsyncStriped.
        default: that of AsyncQueue.

    Raises CannotConnect when no server can be reached.
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
    raise lost or InvalidArgument("there must be a server")


class AsyncStriped:
    """The stripes of a queue, each of which is a queue, as one.

    A message without a key goes to a stripe of this object's own, drawn at random, or to the next
    one while that server does not answer. One with a group_key, or else with a dedup_key, goes to
    the stripe of that key, whatever happens. Tasks that share it take turns at each server.
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
        """Use queue objects, of the caller's own connections perhaps; nothing is called.

        Args:
            queue_name: what the stripes are called after, by "/" and a number.
            stripes: how many stripes each server has.
            queues: the queue object of the server, or of each by the server's name. In the
                caller's transaction messages are enqueued on one server only, and nothing is tried
                anywhere else.
            reconnect_seconds: as for connect_striped_async; it is for queues that connect anew.
            first_stripe: the number of this consumer, from 0, which has its dequeues start at
                that stripe; None: the stripes take turns.

        Raises:
            InvalidArgument: the name, or the number of stripes, cannot be.
        """
        self._queues: Mapping[Any, AsyncQueue] = (
            queues if isinstance(queues, Mapping) else {None: queues}
        )
        if not self._queues:
            raise InvalidArgument("there must be a server")
        self.stripes = stripes_of(queue_name, stripes, self._queues)
        """All stripes, in the order of their numbers."""
        self._reconnect_seconds = reconnect_seconds
        self._first_stripe = first_stripe
        self._begin_anew()
        _striped.add(self)

    def _begin_anew(self) -> None:
        """Draw a stripe of its own, and think that all servers answer; a forked process does so."""
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
        """Return the queue object of a stripe's server, for what is not here: say get_message.

        Its methods take the stripe's queue_name.
        """
        return self._queues[stripe.server]

    def stripe_of_key(self, key: str) -> Stripe:
        """Return the stripe of a group_key, or of a dedup_key where there is no group_key."""
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
        """Remove all stripes; one that is not empty, without `force`, ends it: QueueNotEmpty."""
        return await self._each(lambda queue, name: queue.drop_queue(name, force=force))

    async def pause_queue(self) -> list[QueueOutcome]:
        """Stop delivery of all stripes."""
        return await self._each(lambda queue, name: queue.pause_queue(name))

    async def resume_queue(self) -> list[QueueOutcome]:
        """Start delivery of all stripes again."""
        return await self._each(lambda queue, name: queue.resume_queue(name))

    async def maintain(self, batch_size: int = 1000) -> list[Maintained]:
        """Do the housekeeping of all stripes; call it about once a second.

        A server that does not answer keeps no other from its turn, and is told of at the end:
        ConnectionLost.
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
        """Return counts, age and settings of each stripe, or why its server does not answer."""
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
        """Return the stripes with messages that keys may still be about; none: they may move.

        With another number of stripes a key goes to another stripe, where neither its earlier
        messages nor their order are known. So first all producers of such messages stop, then this
        must return nothing of the stripes as they were, and then they may start with the new
        number.
        """
        return [stripe for stripe in await self.queue_stats(max_count=1) if not stripe.is_drained]

    async def health(self) -> list[ServerCheck]:
        """Return the findings of health on each server; one that does not answer is critical."""
        found: list[ServerCheck] = []
        for stripe in self.stripes[: len(self._queues)]:
            try:
                checks = await self._once(stripe, lambda queue, _: queue.health())
            except ConnectionLost as error:
                checks = [server_away(error)]
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
        """Hand over one message as AsyncQueue.enqueue does, and return where it is.

        stripe: put it there, whatever its keys; needed with `predecessor_ids`, which are ids of it.

        Raises ConnectionLost when its effect is unknown; it is not tried at another stripe then.
        """
        whole = with_defaults(MessageOptions, options, "enqueue")

        def call(queue: AsyncQueue, name: str) -> Awaitable[Any]:
            return queue.enqueue(name, data, text=text, **options)

        if stripe is None and whole["predecessor_ids"] is not None:
            raise InvalidArgument("predecessor_ids are ids of a stripe: say which, by stripe")
        place = stripe or self._place_of(whole["group_key"], whole["dedup_key"])
        where, sent = await self._put(place, call)
        return StripedEnqueued(where, sent.message_id, sent.outcome)

    async def enqueue_batch(
        self, messages: Iterable[NewMessage | Any], *, stripe: Stripe | None = None
    ) -> list[StripedEnqueued]:
        """Hand over messages as AsyncQueue.enqueue_batch does, and return where each is.

        Those without a key go in one call, and those with keys in one for each of their stripes.
        Each call is all or nothing; but when one raises, what those before it have handed over is
        there.

        stripe: put all of them there; needed for messages with predecessors.

        Raises ConnectionLost, with is_unknown also where some were handed over and others not.
        """
        check_batch(messages)
        given = list(messages)
        places: dict[Stripe | None, list[int]] = {}
        for number, message in enumerate(given):
            places.setdefault(stripe or self._place_of_new(message), []).append(number)
        placed: dict[int, StripedEnqueued] = {}
        for place, numbers in places.items():
            some = [given[number] for number in numbers]
            try:
                where, sent = await self._put(place, _batch_call(some))
            except ConnectionLost as error:
                if not placed:
                    raise
                raise ConnectionLost(
                    f"{len(placed)} of {len(given)} messages were handed over: {error}",
                    is_unknown=True,
                ) from error
            for one in sent:
                number = numbers[one.position - 1]
                placed[number] = StripedEnqueued(where, one.message_id, one.outcome)
        return [placed[number] for number in sorted(placed)]

    # consume

    async def dequeue_fast(
        self,
        batch_size: int = 1,
        *,
        worker_name: str | None = None,
        lease_seconds: int | None = None,
    ) -> list[StripedMessage]:
        """Lease up to `batch_size` messages: of one stripe, and of the next ones if it has fewer.

        So they may be of several claims: `message.claim` is what the finishing methods take. A
        server that does not answer is passed over; where none does, ConnectionLost is raised after
        reconnect_seconds.
        """
        size = check_argument("batch_size", "int32", batch_size)
        if size is None:
            raise InvalidArgument("batch_size must not be None")

        async def take() -> list[StripedMessage]:
            return await self._take(size, worker_name, lease_seconds)

        return await self._persist(take)

    async def dequeue_wait(
        self,
        batch_size: int = 1,
        *,
        worker_name: str | None = None,
        lease_seconds: int | None = None,
        wait_seconds: float = 20,
    ) -> list[StripedMessage]:
        """Dequeue as dequeue_fast does, but wait for a message; an empty list when the time is up.

        It waits at one stripe for a second at a time, and asks all of them in between.

        Raises WrongTransactionState unless the connection is in autocommit, outside a transaction.
        """
        seconds_in_all = check_argument("wait_seconds", "float", wait_seconds)
        if seconds_in_all is None or not 0 <= seconds_in_all <= LONGEST_WAIT_SECONDS:
            raise InvalidArgument(f"wait_seconds must be 0 to {LONGEST_WAIT_SECONDS:g}")
        until = time.monotonic() + seconds_in_all
        while True:
            found = await self.dequeue_fast(
                batch_size, worker_name=worker_name, lease_seconds=lease_seconds
            )
            left = until - time.monotonic()
            if found or left <= 0:
                return found
            seconds = min(left, _WAIT_SECONDS)
            stripe = self._living(self._round.next())[0]

            def call(queue: AsyncQueue, name: str, seconds: float = seconds) -> Awaitable[Any]:
                return queue.dequeue_wait(
                    name,
                    batch_size,
                    worker_name=worker_name,
                    lease_seconds=lease_seconds,
                    wait_seconds=seconds,
                )

            try:
                if told := await self._once(stripe, call):
                    return [StripedMessage.of(message, stripe) for message in told]
            except ConnectionLost as error:
                _log.warning("%s: %s", stripe, error)
                await asyncio.sleep(min(seconds, 0.1))

    # finish: message_ids None means every message that the claim still holds.

    async def complete(
        self,
        claim: StripeClaim,
        message_ids: Sequence[int] | None = None,
        *,
        results: Sequence[Any] | None = None,
    ) -> list[Outcome]:
        """Finish messages of a claim, as AsyncQueue.complete does."""
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
        """Give messages back for another attempt, as AsyncQueue.retry_later does."""
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
        """Declare messages dead, as AsyncQueue.fail_now does."""
        return await self._at(
            claim.stripe,
            lambda queue, name: queue.fail_now(name, claim.claim_id, message_ids, error=error),
        )

    async def release(
        self, claim: StripeClaim, message_ids: Sequence[int] | None = None
    ) -> list[Outcome]:
        """Give messages back without spending the attempt, as AsyncQueue.release does."""
        return await self._at(
            claim.stripe, lambda queue, name: queue.release(name, claim.claim_id, message_ids)
        )

    async def extend_lease(
        self,
        claim: StripeClaim,
        *,
        lease_seconds: int | None = None,
        progress: str | None = None,
    ) -> Lease:
        """Hold all messages of a claim for longer, as AsyncQueue.extend_lease does."""
        return await self._at(
            claim.stripe,
            lambda queue, name: queue.extend_lease(
                name, claim.claim_id, lease_seconds=lease_seconds, progress=progress
            ),
        )

    # look

    async def find_message(
        self, dedup_key: str, *, group_key: str | None = None
    ) -> MessageDetails | None:
        """Return what AsyncQueue.find_message does, of the stripe to which the keys go."""
        return await self._at(
            self.stripe_of_key(dedup_key if group_key is None else group_key),
            lambda queue, name: queue.find_message(name, dedup_key),
        )

    # where, and how often

    def _place_of(self, group_key: str | None, dedup_key: str | None) -> Stripe | None:
        """Return the stripe of a message with these keys, None where it may be any."""
        key = dedup_key if group_key is None else group_key
        return None if key is None else self.stripe_of_key(key)

    def _place_of_new(self, message: Any) -> Stripe | None:
        if not isinstance(message, NewMessage):
            return None
        if message.predecessor_ids is not None or message.predecessor_positions is not None:
            raise InvalidArgument("predecessors are messages of a stripe: say which, by stripe")
        return self._place_of(message.group_key, message.dedup_key)

    def _living(self, stripes: Sequence[Stripe]) -> list[Stripe]:
        """Return the stripes whose servers are not known to be away; all where that is none."""
        found = [
            stripe for stripe in stripes if not self._server_health[stripe.server].is_backing_off
        ]
        return found or list(stripes)

    async def _take(
        self, batch_size: int, worker_name: str | None, lease_seconds: int | None
    ) -> list[StripedMessage]:
        """Ask the stripes once around."""
        found: list[StripedMessage] = []
        lost: dict[Any, ConnectionLost] = {}
        has_answered = False
        for stripe in _without(lost, self._living(self._round.next())):
            left = batch_size - len(found)

            def call(queue: AsyncQueue, name: str, left: int = left) -> Awaitable[list[Message]]:
                return queue.dequeue_fast(
                    name, left, worker_name=worker_name, lease_seconds=lease_seconds
                )

            try:
                messages = await self._once(stripe, call)
            except Exception as error:
                if isinstance(error, ConnectionLost):
                    lost[stripe.server] = error
                    continue
                if not found:
                    raise
                # What the others gave is leased, and must not be lost sight of.
                _log.warning("%s: %s", stripe, error)
                break
            has_answered = True
            found += [StripedMessage.of(message, stripe) for message in messages]
            self._round.note(stripe, is_full=len(messages) == left)
            if len(found) >= batch_size:
                break
        if lost and not has_answered:
            raise next(iter(lost.values()))
        return found

    async def _put(
        self, place: Stripe | None, call: Callable[[AsyncQueue, str], Awaitable[_T]]
    ) -> tuple[Stripe, _T]:
        """Make a call at a stripe, or at this object's own; return where it was, and its answer."""
        if place is not None:
            return place, await self._at(place, call)

        async def put() -> tuple[Stripe, _T]:
            return await self._put_anywhere(call)

        return await self._persist(put)

    async def _put_anywhere(
        self, call: Callable[[AsyncQueue, str], Awaitable[_T]]
    ) -> tuple[Stripe, _T]:
        """Make a call at this object's own stripe, or at the next one whose server answers."""
        lost: dict[Any, ConnectionLost] = {}
        for stripe in _without(lost, self._living(self._own)):
            try:
                return stripe, await self._once(stripe, call)
            except ConnectionLost as error:
                if error.is_unknown:
                    raise
                lost[stripe.server] = error
            except Exception as error:
                # Another stripe may have room, or be in nobody's way: the next call goes there.
                if is_driver_error(error):
                    self._own = self._own[1:] + self._own[:1]
                raise
        raise next(iter(lost.values()))

    async def _each(self, call: Callable[[AsyncQueue, str], Awaitable[_T]]) -> list[_T]:
        """Make a call at every stripe, one after the other."""
        return [await self._at(stripe, call) for stripe in self.stripes]

    async def _at(self, stripe: Stripe, call: Callable[[AsyncQueue, str], Awaitable[_T]]) -> _T:
        """Make a call at a stripe that no other stripe can answer."""

        async def once() -> _T:
            return await self._once(stripe, call)

        return await self._persist(once)

    async def _once(self, stripe: Stripe, call: Callable[[AsyncQueue, str], Awaitable[_T]]) -> _T:
        """Make a call at a stripe once, and note whether its server answers."""
        try:
            found = await call(self._queues[stripe.server], stripe.queue_name)
        except ConnectionLost:
            self._server_health[stripe.server].record_failure()
            raise
        self._server_health[stripe.server].record_success()
        return found

    async def _persist(self, call: Callable[[], Awaitable[_T]]) -> _T:
        """Make a call again, while that can do no harm, until it succeeds or is given up."""
        backoff = Backoff(first=0.1, cap=5.0)
        give_up_at = float("inf")
        while True:
            try:
                return await call()
            except ConnectionLost as error:
                give_up_at = min(give_up_at, time.monotonic() + self._reconnect_seconds)
                if error.is_unknown or time.monotonic() >= give_up_at:
                    raise
                delay = backoff.next()
                _log.warning("trying again in %.1f s: %s", delay, error)
            await asyncio.sleep(delay)


def _without(lost: Mapping[Any, object], stripes: Iterable[Stripe]) -> Iterator[Stripe]:
    """Go through stripes, without those of servers that are lost when it is their turn."""
    for stripe in stripes:
        if stripe.server not in lost:
            yield stripe


def _batch_call(messages: list[Any]) -> Callable[[AsyncQueue, str], Awaitable[Any]]:
    """Return a call that hands over these messages."""
    return lambda queue, name: queue.enqueue_batch(name, messages)


_striped: weakref.WeakSet[AsyncStriped] = weakref.WeakSet()


def _begin_all_anew() -> None:
    for striped in list(_striped):
        striped._begin_anew()


after_fork(_begin_all_anew)
