"""One claim in a worker's hands: its lease, and the verdicts not yet handed in."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter

from rowq.errors import QueueNotFound, StaleClaim
from rowq.messages import Message
from rowq.queue import Queue
from rowq.worker.context import Context
from rowq.worker.handlers import Verdict
from rowq.worker.log import log
from rowq.worker.stats import WorkerStats
from rowq.worker.verdicts import Told, apply_verdicts, count

_FLUSH_SECONDS = 0.5
# So much of a lease is relied upon: two clocks do not run alike, and what is decided takes time.
_SAFE_SHARE = 0.95
_VALUES = attrgetter(*(field.name for field in fields(Message)))


class HeldMessage(Message):
    """A message in a worker's hands: what a handler is given."""

    __slots__ = ("_claim",)
    _claim: "LiveClaim"

    @classmethod
    def of(cls, message: Message, claim: "LiveClaim") -> "HeldMessage":
        """Return `message` as one that knows its claim."""
        held = cls(*_VALUES(message))
        object.__setattr__(held, "_claim", claim)
        return held

    @property
    def lost(self) -> bool:
        """Whether the lease is gone: then what the handler decides has no effect.

        Either the database has said so, or the lease's time is up and no word of its extension has
        come; the second needs no network. Once True it stays so, and the claim is given up.
        """
        return self._claim.is_lost()

    def is_stopping(self, within_seconds: float = 0.0) -> bool:
        """Whether the worker was told to stop; waits for that, but no longer than so."""
        return self._claim.is_stopping(within_seconds)


class LiveClaim:
    """A claim and its messages; `lock` is held while its state in the database is changed.

    How much of the lease is left is reckoned in monotonic time from before the call that gave it,
    never from lease_until: this machine's clock may be wrong.

    lost: the database has refused the claim, or a handler was told that its time is up. Nothing is
    done with it from then on, so that a handler may leave off without being taken for done.
    """

    def __init__(
        self, context: Context, messages: list[Message], asked_at: float, lease_seconds: int
    ) -> None:
        """Take over what a dequeue for `lease_seconds` returned; it was made at `asked_at`."""
        self._context = context
        self._lease_seconds = lease_seconds
        self._name = context.settings.queue_name
        self.lock = threading.RLock()
        self.claim_id = messages[0].claim_id
        self.messages = [HeldMessage.of(message, self) for message in messages]
        self.lost = False
        self._open = {message.message_id for message in messages}
        self._verdicts: dict[int, Verdict] = {}
        self._flush_at = float("inf")
        self._set_lease(asked_at)

    @property
    def heartbeat_due(self) -> bool:
        """Whether a third of the lease has passed since it was last extended."""
        return not self.lost and bool(self._open) and time.monotonic() >= self._extend_at

    @property
    def flush_due(self) -> bool:
        """Whether a verdict has waited long enough."""
        return time.monotonic() >= self._flush_at

    def is_lost(self) -> bool:
        """Tell a handler whether the lease is gone; neither waits nor asks the database."""
        if not self.lost and time.monotonic() >= self._expires_at:
            self.lost = True
            log.warning("claim %d is lost: its time is up, not extended", self.claim_id)
        return self.lost

    def is_stopping(self, within_seconds: float) -> bool:
        """Tell a handler whether the worker was told to stop, or is within so many seconds."""
        return self._context.stopping.wait(within_seconds)

    def decide(self, verdicts: Mapping[int, Verdict]) -> None:
        """Note verdicts; they are handed in by the next flush."""
        with self.lock:
            self._verdicts.update(verdicts)
            self._flush_at = min(self._flush_at, time.monotonic() + _FLUSH_SECONDS)

    def flush(self, queue: Queue) -> None:
        """Hand in the verdicts so far; of a lost claim they are only counted."""
        with self.lock:
            verdicts, self._verdicts = self._verdicts, {}
            self._flush_at = float("inf")
            if not verdicts:
                return
            if self.lost:
                self.settled(verdicts, WorkerStats(stale=len(verdicts)))
                return
            told = apply_verdicts(queue, self._name, self.claim_id, verdicts, self._context.persist)
            self.settled(verdicts, told)
            if told.stale and self._open:
                self.extend(queue)

    def complete_all(self, complete: Callable[[list[int]], Sequence[Told]]) -> None:
        """Let `complete` hand in every message, if all are done; else leave it to `flush`."""
        with self.lock:
            verdicts = self._verdicts
            is_all = self._open == verdicts.keys() and not any(verdicts.values())
            if verdicts and is_all and not self.lost:
                self._verdicts, self._flush_at = {}, float("inf")
                self.settled(verdicts, count(complete(list(verdicts))))

    def settled(self, verdicts: Mapping[int, Verdict], told: WorkerStats) -> None:
        """Note that `verdicts` were handed in with the outcomes `told`."""
        self._open.difference_update(verdicts)
        self._context.counter.add(told)

    def extend(self, queue: Queue) -> None:
        """Extend the lease, or learn that the claim is lost."""
        with self.lock:
            if self.lost:
                return
            asked_at = time.monotonic()
            try:
                self._context.persist(
                    lambda: queue.extend_lease(
                        self._name, self.claim_id, lease_seconds=self._lease_seconds
                    )
                )
            except (StaleClaim, QueueNotFound) as error:
                self.lost = True
                log.warning("claim %d is lost: %s", self.claim_id, error)
            else:
                self._set_lease(asked_at)

    def is_held(self, queue: Queue) -> bool:
        """Whether the claim is still ours; asks the database when the lease may have run out."""
        if not self.lost and time.monotonic() >= self._expires_at:
            self.extend(queue)
        return not self.lost

    def release_rest(self, queue: Queue) -> None:
        """Give back every message that nothing was decided about."""
        with self.lock:
            rest = sorted(self._open)
            self._open.clear()
            if rest and self.lost:
                self._context.counter.add(WorkerStats(stale=len(rest)))
            elif rest:
                told = self._context.persist(lambda: queue.release(self._name, self.claim_id, rest))
                self._context.counter.add(count(told))

    def _set_lease(self, asked_at: float) -> None:
        self._extend_at = asked_at + self._lease_seconds / 3
        self._expires_at = asked_at + self._lease_seconds * _SAFE_SHARE
