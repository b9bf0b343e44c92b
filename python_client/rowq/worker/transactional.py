"""Processing of a claim in one transaction with the handlers' writes and the completion.

Writes through the handler's connection happen exactly once: if the claim is lost, or anything fails
before the commit, they are rolled back together. If a message breaks the transaction, the other
messages of the claim are handled again in another one, at no cost. If a handler has committed the
transaction, the earlier handlers' writes are in effect, and their messages are completed.
"""

import random
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rowq.errors import StaleClaim
from rowq.queue import Queue
from rowq.session import OwnedSession
from rowq.worker.claim import HeldMessage, LiveClaim, report_outcomes
from rowq.worker.context import Context, log
from rowq.worker.engines import work_transaction
from rowq.worker.engines.base import TransactionEnded, WorkTransaction
from rowq.worker.handlers import Decision, blamed, decision_of, interrupted, retry
from rowq.worker.handling import HandlerCaller, HandlerResult
from rowq.worker.meter import WorkerStats

TRIES = 3
"""How often a message is handled per delivery if its transaction fails with a transient error: a
lost connection, a deadlock, or a serialization failure."""

_LONGEST_PAUSE_SECONDS = 0.1

Group = Sequence[HeldMessage]
"""Messages that share a transaction."""


@dataclass(slots=True)
class _Attempt:
    """A transaction and its state.

    last: messages of the last handler call. result: its result. decisions: those kept so far.
    later: messages to handle again in their own transactions. is_ending: whether reporting the
    decisions has begun, so that they may be committed.
    """

    claim: LiveClaim
    messages: Group
    last: Group = ()
    result: HandlerResult | None = None
    decisions: dict[int, Decision] = field(default_factory=dict)
    later: list[Group] = field(default_factory=list)
    is_ending: bool = False

    def others(self, without: Iterable[HeldMessage]) -> list[Group]:
        """Return the messages that are not in `without` or `later`, as at most one group."""
        named = {message.message_id for message in without}
        named.update(message.message_id for group in self.later for message in group)
        left = [message for message in self.messages if message.message_id not in named]
        return [left] if left else []


class _TimedOutError(Exception):
    """A handler has timed out, and its transaction was aborted."""


