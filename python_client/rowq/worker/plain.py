"""Works on a claim without a transaction: a message is handled, then completed."""

from collections.abc import Sequence

from rowq.queue import Queue
from rowq.worker.calling import Calling
from rowq.worker.claim import HeldMessage, LiveClaim
from rowq.worker.context import Context
from rowq.worker.verdicts import interrupted


class PlainWork:
    """Gives messages to the handler and hands in its verdicts in batches."""

    def __init__(self, context: Context, calling: Calling, queue: Queue) -> None:
        """Use `queue` for the calls about the claims."""
        self._context = context
        self._calling = calling
        self._queue = queue

    def do(self, claim: LiveClaim) -> None:
        """Handle the claim's messages until done, told to stop, or the claim is lost.

        What was decided last, and what was not decided about, is left to the caller.
        """
        if self._context.settings.per == "batch":
            if claim.messages and not self._context.stopping.is_set():
                self._handle(claim, claim.messages)
            return
        for message in claim.messages:
            if self._context.stopping.is_set() or not claim.is_held(self._queue):
                return
            self._handle(claim, [message])
            if claim.flush_due:
                claim.flush(self._queue)

    def _handle(self, claim: LiveClaim, messages: Sequence[HeldMessage]) -> None:
        try:
            said = self._calling.call(messages)
        except KeyboardInterrupt:
            claim.decide(interrupted(messages))
            raise
        claim.decide(said.verdicts)
