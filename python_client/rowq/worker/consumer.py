"""One thread's loop: take a claim, work on it, wait with the others when there is nothing."""

import time
from contextlib import ExitStack

from rowq.queue import Queue
from rowq.worker.claim import LiveClaim
from rowq.worker.context import Context
from rowq.worker.handlers import Handler
from rowq.worker.keeper import Keeper
from rowq.worker.log import log
from rowq.worker.plain import PlainWork
from rowq.worker.polling import Turn
from rowq.worker.transactional import TransactionalWork

# A claim that was still uncommitted during one round's maintain is seen after the next round's.
_EMPTY_ROUNDS = 2
# How long the length of the queue's own leases is taken for known.
_SETTING_SECONDS = 60.0


class Consumer:
    """Runs in a thread of its own, with its own connection, until stopped or drained."""

    def __init__(self, context: Context, handler: Handler, keeper: Keeper, number: int) -> None:
        """Prepare thread `number`, counted from 1."""
        self._context = context
        self._handler = handler
        self._keeper = keeper
        self._turn = Turn(context.polling)
        self._queue_lease_seconds = 0
        self._look_again_at = 0.0
        self._worker_name = context.settings.name_of_thread(number)

    def run(self) -> None:
        """Work until stopped or, with drain, until nothing is left."""
        with ExitStack() as stack:
            stack.callback(self._turn.pass_on)
            session = self._context.session(on_loss=self._turn.pass_on)
            session.open()
            self._queue = stack.enter_context(Queue(session))
            work = self._work(stack)
            while claim := self._next():
                with self._keeper.watching(claim):
                    work.do(claim)

    def _next(self) -> LiveClaim | None:
        """Return the next claim, as soon as there is one; None when stopped or drained."""
        if self._context.stopping.is_set():
            return None
        if not (claim := self._take()):
            return self._poll()
        if self._is_full(claim):
            self._context.polling.hurry()
        return claim

    def _is_full(self, claim: LiveClaim) -> bool:
        return len(claim.messages) == self._context.settings.batch_size

    def _poll(self) -> LiveClaim | None:
        empty_rounds = 0
        while self._turn.wait():
            if claim := self._take():
                self._turn.pass_on(hurry=self._is_full(claim))
                return claim
            if self._context.settings.drain:
                empty_rounds = empty_rounds + 1 if self._is_drained() else 0
                if empty_rounds == _EMPTY_ROUNDS:
                    self._context.polling.end()
        return None

    def _work(self, stack: ExitStack) -> PlainWork | TransactionalWork:
        if not self._context.settings.transactional:
            return PlainWork(self._context, self._handler, self._queue)
        session = self._context.session()
        stack.callback(session.close)
        return TransactionalWork(self._context, self._handler, self._queue, session)

    def _take(self) -> LiveClaim | None:
        settings = self._context.settings
        lease_seconds = settings.lease_seconds or self._setting()
        asked_at = time.monotonic()
        messages = self._context.persist(
            lambda: self._queue.dequeue_fast(
                settings.queue_name,
                settings.batch_size,
                worker_name=self._worker_name,
                lease_seconds=lease_seconds,
            )
        )
        return LiveClaim(self._context, messages, asked_at, lease_seconds) if messages else None

    def _setting(self) -> int:
        """Return the length of the queue's own leases, as of the last minute."""
        if time.monotonic() >= self._look_again_at:
            name = self._context.settings.queue_name
            stats = self._context.persist(lambda: self._queue.queue_stats(name, max_count=1))
            self._queue_lease_seconds = stats[0].lease_seconds
            self._look_again_at = time.monotonic() + _SETTING_SECONDS
        return self._queue_lease_seconds

    def _is_drained(self) -> bool:
        """Whether nothing is ready, due or in any worker's hands, after a round of maintain.

        Messages delayed to a later moment do not count.
        """
        name = self._context.settings.queue_name
        for done in self._context.persist(lambda: self._queue.maintain(name)):
            if not done.elected or done.promoted or done.reaped:
                return False
        stats = self._context.persist(lambda: self._queue.queue_stats(name, max_count=1))[0]
        if stats.is_paused and not stats.leased:
            log.warning("the queue is paused: draining ends with what is ready left in it")
            return True
        return not (stats.ready or stats.leased)
