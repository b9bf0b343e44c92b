"""One claim of a worker: its dequeue, its lease, and the reports of its outcomes."""

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
from rowq.worker.batching import EARLY_RELEASE_SECONDS, BatchSize
from rowq.worker.context import Context, log
from rowq.worker.handlers import Decision, unreadable_headers
from rowq.worker.meter import WorkerStats
from rowq.worker.stripes import Stripe

_FLUSH_SECONDS = 0.5
# Share of a lease to rely on: clocks differ, and a decision takes time.
_SAFE_SHARE = 0.95


class HasOutcome(Protocol):
    """A routine's result for one message."""

    @property
    def outcome(self) -> str:
        """The outcome."""


def count(outcomes: Sequence[HasOutcome]) -> WorkerStats:
    """Count messages by outcome."""
    counts = Counter([result.outcome for result in outcomes])
    return WorkerStats(
        processed=counts["completed"],
        retried=counts["retrying"],
        failed=counts["dead"],
        released=counts["released"],
        snoozed=counts["snoozed"],
        stale=counts["stale"],
        cancelled=counts["cancelled"],
    )


CompleteLast = Callable[[list[int]], WorkerStats]
"""Completes messages of a claim, and returns the counts of their outcomes."""


def report_outcomes(
    queue: Queue,
    queue_name: str,
    claim_id: int,
    decisions: Mapping[int, Decision],
    results: Mapping[int, Any],
    complete_last: CompleteLast | None = None,
) -> Iterator[tuple[list[int], WorkerStats]]:
    """Report `decisions` by message id: one call for all messages with the same decision.

    results: by message id. complete_last: makes the last call, instead of `complete`. Yield after
    each call the ids of its messages, and the counts of their outcomes.
    """
    completed: list[int] = []
    groups: dict[Decision, list[int]] = {}
    for message_id, decision in decisions.items():
        if decision.routine == "complete":
            completed.append(message_id)
        else:
            groups.setdefault(decision, []).append(message_id)
    for decision, message_ids in groups.items():
        yield message_ids, count(_finish(queue, queue_name, claim_id, message_ids, decision))
    if completed and complete_last:
        yield completed, complete_last(completed)
    elif completed:
        yield completed, count(complete(queue, queue_name, claim_id, completed, results))


def results_of(message_ids: Sequence[int], results: Mapping[int, Any]) -> list[Any] | None:
    """Return the results of messages in their order, or None if none has a result."""
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
    """Complete messages with their results; drop a result that the queue refuses.

    The handler's work is done and must not be repeated because of its result.
    """
    values = results_of(message_ids, results)
    if values is not None:
        try:
            return queue.complete(queue_name, claim_id, message_ids, results=values)
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
    """Call the routine of any other decision."""
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
            return queue.release(
                queue_name, claim_id, message_ids, delay_seconds=decision.delay_seconds
            )


