"""One thread's loop: dequeue a claim, work on it, wait with the others when there is nothing."""

import time
from contextlib import ExitStack

from rowq.engines.base import Engine, PipeliningEngine
from rowq.messages import Outcome
from rowq.queue import Queue
from rowq.worker.claim import ClaimRequest, LiveClaim, complete, results_of
from rowq.worker.context import Context, log
from rowq.worker.handlers import Handler
from rowq.worker.handling import PlainWork, caller_for
from rowq.worker.heartbeat import Heartbeat
from rowq.worker.polling import PollingTurn
from rowq.worker.transactional import TransactionalWork

# A claim that was still uncommitted during one round's maintain is seen after the next round's.
_EMPTY_ROUNDS = 2
# The length of the queue's own leases is looked up again after so long.
_SETTING_SECONDS = 60.0
# After completing and dequeuing in one call has failed, each is a call of its own for so long.
_APART_SECONDS = 10.0


class Consumer:
    """The loop of one thread, with its own connection, until stopped or drained."""

    def __init__(
        self, context: Context, handler: Handler, heartbeat: Heartbeat, number: int
    ) -> None:
        """Prepare thread `number`, counted from 1."""
        self._context = context
        self._handler = handler
        self._heartbeat = heartbeat
        self._turn = PollingTurn(context.polling)
        self._queue_lease_seconds = 0
        self._look_again_at = 0.0
        self._exchange_again_at = 0.0
        self._worker_name = context.settings.name_of_thread(number)

    def run(self) -> None:
        """Work until stopped or, with drain, until nothing is left."""
        with ExitStack() as stack:
            stack.callback(self._turn.pass_on)
            self._session = self._context.session(on_pause=self._turn.pass_on)
            self._queue = stack.enter_context(Queue(self._session))
            self._connect()
            self._pipelining = _pipelining(self._context.engine)
            work = self._work(stack)
            claim = self._next()
            while claim:
                is_answered, following = self._finish(work, claim)
                # Let go of the finished claim, with its messages, before this thread is idle.
                claim = following
                claim = claim or (self._poll() if is_answered else self._next())

    def _connect(self) -> None:
        """Connect for the first time; only a restarted worker waits for a database that is away."""
        if self._context.is_patient:
            self._context.persist(self._session.connection)
        else:
            self._session.open()

    def _finish(
        self, work: PlainWork | TransactionalWork, claim: LiveClaim
    ) -> tuple[bool, LiveClaim | None]:
        """Work on a claim and hand it in; return as `_exchange` does.

        An error that ends this thread costs an attempt of the message it is about, and of no other.
        """
        with self._heartbeat.watching(claim):
            try:
                work.do(claim)
                return self._exchange(claim)
            except BaseException as error:
                # The worker ends now, which limits how long the next calls are tried.
                self._context.fail(error)
                self._leave(claim)
                raise

    def _leave(self, claim: LiveClaim) -> None:
        """Hand in what is decided of a claim and give back the rest, as far as that can be done."""
        for give in (claim.flush, claim.release_rest):
            try:
                give(self._queue)
            except Exception as error:
                log.warning("claim %d is left as it is: %s", claim.claim_id, error)

    def _next(self) -> LiveClaim | None:
        """Return the next claim, as soon as there is one; None when stopped or drained."""
        if self._context.stopping.is_set():
            return None
        if not (claim := self._dequeue()):
            return self._poll()
        if self._is_full(claim):
            self._context.polling.hurry()
        return claim

    def _is_full(self, claim: LiveClaim) -> bool:
        return len(claim.messages) == self._context.settings.batch_size

    def _poll(self) -> LiveClaim | None:
        empty_rounds = 0
        while self._turn.wait():
            claim = self._dequeue()
            self._turn.note_answer(found=claim is not None)
            if claim:
                self._turn.pass_on(hurry=self._is_full(claim))
                return claim
            if self._context.settings.drain:
                empty_rounds = empty_rounds + 1 if self._is_drained() else 0
                if empty_rounds == _EMPTY_ROUNDS:
                    self._context.polling.end()
        return None

    def _work(self, stack: ExitStack) -> PlainWork | TransactionalWork:
        caller = caller_for(self._context, self._handler)
        stack.callback(caller.close)
        if not self._context.settings.transactional:
            return PlainWork(self._context, caller, self._queue)
        session = self._context.session()
        stack.callback(session.close)
        return TransactionalWork(self._context, caller, self._queue, session)

    def _dequeue(self) -> LiveClaim | None:
        request = self._request()
        return request.claim(self._session.call("dequeue_fast", request.arguments))

    def _request(self) -> ClaimRequest:
        lease_seconds = self._context.settings.lease_seconds or self._setting()
        return ClaimRequest(self._context, self._worker_name, lease_seconds)

    def _exchange(self, claim: LiveClaim) -> tuple[bool, LiveClaim | None]:
        """Hand in what is left of a claim; where that completes all of it, dequeue another with it.

        Nothing is dequeued where the claim had emptied the queue, and the worker would have been
        told of a message since. Return whether it is known if there is another claim, and that.
        """
        asked: list[LiveClaim | None] = []
        is_empty = self._has_emptied(claim)
        if not is_empty and (engine := self._pipelining) and self._may_exchange():
            claim.complete_all(lambda ids: self._complete_and_dequeue(engine, claim, ids, asked))
        claim.flush(self._queue)
        claim.release_rest(self._queue)
        following = asked[0] if asked else None
        if following and self._is_full(following):
            self._context.polling.hurry()
        return is_empty or bool(asked), following

    def _has_emptied(self, claim: LiveClaim) -> bool:
        """Whether a claim was the last one, as far as the worker is told of messages."""
        return not self._is_full(claim) and self._context.polling.knows_of_all_since(claim.asked_at)

    def _may_exchange(self) -> bool:
        """Whether it is worth trying; completing must not wait for the lease's length."""
        knows_lease = self._context.settings.lease_seconds or time.monotonic() < self._look_again_at
        is_time = time.monotonic() >= self._exchange_again_at
        return bool(knows_lease) and is_time and not self._context.stopping.is_set()

    def _complete_and_dequeue(
        self,
        engine: PipeliningEngine,
        claim: LiveClaim,
        ids: list[int],
        asked: list[LiveClaim | None],
    ) -> list[Outcome]:
        """Complete messages and dequeue in one go; put the next claim, or None, into `asked`.

        Where that fails they are completed by a call of their own, and nothing is asked for.
        """
        name = self._context.settings.queue_name
        results = claim.lease.results
        completion = {
            "queue_name": name,
            "claim_id": claim.claim_id,
            "message_ids": ids,
            "results": results_of(ids, results),
        }
        request = self._request()
        try:
            completed, dequeued = engine.call_all(
                self._session.connection(),
                [("complete", completion), ("dequeue_fast", request.arguments)],
            )
        except Exception as error:
            # Neither call took effect, or nobody knows; a dequeue that fails must not keep the
            # messages from being completed.
            log.warning("claim %d is completed by itself: %s", claim.claim_id, error)
            self._session.close()
            self._exchange_again_at = time.monotonic() + _APART_SECONDS
            return complete(self._queue, name, claim.claim_id, ids, results)
        asked.append(request.claim(dequeued))
        return [Outcome(*row) for row in completed]

    def _setting(self) -> int:
        """Return the length of the queue's own leases, as of the last minute."""
        if time.monotonic() >= self._look_again_at:
            name = self._context.settings.queue_name
            self._queue_lease_seconds = self._queue.queue_stats(name, max_count=1)[0].lease_seconds
            self._look_again_at = time.monotonic() + _SETTING_SECONDS
        return self._queue_lease_seconds

    def _is_drained(self) -> bool:
        """Whether nothing is ready, due or in any worker's hands, after a round of maintain.

        Messages delayed to a later moment do not count.
        """
        name = self._context.settings.queue_name
        for result in self._queue.maintain(name):
            if not result.elected or result.promoted or result.reaped:
                return False
        stats = self._queue.queue_stats(name, max_count=1)[0]
        if stats.is_paused and not stats.leased:
            log.warning("the queue is paused: draining ends with what is ready left in it")
            return True
        return not (stats.ready or stats.leased)


def _pipelining(engine: Engine) -> PipeliningEngine | None:
    """Return the engine if it and its driver can make several calls in one round trip."""
    return engine if isinstance(engine, PipeliningEngine) and engine.can_pipeline() else None
