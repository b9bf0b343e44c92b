"""One claim of a worker: asking for it, its lease, and handing in what becomes of its messages."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from typing import Any, Protocol

from rowq import tracing
from rowq.arguments import check_argument, json_text
from rowq.engines.base import Row
from rowq.errors import InvalidArgument, QueueNotFound, StaleClaim
from rowq.messages import Lease, Message, Outcome, UnreadableHeaders
from rowq.queue import Queue, dequeue_arguments
from rowq.worker.batching import GIVE_BACK_SECONDS, BatchSize
from rowq.worker.context import Context, log
from rowq.worker.handlers import COMPLETED, Decision, unreadable_headers
from rowq.worker.meter import WorkerStats
from rowq.worker.stripes import Stripe

_FLUSH_SECONDS = 0.5
# No more of a lease is relied upon: two clocks do not run alike, and what is decided takes time.
_SAFE_SHARE = 0.95


class HasOutcome(Protocol):
    """A result of a routine about one message."""

    @property
    def outcome(self) -> str:
        """What was done."""


def count(outcomes: Sequence[HasOutcome]) -> WorkerStats:
    """Return how many messages had which outcome."""
    counts = Counter(result.outcome for result in outcomes)
    return WorkerStats(
        processed=counts["completed"],
        retried=counts["retrying"],
        failed=counts["dead"],
        released=counts["released"],
        stale=counts["stale"],
        cancelled=counts["cancelled"],
    )


def report_outcomes(
    queue: Queue,
    queue_name: str,
    claim_id: int,
    decisions: Mapping[int, Decision],
    results: Mapping[int, Any],
) -> Iterator[tuple[list[int], WorkerStats]]:
    """Hand in `decisions` by message id: one call for all messages that share a decision.

    results: what handlers have kept, by message id. Yield after each call the ids of its messages,
    and the counts of their outcomes.
    """
    groups: dict[Decision, list[int]] = {}
    for message_id, decision in decisions.items():
        groups.setdefault(decision, []).append(message_id)
    for decision, message_ids in groups.items():
        if decision.routine == "complete":
            yield message_ids, count(complete(queue, queue_name, claim_id, message_ids, results))
        else:
            yield message_ids, count(_finish(queue, queue_name, claim_id, message_ids, decision))


def results_of(message_ids: Sequence[int], results: Mapping[int, Any]) -> list[Any] | None:
    """Return the results of messages, in their order; None where none has one."""
    if results.keys().isdisjoint(message_ids):
        return None
    return [results.get(message_id) for message_id in message_ids]


def complete(
    queue: Queue,
    queue_name: str,
    claim_id: int,
    message_ids: list[int],
    results: Mapping[int, Any],
) -> list[Outcome]:
    """Complete messages with their results; one whose result the queue does not take, without it.

    What a handler has done counts all the same, and would be done twice if it were tried again.
    """
    kept = results_of(message_ids, results)
    if kept is not None:
        try:
            return queue.complete(queue_name, claim_id, message_ids, results=kept)
        except InvalidArgument as error:
            middle = len(message_ids) // 2
            if middle:
                return [
                    outcome
                    for half in (message_ids[:middle], message_ids[middle:])
                    for outcome in complete(queue, queue_name, claim_id, half, results)
                ]
            log.error("the result of message %d is lost: %s", message_ids[0], error)
    return queue.complete(queue_name, claim_id, message_ids)


def _finish(
    queue: Queue, queue_name: str, claim_id: int, message_ids: list[int], decision: Decision
) -> Sequence[HasOutcome]:
    """Call the routine of a decision that is not to complete."""
    match decision.routine:
        case "retry_later":
            return queue.retry_later(
                queue_name,
                claim_id,
                message_ids,
                delay_seconds=decision.delay_seconds,
                error=decision.error,
            )
        case "fail_now":
            return queue.fail_now(queue_name, claim_id, message_ids, error=decision.error)
        case _:
            return queue.release(queue_name, claim_id, message_ids)


class LiveLease:
    """How much of a claim's lease is left.

    It is reckoned in monotonic time from before the call that gave it, never from lease_until: this
    machine's clock may be wrong.

    lost: the database has refused the claim, or a handler was told that its time is up. Nothing is
    done with it from then on, so that a handler that stops early does not complete its message.
    cancelled: messages that were cancelled, as far as a heartbeat has said so.
    stopping: set when the worker was told to stop. results: what handlers have kept, by message id.
    progress: what a handler has said last, None once a heartbeat has taken it along. ends_at: when
    the time of the handler that is at work is up, by time.monotonic().
    """

    def __init__(
        self,
        claim_id: int,
        seconds: int,
        asked_at: float,
        stopping: threading.Event,
        stripe: Stripe,
    ) -> None:
        self.claim_id = claim_id
        self.stripe = stripe
        self.stopping = stopping
        self.seconds = seconds
        self.lost = False
        self.cancelled: frozenset[int] = frozenset()
        self.results: dict[int, Any] = {}
        self.progress: str | None = None
        self.ends_at = float("inf")
        self.renew(asked_at)

    def renew(self, asked_at: float) -> None:
        """Reckon from a call that was made at `asked_at`."""
        self.extend_at = asked_at + self.seconds / 3
        self.expires_at = asked_at + self.seconds * _SAFE_SHARE

    @property
    def is_over(self) -> bool:
        """Whether its time is up."""
        return time.monotonic() >= self.expires_at

    def is_lost(self) -> bool:
        """Tell a handler whether the lease is gone; neither waits nor asks the database."""
        if not self.lost and self.is_over:
            self.lost = True
            log.warning("claim %d is lost: its time is up, not extended", self.claim_id)
        return self.lost


class HeldMessage(Message):
    """A message in a worker's hands: what a handler is given."""

    __slots__ = ("_lease",)
    _lease: LiveLease

    @classmethod
    def of(cls, row: Row, lease: LiveLease) -> "HeldMessage":
        """Return the message of a row that a dequeue gave, which knows its lease."""
        held = cls(*row)
        object.__setattr__(held, "_lease", lease)
        return held

    @property
    def lost(self) -> bool:
        """Whether the lease is gone: then what the handler decides has no effect.

        Either the database has said so, or the lease's time is up and no word of its extension has
        come; the second needs no network. Once True it stays so, and the claim is given up.
        """
        return self._lease.is_lost()

    @property
    def cancelled(self) -> bool:
        """Whether the message was cancelled: its handler may stop, and raise anything.

        Told at a heartbeat, a third of the lease apart. The message ends as cancelled whatever is
        decided about it, unless the handler returns, which completes it as ever.
        """
        return self.message_id in self._lease.cancelled

    @property
    def timed_out(self) -> bool:
        """Whether its handler has taken longer than the worker's timeout_seconds."""
        return time.monotonic() >= self._lease.ends_at

    def limit(self, ends_at: float) -> None:
        """Note when the time of its handler is up, by time.monotonic(); the worker does it."""
        self._lease.ends_at = ends_at

    @property
    def stripe(self) -> Stripe:
        """The queue that delivered it, which claim_id and message_id belong to."""
        return self._lease.stripe

    def set_result(self, value: Any) -> None:
        """Keep a JSON value as the message's result, for who waits for it.

        It is handed in when the message is completed. The last one counts. Where the queue has no
        result_seconds the message is completed without it, and the worker's log says so. Raises
        InvalidArgument for what is no JSON value.
        """
        self._lease.results[self.message_id] = json.loads(json_text("result", value))

    def progress(self, text: str) -> None:
        """Say how far the work is; the next heartbeat takes it along, and get_message shows it.

        It is one text for all messages of the claim, of which the first 2000 characters are kept.
        """
        self._lease.progress = check_argument("progress", "text", text)

    def is_stopping(self, within_seconds: float = 0.0) -> bool:
        """Whether the worker was told to stop; waits for that up to `within_seconds`."""
        return self._lease.stopping.wait(within_seconds)