class LiveLease:
    """The remaining time of a claim's lease.

    It is measured in monotonic time from before the call, never by lease_until: the clock of this
    machine may be wrong.

    lost: the database has refused the claim, or a handler has seen that the lease expired. Nothing
    more is reported for it, so that a handler that stops early does not complete its message.
    cancelled: messages to cancel, by the last heartbeat. stopping: set when the worker stops.
    results: by message id. progress: the last text that is not sent yet. ends_at: timeout of the
    running handler, by time.monotonic().
    """

    def __init__(
        self,
        claim_id: int,
        seconds: int,
        called_at: float,
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
        self.renew(called_at)

    def renew(self, called_at: float) -> None:
        """Count from a call that was made at `called_at`."""
        self.extend_at = called_at + self.seconds / 3
        self.expires_at = called_at + self.seconds * _SAFE_SHARE

    @property
    def is_over(self) -> bool:
        """Whether the lease may have expired."""
        return time.monotonic() >= self.expires_at

    def is_lost(self) -> bool:
        """Return whether the lease is gone, without a call or a wait."""
        if not self.lost and self.is_over:
            self.lost = True
            log.warning("claim %d lost: the lease expired before it was extended", self.claim_id)
        return self.lost


class HeldMessage(Message):
    """A leased message, as a worker passes it to a handler."""

    __slots__ = ("_lease",)
    _lease: LiveLease

    @classmethod
    def of(cls, row: Row, lease: LiveLease) -> "HeldMessage":
        """Return the message of a dequeued row, with its lease."""
        held = cls(*row)
        object.__setattr__(held, "_lease", lease)
        return held

    @property
    def lost(self) -> bool:
        """Whether the lease is gone, so that the handler's outcome has no effect.

        The database has reported it, or the lease has expired without an extension; the second
        needs no network. It stays True, and the claim is abandoned.
        """
        return self._lease.is_lost()

    @property
    def cancelled(self) -> bool:
        """Whether the message was cancelled: the handler may stop, and raise any exception.

        Updated by each heartbeat, every third of the lease. If the handler returns, the message is
        completed; otherwise it is cancelled.
        """
        return self.message_id in self._lease.cancelled

    @property
    def timed_out(self) -> bool:
        """Whether the handler has exceeded the worker's timeout_seconds."""
        return time.monotonic() >= self._lease.ends_at

    def limit(self, ends_at: float) -> None:
        """Set the handler's timeout, by time.monotonic(); called by the worker."""
        self._lease.ends_at = ends_at

    @property
    def stripe(self) -> Stripe:
        """The queue that delivered it; claim_id and message_id belong to it."""
        return self._lease.stripe

    def set_result(self, value: Any) -> None:
        """Set the message's result to a JSON value; the last one counts.

        It is stored when the message is completed. If the queue has no result_seconds, the message
        is completed without it, and the worker logs an error. Raises InvalidArgument for a value
        that is not JSON serializable.
        """
        self._lease.results[self.message_id] = json.loads(json_text("result", value))

    def progress(self, text: str) -> None:
        """Set the progress text of the claim, for get_message; the next heartbeat sends it.

        It applies to all messages of the claim. The first 2000 characters are kept.
        """
        self._lease.progress = check_argument("progress", "text", text)

    def is_stopping(self, within_seconds: float = 0.0) -> bool:
        """Return whether the worker is stopping; wait for that up to `within_seconds`."""
        return self._lease.stopping.wait(within_seconds)


class LiveClaim:
    """A claim and its messages, shared by a consumer and the heartbeat.

    Both make calls for it, and neither waits for the other's: the lock protects only this object's
    state.

    is_full: whether the dequeue returned a full batch.
    """

    def __init__(
        self,
        context: Context,
        stripe: Stripe,
        rows: Sequence[Row],
        called_at: float,
        lease_seconds: int,
        batch: BatchSize,
        batch_size: int = 1,
    ) -> None:
        """Use the rows of a dequeue that was called at `called_at` for `lease_seconds`.

        batch: the thread's batch sizes; `batch_size` is that of this claim.
        """
        self._context = context
        self.stripe = stripe
        self.is_full = len(rows) == batch_size
        self._batch = batch
        self._release_at = called_at + EARLY_RELEASE_SECONDS
        self._name = stripe.queue_name
        self.called_at = called_at
        # The claim's id is the first column, and the same in every row.
        self.claim_id: int = rows[0][0]
        self.lease = LiveLease(self.claim_id, lease_seconds, called_at, context.stopping, stripe)
        messages = [HeldMessage.of(row, self.lease) for row in rows]
        # Unreadable headers stay unreadable in every attempt.
        unreadable = {
            message.message_id: unreadable_headers(message.headers)
            for message in messages
            if isinstance(message.headers, UnreadableHeaders)
        }
        self.messages = [message for message in messages if message.message_id not in unreadable]
        self._lock = threading.Lock()
        self._releasing = threading.Lock()
        self._may_release = True
        self._open = {message.message_id for message in messages}
        self._begun: set[int] = set()
        self._decisions: dict[int, Decision] = {}
        self._reporting: set[int] = set()
        self._changes = 0
        self._flush_at = float("inf")
        self._abandoned: threading.Event | None = None
        if unreadable:
            log.warning("messages %s: headers cannot be read", sorted(unreadable))
            self.decide(unreadable)

    @property
    def lost(self) -> bool:
        """Whether nothing more can be reported for this claim."""
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
    def release_due(self) -> bool:
        """Whether the claim is slow, and must release messages that no handler has started."""
        is_due = time.monotonic() >= self._release_at
        return is_due and self._may_release and self._batch.releases_early and not self.lost

    @property
    def begun(self) -> int:
        """How many of its messages a handler has started."""
        return len(self._begun)

    def begin(self, message: HeldMessage) -> bool:
        """Record that a handler starts with a message; return False if it was released."""
        with self._lock:
            if message.message_id not in self._open:
                return False
            self._begun.add(message.message_id)
            return True

    def release_unstarted(self, queue: Queue) -> None:
        """Release the messages that no handler has started, for other workers.

        If the call raises, the claim keeps them and tries again later.
        """
        with self._releasing:
            if not self._may_release:
                return
            self._release_at = float("inf")
            rest = self._pop_rest(self._begun)
            try:
                self._release(queue, rest)
            except BaseException:
                with self._lock:
                    self._open.update(rest)
                self._release_at = time.monotonic() + EARLY_RELEASE_SECONDS
                raise

    def stop_early_release(self) -> None:
        """Prevent early releases by the heartbeat, after waiting for a running one.

        The consumer then releases what a failed call left.
        """
        with self._releasing:
            self._may_release = False

    @property
    def is_hung(self) -> bool:
        """Whether the handler hangs and the heartbeat must abandon the claim."""
        return self._abandoned is not None and not self._abandoned.is_set()

    def record_hang(self, decisions: Mapping[int, Decision]) -> None:
        """Record that the handler hangs, with the decisions for its messages."""
        self.decide(decisions)
        self._abandoned = threading.Event()

    def abandon(self, queue: Queue) -> None:
        """Report the decisions of a claim whose handler hangs, and release the rest."""
        self.flush(queue)
        self.release_rest(queue)
        # If the handler returns, its outcome must have no effect.
        self.lease.lost = True
        if self._abandoned:
            self._abandoned.set()

    def was_abandoned(self, seconds: float) -> bool:
        """Whether the heartbeat abandons a claim that hangs within some seconds."""
        return self._abandoned is None or self._abandoned.wait(seconds)

    def decide(self, decisions: Mapping[int, Decision]) -> None:
        """Record decisions; the next flush reports them."""
        with self._lock:
            if not self._decisions:
                self._flush_at = time.monotonic() + _FLUSH_SECONDS
            self._decisions.update(decisions)

    def flush(self, queue: Queue, complete_last: CompleteLast | None = None) -> None:
        """Report the decisions so far; if the claim is lost, only count them.

        complete_last: makes the last call, instead of `complete`.
        If a call raises, the rest stays for the next flush. Messages of a call that did take effect
        are then counted as stale.
        """
        decisions = self._pop_decisions()
        if not decisions:
            return
        if self.lost:
            self.record_outcomes(decisions, WorkerStats(stale=len(decisions)))
            return
        left, stale = dict(decisions), 0
        try:
            reports = report_outcomes(
                queue, self._name, self.claim_id, decisions, self.lease.results, complete_last
            )
            for message_ids, stats in reports:
                stale += stats.stale
                self.record_outcomes(message_ids, stats)
                for message_id in message_ids:
                    del left[message_id]
        finally:
            self._put_back(left)
        if stale and self._open:
            self.extend(queue)

    @contextmanager
    def reporting(self, message_ids: Collection[int]) -> Iterator[None]:
        """Show the heartbeat that messages leave the claim during a block."""
        with self._lock:
            self._reporting.update(message_ids)
        try:
            yield
        finally:
            with self._lock:
                self._reporting.difference_update(message_ids)

    def record_outcomes(self, message_ids: Collection[int], stats: WorkerStats) -> None:
        """Record that messages have left the claim, and count their outcomes."""
        with self._lock:
            self._changes += 1
            self._reporting.difference_update(message_ids)
            self._open.difference_update(message_ids)
        self._context.counter.add(self.stripe, stats)

    def extend(self, queue: Queue) -> None:
        """Extend the lease, or find that the claim is lost."""
        if self.lost:
            return
        changes, called_at = self._changes, time.monotonic()
        try:
            lease = self._extend_lease(queue)
        except (StaleClaim, QueueNotFound) as error:
            self._record_refusal(error, changes)
        else:
            self.lease.renew(called_at)
            if self._context.meter:
                self._context.meter.count("lease_extended")
            if lease.cancel_ids:
                self.lease.cancelled |= frozenset(lease.cancel_ids)

    def _extend_lease(self, queue: Queue) -> Lease:
        """Call extend_lease, with the progress that is not sent yet."""
        seconds, progress = self.lease.seconds, self.lease.progress
        if progress is None:
            return queue.extend_lease(self._name, self.claim_id, lease_seconds=seconds)
        try:
            lease = queue.extend_lease(
                self._name, self.claim_id, lease_seconds=seconds, progress=progress
            )
        except InvalidArgument as error:
            log.error("the progress of claim %d is lost: %s", self.claim_id, error)
            lease = queue.extend_lease(self._name, self.claim_id, lease_seconds=seconds)
        # The handler may have set a newer text during the call.
        if self.lease.progress == progress:
            self.lease.progress = None
        return lease

    def is_held(self, queue: Queue) -> bool:
        """Return whether the worker still owns the claim; extend a lease that may have expired."""
        lease = self.lease
        if not lease.lost and lease.is_over:
            self.extend(queue)
        return not lease.lost

    def release_rest(self, queue: Queue) -> None:
        """Release all messages without a decision."""
        self._release(queue, self._pop_rest())

    def _pop_rest(self, kept: AbstractSet[int] = frozenset()) -> list[int]:
        """Remove and return the messages without a decision that are not in `kept`."""
        with self._lock:
            rest = sorted(self._open - self._reporting - self._decisions.keys() - kept)
            self._open.difference_update(rest)
            self._changes += 1
        return rest

    def _release(self, queue: Queue, message_ids: list[int]) -> None:
        if message_ids and self.lost:
            self._context.counter.add(self.stripe, WorkerStats(stale=len(message_ids)))
        elif message_ids:
            released = queue.release(self._name, self.claim_id, message_ids)
            self._context.counter.add(self.stripe, count(released))

    def _pop_decisions(self) -> dict[int, Decision]:
        """Remove and return the decisions, for this thread to report."""
        with self._lock:
            decisions = self._decisions
            self._decisions, self._flush_at = {}, float("inf")
            self._reporting.update(decisions)
            return decisions

    def _put_back(self, decisions: dict[int, Decision]) -> None:
        """Keep decisions that were not reported for the next flush."""
        if decisions:
            with self._lock:
                self._reporting.difference_update(decisions)
            self.decide(decisions)

    def _record_refusal(self, error: Exception, changes: int) -> None:
        """Mark the claim as lost, unless the other thread has reported some of it."""
        with self._lock:
            if self._changes != changes or self._reporting or not self._open:
                return
            self.lease.lost = True
        if self._context.meter:
            self._context.meter.count("lease_lost")
        log.warning("claim %d lost: %s", self.claim_id, error)


class ClaimRequest:
    """One dequeue of a worker; create it just before the call, when the lease starts."""

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
        self._batch_size = batch.value
        self._called_at = time.monotonic()
        self.arguments: Mapping[str, Any] = dequeue_arguments(
            stripe.queue_name, self._batch_size, worker_name, lease_seconds
        )

    def claim(self, rows: Sequence[Row]) -> LiveClaim | None:
        """Return the claim of the rows of dequeue_fast, or None."""
        meter = self._context.meter
        if not rows:
            if meter:
                meter.record_empty()
            return None
        claim = LiveClaim(
            self._context,
            self._stripe,
            rows,
            self._called_at,
            self._lease_seconds,
            self._batch,
            self._batch_size,
        )
        if traces := tracing.active:
            traces.record_received(self._stripe.queue_name, claim.messages, self._called_at)
        if meter:
            meter.record_found(_waits(claim.messages, self._lease_seconds))
        return claim


def _waits(messages: Sequence[Message], lease_seconds: int) -> Iterator[float]:
    """Yield the seconds from enqueue to first delivery of each message, by the database's clock."""
    for message in messages:
        if message.attempt == 1:
            yield (message.lease_until - message.enqueued_at).total_seconds() - lease_seconds