class TransactionalWork:
    """Processing of a claim in transactions, usually in one."""

    def __init__(
        self,
        context: Context,
        caller: HandlerCaller,
        queue: Queue,
        session: OwnedSession,
        may_wait: Callable[[], bool],
    ) -> None:
        """Work on the connection of `session`; `queue` is for calls outside the transaction.

        may_wait: returns whether to wait for an unreachable server.
        """
        self._context = context
        self._may_wait = may_wait
        self._caller = caller
        self._queue = queue
        self._session = session
        self._tries: Counter[int] = Counter()

    def do(self, claim: LiveClaim) -> None:
        """Handle the claim's messages in one transaction, or in several if one fails.

        The last decisions, and messages without one, are left to the caller.
        """
        self._tries.clear()
        groups: deque[Group] = deque([claim.messages] if claim.messages else [])
        while groups and not self._context.stopping.is_set() and claim.is_held(self._queue):
            group = groups.popleft()
            if any(self._tries[message.message_id] for message in group):
                time.sleep(_pause())
            groups.extend(self._handle(_Attempt(claim, group)))

    def _handle(self, attempt: _Attempt) -> list[Group]:
        """Handle messages in one transaction; return those to handle again."""
        try:
            self._transaction(attempt)
        except _TimedOutError:
            attempt.claim.decide(attempt.result.decisions if attempt.result else {})
            return [*attempt.others(attempt.last), *attempt.later]
        except TransactionEnded as end:
            self._session.close()
            return self._after_end(attempt, end)
        except KeyboardInterrupt:
            self._session.close()
            attempt.claim.decide(interrupted(attempt.last))
            raise
        except Exception as error:
            self._session.close()
            return self._after_failure(attempt, error)
        return attempt.later

    def _transaction(self, attempt: _Attempt) -> None:
        """Handle messages in a transaction, report their decisions in it, and commit it."""
        connection = self._context.persist(self._session.connection, self._may_wait)
        transaction = work_transaction(self._context.engine, connection)
        try:
            transaction.begin()
            for group in self._blocks(attempt):
                self._block(transaction, attempt, group)
            # A result that the queue refuses must not roll back the handler's writes.
            has_results = bool(attempt.claim.lease.results)
            self._report(transaction, attempt, Queue(connection, savepoint=has_results))
        except BaseException:
            transaction.abandon()
            raise

    def _blocks(self, attempt: _Attempt) -> Iterator[Group]:
        """Yield the messages of each handler call: one, or per batch all."""
        if self._context.settings.per == "batch":
            yield attempt.messages
            return
        for message in attempt.messages:
            if self._context.stopping.is_set() or attempt.claim.lost:
                return
            if attempt.claim.begin(message):
                yield [message]

    def _block(self, transaction: WorkTransaction, attempt: _Attempt, group: Group) -> None:
        """Call the handler; keep its writes, or roll them back to the savepoint."""
        attempt.last, attempt.result = group, None
        with transaction.lend(attempt.claim.claim_id) as connection:
            attempt.result = result = self._caller.call(group, connection)
        if result.timed_out:
            # Its last statement may still be running.
            self._session.break_off()
            raise _TimedOutError
        if result.failed:
            transaction.undo()
            if result.is_transient:
                attempt.decisions |= self._retry(attempt, group, result.decisions)
            else:
                attempt.decisions |= result.decisions
        elif aborted := transaction.keep():
            decision = retry(f"the handler continued after a database error: {aborted.error}")
            decisions = dict.fromkeys(result.decisions, decision)
            if aborted.is_transient:
                decisions = self._retry(attempt, group, decisions)
            attempt.decisions |= decisions
        else:
            attempt.decisions |= result.decisions

    def _report(self, transaction: WorkTransaction, attempt: _Attempt, queue: Queue) -> None:
        """Finish the messages and commit; raises StaleClaim if the claim no longer holds one."""
        claim, decisions = attempt.claim, attempt.decisions
        if claim.lost:
            raise StaleClaim(f"claim {claim.claim_id} was lost while it was handled")
        name, total = claim.stripe.queue_name, WorkerStats()
        with claim.reporting(decisions):
            attempt.is_ending = True
            results = claim.lease.results
            for _, stats in report_outcomes(queue, name, claim.claim_id, decisions, results):
                total = total.plus(stats)
            if total.stale:
                raise StaleClaim(f"claim {claim.claim_id} no longer holds {total.stale} messages")
            transaction.commit()
        claim.record_outcomes(decisions, total)

    def _after_end(self, attempt: _Attempt, end: TransactionEnded) -> list[Group]:
        """Continue after a handler, or the server, has ended the transaction."""
        log.warning("claim %d: %s", attempt.claim.claim_id, end)
        result = attempt.result or HandlerResult({})
        decided: dict[int, Decision] = {}
        if end.is_transient or result.is_transient:
            decided |= self._retry(attempt, attempt.last, blamed(result.decisions, str(end)))
        elif end.kept and not result.failed:
            decided |= result.decisions
        else:
            decided |= blamed(result.decisions, str(end))
        done: set[int] = set()
        if end.committed:
            decided |= attempt.decisions
            done.update(attempt.decisions)
        attempt.claim.decide(decided)
        attempt.claim.flush(self._queue)
        finished = [message for message in attempt.messages if message.message_id in done]
        return [*attempt.others([*attempt.last, *finished]), *attempt.later]

    def _after_failure(self, attempt: _Attempt, error: Exception) -> list[Group]:
        """Decide on the messages of a transaction that failed as a whole."""
        claim = attempt.claim
        log.warning("a transaction of %d messages failed", len(attempt.messages), exc_info=error)
        claim.extend(self._queue)
        if claim.lost:
            return []
        if attempt.is_ending:
            return self._after_failed_end(attempt, error)
        if not attempt.last:
            # The transaction failed before any handler ran, so no message caused it.
            self._context.sleep_or_raise(_pause(), self._may_wait)
            return [attempt.messages]
        decisions = dict.fromkeys(_ids(attempt.last), decision_of(error))
        if self._context.is_transient(error):
            decisions = self._retry(attempt, attempt.last, decisions)
        claim.decide(decisions)
        return [*attempt.others(attempt.last), *attempt.later]

    def _after_failed_end(self, attempt: _Attempt, error: Exception) -> list[Group]:
        """Handle again, each alone, the messages that the claim still holds.

        The others were committed or reaped. A message that was already alone gets its decision.
        """
        claim = attempt.claim
        held = self._context.persist(
            lambda: self._held(claim, list(attempt.decisions)), self._may_wait
        )
        gone = attempt.decisions.keys() - held
        claim.record_outcomes(gone, WorkerStats(stale=len(gone)))
        left = [message for message in attempt.messages if message.message_id in held]
        if len(attempt.decisions) > 1:
            return [*([message] for message in left), *attempt.later]
        decisions = dict.fromkeys(held, decision_of(error))
        if self._context.is_transient(error):
            decisions = self._retry(attempt, left, decisions)
        claim.decide(decisions)
        return attempt.later

    def _retry(
        self, attempt: _Attempt, group: Group, decisions: Mapping[int, Decision]
    ) -> dict[int, Decision]:
        """Postpone messages to their own transactions; return the decisions after TRIES tries."""
        enough: dict[int, Decision] = {}
        for message in group:
            self._tries[message.message_id] += 1
            if self._tries[message.message_id] < TRIES:
                attempt.later.append([message])
            else:
                enough[message.message_id] = decisions[message.message_id]
        return enough

    def _held(self, claim: LiveClaim, message_ids: list[int]) -> set[int]:
        """Return the messages that a claim still holds: those that can be completed."""
        connection = self._session.connection()
        transaction = work_transaction(self._context.engine, connection)
        name = claim.stripe.queue_name
        transaction.begin()
        try:
            outcomes = Queue(connection).complete(name, claim.claim_id, message_ids)
        finally:
            transaction.abandon()
        return {outcome.message_id for outcome in outcomes if outcome.outcome == "completed"}


def _ids(messages: Iterable[HeldMessage]) -> list[int]:
    return [message.message_id for message in messages]


def _pause() -> float:
    """Return a random pause in seconds, to avoid the same conflict."""
    return random.uniform(0, _LONGEST_PAUSE_SECONDS)  # noqa: S311 - no secret