class LiveClaim:
    """A claim and its messages, in the hands of a consumer and of the heartbeat.

    Both call the database about it. Neither waits for the other's call: the lock is held only to
    look at, and change, what is here.

    is_full: whether the dequeue found as many messages as it asked for.
    """

    def __init__(
        self,
        context: Context,
        stripe: Stripe,
        rows: Sequence[Row],
        asked_at: float,
        lease_seconds: int,
        batch: BatchSize,
        asked_for: int = 1,
    ) -> None:
        """Take over the rows of a dequeue that was made at `asked_at` for `lease_seconds`.

        batch: the sizes of the thread's claims; `asked_for` is that of this one.
        """
        self._context = context
        self.stripe = stripe
        self.is_full = len(rows) == asked_for
        self._batch = batch
        self._give_back_at = asked_at + GIVE_BACK_SECONDS
        self._name = stripe.queue_name
        self.asked_at = asked_at
        # The claim's id is the first column, and the same in every row.
        self.claim_id: int = rows[0][0]
        self.lease = LiveLease(self.claim_id, lease_seconds, asked_at, context.stopping, stripe)
        messages = [HeldMessage.of(row, self.lease) for row in rows]
        # The handler is given what can be read; a message that cannot be read never will be.
        unreadable = {
            message.message_id: unreadable_headers(message.headers)
            for message in messages
            if isinstance(message.headers, UnreadableHeaders)
        }
        self.messages = [message for message in messages if message.message_id not in unreadable]
        self._lock = threading.Lock()
        self._giving_back = threading.Lock()
        self._may_give_back = True
        self._open = {message.message_id for message in messages}
        self._begun: set[int] = set()
        self._decisions: dict[int, Decision] = {}
        self._in_hand: set[int] = set()
        self._changes = 0
        self._flush_at = float("inf")
        self._hung = False
        self.given_up = threading.Event()
        if unreadable:
            log.warning("messages %s: their headers cannot be read", sorted(unreadable))
            self.decide(unreadable)

    @property
    def lost(self) -> bool:
        """Whether nothing more is to be done with this claim."""
        return self.lease.lost

    @property
    def held(self) -> int:
        """How many of its messages have not left the claim."""
        return len(self._open)

    @property
    def heartbeat_due(self) -> bool:
        """Whether a third of the lease has passed since it was last extended."""
        return not self.lost and bool(self._open) and time.monotonic() >= self.lease.extend_at

    @property
    def flush_due(self) -> bool:
        """Whether a decision has waited long enough."""
        return time.monotonic() >= self._flush_at

    @property
    def give_back_due(self) -> bool:
        """Whether the claim has taken too long for the messages with which no handler has begun."""
        is_due = time.monotonic() >= self._give_back_at
        return is_due and self._may_give_back and self._batch.gives_back and not self.lost

    @property
    def begun(self) -> int:
        """With how many of its messages a handler has begun."""
        return len(self._begun)

    def begin(self, messages: Sequence[HeldMessage]) -> bool:
        """Note that a handler begins with messages; return False if they were given back."""
        ids = {message.message_id for message in messages}
        with self._lock:
            if not ids <= self._open:
                return False
            self._begun |= ids
            return True

    def give_back(self, queue: Queue) -> None:
        """Release the messages with which no handler has begun, so that other workers take them.

        When the call raises, the claim keeps them, and the next one is due a little later.
        """
        with self._giving_back:
            if not self._may_give_back:
                return
            self._give_back_at = float("inf")
            rest = self._pop_rest(self._begun)
            try:
                self._release(queue, rest)
            except BaseException:
                with self._lock:
                    self._open.update(rest)
                self._give_back_at = time.monotonic() + GIVE_BACK_SECONDS
                raise

    def keep_the_rest(self) -> None:
        """Let the heartbeat give nothing back any more, once a call that does so has ended.

        So the thread that works on the claim releases what such a call has failed to.
        """
        with self._giving_back:
            self._may_give_back = False

    @property
    def is_hung(self) -> bool:
        """Whether its handler hangs, so that the heartbeat has to give it up."""
        return self._hung and not self.given_up.is_set()

    def note_hung(self, decisions: Mapping[int, Decision]) -> None:
        """Note that the handler hangs, and what becomes of its messages; the rest is released."""
        self.decide(decisions)
        self._hung = True

    def give_up(self, queue: Queue) -> None:
        """Hand in what is decided of a claim whose handler hangs, and release the rest."""
        self.flush(queue)
        self.release_rest(queue)
        # Whatever the handler does, should it come back, has no effect.
        self.lease.lost = True
        self.given_up.set()

    def decide(self, decisions: Mapping[int, Decision]) -> None:
        """Note decisions; they are handed in by the next flush."""
        with self._lock:
            self._decisions.update(decisions)
            self._flush_at = min(self._flush_at, time.monotonic() + _FLUSH_SECONDS)

    def flush(self, queue: Queue) -> None:
        """Hand in the decisions so far; of a lost claim they are only counted.

        When a call raises, what was not handed in is left for the next flush; had the call taken
        effect all the same, its messages are then counted as stale.
        """
        decisions = self._pop_decisions()
        if not decisions:
            return
        if self.lost:
            self.note_outcomes(decisions, WorkerStats(stale=len(decisions)))
            return
        left, stale = dict(decisions), 0
        try:
            handed_in = report_outcomes(
                queue, self._name, self.claim_id, decisions, self.lease.results
            )
            for message_ids, stats in handed_in:
                stale += stats.stale
                self.note_outcomes(message_ids, stats)
                for message_id in message_ids:
                    del left[message_id]
        finally:
            self._put_back(left)
        if stale and self._open:
            self.extend(queue)

    def complete_all(self, complete: Callable[[list[int]], Sequence[HasOutcome]]) -> None:
        """Let `complete` hand in every message, if all are done; else leave it to `flush`."""
        decisions = self._pop_decisions(only_if_all_are_completed=True)
        if not decisions:
            return
        try:
            outcomes = complete(list(decisions))
        except BaseException:
            self._put_back(decisions)
            raise
        self.note_outcomes(decisions, count(outcomes))

    @contextmanager
    def handing_in(self, message_ids: Collection[int]) -> Iterator[None]:
        """Tell the heartbeat that messages are about to leave the claim, for as long as a block."""
        with self._lock:
            self._in_hand.update(message_ids)
        try:
            yield
        finally:
            with self._lock:
                self._in_hand.difference_update(message_ids)

    def note_outcomes(self, message_ids: Collection[int], stats: WorkerStats) -> None:
        """Note that messages have left the claim, and count their outcomes."""
        with self._lock:
            self._changes += 1
            self._in_hand.difference_update(message_ids)
            self._open.difference_update(message_ids)
        self._context.counter.add(self.stripe, stats)

    def extend(self, queue: Queue) -> None:
        """Extend the lease, or learn that the claim is lost."""
        if self.lost:
            return
        changes, asked_at = self._changes, time.monotonic()
        try:
            told = self._extend_lease(queue)
        except (StaleClaim, QueueNotFound) as error:
            self._note_refusal(error, changes)
        else:
            self.lease.renew(asked_at)
            if self._context.meter:
                self._context.meter.count("lease_extended")
            if told.cancel_ids:
                self.lease.cancelled |= frozenset(told.cancel_ids)

    def _extend_lease(self, queue: Queue) -> Lease:
        """Call extend_lease, with what a handler has said of its progress since the last call."""
        seconds, progress = self.lease.seconds, self.lease.progress
        if progress is None:
            return queue.extend_lease(self._name, self.claim_id, lease_seconds=seconds)
        try:
            told = queue.extend_lease(
                self._name, self.claim_id, lease_seconds=seconds, progress=progress
            )
        except InvalidArgument as error:
            log.error("the progress of claim %d is lost: %s", self.claim_id, error)
            told = queue.extend_lease(self._name, self.claim_id, lease_seconds=seconds)
        # A handler may have said more meanwhile.
        if self.lease.progress == progress:
            self.lease.progress = None
        return told

    def is_held(self, queue: Queue) -> bool:
        """Whether the claim is still ours; asks the database when the lease may have run out."""
        if not self.lost and self.lease.is_over:
            self.extend(queue)
        return not self.lost

    def release_rest(self, queue: Queue) -> None:
        """Release every message that nothing was decided about."""
        self._release(queue, self._pop_rest())

    def _pop_rest(self, kept: AbstractSet[int] = frozenset()) -> list[int]:
        """Let go of the messages outside of `kept` that nothing was decided about; return them."""
        with self._lock:
            rest = sorted(self._open - self._in_hand - self._decisions.keys() - kept)
            self._open.difference_update(rest)
            self._changes += 1
        return rest

    def _release(self, queue: Queue, message_ids: list[int]) -> None:
        if message_ids and self.lost:
            self._context.counter.add(self.stripe, WorkerStats(stale=len(message_ids)))
        elif message_ids:
            released = queue.release(self._name, self.claim_id, message_ids)
            self._context.counter.add(self.stripe, count(released))

    def _pop_decisions(self, *, only_if_all_are_completed: bool = False) -> dict[int, Decision]:
        """Return the decisions to be handed in; no other thread hands them in meanwhile."""
        with self._lock:
            decisions = self._decisions
            if only_if_all_are_completed:
                is_all = self._open == decisions.keys() and set(decisions.values()) <= {COMPLETED}
                if self.lost or not is_all:
                    return {}
            self._decisions, self._flush_at = {}, float("inf")
            self._in_hand.update(decisions)
            return decisions

    def _put_back(self, decisions: dict[int, Decision]) -> None:
        """Keep decisions that were not handed in for the next flush."""
        if decisions:
            with self._lock:
                self._in_hand.difference_update(decisions)
            self.decide(decisions)

    def _note_refusal(self, error: Exception, changes: int) -> None:
        """Give the claim up, unless the other thread has handed some of it in meanwhile."""
        with self._lock:
            if self._changes != changes or self._in_hand or not self._open:
                return
            self.lease.lost = True
        if self._context.meter:
            self._context.meter.count("lease_lost")
        log.warning("claim %d is lost: %s", self.claim_id, error)


