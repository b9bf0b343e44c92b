"""One queue in memory: the model of its messages' states, and their contents."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from rowq.contrib.testing.checks import check_message
from rowq.contrib.testing.model import Claim, Entry, ReferenceQueue
from rowq.engines.base import Row
from rowq.errors import InvalidArgument, StaleClaim

DEFAULTS: Mapping[str, Any] = {
    "lease_seconds": 30,
    "max_attempts": 10,
    "backoff_base_seconds": 5.0,
    "backoff_factor": 2.0,
    "backoff_cap_seconds": 3600.0,
    "backoff_jitter": 0.2,
    "archive_days": 0,
    "max_body_length": 1_048_576,
    "group_limit": 1,
    "group_after_dead": "continue",
    "group_pause_seconds": 0.0,
    "max_leased": 0,
    "rate_limit": 0,
    "rate_seconds": 1.0,
    "result_seconds": 0.0,
    "history_days": 0,
}
"""The settings of a queue that is created without any."""

_CONTENT = ("message_type", "headers", "body", "body_binary", "max_attempts")
_ERROR_CHARACTERS = 2000
_Ids = Sequence[int] | None


@dataclass(frozen=True)
class Content:
    """The content of a message; max_attempts: its own, None for the queue's."""

    message_type: str | None
    headers: dict[str, Any] | None
    body: str | None
    body_binary: bytes | None
    enqueued_at: datetime
    max_attempts: int | None
    producer_name: str | None


