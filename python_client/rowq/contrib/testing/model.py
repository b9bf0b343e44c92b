"""Model of a queue in plain Python, for one session at a time.

It knows the state of each message and not its content, which memory.py adds. rowq's tests compare
it with every engine, call by call (tests/concurrency/test_against_reference.py).

Its clock, `now` in seconds, stands still until a caller advances it; of equal times the order of
calls decides.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

FRONT, TAIL = 0, 1
STATES = ("ready", "delayed", "leased", "dead", "blocked")


@dataclass
class Entry:
    """A message and its state; position orders ready messages, due orders delayed ones.

    has_slot: whether it has a slot of its group.
    awaits: the predecessor that it waits for, None for its group. remaining: its others.
    expires: when it expires. is_cancelled: whether its cancel was requested.
    died_at: when it died.
    """

    message_id: int
    priority: int
    allowed: int
    key: str | None = None
    group: str | None = None
    has_slot: bool = False
    state: str = "ready"
    attempt: int = 0
    error: str | None = None
    position: tuple[int, int, int] = (0, 0, 0)
    due: tuple[float, int, int] = (0, 0, 0)
    awaits: int | None = None
    remaining: list[int] = field(default_factory=list)
    on_dead: str = "hold"
    message_type: str | None = None
    expires: float | None = None
    is_cancelled: bool = False
    died_at: float = 0.0

    @property
    def is_exhausted(self) -> bool:
        """Whether no attempt is left; 0 allows any number."""
        return 0 < self.allowed <= self.attempt


@dataclass
class Claim:
    """A claim and the messages it holds, in the order of delivery."""

    until: float
    worker: str | None = None
    progress: str | None = None
    entries: list[Entry] = field(default_factory=list)

    def cancels(self) -> list[int]:
        """Return the messages whose cancel was requested."""
        return [entry.message_id for entry in self.entries if entry.is_cancelled]


class Result(NamedTuple):
    """How a message has ended; forgotten_at: when the result is deleted."""

    state: str
    value: object
    forgotten_at: float
    ended_at: float


class ReferenceQueue:
    """One queue. Message and claim ids come from the engine that is compared with the model.

    backoff: the delay before each further attempt, by its number from 0.
    always_runs_deferred: whether each empty dequeue runs deferred group checks; else it must have
    promoted nothing, and maintain must have met such a check before.
    releases_slots_first: whether messages that end together release their slots before successors
    resume; else successors of messages without a slot resume first.
    result_seconds: how long results are retained, 0 for not at all.
    """

    def __init__(
        self,
        max_attempts: int,
        backoff: Sequence[float],
        *,
        always_runs_deferred: bool,
        releases_slots_first: bool,
        result_seconds: float = 0,
    ) -> None:
        self.now = 0.0
        self.max_attempts = max_attempts
        self.backoff = backoff
        self.result_seconds = result_seconds
        self.paused = False
        self.entries: dict[int, Entry] = {}
        self.claims: dict[int, Claim] = {}
        self.group_limit = 1
        self.dead_hold_groups = False
        self._results: dict[int, Result] = {}
        self._slots: defaultdict[str, set[int]] = defaultdict(set)
        self._deferred: list[str] = []
        self._dequeues_run_deferred = False
        self._always_runs_deferred = always_runs_deferred
        self._releases_slots_first = releases_slots_first
        self._count = 0

    def state(self, message_id: int) -> str | None:
        """Return the state of a message, None if it is finished."""
        entry = self.entries.get(message_id)
        return entry.state if entry else None

    def result(self, message_id: int) -> tuple[str, object] | None:
        """Return the state of a message and its result, None if it is unknown."""
        state = self.state(message_id)
        if state is None and (ended := self.ended(message_id)):
            return ended.state, ended.value
        return None if state is None else (state, None)

    def ended(self, message_id: int) -> Result | None:
        """Return how a message has ended, None without a result."""
        return self._results.get(message_id)

    def counts(self) -> dict[str, int]:
        """Return the number of messages by state."""
        states = [entry.state for entry in self.entries.values()]
        return {state: states.count(state) for state in STATES}

    def ready_in_order(self) -> list[Entry]:
        """Return the ready messages in the order of delivery."""
        ready = [entry for entry in self.entries.values() if entry.state == "ready"]
        return sorted(ready, key=lambda entry: entry.position)

    def owner_of(self, key: str | None) -> int | None:
        """Return the unfinished message that owns a dedup key."""
        for entry in self.entries.values():
            if key is not None and entry.key == key and entry.state != "dead":
                return entry.message_id
        return None

    def enqueue(
        self,
        message_id: int,
        priority: int,
        delay: float,
        key: str | None,
        allowed: int | None,
        group: str | None,
        predecessors: Iterable[int] = (),
        on_dead: str | None = None,
        message_type: str | None = None,
        expires: float | None = None,
    ) -> None:
        """Add a message that is not a duplicate."""
        allowed = self.max_attempts if allowed is None else allowed
        entry = Entry(message_id, priority, allowed, key, group)
        entry.on_dead, entry.message_type = on_dead or "hold", message_type
        entry.expires = None if expires is None else self.now + expires
        self.entries[message_id] = entry
        self._step()
        if found := sorted(set(predecessors)):
            entry.due = (self.now + delay, self._count, entry.message_id)
            how = self._await(entry, found)
            if how != "free":
                self._fail([entry] if how == "failed" else [])
                return
        self._delay(entry, delay)

    def set_groups(self, limit: int, *, dead_hold: bool) -> None:
        """Change the settings of groups."""
        if limit > self.group_limit:
            waiting = {entry.group for entry in self._blocked() if entry.group}
            self._deferred += sorted(waiting)
        self.group_limit, self.dead_hold_groups = limit, dead_hold

    def maintain_groups(self) -> int:
        """Run deferred group checks as maintain does; later dequeues then run them as well."""
        self._dequeues_run_deferred = self._dequeues_run_deferred or bool(self._deferred)
        return self.run_deferred()

    def run_deferred(self, limit: int = 1000) -> int:
        """Add slots to groups whose limit was raised; return the number of checks."""
        seen, self._deferred = self._deferred[:limit], self._deferred[limit:]
        for group in seen:
            while self._blocked(group) and self._take_slot(group):
                self._pass_slots([group])
        return len(seen)

    def dequeue(
        self, claim_id: int, batch_size: int, lease: int, worker: str | None = None
    ) -> list[Entry]:
        """Lease up to batch_size messages to a claim of this id."""
        if self.paused:
            return []
        if not self.ready_in_order():
            may_run = self.promote(batch_size) == 0 and self._dequeues_run_deferred
            if may_run or self._always_runs_deferred:
                self.run_deferred(10)
        taken = self.ready_in_order()[:batch_size]
        for entry in taken:
            entry.state = "leased"
            entry.attempt += 1
        if taken:
            self.claims[claim_id] = Claim(self.now + lease, worker, entries=taken)
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

    def complete(self, entries: Iterable[Entry], results: Mapping[int, object]) -> None:
        """Complete messages, and keep their results."""
        self.finish(entries, "completed", results)

    def end_cancelled(self, entries: Iterable[Entry]) -> tuple[list[Entry], list[Entry]]:
        """End the messages that were cancelled while leased; return them and the others."""
        given_back = list(entries)
        ended = [entry for entry in given_back if entry.is_cancelled]
        if ended:
            self.finish(ended, "cancelled")
        return ended, [entry for entry in given_back if not entry.is_cancelled]

    def finish(
        self,
        entries: Iterable[Entry],
        state: str,
        results: Mapping[int, object] = MappingProxyType({}),
    ) -> None:
        """End messages."""
        gone = list(entries)
        if self.result_seconds:
            forgotten = self.now + self.result_seconds
            for entry in gone:
                value = results.get(entry.message_id)
                self._results[entry.message_id] = Result(state, value, forgotten, self.now)
        first = [] if self._releases_slots_first else gone
        without_slot = [entry for entry in first if self._is_without_slot(entry)]
        for entry in gone:
            del self.entries[entry.message_id]
        self._resume_successors(without_slot)
        self._release_slots(gone)
        self._resume_successors(entry for entry in gone if entry not in without_slot)

    def retry(
        self, entries: Iterable[Entry], delay: float | None, error: str | None
    ) -> dict[int, str]:
        """Delay messages, or make them dead; return the outcomes."""
        outcomes = {}
        died: list[Entry] = []
        self._step()
        for entry in entries:
            if entry.is_exhausted:
                outcomes[entry.message_id] = "dead"
                died.append(entry)
                continue
            entry.error = error
            wait = self.backoff[entry.attempt - 1] if delay is None else delay
            self._delay(entry, wait)
            outcomes[entry.message_id] = "retrying"
        self.make_dead(died, error)
        return outcomes

    def make_dead(self, entries: Iterable[Entry], error: str | None) -> None:
        """Make messages dead."""
        died = list(entries)
        for entry in died:
            entry.state, entry.error, entry.died_at = "dead", error, self.now
        if not self.dead_hold_groups:
            self._release_slots(died)
        while died:
            died = self._propagate(died)
            self._fail(died)

    def release(self, entries: Iterable[Entry], delay: float | None) -> None:
        """Return messages to the front, or delay them, without counting the attempt."""
        self._step()
        for entry in entries:
            entry.attempt -= 1
            if delay:
                self._delay(entry, delay)
            else:
                self._queue_up(entry, FRONT)

    def extend(self, claim_id: int, lease: int) -> None:
        """Extend a lease."""
        claim = self.claims[claim_id]
        claim.until = max(claim.until, self.now + lease)

    def cancel(self, message_ids: Iterable[int], *, include_leased: bool) -> dict[int, str]:
        """Cancel messages, or request it from their worker; return the outcomes."""
        outcomes = {}
        if_leased = "requested" if include_leased else "leased"
        for message in message_ids:
            state = self.state(message)
            outcomes[message] = {None: "not_found", "leased": if_leased}.get(state, "cancelled")
            if outcomes[message] == "requested":
                self.entries[message].is_cancelled = True
        self.finish(
            (self.entries[message] for message, done in outcomes.items() if done == "cancelled"),
            "cancelled",
        )
        return outcomes

    def cancel_many(
        self, matches: Callable[[Entry], bool], after: int, limit: int
    ) -> tuple[int, int | None]:
        """Cancel matching messages; return their number and the last scanned id."""
        seen = sorted(message_id for message_id in self.entries if message_id > after)[:limit]
        wanted = [
            self.entries[message_id]
            for message_id in seen
            if self.state(message_id) != "leased" and matches(self.entries[message_id])
        ]
        self.finish(wanted, "cancelled")
        return len(wanted), seen[-1] if len(seen) == limit else None

    def alter(
        self,
        message_id: int,
        priority: int | None = None,
        delay: float | None = None,
        expires: float | None = None,
    ) -> str:
        """Change priority, time and expiry of a message; return the outcome.

        expires: 0 removes the expiry.
        """
        entry = self.entries.get(message_id)
        if entry is None or entry.state == "leased":
            return "leased" if entry else "not_found"
        if entry.state == "dead" and delay is not None:
            return "dead"
        old = entry.priority
        entry.priority = old if priority is None else priority
        if expires is not None:
            entry.expires = self.now + expires if expires else None
        if delay is not None and (entry.state == "delayed" or entry.awaits):
            entry.due = (self.now + delay, self._step(), message_id)
        elif delay and entry.state in ("ready", "blocked"):
            entry.due = (self.now + delay, self._step(), message_id)
            leaves = entry.state == "ready" and entry.attempt == 0
            entry.state = "delayed"
            if leaves:
                self._release_slots([entry])
        elif entry.state == "ready" and entry.priority != old:
            self._queue_up(entry, TAIL)
        return "altered"

    def dead(self, limit: int, matches: Callable[[Entry], bool] = lambda _: True) -> list[int]:
        """Return the oldest matching dead messages."""
        return sorted(
            message_id
            for message_id, entry in self.entries.items()
            if entry.state == "dead" and matches(entry)
        )[:limit]

    def reset(self, message_ids: Iterable[int]) -> dict[int, str]:
        """Make dead messages ready; return the outcomes."""
        outcomes = {}
        for message_id in message_ids:
            entry = self.entries.get(message_id)
            if entry is None or entry.state != "dead":
                outcomes[message_id] = "not_found"
            elif self.owner_of(entry.key) is None:
                entry.attempt = 0
                self._join(entry)
                outcomes[message_id] = "reset"
            else:
                outcomes[message_id] = "duplicate"
        return outcomes

    def discard(self, message_ids: Iterable[int]) -> int:
        """Delete dead messages; return their number."""
        dead = [message_id for message_id in message_ids if self.state(message_id) == "dead"]
        self.finish((self.entries[message_id] for message_id in dead), "cancelled")
        return len(dead)

    def promote(self, limit: int = 1000) -> int:
        """Make due messages ready; return their number."""
        delayed = [entry for entry in self.entries.values() if entry.state == "delayed"]
        due = sorted(
            (entry for entry in delayed if entry.due[0] <= self.now), key=lambda entry: entry.due
        )
        for entry in due[:limit]:
            self._join(entry)
        return len(due[:limit])

    def expire(self) -> int:
        """Expire due messages; return their number."""
        due = [
            entry
            for entry in self.entries.values()
            if entry.state in ("ready", "delayed", "blocked")
            and entry.expires is not None
            and entry.expires <= self.now
        ]
        self.finish(due, "expired")
        return len(due)

    def forget_results(self) -> None:
        """Delete expired results."""
        self._results = {
            message_id: result
            for message_id, result in self._results.items()
            if result.forgotten_at > self.now
        }

    def reap(self, limit: int = 10_000) -> tuple[int, int]:
        """Return messages of expired claims; return how many are ready and dead."""
        back, died, left = 0, 0, limit
        for claim_id in sorted(
            claim_id for claim_id, claim in self.claims.items() if claim.until <= self.now
        ):
            if not left:
                break
            claim = self.claims[claim_id]
            taken, claim.entries = claim.entries[:left], claim.entries[left:]
            left -= len(taken)
            if not claim.entries:
                del self.claims[claim_id]
            error = "lease expired" if claim.worker is None else f"lease expired: {claim.worker}"
            _, held = self.end_cancelled(taken)
            dead = [entry for entry in held if entry.is_exhausted]
            for entry in (entry for entry in held if entry not in dead):
                entry.error = error
                self._queue_up(entry, FRONT)
            self.make_dead(dead, error)
            back, died = back + len(held) - len(dead), died + len(dead)
        return back, died

    def purge(self, *, include_dead: bool) -> int:
        """Purge waiting messages; return their number."""
        states = {"blocked", "ready", "delayed", *(["dead"] if include_dead else [])}
        gone = [entry for entry in self.entries.values() if entry.state in states]
        self.finish(gone, "cancelled")
        return len(gone)

    def _is_without_slot(self, entry: Entry) -> bool:
        """Return whether a message has no slot of its group, as the engine sees it."""
        joins_later = entry.state == "delayed" and entry.group and not entry.has_slot
        has_left = entry.state == "dead" and not entry.has_slot
        return bool(entry.state == "blocked" or joins_later or has_left)

    def _await(self, entry: Entry, predecessors: list[int]) -> str:
        """Let a message wait for its newest unfinished predecessor: waiting, free or failed."""
        while predecessors:
            newest = predecessors.pop()
            is_dead = self.state(newest) == "dead"
            if newest not in self.entries or (is_dead and entry.on_dead == "continue"):
                continue
            if is_dead and entry.on_dead == "fail":
                entry.error = f"predecessor {newest} is dead"
                return "failed"
            entry.state, entry.awaits, entry.remaining = "blocked", newest, predecessors
            return "waiting"
        return "free"

    def _fail(self, entries: Iterable[Entry]) -> None:
        """Make messages dead because of a dead predecessor."""
        for entry in entries:
            entry.state, entry.awaits, entry.died_at = "dead", None, self.now

    def _propagate(self, died: Iterable[Entry]) -> list[Entry]:
        """Apply on_predecessor_dead to successors; return those that fail."""
        failed = []
        for dead in died:
            waiting = [one for one in self._waiting(dead.message_id) if one.on_dead != "hold"]
            failed += self._unblock(waiting)
        return failed

    def _resume_successors(self, ended: Iterable[Entry]) -> None:
        """Resume the successors of these messages."""
        for entry in sorted(ended, key=lambda entry: entry.message_id):
            failed = self._unblock(self._waiting(entry.message_id))
            while failed:
                self._fail(failed)
                failed = self._propagate(failed)

    def _waiting(self, predecessor: int) -> list[Entry]:
        """Return the successors of a message, by id."""
        found = [
            entry
            for entry in self.entries.values()
            if entry.state == "blocked" and entry.awaits == predecessor
        ]
        return sorted(found, key=lambda entry: entry.message_id)

    def _unblock(self, waiting: Iterable[Entry]) -> list[Entry]:
        """Check what messages wait for, and resume them; return those that fail."""
        failed, free = [], []
        for entry in waiting:
            how = self._await(entry, [*entry.remaining, *([entry.awaits] if entry.awaits else [])])
            if how == "failed":
                failed.append(entry)
            if how != "free":
                continue
            entry.awaits = None
            if entry.due[0] > self.now:
                entry.state = "delayed"
            elif entry.group and not self._take_slot(entry.group):
                entry.state = "blocked"
            else:
                entry.has_slot = bool(entry.group)
                free.append(entry)
        for entry in free:
            self._queue_up(entry, TAIL if entry.group else FRONT)
        return failed

    def _delay(self, entry: Entry, seconds: float) -> None:
        if seconds == 0:
            self._join(entry)
            return
        entry.state = "delayed"
        entry.due = (self.now + seconds, self._count, entry.message_id)

    def _join(self, entry: Entry) -> None:
        """Make a message ready, unless it has to wait in its group."""
        if entry.group and not entry.has_slot:
            if not self._take_slot(entry.group):
                entry.state = "blocked"
                return
            entry.has_slot = True
        self._queue_up(entry, TAIL)

    def _take_slot(self, group: str) -> bool:
        """Take a slot of a group; return false if it is full."""
        slots = self._slots[group]
        free = [number for number in range(1, self.group_limit + 1) if number not in slots]
        if not free or len(slots) >= self.group_limit:
            return False
        slots.add(free[0])
        return True

    def _release_slots(self, ended: Iterable[Entry]) -> None:
        """Pass on the slots of ended messages, each group once per round."""
        left = sorted(entry.group for entry in ended if entry.group and entry.has_slot)
        for entry in ended:
            entry.has_slot = False
        while left:
            turn = sorted(set(left))
            self._pass_slots(turn)
            for group in turn:
                left.remove(group)

    def _pass_slots(self, groups: Iterable[str]) -> None:
        """Pass one slot of each group on, or delete it."""
        for group in groups:
            slots, waiting = self._slots[group], self._blocked(group)
            excess = [number for number in slots if number > self.group_limit]
            if excess and len(excess) < len(slots):
                slots.remove(min(excess))
            elif waiting:
                first = min(waiting, key=lambda entry: entry.message_id)
                first.has_slot = True
                self._queue_up(first, TAIL)
            else:
                slots.remove(max(slots))

    def _blocked(self, group: str | None = None) -> list[Entry]:
        """Return the messages that wait in a group, or in any."""
        return [
            entry
            for entry in self.entries.values()
            if entry.state == "blocked" and entry.awaits is None and group in (None, entry.group)
        ]

    def _queue_up(self, entry: Entry, end: int) -> None:
        entry.state = "ready"
        entry.position = (entry.priority, end, self._step())

    def _step(self) -> int:
        self._count += 1
        return self._count
