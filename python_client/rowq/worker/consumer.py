"""One thread's loop: dequeue a claim, work on it, wait with the others when there is nothing.

It has a slot at each server: the connection there, and what works on the claims from there. Where
there are several servers, one that does not answer holds nobody up who can work elsewhere: it is
left alone for a while, and so is a claim from there whose lease is over.
"""

import time
from collections.abc import Mapping
from contextlib import ExitStack

from rowq.engines.base import Engine, PipeliningEngine
from rowq.errors import CannotConnect, ConnectionLost
from rowq.messages import Outcome
from rowq.queue import Queue
from rowq.worker.batching import BatchSize
from rowq.worker.claim import ClaimRequest, LiveClaim, complete, results_of
from rowq.worker.context import Context, Server, log
from rowq.worker.handlers import Handler
from rowq.worker.handling import HandlerCaller, PlainWork, caller_for
from rowq.worker.heartbeat import Heartbeat
from rowq.worker.polling import PollingTurn
from rowq.worker.stripes import Round, Stripe
from rowq.worker.transactional import TransactionalWork

# A claim that was still uncommitted during one round's maintain is seen after the next round's.
_EMPTY_ROUNDS = 2
# The length of the queue's own leases is looked up again after so long.
_SETTING_SECONDS = 60.0
# After completing and dequeuing in one call has failed, each is a call of its own for so long.
_APART_SECONDS = 10.0


class ServerSlot:
    """One thread's connection to a server, and what works on the claims that it has from there.

    claim: the one that is worked on, None while another is asked for.
    """

    def __init__(self, context: Context, server: Server, turn: PollingTurn) -> None:
        self._context = context
        self.server = server
        self.claim: LiveClaim | None = None
        self.session = context.session(server, lambda: turn.pass_on(hurry=False), self._may_wait)
        self.queue = Queue(self.session)

    def open(self, stack: ExitStack, caller: HandlerCaller) -> None:
        """Make ready for work; all is closed by `stack`."""
        stack.enter_context(self.queue)
        self.work: PlainWork | TransactionalWork = PlainWork(self._context, caller, self.queue)
        if self._context.settings.transactional:
            session = self._context.session(self.server, may_wait=self._may_wait)
            stack.callback(session.close)
            self.work = TransactionalWork(
                self._context, caller, self.queue, session, self._may_wait
            )

    def _may_wait(self) -> bool:
        """Whether to wait for the server where it does not answer, and not to work elsewhere."""
        if not self._context.has_several_servers:
            return True
        return self.claim is not None and not self.claim.lease.is_over


