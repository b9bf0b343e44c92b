"""Queues with messages in every state, all alike, and snapshots of their contents."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rowq import Message, NewMessage, Queue, QueueNotFound
from rowq.arguments import plain_arguments
from rowq.contract import Routine, load_contract
from rowq.engines import engine_for_connection
from tests.concurrency.history import Recorder
from tests.engines.base import Connection
from tests.helpers.dialects import dialect_of
from tests.stored_times import pass_seconds

LEASE_SECONDS = 600
SCHEDULE = "prepared"
DAYS_AGO = 3 * 86_400


class Prepared:
    """One queue and its history.

    topic: bound to it by a wider pattern, if the engine has topics.
    archive_days: some of its finished messages are older than one day. Its schedule is paused.
    ids: its messages in the order of enqueueing. claim_id: a claim that holds some of them.
    """

    def __init__(self, connection: Connection, name: str, archive_days: int) -> None:
        self.name = name
        self.topic = f"of.{re.sub(r'[^A-Za-z0-9]', '_', name)}"
        self.recorder = Recorder()
        self.ids: list[int] = []
        self._queue = Queue(connection)
        routines = load_contract().of(engine_for_connection(connection).name)
        self._queue.create_queue(
            name,
            archive_days=archive_days,
            lease_seconds=LEASE_SECONDS,
            backoff_base_seconds=0,
            result_seconds=9 * DAYS_AGO if "get_result" in routines else None,
            history_days=27 if "get_history" in routines else None,
        )
        if "bind_topic" in routines:
            self._queue.bind_topic(name, f"{self.topic}.#")
        self._send(NewMessage(), count=6)
        self._finish("complete", 2)
        self._finish("fail_now", 2)
        self.lease(2)
        self._send(NewMessage(delay_seconds=1), count=2)
        start = self.recorder.clock()
        pass_seconds(connection, name, DAYS_AGO)
        self.recorder.record(start, "judge", "expire")
        self._queue.archive(name)
        if "report_worker" in routines:
            self._queue.report_worker(name, "probe")
        self._queue.create_schedule(name, SCHEDULE, interval_seconds=3600)
        self._queue.alter_schedule(name, SCHEDULE, is_paused=True)
        self._send(NewMessage(dedup_key="taken"), count=1)
        self._send(NewMessage(priority=3), count=7)
        self._send(NewMessage(delay_seconds=2 * DAYS_AGO), count=2)
        self._finish("complete", 2)
        self.claim_id = self.lease(3)[0].claim_id
        self.take_census(connection)

    def use(self, connection: Connection) -> None:
        """Continue in another session."""
        self._queue = Queue(connection)

    def arguments(self, routine: Routine) -> dict[str, Any]:
        """Return arguments for a routine: the required ones, and those that make it do more."""
        is_made = routine.name == "create_queue"
        required = plain_arguments(routine, _new(self.name) if is_made else self.name)
        inputs = {one.name for one in routine.parameters if one.direction == "in"}
        own = {name: value(self) for name, value in REQUIRED.items() if name in required}
        more = {name: value for name, value in PASSED.items() if name in inputs}
        match routine.name:
            case "create_schedule":
                own["schedule_name"] = "new"
            case "get_history":
                own["message_id"] = self.ids[0]
            case "release":
                more["delay_seconds"] = 900
            case "find_message":
                more["dedup_key"] = "taken"
            case "unbind_topic":
                own["topic_pattern"] = f"{self.topic}.#"
            case "publish_batch":
                own["messages"] = [one | {"topic": self.topic} for one in own["messages"]]
        return required | own | more

    def take_census(self, connection: Connection) -> None:
        """Record the state of every message."""
        start = self.recorder.clock()
        found = dialect_of(connection).census(connection, self.name)
        self.recorder.record(start, "judge", "census", None, found)

    def _send(self, message: NewMessage, count: int) -> None:
        start = self.recorder.clock()
        sent = self._queue.enqueue_batch(self.name, [message] * count)
        made = [(result.message_id, message.priority) for result in sent]
        self.recorder.record(start, "producer", "enqueue", None, made)
        self.ids += [message_id for message_id, _ in made]

    def lease(self, count: int) -> list[Message]:
        """Lease messages and record it."""
        start = self.recorder.clock()
        messages = self._queue.dequeue_fast(self.name, count)
        if not messages:
            return []
        leased = [(message.message_id, message.attempt) for message in messages]
        claim_id = messages[0].claim_id
        self.recorder.record(
            start, "worker", "dequeue", claim_id, leased, lease_seconds=LEASE_SECONDS
        )
        return messages

    def _finish(self, how: str, count: int) -> None:
        claim_id = self.lease(count)[0].claim_id
        start = self.recorder.clock()
        rows = getattr(self._queue, how)(self.name, claim_id)
        results = [(outcome.message_id, outcome.outcome) for outcome in rows]
        self.recorder.record(start, "worker", how, claim_id, results)


REQUIRED: Mapping[str, Callable[[Prepared], Any]] = {
    "claim_id": lambda own: own.claim_id,
    "message_id": lambda own: own.ids[-1],
    "message_ids": lambda own: own.ids,
    "topic": lambda own: own.topic,
    "topic_pattern": lambda own: own.topic,
    "messages": lambda _: [{"body": "new", "dedup_key": "new"}, {"delay_seconds": 900}, {}],
    "schedule_name": lambda _: SCHEDULE,
    "worker_id": lambda _: "probe",
}
"""Arguments for parameters without a default; others get a plain value of their type."""
PASSED: Mapping[str, Any] = {
    "body": "new",
    "dedup_key": "new",
    "lease_seconds": 2 * LEASE_SECONDS,
    "force": True,
    "include_dead": True,
    "wait_seconds": 1.0,
    "cron": "0 0 1 1 *",
    "include_leased": True,
    "enqueued_before": datetime(2100, 1, 1, tzinfo=UTC),
}
"""Arguments that are passed although the parameters have defaults."""


SEEN = {"message", "dead", "dedup", "archive", "result", "history", "topic_binding"}
"""Tables whose rows a picture counts, if the engine has them."""


@dataclass(frozen=True)
class Picture:
    """A picture of a queue: settings, schedules, rows by table, states of its messages by place.

    created: the settings of the queue that create_queue makes.
    Messages that are not in Prepared.ids have places from len(ids) on, in no special order.
    """

    settings: Mapping[str, Any] | None
    created: Mapping[str, Any] | None
    schedules: Mapping[str, Any]
    rows: Mapping[str, int]
    states: tuple[str, ...]

    @staticmethod
    def of(connection: Connection, prepared: Prepared) -> Picture:
        """Read the queue; no other session uses it."""
        dialect, name = dialect_of(connection), prepared.name
        found = [*dialect.census(connection, name), *dialect.finished(connection, name)]
        twice = [
            message_id
            for message_id, times in Counter(message_id for message_id, _ in found).items()
            if times > 1
        ]
        assert not twice, f"messages in two places: {twice} of {found}"
        states = dict(found)
        new = sorted(states[message_id] for message_id in states.keys() - set(prepared.ids))
        stored = dialect.stored(connection, name)
        return Picture(
            settings=_settings(connection, name),
            created=_settings(connection, _new(name)),
            schedules=_schedules(connection, name),
            rows={table: stored[table] for table in SEEN & stored.keys()},
            states=(*(states.get(message_id, "gone") for message_id in prepared.ids), *new),
        )

    def is_between(self, before: Picture, after: Picture) -> bool:
        """Return whether each message is in its state before or after, and nothing else changed."""
        places = zip(self.states, before.states, after.states, strict=True)
        return (self.settings, self.schedules) == (before.settings, before.schedules) and all(
            now in {then, later} for now, then, later in places
        )


def _new(name: str) -> str:
    """Return the name of the queue that create_queue makes."""
    return f"{name} new"


def _settings(connection: Connection, name: str) -> dict[str, Any] | None:
    try:
        (row,) = Queue(connection).queue_stats(name)
    except QueueNotFound:
        return None
    counted = ("queue_name", "oldest_ready_seconds", "ready", "delayed", "leased", "dead")
    return {name: getattr(row, name) for name in row.__slots__ if name not in counted}


def _schedules(connection: Connection, name: str) -> dict[str, Any]:
    try:
        rows = Queue(connection).list_schedules(name)
    except QueueNotFound:
        return {}
    return {row.schedule_name: (row.cron, row.interval_seconds, row.is_paused) for row in rows}
