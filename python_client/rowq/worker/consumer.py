"""The loop of one thread: dequeue a claim, process it, wait with the others if there is none.

The thread has a slot per server: the connection, and the code that processes its claims. With
several servers, an unreachable server does not block the thread: it is skipped for a while, and its
claims are abandoned after their lease.
"""

import math
import time
from collections.abc import Container, Mapping
from contextlib import ExitStack

from rowq.errors import CannotConnect, ConnectionLost
from rowq.queue import Queue
from rowq.worker.batching import BatchSize
from rowq.worker.claim import ClaimRequest, LiveClaim, complete, count, results_of
from rowq.worker.context import Context, Server, log
from rowq.worker.handlers import Handler
from rowq.worker.handling import HandlerCaller, PlainWork, caller_for
from rowq.worker.heartbeat import Heartbeat
from rowq.worker.meter import WorkerStats
from rowq.worker.polling import PollingTurn, Turn
from rowq.worker.sessions import REST_SECONDS, GuestSession
from rowq.worker.stripes import QueueOrder, Round, Stripe
from rowq.worker.transactional import TransactionalWork

# A claim that is uncommitted during maintain of one round is visible in the next round.
_EMPTY_ROUNDS = 2
# How often to read the queue's lease_seconds.
_SETTING_SECONDS = 60.0
# After a failed exchange, complete and dequeue in separate calls for this time.
_APART_SECONDS = 10.0