class Consumer:
    """The loop of one thread, with its own connections, until stopped or drained."""

    def __init__(
        self,
        context: Context,
        handler: Handler,
        heartbeats: Mapping[str | None, Heartbeat],
        number: int,
    ) -> None:
        """Prepare thread `number`, counted from 1; heartbeats are by the names of servers."""
        self._context = context
        self._handler = handler
        self._heartbeats = heartbeats
        self._turn = PollingTurn(context.polling)
        first_stripe = (
            None
            if context.first_thread_stripe is None
            else context.first_thread_stripe + number - 1
        )
        self._round = Round(context.stripes, first_stripe)
        self._lease_seconds: dict[Stripe, tuple[int, float]] = {}
        self._exchange_again_at = 0.0
        self._worker_name = context.settings.name_of_thread(number)
        self._batch = BatchSize(
            context.settings.batch_size,
            is_together=context.settings.is_together,
            handler=handler,
        )

    def run(self) -> None:
        """Work until stopped or, with drain, until nothing is left."""
        with ExitStack() as stack:
            stack.callback(self._turn.pass_on)
            self._slots = {
                server.name: ServerSlot(self._context, server, self._turn)
                for server in self._context.servers
            }
            self._connect()
            self._pipelining = _pipelining(self._context.engine)
            caller = caller_for(self._context, self._handler)
            stack.callback(caller.close)
            for slot in self._slots.values():
                slot.open(stack, caller)
            claim = self._next()
            while claim:
                is_answered, following = self._finish(claim)
                # Let go of the finished claim, with its messages, before this thread is idle.
                claim = following
                claim = claim or (self._poll() if is_answered else self._next())

    def _connect(self) -> None:
        """Connect for the first time; only a restarted worker waits for a database that is away.

        Of several servers one is enough to begin with.
        """
        if self._context.has_several_servers:
            self._connect_to_any()
        else:
            (slot,) = self._slots.values()
            if self._context.is_patient:
                self._context.persist(slot.session.connection)
            else:
                slot.session.open()

    def _connect_to_any(self) -> None:
        lost: Exception | None = None
        for slot in self._slots.values():
            try:
                slot.session.open()
            except CannotConnect as error:
                log.warning("%s: %s", slot.server.name, error)
                slot.server.server_health.record_failure()
                lost = error
            else:
                return
        if lost and not self._context.is_patient:
            raise lost

    def _finish(self, claim: LiveClaim) -> tuple[bool, LiveClaim | None]:
        """Work on a claim and hand it in; return as `_exchange` does.

        An error that ends this thread costs an attempt of the message it is about, and of no other.
        """
        slot = self._slots[claim.stripe.server]
        slot.claim = claim
        with self._heartbeats[claim.stripe.server].watching(claim):
            try:
                began_at = time.monotonic()
                slot.work.do(claim)
                self._batch.note(claim.begun, time.monotonic() - began_at)
                return self._exchange(slot, claim)
            except BaseException as error:
                if isinstance(error, ConnectionLost) and self._may_leave(claim):
                    self._give_up(slot, claim)
                    return False, None
                # The worker ends now, which limits how long the next calls are tried.
                self._context.fail(error)
                self._leave(slot, claim)
                raise
            finally:
                slot.claim = None

    def _may_leave(self, claim: LiveClaim) -> bool:
        """Whether a claim that cannot be handed in is left, as there is work on other servers."""
        is_over = claim.lost or claim.lease.is_over
        return self._context.has_several_servers and is_over and not self._context.stopping.is_set()

    def _give_up(self, slot: ServerSlot, claim: LiveClaim) -> None:
        """Leave a claim to its server, where the lease runs out or has."""
        claim.lease.lost = True
        slot.server.server_health.record_failure()
        log.warning(
            "claim %d of %s is left: its server does not answer, and its lease is over",
            claim.claim_id,
            claim.stripe,
        )

    def _leave(self, slot: ServerSlot, claim: LiveClaim) -> None:
        """Hand in what is decided of a claim and give back the rest, as far as that can be done."""
        claim.keep_the_rest()
        for give in (claim.flush, claim.release_rest):
            try:
                give(slot.queue)
            except Exception as error:
                log.warning("claim %d is left as it is: %s", claim.claim_id, error)

    def _next(self) -> LiveClaim | None:
        """Return the next claim, as soon as there is one; None when stopped or drained."""
        if self._context.stopping.is_set():
            return None
        if not (claim := self._dequeue()):
            return self._poll()
        if claim.is_full:
            self._context.polling.hurry()
        return claim

    def _poll(self) -> LiveClaim | None:
        empty_rounds = 0
        while self._turn.wait():
            claim = self._dequeue()
            self._turn.note_answer(found=claim is not None)
            if claim:
                self._turn.pass_on(hurry=claim.is_full)
                return claim
            if self._context.settings.drain:
                empty_rounds = empty_rounds + 1 if self._is_drained() else 0
                if empty_rounds == _EMPTY_ROUNDS:
                    self._context.polling.end()
        return None

    def _dequeue(self) -> LiveClaim | None:
        """Ask the stripes, once around, for a claim."""
        for stripe in self._round.next():
            if claim := self._ask(stripe):
                self._round.note(stripe, is_full=claim.is_full)
                return claim
        return None

    def _ask(self, stripe: Stripe) -> LiveClaim | None:
        """Ask a stripe for a claim; of several servers one that does not answer has none."""
        slot = self._slots[stripe.server]
        if not self._context.has_several_servers:
            return self._ask_at(slot, stripe)
        if slot.server.server_health.is_backing_off:
            return None
        try:
            claim = self._ask_at(slot, stripe)
        except ConnectionLost as error:
            if self._context.stopping.is_set():
                raise
            self._leave_alone(slot, stripe, error)
            return None
        slot.server.server_health.record_success()
        return claim

    def _leave_alone(self, slot: ServerSlot, stripe: Stripe, error: ConnectionLost) -> None:
        """Ask a server, one of several, nothing for a while."""
        slot.server.server_health.record_failure()
        log.warning("%s is left alone for a while: %s", stripe, error)

    def _ask_at(self, slot: ServerSlot, stripe: Stripe) -> LiveClaim | None:
        request = self._request(slot, stripe)
        return request.claim(slot.session.call("dequeue_fast", request.arguments))

    def _request(self, slot: ServerSlot, stripe: Stripe) -> ClaimRequest:
        lease_seconds = self._context.settings.lease_seconds or self._setting(slot, stripe)
        return ClaimRequest(self._context, stripe, self._worker_name, lease_seconds, self._batch)

    def _exchange(self, slot: ServerSlot, claim: LiveClaim) -> tuple[bool, LiveClaim | None]:
        """Hand in what is left of a claim; where that completes all of it, dequeue another with it.

        Nothing is dequeued where the claim had emptied the queue, and the worker would have been
        told of a message since. Return whether it is known if there is another claim, and that.
        """
        claim.keep_the_rest()
        asked: list[LiveClaim | None] = []
        is_empty = self._has_emptied(claim)
        stripe = self._round.next()[0]
        if not is_empty and (engine := self._pipelining) and self._may_exchange(claim, stripe):
            claim.complete_all(
                lambda ids: self._complete_and_dequeue(engine, slot, claim, ids, stripe, asked)
            )
        claim.flush(slot.queue)
        claim.release_rest(slot.queue)
        following = asked[0] if asked else None
        if following:
            self._round.note(stripe, is_full=following.is_full)
            if following.is_full:
                self._context.polling.hurry()
        # What one stripe has answered says nothing of the others.
        is_known = is_empty or (bool(asked) and len(self._context.stripes) == 1)
        return is_known, following

    def _has_emptied(self, claim: LiveClaim) -> bool:
        """Whether a claim was the last one, as far as the worker is told of messages."""
        return not claim.is_full and self._context.polling.knows_of_all_since(claim.asked_at)

    def _may_exchange(self, claim: LiveClaim, stripe: Stripe) -> bool:
        """Whether it is worth trying; completing must not wait for the lease's length."""
        if claim.stripe.server != stripe.server or self._context.stopping.is_set():
            return False
        _, look_again_at = self._lease_seconds.get(stripe, (0, 0.0))
        knows_lease = self._context.settings.lease_seconds or time.monotonic() < look_again_at
        return bool(knows_lease) and time.monotonic() >= self._exchange_again_at

    def _complete_and_dequeue(
        self,
        engine: PipeliningEngine,
        slot: ServerSlot,
        claim: LiveClaim,
        ids: list[int],
        stripe: Stripe,
        asked: list[LiveClaim | None],
    ) -> list[Outcome]:
        """Complete messages and ask `stripe` in one go; put the next claim, or None, into `asked`.

        Where that fails they are completed by a call of their own, and nothing is asked for.
        """
        name, results = claim.stripe.queue_name, claim.lease.results
        completion = {
            "queue_name": name,
            "claim_id": claim.claim_id,
            "message_ids": ids,
            "results": results_of(ids, results),
        }
        request = self._request(slot, stripe)
        try:
            completed, dequeued = engine.call_all(
                slot.session.connection(),
                [("complete", completion), ("dequeue_fast", request.arguments)],
            )
        except Exception as error:
            # Neither call took effect, or nobody knows; a dequeue that fails must not keep the
            # messages from being completed.
            log.warning("claim %d is completed by itself: %s", claim.claim_id, error)
            slot.session.close()
            self._exchange_again_at = time.monotonic() + _APART_SECONDS
            return complete(slot.queue, name, claim.claim_id, ids, results)
        asked.append(request.claim(dequeued))
        return [Outcome(*row) for row in completed]

    def _setting(self, slot: ServerSlot, stripe: Stripe) -> int:
        """Return the length of a stripe's own leases, as of the last minute."""
        seconds, look_again_at = self._lease_seconds.get(stripe, (0, 0.0))
        if time.monotonic() >= look_again_at:
            (stats,) = slot.queue.queue_stats(stripe.queue_name, max_count=1)
            seconds = stats.lease_seconds
            self._lease_seconds[stripe] = seconds, time.monotonic() + _SETTING_SECONDS
        return seconds

    def _is_drained(self) -> bool:
        """Whether nothing is ready, due or in any worker's hands, after a round of maintain.

        Messages delayed to a later moment do not count. A server that does not answer is waited
        for, as nobody knows what is on it.
        """
        return all(self._is_stripe_drained(stripe) for stripe in self._context.stripes)

    def _is_stripe_drained(self, stripe: Stripe) -> bool:
        slot = self._slots[stripe.server]
        if not self._context.has_several_servers:
            return self._is_empty(slot.queue, stripe)
        if slot.server.server_health.is_backing_off:
            return False
        try:
            return self._is_empty(slot.queue, stripe)
        except ConnectionLost as error:
            if self._context.stopping.is_set():
                raise
            self._leave_alone(slot, stripe, error)
            return False

    def _is_empty(self, queue: Queue, stripe: Stripe) -> bool:
        """Whether a stripe is drained, as far as its server says."""
        for result in queue.maintain(stripe.queue_name):
            if not result.elected or result.promoted or result.reaped:
                return False
        (stats,) = queue.queue_stats(stripe.queue_name, max_count=1)
        if stats.is_paused and not stats.leased:
            log.warning("%s is paused: draining ends with what is ready left in it", stripe)
            return True
        return not (stats.ready or stats.leased)


def _pipelining(engine: Engine) -> PipeliningEngine | None:
    """Return the engine if it and its driver can make several calls in one round trip."""
    return engine if isinstance(engine, PipeliningEngine) and engine.can_pipeline() else None
