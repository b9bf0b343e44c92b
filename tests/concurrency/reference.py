"""A queue in plain Python that does what the contract says, for one session at a time.

Time stands still in it until pass_seconds; the order of calls decides between equal moments.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

FRONT, TAIL = 0, 1


@dataclass
class Entry:
    """A message and where it is; place orders the ready ones, due the delayed ones."""

    message_id: int
    priority: int
    allowed: int
    key: str | None = None
    state: str = "ready"
    attempt: int = 0
    error: str | None = None
    place: tuple[int, int, int] = (0, 0, 0)
    due: tuple[int, int, int] = (0, 0, 0)


@dataclass
class Claim:
    """A claim and the messages it holds, in the order of delivery."""

    until: int
    entries: list[Entry] = field(default_factory=list)


class ReferenceQueue:
    """One queue. Message and claim ids are given by the engine that is compared with this."""

    def __init__(self, max_attempts: int, backoff: Sequence[int]) -> None:
        self.now = 0
        self.paused = False
        self.entries: dict[int, Entry] = {}
        self.claims: dict[int, Claim] = {}
        self._max_attempts = max_attempts
        self._backoff = backoff
        self._count = 0

    def state(self, message_id: int) -> str | None:
        """Return where a message is, None once it is finished."""
        entry = self.entries.get(message_id)
        return entry.state if entry else None

    def counts(self) -> dict[str, int]:
        """Return the number of messages by state."""
        states = [entry.state for entry in self.entries.values()]
        return {state: states.count(state) for state in ("ready", "delayed", "leased", "dead")}

    def line(self) -> list[Entry]:
        """Return the ready messages in the order of delivery."""
        ready = [entry for entry in self.entries.values() if entry.state == "ready"]
        return sorted(ready, key=lambda entry: entry.place)

    def holder(self, key: str | None) -> int | None:
        """Return the unfinished message that has a key."""
        for entry in self.entries.values():
            if key is not None and entry.key == key and entry.state != "dead":
                return entry.message_id
        return None

    def enqueue(
        self, message_id: int, priority: int, delay: int, key: str | None, allowed: int | None
    ) -> None:
        """Take a message that is no duplicate."""
        entry = Entry(message_id, priority, allowed or self._max_attempts, key)
        self.entries[message_id] = entry
        self._step()
        self._delay(entry, delay)

    def dequeue(self, claim_id: int, batch_size: int, lease: int) -> list[Entry]:
        """Lease up to batch_size messages to a claim of this number."""
        if self.paused:
            return []
        if not self.line():
            self.promote(batch_size)
        taken = self.line()[:batch_size]
        for entry in taken:
            entry.state = "leased"
            entry.attempt += 1
        if taken:
            self.claims[claim_id] = Claim(self.now + lease, taken)
        return taken

    def take(self, claim_id: int, message_ids: Iterable[int] | None) -> list[Entry]:
        """Take messages out of a claim, all of them by default."""
        claim = self.claims.get(claim_id, Claim(0))
        wanted = None if message_ids is None else set(message_ids)
        taken = [entry for entry in claim.entries if wanted is None or entry.message_id in wanted]
        claim.entries = [entry for entry in claim.entries if entry not in taken]
        if not claim.entries:
            self.claims.pop(claim_id, None)
        return taken

    def finish(self, entries: Iterable[Entry]) -> None:
        """Forget messages."""
        for entry in entries:
            del self.entries[entry.message_id]

    def retry(self, entries: Iterable[Entry], delay: int | None, error: str) -> dict[int, str]:
        """Delay messages, or bury them; return what was done with each."""
        outcomes = {}
        self._step()
        for entry in entries:
            entry.error = error
            if entry.attempt >= entry.allowed:
                entry.state, outcomes[entry.message_id] = "dead", "dead"
                continue
            wait = self._backoff[entry.attempt - 1] if delay is None else delay
            self._delay(entry, wait)
            outcomes[entry.message_id] = "retrying"
        return outcomes

    def bury(self, entries: Iterable[Entry], error: str) -> None:
        """Make messages dead."""
        for entry in entries:
            entry.state, entry.error = "dead", error

    def release(self, entries: Iterable[Entry]) -> None:
        """Give messages back to the front without the attempt."""
        for entry in entries:
            entry.attempt -= 1
            self._queue_up(entry, FRONT)

    def extend(self, claim_id: int, lease: int) -> None:
        """Lengthen a lease."""
        claim = self.claims[claim_id]
        claim.until = max(claim.until, self.now + lease)

    def cancel(self, message_ids: Iterable[int]) -> dict[int, str]:
        """Withdraw messages; return what was done with each."""
        outcomes = {}
        for message in message_ids:
            state = self.state(message)
            outcomes[message] = {None: "not_found", "leased": "leased"}.get(state, "cancelled")
            if outcomes[message] == "cancelled":
                del self.entries[message]
        return outcomes

    def reset(self, limit: int) -> dict[int, str]:
        """Make the oldest dead messages ready; return what was done with each."""
        dead = sorted(
            message_id for message_id in self.entries if self.state(message_id) == "dead"
        )[:limit]
        outcomes = {}
        for entry in (self.entries[message_id] for message_id in dead):
            if self.holder(entry.key) is None:
                entry.attempt = 0
                self._queue_up(entry, TAIL)
                outcomes[entry.message_id] = "reset"
            else:
                outcomes[entry.message_id] = "duplicate"
        return outcomes

    def promote(self, limit: int = 1000) -> int:
        """Make delayed messages ready whose time has come."""
        delayed = [entry for entry in self.entries.values() if entry.state == "delayed"]
        due = sorted(
            (entry for entry in delayed if entry.due[0] <= self.now), key=lambda entry: entry.due
        )
        for entry in due[:limit]:
            self._queue_up(entry, TAIL)
        return len(due[:limit])

    def reap(self) -> tuple[int, int]:
        """Take back what expired claims hold; return how many are ready, and dead."""
        back, died = 0, 0
        for claim_id in sorted(
            claim_id for claim_id, held in self.claims.items() if held.until <= self.now
        ):
            for entry in self.claims.pop(claim_id).entries:
                entry.error = "lease expired: worker"
                if entry.attempt >= entry.allowed:
                    entry.state = "dead"
                    died += 1
                else:
                    self._queue_up(entry, FRONT)
                    back += 1
        return back, died

    def purge(self, *, include_dead: bool) -> int:
        """Forget what waits."""
        states = {"ready", "delayed", "dead"} if include_dead else {"ready", "delayed"}
        gone = [entry for entry in self.entries.values() if entry.state in states]
        self.finish(gone)
        return len(gone)

    def _delay(self, entry: Entry, seconds: int) -> None:
        if seconds == 0:
            self._queue_up(entry, TAIL)
            return
        entry.state = "delayed"
        entry.due = (self.now + seconds, self._count, entry.message_id)

    def _queue_up(self, entry: Entry, end: int) -> None:
        entry.state = "ready"
        entry.place = (entry.priority, end, self._step())

    def _step(self) -> int:
        self._count += 1
        return self._count