class Backoff(Sequence[float]):
    """The delays before further attempts, by number from 0, without jitter."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings

    def __len__(self) -> int:
        return int(self._settings["max_attempts"])

    def __getitem__(self, number: Any) -> Any:
        base, factor, cap = (
            self._settings[f"backoff_{name}"] for name in ("base_seconds", "factor", "cap_seconds")
        )
        try:
            return min(cap, base * factor**number)
        except OverflowError:
            return cap if base else 0.0


@dataclass
class StoredQueue:
    """A queue, its settings and messages; each method is the routine of its name.

    start: the time at which the model's clock is 0.
    """

    name: str
    start: datetime
    settings: dict[str, Any]
    model: ReferenceQueue = field(init=False)
    contents: dict[int, Content] = field(default_factory=dict)
    bindings: dict[str, re.Pattern[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make the model behave as PostgreSQL does if engines differ."""
        self.model = ReferenceQueue(
            self.settings["max_attempts"],
            Backoff(self.settings),
            always_runs_deferred=False,
            releases_slots_first=False,
        )
        self.alter(self.settings)

    @property
    def now(self) -> datetime:
        """The present time of the queue."""
        return self.time_of(self.model.now)

    def time_of(self, seconds: float) -> datetime:
        """Return a time of the model's clock."""
        return self.start + timedelta(seconds=seconds)

    def alter(self, settings: Mapping[str, Any]) -> None:
        """Change settings; None keeps the old value."""
        self.settings.update({key: value for key, value in settings.items() if value is not None})
        model = self.model
        model.max_attempts = self.settings["max_attempts"]
        model.result_seconds = self.settings["result_seconds"]
        dead_hold = self.settings["group_after_dead"] == "hold"
        model.set_groups(self.settings["group_limit"], dead_hold=dead_hold)
        for message_id, entry in model.entries.items():
            if self.contents[message_id].max_attempts is None:
                entry.allowed = model.max_attempts

    def is_bound(self, topic: str) -> bool:
        """Return whether the queue receives messages of a topic."""
        return any(pattern.fullmatch(topic) for pattern in self.bindings.values())

    def check(self, options: Mapping[str, Any]) -> None:
        """Refuse a message that the queue does not accept."""
        check_message(options, self.now, self.settings["max_body_length"])

    def enqueue(
        self, message_id: int, options: Mapping[str, Any], reserved: Mapping[str, int]
    ) -> tuple[int, str]:
        """Add a checked message, or return the owner of its dedup key; return id and outcome.

        reserved: the dedup keys of messages before it in its batch.
        """
        key = options.get("dedup_key")
        owner = self.model.owner_of(key)
        if key is not None:
            owner = reserved.get(key, owner)
        if owner is not None:
            return owner, "duplicate"
        delay = self._delay(options) or 0.0
        own_attempts = options.get("max_attempts")
        self.contents[message_id] = Content(
            options.get("message_type"),
            options.get("headers"),
            options.get("body"),
            options.get("body_binary"),
            self.now,
            own_attempts,
            options.get("producer_name"),
        )
        self.model.enqueue(
            message_id,
            options.get("priority", 5),
            delay,
            key,
            own_attempts,
            options.get("group_key"),
            options.get("predecessor_ids") or (),
            options.get("on_predecessor_dead"),
            options.get("message_type"),
            options.get("expire_seconds"),
        )
        return message_id, "enqueued"

    def dequeue(
        self, claim_id: int, batch_size: int, worker: str | None, lease: int | None
    ) -> list[Row]:
        """Lease messages; return the rows of dequeue_fast."""
        seconds = self.settings["lease_seconds"] if lease is None else lease
        taken = self.model.dequeue(claim_id, batch_size, seconds, worker)
        until = self.time_of(self.model.now + seconds)
        return [
            (
                claim_id,
                entry.message_id,
                entry.attempt,
                *self._envelope(entry.message_id),
                self.contents[entry.message_id].enqueued_at,
                until,
                entry.error,
            )
            for entry in taken
        ]

    def peek(self, max_messages: int) -> list[Row]:
        """Return the next ready messages."""
        return [
            (
                entry.message_id,
                entry.priority,
                entry.attempt,
                *self._envelope(entry.message_id),
                self.contents[entry.message_id].enqueued_at,
                entry.error,
            )
            for entry in self.model.ready_in_order()[:max_messages]
        ]

    def complete(self, claim_id: int, message_ids: _Ids, results: list[Any] | None) -> list[Row]:
        """Finish messages, with their results."""
        ids = self._ids(claim_id, message_ids)
        if results is not None:
            self.check_results(results, ids, is_named=message_ids is not None)
        taken = self.model.take(claim_id, ids)
        self.model.complete(taken, dict(zip(ids, results or (), strict=False)))
        return _outcomes(ids, {entry.message_id: "completed" for entry in taken})

    def retry_later(
        self, claim_id: int, message_ids: _Ids, delay: float | None, error: str | None
    ) -> list[Row]:
        """Return messages for another attempt; return ids, outcomes and due times."""
        ids = self._ids(claim_id, message_ids)
        cancelled, taken = self.model.end_cancelled(self.model.take(claim_id, ids))
        done = {entry.message_id: "cancelled" for entry in cancelled}
        done |= self.model.retry(taken, delay, _cut(error))
        entries = {entry.message_id: entry for entry in taken}
        return [
            (*row, self._next_attempt(entries[row[0]]) if row[1] == "retrying" else None)
            for row in _outcomes(ids, done)
        ]

    def fail_now(self, claim_id: int, message_ids: _Ids, error: str | None) -> list[Row]:
        """Make messages dead."""
        return self._return_messages(
            claim_id, message_ids, "dead", lambda taken: self.model.make_dead(taken, _cut(error))
        )

    def release(self, claim_id: int, message_ids: _Ids, delay: float | None) -> list[Row]:
        """Return messages without counting the attempt; return ids, outcomes and due times."""
        rows = self._return_messages(
            claim_id,
            message_ids,
            "snoozed" if delay else "released",
            lambda taken: self.model.release(taken, delay),
        )
        return [
            (*row, self._next_attempt(self.model.entries[row[0]]) if row[1] == "snoozed" else None)
            for row in rows
        ]

    def claim(self, claim_id: int) -> Claim:
        """Return a claim; raises StaleClaim."""
        if claim_id not in self.model.claims:
            raise StaleClaim(f"claim {claim_id} of queue {self.name} is gone")
        return self.model.claims[claim_id]

    def extend_lease(self, claim_id: int, seconds: int | None, progress: str | None) -> Row:
        """Extend a lease; return claim, end and cancelled ids."""
        claim = self.claim(claim_id)
        self.model.extend(claim_id, seconds or self.settings["lease_seconds"])
        if progress is not None:
            claim.progress = _cut(progress)
        return claim_id, self.time_of(claim.until), claim.cancels() or None

    def alter_message(self, message_id: int, changes: Mapping[str, Any]) -> Row:
        """Change a message; return id, outcome and due time."""
        expires = changes["expire_seconds"]
        self.check({**changes, "expire_seconds": expires or None})
        outcome = self.model.alter(
            message_id, changes["priority"], self._delay(changes), changes["expire_seconds"]
        )
        if outcome != "altered":
            return message_id, outcome, None
        entry, content = self.model.entries[message_id], self.contents[message_id]
        if changes["body"] is not None or changes["body_binary"] is not None:
            content = replace(content, body=None, body_binary=None)
        given = {name: changes[name] for name in _CONTENT if changes[name] is not None}
        self.contents[message_id] = replace(content, **given)
        if changes["max_attempts"] is not None:
            entry.allowed = changes["max_attempts"]
        is_later = entry.state == "delayed" or (entry.awaits and entry.due[0] > self.model.now)
        return message_id, outcome, self.time_of(entry.due[0]) if is_later else None

    def matcher(self, filters: Mapping[str, Any]) -> Callable[[Entry], bool]:
        """Return a predicate for messages that match the filters that are set."""
        options = {name: value for name, value in filters.items() if value is not None}

        def matches(entry: Entry) -> bool:
            content = self.contents[entry.message_id]
            headers = content.headers or {}
            found = {
                "message_type": content.message_type == options.get("message_type"),
                "group_key": entry.group == options.get("group_key"),
                "header_name": _header_text(headers.get(options.get("header_name", "")))
                == options.get("header_value"),
                "enqueued_before": content.enqueued_at < options.get("enqueued_before", self.now),
                "died_before": self.time_of(entry.died_at) < options.get("died_before", self.now),
            }
            return all(found[name] for name in options.keys() & found.keys())

        return matches

    def shift_due(self) -> int:
        """Make all delayed messages due now, in their order; return their number."""
        delayed = [entry for entry in self.model.entries.values() if entry.state == "delayed"]
        delayed.sort(key=lambda entry: entry.due)
        for position, entry in enumerate(delayed):
            entry.due = (min(entry.due[0], self.model.now), position, entry.message_id)
        return len(delayed)

    def stats(self) -> Row:
        """Return the row of queue_stats."""
        counts = self.model.counts()
        line = [
            self.contents[entry.message_id].enqueued_at for entry in self.model.ready_in_order()
        ]
        oldest = (self.now - min(line)).total_seconds() if line else None
        return (
            self.name,
            self.model.paused,
            *(counts[state] for state in ("ready", "delayed", "leased", "dead", "blocked")),
            oldest,
            *(self.settings[name] for name in DEFAULTS),
        )

    def details(self, message_id: int) -> list[Row]:
        """Return the row of get_message, or none if the message is unknown."""
        entry = self.model.entries.get(message_id)
        if entry is None:
            return []
        content = self.contents[message_id]
        claim_id, claim = self.holder(entry)
        is_dead = entry.state == "dead"
        row = (
            message_id,
            entry.state,
            entry.priority,
            entry.attempt,
            entry.allowed,
            *self._envelope(message_id),
            entry.key,
            content.enqueued_at,
            self.time_of(entry.due[0]) if entry.state == "delayed" else None,
            claim_id,
            claim.worker if claim else None,
            self.time_of(claim.until) if claim else None,
            self.time_of(entry.died_at) if is_dead else None,
            entry.error,
            entry.group,
            entry.awaits,
            None if entry.expires is None else self.time_of(entry.expires),
            claim.progress if claim else None,
            content.producer_name,
        )
        return [row]

    def result(self, message_id: int) -> list[Row]:
        """Return the row of get_result, or none if the message is unknown."""
        entry = self.model.entries.get(message_id)
        if entry and entry.state == "dead":
            return [(message_id, "dead", self.time_of(entry.died_at), None, entry.error)]
        if entry:
            return [(message_id, entry.state, None, None, None)]
        ended = self.model.ended(message_id)
        if ended is None:
            return []
        value = json.loads(json.dumps(ended.value))
        return [(message_id, ended.state, self.time_of(ended.ended_at), value, None)]

    def dead(self) -> list[Row]:
        """Return the rows of list_dead, by id."""
        return [
            (
                message_id,
                entry.priority,
                entry.attempt,
                self.contents[message_id].message_type,
                self.contents[message_id].enqueued_at,
                self.time_of(entry.died_at),
                entry.error,
            )
            for message_id, entry in sorted(self.model.entries.items())
            if entry.state == "dead"
        ]

    def delayed(self) -> list[Row]:
        """Return the rows of list_delayed, the next ones first."""
        rows = [
            (
                message_id,
                entry.priority,
                entry.attempt,
                self.contents[message_id].message_type,
                self.time_of(entry.due[0]),
                entry.error,
            )
            for message_id, entry in self.model.entries.items()
            if entry.state == "delayed"
        ]
        return sorted(rows, key=lambda row: (row[4], row[0]))

    def claims(self) -> list[Row]:
        """Return the rows of list_claims."""
        return [
            (
                self.name,
                claim_id,
                claim.worker,
                len(claim.entries),
                self.time_of(claim.until),
                claim.until - self.model.now,
            )
            for claim_id, claim in sorted(self.model.claims.items())
        ]

    def maintain(self) -> Row:
        """Maintain the queue; return the row of maintain."""
        expired = self.model.expire()
        promoted = self.model.promote()
        self.model.maintain_groups()
        reaped, died = self.model.reap()
        self.model.forget_results()
        return self.name, True, promoted, reaped, died, 0, 0, 0, expired

    def holder(self, entry: Entry) -> tuple[int | None, Claim | None]:
        """Return the claim that holds a message."""
        for claim_id, claim in self.model.claims.items():
            if entry in claim.entries:
                return claim_id, claim
        return None, None

    def _delay(self, options: Mapping[str, Any]) -> float | None:
        """Return the seconds until a message is due, None without delay_seconds and run_at."""
        run_at, delay = options.get("run_at"), options.get("delay_seconds")
        return delay if run_at is None else max((run_at - self.now).total_seconds(), 0.0)

    def _next_attempt(self, entry: Entry) -> datetime:
        """Return when a returned message is due: now, if it is ready."""
        return self.time_of(entry.due[0] if entry.state == "delayed" else self.model.now)

    def _envelope(self, message_id: int) -> tuple[Any, ...]:
        """Return type, headers and bodies, as a copy that the caller may change."""
        content = self.contents[message_id]
        headers = json.loads(json.dumps(content.headers))
        return content.message_type, headers, content.body, content.body_binary

    def _ids(self, claim_id: int, message_ids: _Ids) -> list[int]:
        """Return the messages that a call is about; raises StaleClaim."""
        if message_ids is not None:
            return list(dict.fromkeys(message_ids))
        return [entry.message_id for entry in self.claim(claim_id).entries]

    def check_results(self, results: list[Any], ids: Sequence[Any], *, is_named: bool) -> None:
        """Refuse results that complete would refuse."""
        if not self.settings["result_seconds"]:
            raise InvalidArgument("the queue does not keep results: result_seconds is 0")
        if not is_named and len(ids) > 1:
            raise InvalidArgument(
                "results without message_ids requires a claim of exactly one message"
            )
        if len(results) != len(ids):
            raise InvalidArgument("results must have a value for each of message_ids")

    def _return_messages(
        self,
        claim_id: int,
        message_ids: _Ids,
        outcome: str,
        does: Callable[[Iterable[Entry]], None],
    ) -> list[Row]:
        ids = self._ids(claim_id, message_ids)
        cancelled, taken = self.model.end_cancelled(self.model.take(claim_id, ids))
        does(taken)
        done = {entry.message_id: "cancelled" for entry in cancelled}
        return _outcomes(ids, done | {entry.message_id: outcome for entry in taken})


def _outcomes(ids: Iterable[int], done: Mapping[int, str]) -> list[Row]:
    return [(message_id, done.get(message_id, "stale")) for message_id in ids]


def _cut(text: str | None) -> str | None:
    return None if text is None else text[:_ERROR_CHARACTERS]


def _header_text(value: Any) -> str | None:
    """Return a header as a filter writes it, None for what equals no filter."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return value if isinstance(value, str) else None
