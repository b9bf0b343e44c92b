"""Works on a claim in one transaction: what the handler writes and the completion are one.

Effects written through the handler's connection happen exactly once: when the claim was lost, or
anything fails before the commit, they are rolled back together. A message that breaks the
transaction costs the others of the claim nothing: they are handled again in another one. Where a
handler has managed to commit it, what the others had done is in effect, and they are completed.
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
"""How often a message is handled, at a delivery, when its transaction fails for a reason that is
likely to pass: a lost connection, a deadlock, or that it was not serializable."""

_LONGEST_PAUSE_SECONDS = 0.1

Group = Sequence[HeldMessage]
"""Messages that share a transaction."""


@dataclass(slots=True)
class _Attempt:
    """A transaction, and how far it has come.

    last: messages that the handler was given last. result: the handler's result for them.
    decisions: those kept so far. later: messages to be handled again in transactions of their own.
    is_ending: whether the decisions have begun to be handed in, so that they may be committed.
    """

    claim: LiveClaim
    messages: Group
    last: Group = ()
    result: HandlerResult | None = None
    decisions: dict[int, Decision] = field(default_factory=dict)
    later: list[Group] = field(default_factory=list)
    is_ending: bool = False

    def others(self, without: Iterable[HeldMessage]) -> list[Group]:
        """Return the messages that are neither among these nor in `later`, as one group or none."""
        named = {message.message_id for message in without}
        named.update(message.message_id for group in self.later for message in group)
        left = [message for message in self.messages if message.message_id not in named]
        return [left] if left else []


class _TimedOutError(Exception):
    """A handler has taken too long, so that its transaction was broken off."""


class TransactionalWork:
    """Gives messages and a connection to the handler; commits once per claim if all goes well."""

    def __init__(
        self,
        context: Context,
        caller: HandlerCaller,
        queue: Queue,
        session: OwnedSession,
        may_wait: Callable[[], bool],
    ) -> None:
        """Work on the connection of `session`; `queue` is for calls outside the transaction.

        may_wait: whether to wait for a server that does not answer.
        """
        self._context = context
        self._may_wait = may_wait
        self._caller = caller
        self._queue = queue
        self._session = session
        self._tries: Counter[int] = Counter()

    def do(self, claim: LiveClaim) -> None:
        """Handle the claim's messages in one transaction, or in several where one fails.

        What was decided last, and what was not decided about, is left to the caller.
        """
        self._tries.clear()
        groups: deque[Group] = deque([claim.messages] if claim.messages else [])
        while groups and not self._context.stopping.is_set() and claim.is_held(self._queue):
            group = groups.popleft()
            if any(self._tries[message.message_id] for message in group):
                time.sleep(_pause())
            groups.extend(self._handle(_Attempt(claim, group)))

    def _handle(self, attempt: _Attempt) -> list[Group]:
        """Handle messages in one transaction; return those that are to be handled again."""
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
        """Handle messages in a transaction, hand in their decisions in it, and commit it."""
        connection = self._context.persist(self._session.connection, self._may_wait)
        transaction = work_transaction(self._context.engine, connection)
        try:
            transaction.begin()
            for group in self._blocks(attempt):
                self._block(transaction, attempt, group)
            # A result that the queue does not take must not undo what the handler wrote.
            has_results = bool(attempt.claim.lease.results)
            self._hand_in(transaction, attempt, Queue(connection, savepoint=has_results))
        except BaseException:
            transaction.abandon()
            raise

    def _blocks(self, attempt: _Attempt) -> Iterator[Group]:
        """Yield what the handler is to be given: each message, or per batch all of them."""
        if self._context.settings.per == "batch":
            yield attempt.messages
            return
        for message in attempt.messages:
            if self._context.stopping.is_set() or attempt.claim.lost:
                return
            if attempt.claim.begin([message]):
                yield [message]

    def _block(self, transaction: WorkTransaction, attempt: _Attempt, group: Group) -> None:
        """Call the handler; keep what it wrote, or undo it and let the transaction go on."""
        attempt.last, attempt.result = group, None
        with transaction.lend(attempt.claim.claim_id) as connection:
            attempt.result = result = self._caller.call(group, connection)
        if result.timed_out:
            # Its last statement may be under way still.
            self._session.break_off()
            raise _TimedOutError
        if result.failed:
            transaction.undo()
            if result.is_transient:
                attempt.decisions |= self._try_again(attempt, group, result.decisions)
            else:
                attempt.decisions |= result.decisions
        elif aborted := transaction.keep():
            decision = retry(f"the handler went on after an error of the database: {aborted.error}")
            decisions = dict.fromkeys(result.decisions, decision)
            if aborted.is_transient:
                decisions = self._try_again(attempt, group, decisions)
            attempt.decisions |= decisions
        else:
            attempt.decisions |= result.decisions

    def _hand_in(self, transaction: WorkTransaction, attempt: _Attempt, queue: Queue) -> None:
        """Finish the messages and commit; raises StaleClaim when any of them is not ours."""
        claim, decisions = attempt.claim, attempt.decisions
        if claim.lost:
            raise StaleClaim(f"claim {claim.claim_id} was lost while it was handled")
        name, total = claim.stripe.queue_name, WorkerStats()
        with claim.handing_in(decisions):
            attempt.is_ending = True
            results = claim.lease.results
            for _, stats in report_outcomes(queue, name, claim.claim_id, decisions, results):
                total = total.plus(stats)
            if total.stale:
                raise StaleClaim(f"claim {claim.claim_id} no longer holds {total.stale} messages")
            transaction.commit()
        claim.note_outcomes(decisions, total)

    def _after_end(self, attempt: _Attempt, end: TransactionEnded) -> list[Group]:
        """Go on after a handler has ended the transaction, or the server has in its call."""
        log.warning("claim %d: %s", attempt.claim.claim_id, end)
        result = attempt.result or HandlerResult({})
        decided: dict[int, Decision] = {}
        if end.is_transient or result.is_transient:
            decided |= self._try_again(attempt, attempt.last, blamed(result.decisions, str(end)))
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
        """Find out what became of the messages of a transaction that failed as a whole."""
        claim = attempt.claim
        log.warning("a transaction of %d messages failed", len(attempt.messages), exc_info=error)
        claim.extend(self._queue)
        if claim.lost:
            return []
        if attempt.is_ending:
            return self._after_failed_end(attempt, error)
        if not attempt.last:
            # The transaction failed before any handler ran, so no message is to blame.
            self._context.sleep_or_give_up(_pause(), self._may_wait)
            return [attempt.messages]
        decisions = dict.fromkeys(_ids(attempt.last), decision_of(error))
        if self._context.is_transient(error):
            decisions = self._try_again(attempt, attempt.last, decisions)
        claim.decide(decisions)
        return [*attempt.others(attempt.last), *attempt.later]

    def _after_failed_end(self, attempt: _Attempt, error: Exception) -> list[Group]:
        """Handle again, each alone, what the claim still holds; the rest was committed, or taken.

        A message that was alone already made the transaction fail, so that it gets its decision.
        """
        claim = attempt.claim
        held = self._context.persist(
            lambda: self._held(claim, list(attempt.decisions)), self._may_wait
        )
        gone = attempt.decisions.keys() - held
        claim.note_outcomes(gone, WorkerStats(stale=len(gone)))
        left = [message for message in attempt.messages if message.message_id in held]
        if len(attempt.decisions) > 1:
            return [*([message] for message in left), *attempt.later]
        decisions = dict.fromkeys(held, decision_of(error))
        if self._context.is_transient(error):
            decisions = self._try_again(attempt, left, decisions)
        claim.decide(decisions)
        return attempt.later

    def _try_again(
        self, attempt: _Attempt, group: Group, decisions: Mapping[int, Decision]
    ) -> dict[int, Decision]:
        """Put messages off to transactions of their own; return what becomes of those tried enough.

        That is their share of `decisions`.
        """
        enough: dict[int, Decision] = {}
        for message in group:
            self._tries[message.message_id] += 1
            if self._tries[message.message_id] < TRIES:
                attempt.later.append([message])
            else:
                enough[message.message_id] = decisions[message.message_id]
        return enough

    def _held(self, claim: LiveClaim, message_ids: list[int]) -> set[int]:
        """Return which messages a claim still holds: those that could be completed."""
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
    """Return a random pause in seconds, so that a conflict is not met again at once."""
    return random.uniform(0, _LONGEST_PAUSE_SECONDS)  # noqa: S311 - no secret
