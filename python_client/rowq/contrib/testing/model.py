"""A queue in plain Python that does what the contract says, for one session at a time.

It knows where each message is and nothing of what is in it: memory.py adds that. rowq's tests
compare it with every engine, call by call (tests/concurrency/test_against_reference.py).

Time stands still in it until somebody adds to `now`, which is in seconds; the order of calls
decides between equal moments.
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
    """A message and where it is; place orders the ready ones, due the delayed ones.

    has_token: whether it is one of those of its group that may be in work.
    awaits: the message that it waits for, None for its group; rest: others that it may wait for.
    expires: when it is withdrawn. is_cancelled: whether its worker is told to give it back.
    died_at: when it was declared dead.
    """

    message_id: int
    priority: int
    allowed: int
    key: str | None = None
    group: str | None = None
    has_token: bool = False
    state: str = "ready"
    attempt: int = 0
    error: str | None = None
    place: tuple[int, int, int] = (0, 0, 0)
    due: tuple[float, int, int] = (0, 0, 0)
    awaits: int | None = None
    rest: list[int] = field(default_factory=list)
    on_dead: str = "hold"
    message_type: str | None = None
    expires: float | None = None
    is_cancelled: bool = False
    died_at: float = 0.0


@dataclass
class Claim:
    """A claim and the messages it holds, in the order of delivery."""

    until: float
    worker: str | None = None
    progress: str | None = None
    entries: list[Entry] = field(default_factory=list)

    def cancels(self) -> list[int]:
        """Return the messages that were cancelled meanwhile."""
        return [entry.message_id for entry in self.entries if entry.is_cancelled]


class Result(NamedTuple):
    """How a message has ended; forgotten_at: when the queue keeps it no longer."""

    state: str
    value: object
    forgotten_at: float
    ended_at: float


class ReferenceQueue:
    """One queue. Message and claim ids are given by the engine that is compared with this.

    backoff: the delay before each further attempt, by its number from 0.
    always_rechecks: whether each dequeue that finds nothing looks at the groups that may have more
    in work, and not only one that has promoted nothing, after maintain has met such a group.
    leaves_groups_first: whether messages that end together leave their groups before anybody goes
    on who has waited for one of them; else who has waited for one without a token goes on first.
    result_seconds: how long it is kept how a message has ended, 0 for not at all.
    """

    def __init__(
        self,
        max_attempts: int,
        backoff: Sequence[float],
        *,
        always_rechecks: bool,
        leaves_groups_first: bool,
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
        self._tokens: defaultdict[str, set[int]] = defaultdict(set)
        self._hints: list[str] = []
        self._dequeues_recheck = False
        self._always_rechecks = always_rechecks
        self._leaves_groups_first = leaves_groups_first
        self._count = 0

    def state(self, message_id: int) -> str | None:
        """Return where a message is, None once it is finished."""
        entry = self.entries.get(message_id)
        return entry.state if entry else None

    def result(self, message_id: int) -> tuple[str, object] | None:
        """Return the state of a message and its result, None for one that is not known."""
        state = self.state(message_id)
        if state is None and (ended := self.ended(message_id)):
            return ended.state, ended.value
        return None if state is None else (state, None)

    def ended(self, message_id: int) -> Result | None:
        """Return how a message has ended, None where that is not kept."""
        return self._results.get(message_id)

    def counts(self) -> dict[str, int]:
        """Return the number of messages by state."""
        states = [entry.state for entry in self.entries.values()]
        return {state: states.count(state) for state in STATES}

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
        """Take a message that is no duplicate."""
        entry = Entry(message_id, priority, allowed or self.max_attempts, key, group)
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
            self._hints += sorted(waiting)
        self.group_limit, self.dead_hold_groups = limit, dead_hold

    def keep_groups(self) -> int:
        """Do what maintain does for groups; from the first hint on, dequeues do so, too."""
        self._dequeues_recheck = self._dequeues_recheck or bool(self._hints)
        return self.recheck()

    def recheck(self, limit: int = 1000) -> int:
        """Give groups whose limit was raised more messages in work; return how many were seen."""
        seen, self._hints = self._hints[:limit], self._hints[limit:]
        for group in seen:
            while self._blocked(group) and self._enter(group):
                self._leave([group])
        return len(seen)

    def dequeue(
        self, claim_id: int, batch_size: int, lease: int, worker: str | None = None
    ) -> list[Entry]:
        """Lease up to batch_size messages to a claim of this number."""
        if self.paused:
            return []
        if not self.line():
            may_look = self.promote(batch_size) == 0 and self._dequeues_recheck
            if may_look or self._always_rechecks:
                self.recheck(10)
        taken = self.line()[:batch_size]
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
        """Forget messages that have done, and keep what came out."""
        self.finish(entries, "completed", results)

    def end_cancelled(self, entries: Iterable[Entry]) -> tuple[list[Entry], list[Entry]]:
        """Withdraw those that were cancelled in their worker's hands; return them, and the rest."""
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
        """Forget messages."""
        gone = list(entries)
        if self.result_seconds:
            forgotten = self.now + self.result_seconds
            for entry in gone:
                value = results.get(entry.message_id)
                self._results[entry.message_id] = Result(state, value, forgotten, self.now)
        first = [] if self._leaves_groups_first else gone
        outside = [entry for entry in first if self._is_outside(entry)]
        for entry in gone:
            del self.entries[entry.message_id]
        self._free(outside)
        self._let_go(gone)
        self._free(entry for entry in gone if entry not in outside)

    def retry(
        self, entries: Iterable[Entry], delay: float | None, error: str | None
    ) -> dict[int, str]:
        """Delay messages, or bury them; return what was done with each."""
        outcomes = {}
        died: list[Entry] = []
        self._step()
        for entry in entries:
            if entry.attempt >= entry.allowed:
                outcomes[entry.message_id] = "dead"
                died.append(entry)
                continue
            entry.error = error
            wait = self.backoff[entry.attempt - 1] if delay is None else delay
            self._delay(entry, wait)
            outcomes[entry.message_id] = "retrying"
        self.bury(died, error)
        return outcomes

    def bury(self, entries: Iterable[Entry], error: str | None) -> None:
        """Make messages dead."""
        died = list(entries)
        for entry in died:
            entry.state, entry.error, entry.died_at = "dead", error, self.now
        if not self.dead_hold_groups:
            self._let_go(died)
        while died:
            died = self._follow(died)
            self._fail(died)

    def release(self, entries: Iterable[Entry]) -> None:
        """Give messages back to the front without the attempt."""
        for entry in entries:
            entry.attempt -= 1
            self._queue_up(entry, FRONT)

    def extend(self, claim_id: int, lease: int) -> None:
        """Lengthen a lease."""
        claim = self.claims[claim_id]
        claim.until = max(claim.until, self.now + lease)

    def cancel(self, message_ids: Iterable[int], *, include_leased: bool) -> dict[int, str]:
        """Withdraw messages, or note it for their worker; return what was done with each."""
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
        self, is_meant: Callable[[Entry], bool], after: int, limit: int
    ) -> tuple[int, int | None]:
        """Withdraw messages that are meant; return how many, and the last that was looked at."""
        seen = sorted(message_id for message_id in self.entries if message_id > after)[:limit]
        wanted = [
            self.entries[message_id]
            for message_id in seen
            if self.state(message_id) != "leased" and is_meant(self.entries[message_id])
        ]
        self.finish(wanted, "cancelled")
        return len(wanted), seen[-1] if len(seen) == limit else None

    def dead(self, limit: int, is_meant: Callable[[Entry], bool] = lambda _: True) -> list[int]:
        """Return the oldest dead messages of those that are meant."""
        return sorted(
            message_id
            for message_id, entry in self.entries.items()
            if entry.state == "dead" and is_meant(entry)
        )[:limit]

    def reset(self, message_ids: Iterable[int]) -> dict[int, str]:
        """Make dead messages ready; return what was done."""
        outcomes = {}
        for message_id in message_ids:
            entry = self.entries.get(message_id)
            if entry is None or entry.state != "dead":
                outcomes[message_id] = "not_found"
            elif self.holder(entry.key) is None:
                entry.attempt = 0
                self._join(entry)
                outcomes[message_id] = "reset"
            else:
                outcomes[message_id] = "duplicate"
        return outcomes

    def discard(self, message_ids: Iterable[int]) -> int:
        """Forget dead messages; return how many there were."""
        dead = [message_id for message_id in message_ids if self.state(message_id) == "dead"]
        self.finish((self.entries[message_id] for message_id in dead), "cancelled")
        return len(dead)

    def promote(self, limit: int = 1000) -> int:
        """Make delayed messages ready whose time has come."""
        delayed = [entry for entry in self.entries.values() if entry.state == "delayed"]
        due = sorted(
            (entry for entry in delayed if entry.due[0] <= self.now), key=lambda entry: entry.due
        )
        for entry in due[:limit]:
            self._join(entry)
        return len(due[:limit])

    def expire(self) -> int:
        """Withdraw what has waited for too long; return how many there were."""
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
        """Forget how messages have ended that have been kept for long enough."""
        self._results = {
            message_id: result
            for message_id, result in self._results.items()
            if result.forgotten_at > self.now
        }

    def reap(self) -> tuple[int, int]:
        """Take back what expired claims hold; return how many are ready, and dead."""
        back, died = 0, 0
        for claim_id in sorted(
            claim_id for claim_id, claim in self.claims.items() if claim.until <= self.now
        ):
            claim = self.claims.pop(claim_id)
            error = "lease expired" if claim.worker is None else f"lease expired: {claim.worker}"
            _, held = self.end_cancelled(claim.entries)
            dead = [entry for entry in held if entry.attempt >= entry.allowed]
            for entry in (entry for entry in held if entry not in dead):
                entry.error = error
                self._queue_up(entry, FRONT)
            self.bury(dead, error)
            back, died = back + len(held) - len(dead), died + len(dead)
        return back, died

    def purge(self, *, include_dead: bool) -> int:
        """Forget what waits."""
        states = {"blocked", "ready", "delayed", *(["dead"] if include_dead else [])}
        gone = [entry for entry in self.entries.values() if entry.state in states]
        self.finish(gone, "cancelled")
        return len(gone)

    def _is_outside(self, entry: Entry) -> bool:
        """Whether a message that is withdrawn has no token of its group, as the engine sees it."""
        joins_later = entry.state == "delayed" and entry.group and not entry.has_token
        has_left = entry.state == "dead" and not entry.has_token
        return bool(entry.state == "blocked" or joins_later or has_left)

    def _await(self, entry: Entry, predecessors: list[int]) -> str:
        """Let a message wait for the newest that has not ended; return waiting, free or failed."""
        while predecessors:
            newest = predecessors.pop()
            is_dead = self.state(newest) == "dead"
            if newest not in self.entries or (is_dead and entry.on_dead == "continue"):
                continue
            if is_dead and entry.on_dead == "fail":
                entry.error = f"predecessor {newest} is dead"
                return "failed"
            entry.state, entry.awaits, entry.rest = "blocked", newest, predecessors
            return "waiting"
        return "free"

    def _fail(self, entries: Iterable[Entry]) -> None:
        """Make messages dead that wait for a dead one."""
        for entry in entries:
            entry.state, entry.awaits, entry.died_at = "dead", None, self.now

    def _follow(self, died: Iterable[Entry]) -> list[Entry]:
        """Do to what waits for dead messages what it asked for; return those that die, too."""
        failed = []
        for dead in died:
            waiting = [one for one in self._waiting(dead.message_id) if one.on_dead != "hold"]
            failed += self._go_on(waiting)
        return failed

    def _free(self, ended: Iterable[Entry]) -> None:
        """Let the messages go on that have waited for these."""
        for entry in sorted(ended, key=lambda entry: entry.message_id):
            failed = self._go_on(self._waiting(entry.message_id))
            while failed:
                self._fail(failed)
                failed = self._follow(failed)

    def _waiting(self, predecessor: int) -> list[Entry]:
        """Return the messages that wait for another one."""
        found = [
            entry
            for entry in self.entries.values()
            if entry.state == "blocked" and entry.awaits == predecessor
        ]
        return sorted(found, key=lambda entry: entry.message_id)

    def _go_on(self, waiting: Iterable[Entry]) -> list[Entry]:
        """Look again what messages wait for; return those that fail."""
        failed, free = [], []
        for entry in waiting:
            how = self._await(entry, [*entry.rest, *([entry.awaits] if entry.awaits else [])])
            if how == "failed":
                failed.append(entry)
            if how != "free":
                continue
            entry.awaits = None
            if entry.due[0] > self.now:
                entry.state = "delayed"
            elif entry.group and not self._enter(entry.group):
                entry.state = "blocked"
            else:
                entry.has_token = bool(entry.group)
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
        if entry.group and not entry.has_token:
            if not self._enter(entry.group):
                entry.state = "blocked"
                return
            entry.has_token = True
        self._queue_up(entry, TAIL)

    def _enter(self, group: str) -> bool:
        """Take a token of a group."""
        tokens = self._tokens[group]
        free = [number for number in range(1, self.group_limit + 1) if number not in tokens]
        if not free or len(tokens) >= self.group_limit:
            return False
        tokens.add(free[0])
        return True

    def _let_go(self, ended: Iterable[Entry]) -> None:
        """Pass on the tokens of messages that have ended, each group once a round."""
        left = sorted(entry.group for entry in ended if entry.group and entry.has_token)
        for entry in ended:
            entry.has_token = False
        while left:
            turn = sorted(set(left))
            self._leave(turn)
            for group in turn:
                left.remove(group)

    def _leave(self, groups: Iterable[str]) -> None:
        """Pass one token of each group on, or give it back."""
        for group in groups:
            tokens, waiting = self._tokens[group], self._blocked(group)
            surplus = [number for number in tokens if number > self.group_limit]
            if surplus and len(surplus) < len(tokens):
                tokens.remove(min(surplus))
            elif waiting:
                first = min(waiting, key=lambda entry: entry.message_id)
                first.has_token = True
                self._queue_up(first, TAIL)
            else:
                tokens.remove(max(tokens))

    def _blocked(self, group: str | None = None) -> list[Entry]:
        """Return the messages that wait in a group, or in any."""
        return [
            entry
            for entry in self.entries.values()
            if entry.state == "blocked" and entry.awaits is None and group in (None, entry.group)
        ]

    def _queue_up(self, entry: Entry, end: int) -> None:
        entry.state = "ready"
        entry.place = (entry.priority, end, self._step())

    def _step(self) -> int:
        self._count += 1
        return self._count