class ServerSlot:
    """One thread's connections to one server, with the claim it is processing.

    session: its own connection. guest, queue: calls on it, or on the shared one while it has none.
    """

    def __init__(self, context: Context, server: Server, turn: PollingTurn) -> None:
        self._context = context
        self.server = server
        self.claim: LiveClaim | None = None
        self.session = context.session(server, lambda: turn.pass_on(hurry=False), self._may_wait)
        self.guest = GuestSession(self.session, server.shared)
        self.queue = Queue(self.guest)
        self._sessions = [self.session]

    def open(self, stack: ExitStack, caller: HandlerCaller) -> None:
        """Open the connections; `stack` closes them."""
        stack.enter_context(self.queue)
        self.work: PlainWork | TransactionalWork = PlainWork(self._context, caller, self.queue)
        if self._context.settings.transactional:
            session = self._context.session(self.server, may_wait=self._may_wait)
            stack.callback(session.close)
            self._sessions.append(session)
            self.work = TransactionalWork(
                self._context, caller, self.queue, session, self._may_wait
            )

    @property
    def is_open(self) -> bool:
        """Whether the thread has a connection of its own."""
        return any(session.is_open for session in self._sessions)

    def rest(self) -> None:
        """Close the thread's own connections."""
        for session in self._sessions:
            session.close()

    def _may_wait(self) -> bool:
        """Whether to wait for an unreachable server, instead of working on another one."""
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
        """Prepare thread `number`, from 1; heartbeats are by server name."""
        self._context = context
        self._handler = handler
        self._heartbeats = heartbeats
        self._turn = PollingTurn(context.polling)
        first_stripe = (
            None
            if context.first_thread_stripe is None
            else context.first_thread_stripe + number - 1
        )
        self._round: Round | QueueOrder = (
            QueueOrder(context.stripes, context.settings.weights)
            if context.has_several_queues
            else Round(context.stripes, first_stripe)
        )
        self._lease_seconds: dict[Stripe, tuple[int, float]] = {}
        self._exchange_from = 0.0
        self._worker_name = context.settings.name_of_thread(number)
        # Messages of several queues differ in length, those of stripes do not.
        self._batches = (
            {stripe: self._new_batch() for stripe in context.stripes}
            if context.has_several_queues
            else dict.fromkeys(context.stripes, self._new_batch())
        )

    def _new_batch(self) -> BatchSize:
        settings = self._context.settings
        return BatchSize(
            settings.batch_size, is_together=settings.is_together, handler=self._handler
        )

    def run(self) -> None:
        """Work until stopped or, with drain, until no message is ready, due or leased."""
        with ExitStack() as stack:
            stack.callback(self._turn.pass_on)
            self._slots = {
                server.name: ServerSlot(self._context, server, self._turn)
                for server in self._context.servers
            }
            self._connect()
            caller = caller_for(self._context, self._handler)
            stack.callback(caller.close)
            for slot in self._slots.values():
                slot.open(stack, caller)
            claim = self._next()
            while claim:
                is_answered, following = self._finish(claim)
                # Drop the finished claim and its messages before this thread becomes idle.
                claim = following
                claim = claim or (self._poll() if is_answered else self._next())

    def _connect(self) -> None:
        """Connect for the first time; only a restarted worker waits for an unreachable database.

        One of several servers is enough.
        """
        if self._context.has_several_servers:
            self._connect_to_any()
        else:
            (slot,) = self._slots.values()
            if self._context.is_restart:
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
        if lost and not self._context.is_restart:
            raise lost

    def _finish(self, claim: LiveClaim) -> tuple[bool, LiveClaim | None]:
        """Process a claim and report its outcomes; return as `_exchange` does.

        An error that ends this thread costs only its own message an attempt.
        """
        slot = self._slots[claim.stripe.server]
        slot.claim = claim
        with self._heartbeats[claim.stripe.server].watching(claim):
            try:
                began_at = time.monotonic()
                slot.work.do(claim)
                self._batches[claim.stripe].record(claim.begun, time.monotonic() - began_at)
                return self._exchange(slot, claim)
            except BaseException as error:
                if isinstance(error, ConnectionLost) and self._may_abandon(claim):
                    self._abandon(slot, claim)
                    return False, None
                # The worker ends now, which limits the retries of the next calls.
                self._context.fail(error)
                self._report_and_release(slot, claim)
                raise
            finally:
                slot.claim = None

    def _may_abandon(self, claim: LiveClaim) -> bool:
        """Whether to abandon a claim of an unreachable server and work on other servers."""
        is_over = claim.lost or claim.lease.is_over
        return self._context.has_several_servers and is_over and not self._context.stopping.is_set()

    def _abandon(self, slot: ServerSlot, claim: LiveClaim) -> None:
        """Leave a claim to its server, which reaps it."""
        claim.lease.lost = True
        slot.server.server_health.record_failure()
        log.warning(
            "claim %d of %s abandoned: its lease expired and its server is unreachable",
            claim.claim_id,
            claim.stripe,
        )

    def _report_and_release(self, slot: ServerSlot, claim: LiveClaim) -> None:
        """Report the decisions of a claim and release the rest; log failures."""
        claim.stop_early_release()
        for finish in (claim.flush, claim.release_rest):
            try:
                finish(slot.queue)
            except Exception as error:
                log.warning(
                    "claim %d not finished, its lease will expire: %s", claim.claim_id, error
                )

    def _next(self) -> LiveClaim | None:
        """Return the next claim as soon as there is one, or None if stopped or drained."""
        if self._context.stopping.is_set():
            return None
        if not (claim := self._dequeue()):
            return self._poll()
        if claim.is_full:
            self._context.polling.hurry()
        return claim

    def _poll(self) -> LiveClaim | None:
        empty_rounds = 0
        rest_at = time.monotonic() + REST_SECONDS
        while (turn := self._turn.wait(rest_at if self._is_open() else math.inf)) is not Turn.END:
            if time.monotonic() >= rest_at:
                rest_at = time.monotonic() + REST_SECONDS
                for slot in self._slots.values():
                    slot.rest()
            if turn is Turn.REST:
                continue
            claim = self._dequeue(self._turn.queue_names)
            self._turn.record_answer(found=claim is not None)
            if claim:
                self._turn.pass_on(hurry=claim.is_full)
                return claim
            if self._context.settings.drain:
                empty_rounds = empty_rounds + 1 if self._is_drained() else 0
                if empty_rounds == _EMPTY_ROUNDS:
                    self._context.polling.end()
        return None

    def _is_open(self) -> bool:
        return any(slot.is_open for slot in self._slots.values())

    def _dequeue(self, queue_names: Container[str] | None = None) -> LiveClaim | None:
        """Poll each stripe once for a claim, or only the queues with these names."""
        for stripe in self._round.next():
            if queue_names is not None and stripe.queue_name not in queue_names:
                continue
            if claim := self._poll_stripe(stripe):
                self._round.record(stripe, is_full=claim.is_full)
                return claim
        return None

    def _poll_stripe(self, stripe: Stripe) -> LiveClaim | None:
        """Dequeue from a stripe; skip one of several servers if it is unreachable."""
        slot = self._slots[stripe.server]
        if not self._context.has_several_servers:
            return self._dequeue_at(slot, stripe)
        if slot.server.server_health.is_backing_off:
            return None
        try:
            claim = self._dequeue_at(slot, stripe)
        except ConnectionLost as error:
            if self._context.stopping.is_set():
                raise
            self._back_off(slot, stripe, error)
            return None
        slot.server.server_health.record_success()
        return claim

    def _back_off(self, slot: ServerSlot, stripe: Stripe, error: ConnectionLost) -> None:
        slot.server.server_health.record_failure()
        log.warning("%s is unreachable, backing off: %s", stripe, error)

    def _dequeue_at(self, slot: ServerSlot, stripe: Stripe) -> LiveClaim | None:
        request = self._request(slot, stripe)
        return request.claim(slot.guest.call("dequeue_fast", request.arguments))

    def _request(self, slot: ServerSlot, stripe: Stripe) -> ClaimRequest:
        lease_seconds = self._context.settings.lease_seconds or self._setting(slot, stripe)
        return ClaimRequest(
            self._context, stripe, self._worker_name, lease_seconds, self._batches[stripe]
        )

    def _exchange(self, slot: ServerSlot, claim: LiveClaim) -> tuple[bool, LiveClaim | None]:
        """Report the rest of a claim; if the next stripe is its own, dequeue in the last call.

        Do not dequeue if the claim emptied the queue and no notification came since. Return whether
        the result of a dequeue is known, and the next claim.
        """
        claim.stop_early_release()
        claim.release_rest(slot.queue)
        is_empty = self._has_emptied(claim)
        stripe = self._round.next()[0]
        answers: list[LiveClaim | None] = []
        if not is_empty and stripe == claim.stripe and self._may_exchange(stripe):
            claim.flush(
                slot.queue, lambda ids: self._complete_and_dequeue(slot, claim, ids, answers)
            )
        else:
            claim.flush(slot.queue)
        following = answers[0] if answers else None
        if following:
            self._round.record(stripe, is_full=following.is_full)
            if following.is_full:
                self._context.polling.hurry()
        # The answer of one stripe does not apply to the others.
        is_known = is_empty or (bool(answers) and len(self._context.stripes) == 1)
        return is_known, following

    def _has_emptied(self, claim: LiveClaim) -> bool:
        """Whether a claim emptied the only queue and no notification came since."""
        if self._context.has_several_queues:
            return False
        return not claim.is_full and self._context.polling.has_polled_all_since(claim.called_at)

    def _may_exchange(self, stripe: Stripe) -> bool:
        """Whether to try it; completing must not wait for a read of lease_seconds."""
        if self._context.stopping.is_set():
            return False
        _, read_at = self._lease_seconds.get(stripe, (0, 0.0))
        knows_lease = self._context.settings.lease_seconds or time.monotonic() < read_at
        return bool(knows_lease) and time.monotonic() >= self._exchange_from

    def _complete_and_dequeue(
        self, slot: ServerSlot, claim: LiveClaim, ids: list[int], answers: list[LiveClaim | None]
    ) -> WorkerStats:
        """Complete messages and dequeue in one call; append the next claim to `answers`.

        If that fails, complete them in a separate call, and do not dequeue: a failed dequeue must
        not prevent the completion.
        """
        results = claim.lease.results
        request = self._request(slot, claim.stripe)
        completion = {
            "claim_id": claim.claim_id,
            "message_ids": ids,
            "results": results_of(ids, results),
        }
        try:
            rows = self._context.engine.call(
                slot.session.connection(),
                "complete_and_dequeue",
                {**request.arguments, **completion},
            )
        except Exception as error:
            # The call took no effect, or that is unknown.
            log.warning("claim %d: completing without dequeue: %s", claim.claim_id, error)
            slot.session.close()
            self._exchange_from = time.monotonic() + _APART_SECONDS
            outcomes = complete(slot.queue, claim.stripe.queue_name, claim.claim_id, ids, results)
            return count(outcomes)
        answers.append(request.claim([row[1:] for row in rows if row[0] == "leased"]))
        stale = sum(row[0] == "stale" for row in rows)
        return WorkerStats(processed=len(ids) - stale, stale=stale)

    def _setting(self, slot: ServerSlot, stripe: Stripe) -> int:
        """Return lease_seconds of a stripe's queue, at most a minute old."""
        seconds, read_at = self._lease_seconds.get(stripe, (0, 0.0))
        if time.monotonic() >= read_at:
            (stats,) = slot.queue.queue_stats(stripe.queue_name, max_count=1)
            seconds = stats.lease_seconds
            self._lease_seconds[stripe] = seconds, time.monotonic() + _SETTING_SECONDS
        return seconds

    def _is_drained(self) -> bool:
        """Whether no message is ready, due or leased after maintain; later ones do not count.

        Wait for an unreachable server, whose messages are unknown.
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
            self._back_off(slot, stripe, error)
            return False

    def _is_empty(self, queue: Queue, stripe: Stripe) -> bool:
        """Whether a stripe is drained."""
        for result in queue.maintain(stripe.queue_name):
            if not result.elected or result.promoted or result.reaped:
                return False
        (stats,) = queue.queue_stats(stripe.queue_name, max_count=1)
        if stats.is_paused and not stats.leased:
            log.warning("%s is paused: draining ends, its ready messages remain", stripe)
            return True
        return not (stats.ready or stats.leased)