class ClaimRequest:
    """One dequeue of a worker, made just before the call: the lease is reckoned from then on."""

    def __init__(
        self,
        context: Context,
        stripe: Stripe,
        worker_name: str,
        lease_seconds: int,
        batch: BatchSize,
    ) -> None:
        self._context = context
        self._stripe = stripe
        self._lease_seconds = lease_seconds
        self._batch = batch
        self._asked_for = batch.value
        self._asked_at = time.monotonic()
        self.arguments: Mapping[str, Any] = dequeue_arguments(
            stripe.queue_name, self._asked_for, worker_name, lease_seconds
        )

    def claim(self, rows: Sequence[Row]) -> LiveClaim | None:
        """Return the claim that dequeue_fast answered with, None for no rows."""
        meter = self._context.meter
        if not rows:
            if meter:
                meter.note_empty()
            return None
        claim = LiveClaim(
            self._context,
            self._stripe,
            rows,
            self._asked_at,
            self._lease_seconds,
            self._batch,
            self._asked_for,
        )
        if traces := tracing.active:
            traces.note_received(self._stripe.queue_name, claim.messages, self._asked_at)
        if meter:
            meter.note_found(_waits(claim.messages, self._lease_seconds))
        return claim


def _waits(messages: Sequence[Message], lease_seconds: int) -> Iterator[float]:
    """Yield how long each message, at its first delivery, had been there when it was leased.

    Both moments are the database's: this machine's clock may be wrong.
    """
    for message in messages:
        if message.attempt == 1:
            yield (message.lease_until - message.enqueued_at).total_seconds() - lease_seconds
