"""Works on a claim without a transaction: a message is handled, then completed."""

from rowq.errors import WorkerFailed
from rowq.queue import Queue
from rowq.worker.claim import HeldMessage, LiveClaim
from rowq.worker.context import Context
from rowq.worker.handlers import Handler, Release, Verdict, batch_verdicts, verdict_of
from rowq.worker.log import log


class PlainWork:
    """Gives messages to the handler and hands in its verdicts in batches."""

    def __init__(self, context: Context, handler: Handler, queue: Queue) -> None:
        """Use `queue` for the calls about the claims."""
        self._context = context
        self._handler = handler
        self._queue = queue

    def do(self, claim: LiveClaim) -> None:
        """Handle the claim's messages until done, told to stop, or the claim is lost.

        What was decided last, and what was not decided about, is left to the caller.
        """
        if self._context.settings.per == "batch":
            self._do_batch(claim)
        else:
            self._do_messages(claim)

    def _do_batch(self, claim: LiveClaim) -> None:
        if not self._context.stopping.is_set():
            claim.decide(self._handle_batch(claim.messages))

    def _do_messages(self, claim: LiveClaim) -> None:
        for message in claim.messages:
            if self._context.stopping.is_set() or not claim.is_held(self._queue):
                return
            claim.decide({message.message_id: self._handle(message)})
            if claim.flush_due:
                claim.flush(self._queue)

    def _handle(self, message: HeldMessage) -> Verdict:
        try:
            self._handler(message)
        except WorkerFailed as error:
            # The handler says that no message can be worked on, so this one's attempt is not spent.
            self._context.fail(error)
            return Release()
        except (Exception, SystemExit) as error:
            return failed(message.message_id, error)
        return None

    def _handle_batch(self, messages: list[HeldMessage]) -> dict[int, Verdict]:
        ids = [message.message_id for message in messages]
        try:
            return batch_verdicts(ids, self._handler(messages))
        except (Exception, SystemExit) as error:
            return dict.fromkeys(ids, failed(ids[0], error))


def failed(message_id: int, error: BaseException) -> Verdict:
    """Log that the handler did not finish `message_id`, and return what that means."""
    verdict = verdict_of(error)
    if verdict is not error:
        log.warning("message %d: the handler raised", message_id, exc_info=error)
    return verdict
