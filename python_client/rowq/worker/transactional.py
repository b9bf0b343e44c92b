"""Works on a claim in one transaction: what the handler writes and the completion are one.

Effects written through the handler's connection happen exactly once: when the claim was lost, or
anything fails before the commit, they are rolled back together.
"""

from contextlib import ExitStack
from typing import Any

from rowq.errors import StaleClaim
from rowq.queue import Queue
from rowq.session import OwnedSession
from rowq.worker.claim import HeldMessage, LiveClaim
from rowq.worker.context import Context
from rowq.worker.handlers import Handler, Verdict, batch_verdicts, verdict_of
from rowq.worker.log import log
from rowq.worker.plain import failed
from rowq.worker.verdicts import apply_verdicts


class TransactionalWork:
    """Gives messages and a connection to the handler; commits once per claim."""

    def __init__(
        self, context: Context, handler: Handler, queue: Queue, session: OwnedSession
    ) -> None:
        """Work on the connection of `session`; `queue` is for calls outside the transaction."""
        self._context = context
        self._handler = handler
        self._queue = queue
        self._session = session

    def do(self, claim: LiveClaim) -> None:
        """Handle the claim's messages in one transaction; when that fails, each in its own."""
        self._try(claim, claim.messages)
        claim.release_rest(self._queue)

    def _try(self, claim: LiveClaim, messages: list[HeldMessage]) -> None:
        if self._context.stopping.is_set() or not claim.is_held(self._queue):
            return
        try:
            self._transaction(claim, messages)
        except StaleClaim:
            claim.extend(self._queue)
        except Exception as error:
            log.warning("a transaction of %d messages failed", len(messages), exc_info=error)
            self._after_failure(claim, messages, error)

    def _after_failure(
        self, claim: LiveClaim, messages: list[HeldMessage], error: Exception
    ) -> None:
        """Go on one by one, so that a message which breaks its transaction spoils no other's.

        Where the commit's answer was lost, extend tells: a claim that was completed is gone.
        """
        self._session.close()
        claim.extend(self._queue)
        if len(messages) > 1:
            for message in messages:
                self._try(claim, [message])
        elif not claim.lost:
            claim.decide({messages[0].message_id: verdict_of(error)})
            claim.flush(self._queue)

    def _transaction(self, claim: LiveClaim, messages: list[HeldMessage]) -> None:
        """Handle and finish `messages`; raises StaleClaim when any of them is no longer ours."""
        name = self._context.settings.queue_name
        connection = self._context.persist(self._session.connection)
        with ExitStack() as after_commit:
            with self._context.engine.transaction(connection):
                verdicts = self._verdicts(claim, messages, connection)
                after_commit.enter_context(claim.lock)
                if claim.lost:
                    raise StaleClaim(f"claim {claim.claim_id} was lost while it was handled")
                told = apply_verdicts(
                    Queue(connection), name, claim.claim_id, verdicts, lambda call: call()
                )
                if told.stale:
                    raise StaleClaim(
                        f"claim {claim.claim_id} no longer holds {told.stale} messages"
                    )
            claim.settled(verdicts, told)

    def _verdicts(
        self, claim: LiveClaim, messages: list[HeldMessage], connection: Any
    ) -> dict[int, Verdict]:
        if self._context.settings.per == "batch":
            return self._handle_batch(messages, connection)
        verdicts = {}
        for message in messages:
            if self._context.stopping.is_set() or claim.lost:
                break
            verdicts[message.message_id] = self._handle(message, connection)
        return verdicts

    def _handle(self, message: HeldMessage, connection: Any) -> Verdict:
        engine = self._context.engine
        try:
            with engine.transaction(connection):
                self._handler(message, connection)
        except (Exception, SystemExit) as error:
            if not self._goes_on(connection):
                raise
            return failed(message.message_id, error)
        return None

    def _goes_on(self, connection: Any) -> bool:
        """Whether the transaction outlived a handler's error; a deadlock may have ended it."""
        engine = self._context.engine
        return engine.is_usable(connection) and engine.in_transaction(connection)

    def _handle_batch(self, messages: list[HeldMessage], connection: Any) -> dict[int, Verdict]:
        engine = self._context.engine
        ids = [message.message_id for message in messages]
        try:
            with engine.transaction(connection):
                return batch_verdicts(ids, self._handler(messages, connection))
        except (Exception, SystemExit) as error:
            if not self._goes_on(connection):
                raise
            return dict.fromkeys(ids, failed(ids[0], error))
