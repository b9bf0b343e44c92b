"""The routines of the contract on queues in memory: one method each, with its rows as result.

Arguments come checked (checks.py), as keyword arguments in the contract's Python types.
"""

import base64
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from typing import Any

from rowq.arguments import check_argument
from rowq.contrib.testing.checks import check_message, check_topic, topic_matcher
from rowq.contrib.testing.explain import explain
from rowq.contrib.testing.stored import DEFAULTS, StoredQueue
from rowq.engines.base import Row
from rowq.errors import InvalidArgument, QueueNotEmpty, QueueNotFound, StaleClaim
from rowq.options import MessageOptions

_LACKING = ("archive_days", "group_pause_seconds", "history_days", "max_leased", "rate_limit")
"""Settings that the model does not know."""

_KNOWN = {
    *("message_type", "headers", "priority", "delay_seconds", "run_at", "dedup_key"),
    *("max_attempts", "group_key", "predecessor_ids", "on_predecessor_dead", "expire_seconds"),
    "producer_name",
}
"""Options of a message that the model knows."""

_Ids = Sequence[int] | None


class Queues:
    """The queues by name, their common counters and clock."""

    def __init__(self) -> None:
        self.by_name: dict[str, StoredQueue] = {}
        self.claim_ids = count(1)
        self._newest_message = 0
        self._start = datetime.now(UTC)
        self._passed = 0.0

    @property
    def now(self) -> datetime:
        """The present time."""
        return datetime.fromtimestamp(self._start.timestamp() + self._passed, UTC)

    def pass_seconds(self, seconds: float) -> None:
        """Let time pass."""
        self._passed += seconds
        for queue in self.by_name.values():
            queue.model.now = self._passed

    def make(self, name: str, settings: Mapping[str, Any]) -> None:
        """Create a queue."""
        queue = StoredQueue(name, self._start, dict(DEFAULTS))
        queue.model.now = self._passed
        queue.alter(settings)
        self.by_name[name] = queue

    def require(self, name: str) -> StoredQueue:
        """Return a queue; raises QueueNotFound."""
        if name not in self.by_name:
            raise QueueNotFound(f'queue "{name}" does not exist')
        return self.by_name[name]

    def some(self, name: str | None) -> list[StoredQueue]:
        """Return one queue, or all in the order of their names."""
        if name is not None:
            return [self.require(name)]
        return [self.by_name[one] for one in sorted(self.by_name)]

    def bound(self, topic: str) -> list[StoredQueue]:
        """Return the queues that receive messages of a topic."""
        return [queue for queue in self.some(None) if queue.is_bound(topic)]

    def next_message(self) -> int:
        """Return the id of the next message."""
        self._newest_message += 1
        return self._newest_message

    def check_predecessors(self, ids: _Ids) -> None:
        """Refuse messages that are not there yet."""
        if any(message_id > self._newest_message for message_id in ids or ()):
            raise InvalidArgument("predecessor_ids must name existing messages")


class Routines:
    """The routines that a MemoryQueue has."""

    def __init__(self) -> None:
        self.queues = Queues()

    # admin

    def create_queue(self, queue_name: str, **settings: Any) -> list[Row]:
        """Create a queue."""
        _refuse_lacking(settings)
        if queue_name in self.queues.by_name:
            return [(queue_name, "exists")]
        self.queues.make(queue_name, settings)
        return [(queue_name, "created")]

    def alter_queue(self, queue_name: str, **settings: Any) -> list[Row]:
        """Change settings."""
        _refuse_lacking(settings)
        self.queues.require(queue_name).alter(settings)
        return [(queue_name, "altered")]

    def drop_queue(self, queue_name: str, force: bool | None) -> list[Row]:
        """Remove a queue."""
        if self.queues.require(queue_name).model.entries and not force:
            raise QueueNotEmpty(
                f'queue "{queue_name}" has messages or an archive; use force to drop them'
            )
        del self.queues.by_name[queue_name]
        return [(queue_name, "dropped")]

    def pause_queue(self, queue_name: str) -> list[Row]:
        """Stop delivery."""
        self.queues.require(queue_name).model.paused = True
        return [(queue_name, "paused")]

    def resume_queue(self, queue_name: str) -> list[Row]:
        """Start delivery."""
        self.queues.require(queue_name).model.paused = False
        return [(queue_name, "resumed")]

    def bind_topic(self, queue_name: str, topic_pattern: str) -> list[Row]:
        """Bind a pattern."""
        bindings = self.queues.require(queue_name).bindings
        outcome = "exists" if topic_pattern in bindings else "bound"
        bindings[topic_pattern] = topic_matcher(topic_pattern)
        return [(queue_name, topic_pattern, outcome)]

    def unbind_topic(self, queue_name: str, topic_pattern: str) -> list[Row]:
        """Unbind a pattern."""
        topic_matcher(topic_pattern)
        found = self.queues.require(queue_name).bindings.pop(topic_pattern, None)
        return [(queue_name, topic_pattern, "unbound" if found else "not_bound")]

    def purge_queue(
        self, queue_name: str, include_dead: bool | None, max_messages: int | None
    ) -> list[Row]:
        """Purge waiting messages."""
        if max_messages is not None:
            raise NotImplementedError("a MemoryQueue has no max_messages of purge_queue")
        model = self.queues.require(queue_name).model
        return [(model.purge(include_dead=bool(include_dead)),)]

    # produce

    def enqueue(self, queue_name: str, **options: Any) -> list[Row]:
        """Enqueue one message."""
        _refuse_unknown(options)
        queue = self.queues.require(queue_name)
        queue.check(options)
        self.queues.check_predecessors(options["predecessor_ids"])
        return [queue.enqueue(self.queues.next_message(), options, {})]

    def enqueue_batch(self, queue_name: str, messages: list[dict[str, Any]]) -> list[Row]:
        """Enqueue messages, all or none."""
        queue = self.queues.require(queue_name)
        batch = [_message_of(entry) for entry in messages]
        for position, options in enumerate(batch, 1):
            queue.check(options)
            self.queues.check_predecessors(options.get("predecessor_ids"))
            if any(not 0 < one < position for one in options.get("predecessor_positions", ())):
                raise InvalidArgument(
                    "predecessor_positions must be a list of earlier positions in the batch"
                )
        rows: list[Row] = []
        reserved: dict[str, int] = {}
        for position, options in enumerate(batch, 1):
            named = [rows[one - 1][1] for one in options.get("predecessor_positions", ())]
            whole = options | {"predecessor_ids": [*options.get("predecessor_ids", ()), *named]}
            row = queue.enqueue(self.queues.next_message(), whole, reserved)
            rows.append((position, *row))
            if options.get("dedup_key") is not None:
                reserved.setdefault(options["dedup_key"], row[0])
        return rows

    def publish(self, topic: str, **options: Any) -> list[Row]:
        """Publish a message to each bound queue."""
        _refuse_unknown(options)
        check_topic(topic)
        check_message(options, self.queues.now, None)
        bound = self.queues.bound(topic)
        for queue in bound:
            queue.check(options)
        whole = options | {"message_type": options["message_type"] or topic}
        return [
            (queue.name, *queue.enqueue(self.queues.next_message(), whole, {})) for queue in bound
        ]

    def publish_batch(self, messages: list[dict[str, Any]]) -> list[Row]:
        """Publish messages, all or none."""
        batch = [_message_of(entry) for entry in messages]
        by_queue: dict[str, list[tuple[int, dict[str, Any]]]] = {}
        for position, options in enumerate(batch, 1):
            if options.keys() & {"predecessor_ids", "predecessor_positions", "on_predecessor_dead"}:
                raise InvalidArgument("a published message must not have predecessors")
            topic = options.get("topic") or ""
            check_topic(topic)
            check_message(options, self.queues.now, None)
            for queue in self.queues.bound(topic):
                queue.check(options)
                whole = {"message_type": topic} | options
                by_queue.setdefault(queue.name, []).append((position, whole))
        rows: list[Row] = []
        for name, wanted in sorted(by_queue.items()):
            reserved: dict[str, int] = {}
            for position, options in wanted:
                row = self.queues.by_name[name].enqueue(
                    self.queues.next_message(), options, reserved
                )
                rows.append((position, name, *row))
                if options.get("dedup_key") is not None:
                    reserved.setdefault(options["dedup_key"], row[0])
        return rows

    # consume

    def dequeue_fast(
        self,
        queue_name: str,
        batch_size: int,
        worker_name: str | None,
        lease_seconds: int | None,
    ) -> list[Row]:
        """Lease messages."""
        queue = self.queues.require(queue_name)
        return queue.dequeue(next(self.queues.claim_ids), batch_size, worker_name, lease_seconds)

    def dequeue_wait(self, wait_seconds: float, **options: Any) -> list[Row]:  # noqa: ARG002
        """Lease messages, as JSON."""
        names = (
            *("claim_id", "message_id", "attempt", "message_type", "headers", "body"),
            *("body_binary", "enqueued_at", "lease_until", "last_error"),
        )
        answer = [dict(zip(names, row, strict=True)) for row in self.dequeue_fast(**options)]
        for message in answer:
            if message["body_binary"] is not None:
                message["body_binary"] = base64.b64encode(message["body_binary"]).decode()
            for name in ("enqueued_at", "lease_until"):
                message[name] = message[name].isoformat()
        return [(answer or None,)]

    def peek(self, queue_name: str, max_messages: int) -> list[Row]:
        """Return the next ready messages."""
        return self.queues.require(queue_name).peek(max_messages)

    def complete(
        self,
        queue_name: str,
        claim_id: int,
        message_ids: _Ids,
        results: list[Any] | None,
    ) -> list[Row]:
        """Finish messages."""
        return self.queues.require(queue_name).complete(claim_id, message_ids, results)

    def complete_and_dequeue(
        self,
        queue_name: str,
        claim_id: int,
        message_ids: _Ids,
        results: list[Any] | None,
        **options: Any,
    ) -> list[Row]:
        """Finish messages, and lease others."""
        try:
            outcomes = self.complete(queue_name, claim_id, message_ids, results)
        except StaleClaim:
            if results is not None:
                self.queues.require(queue_name).check_results(results, [None], is_named=False)
            outcomes = [(None, "stale")]
        stale: list[Row] = [
            ("stale", claim_id, message_id, *[None] * 8)
            for message_id, outcome in outcomes
            if outcome == "stale"
        ]
        return stale + [("leased", *row) for row in self.dequeue_fast(queue_name, **options)]

    def retry_later(
        self,
        queue_name: str,
        claim_id: int,
        message_ids: _Ids,
        delay_seconds: float | None,
        error: str | None,
    ) -> list[Row]:
        """Return messages for another attempt."""
        queue = self.queues.require(queue_name)
        return queue.retry_later(claim_id, message_ids, delay_seconds, error)

    def fail_now(
        self, queue_name: str, claim_id: int, message_ids: _Ids, error: str | None
    ) -> list[Row]:
        """Make messages dead."""
        return self.queues.require(queue_name).fail_now(claim_id, message_ids, error)

    def release(
        self, queue_name: str, claim_id: int, message_ids: _Ids, delay_seconds: float | None
    ) -> list[Row]:
        """Return messages without counting the attempt."""
        return self.queues.require(queue_name).release(claim_id, message_ids, delay_seconds)

    def extend_lease(
        self,
        queue_name: str,
        claim_id: int,
        lease_seconds: int | None,
        progress: str | None,
    ) -> list[Row]:
        """Extend a lease."""
        queue = self.queues.require(queue_name)
        return [queue.extend_lease(claim_id, lease_seconds, progress)]

    # repair

    def cancel(
        self, queue_name: str, message_ids: Sequence[int], include_leased: bool | None
    ) -> list[Row]:
        """Cancel messages."""
        model = self.queues.require(queue_name).model
        return list(
            model.cancel(dict.fromkeys(message_ids), include_leased=bool(include_leased)).items()
        )

    def cancel_many(
        self, queue_name: str, after_message_id: int, max_messages: int, **filters: Any
    ) -> list[Row]:
        """Cancel matching messages."""
        queue = self.queues.require(queue_name)
        if all(value is None for value in filters.values()):
            raise InvalidArgument("at least one filter is required")
        if (filters["header_name"] is None) != (filters["header_value"] is None):
            raise InvalidArgument("header_name and header_value must be set together")
        return [queue.model.cancel_many(queue.matcher(filters), after_message_id, max_messages)]

    def alter_message(self, queue_name: str, message_id: int, **changes: Any) -> list[Row]:
        """Change a waiting or dead message."""
        queue = self.queues.require(queue_name)
        if all(value is None for value in changes.values()):
            raise InvalidArgument("at least one value to change is required")
        return [queue.alter_message(message_id, changes)]

    def reset(
        self, queue_name: str, message_ids: _Ids, max_messages: int, **filters: Any
    ) -> list[Row]:
        """Make dead messages ready."""
        queue = self.queues.require(queue_name)
        return list(queue.model.reset(_chosen(queue, message_ids, max_messages, filters)).items())

    def discard_dead(
        self, queue_name: str, message_ids: _Ids, max_messages: int, **filters: Any
    ) -> list[Row]:
        """Delete dead messages."""
        queue = self.queues.require(queue_name)
        return [(queue.model.discard(_chosen(queue, message_ids, max_messages, filters)),)]

    # maintain

    def maintain(self, queue_name: str | None, batch_size: int) -> list[Row]:  # noqa: ARG002
        """Maintain one queue or all."""
        return [queue.maintain() for queue in self.queues.some(queue_name)]

    def reap(self, queue_name: str, batch_size: int) -> list[Row]:
        """Return messages of expired claims."""
        return [self.queues.require(queue_name).model.reap(batch_size)]

    def promote(self, queue_name: str, batch_size: int) -> list[Row]:
        """Make due messages ready."""
        return [(self.queues.require(queue_name).model.promote(batch_size),)]

    # look

    def queue_stats(
        self,
        queue_name: str | None,
        max_count: int,  # noqa: ARG002
        after_queue_name: str | None,
        max_queues: int | None,
    ) -> list[Row]:
        """Count messages."""
        queues = self.queues.some(queue_name)
        if queue_name is None:
            queues = [queue for queue in queues if queue.name > (after_queue_name or "")]
            queues = queues[:max_queues]
        return [queue.stats() for queue in queues]

    def get_message(self, queue_name: str, message_id: int) -> list[Row]:
        """Return a message."""
        return self.queues.require(queue_name).details(message_id)

    def explain_message(self, queue_name: str, message_id: int) -> list[Row]:
        """Explain why a message is not delivered."""
        return explain(self.queues.require(queue_name), message_id)

    def find_message(self, queue_name: str, dedup_key: str) -> list[Row]:
        """Return the owner of a dedup key."""
        queue = self.queues.require(queue_name)
        owner = queue.model.owner_of(dedup_key)
        return [] if owner is None else queue.details(owner)

    def get_result(self, queue_name: str, message_id: int) -> list[Row]:
        """Return a message's result."""
        return self.queues.require(queue_name).result(message_id)

    def wait_for_result(
        self,
        queue_name: str,
        message_id: int,
        wait_seconds: float,  # noqa: ARG002
        answer: Any = None,  # noqa: ARG002
    ) -> list[Row]:
        """Return a message's result, as JSON."""
        queue = self.queues.require(queue_name)
        if not queue.settings["result_seconds"]:
            raise InvalidArgument("the queue does not keep results: result_seconds is 0")
        names = ("message_id", "state", "finished_at", "result", "last_error")
        for row in queue.result(message_id):
            told = dict(zip(names, row, strict=True))
            told["finished_at"] = told["finished_at"] and told["finished_at"].isoformat()
            return [(told,)]
        return [(None,)]

    def list_dead(
        self,
        queue_name: str,
        after_message_id: int,
        max_messages: int,
        before_message_id: int | None,
        message_type: str | None,
    ) -> list[Row]:
        """List dead messages."""
        rows = self.queues.require(queue_name).dead()
        if before_message_id is None:
            found = [row for row in rows if row[0] > after_message_id]
        else:
            found = [row for row in reversed(rows) if row[0] < before_message_id]
        seen = found[:max_messages]
        return [row for row in seen if message_type in (None, row[3])]

    def list_delayed(
        self,
        queue_name: str,
        after_due_at: datetime | None,
        after_message_id: int,
        max_messages: int,
    ) -> list[Row]:
        """List delayed messages."""
        rows = self.queues.require(queue_name).delayed()
        if after_due_at is not None:
            rows = [row for row in rows if (row[4], row[0]) > (after_due_at, after_message_id)]
        return rows[:max_messages]

    def list_claims(
        self, queue_name: str | None, after_claim_id: int, max_claims: int
    ) -> list[Row]:
        """List claims."""
        rows = [row for queue in self.queues.some(queue_name) for row in queue.claims()]
        return sorted((row for row in rows if row[1] > after_claim_id), key=_claim_id)[:max_claims]

    def list_topics(self, queue_name: str | None) -> list[Row]:
        """List bound patterns."""
        return [
            (queue.name, pattern)
            for queue in self.queues.some(queue_name)
            for pattern in sorted(queue.bindings)
        ]


def _claim_id(row: Row) -> int:
    return int(row[1])


def _refuse_lacking(settings: Mapping[str, Any]) -> None:
    """Refuse settings that the model does not implement."""
    for name in _LACKING:
        if settings.get(name):
            raise _lacks(name)


def _refuse_unknown(message: Mapping[str, Any]) -> None:
    """Refuse options of a message that are newer than the model."""
    for name in MessageOptions.__annotations__:
        if name not in _KNOWN and message.get(name) is not None:
            raise _lacks(name)


def _lacks(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"a MemoryQueue has no {name}: test that on a database, with rowq_queue"
    )


def _chosen(
    queue: StoredQueue, message_ids: _Ids, max_messages: int, filters: Mapping[str, Any]
) -> Sequence[int]:
    """Return the dead messages that are named, or the oldest that match."""
    if message_ids is None:
        return queue.model.dead(max_messages, queue.matcher(filters))
    if any(value is not None for value in filters.values()):
        raise InvalidArgument("message_ids and filters exclude each other")
    return list(dict.fromkeys(message_ids))


def _message_of(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return one object of a batch as the arguments of enqueue."""
    _refuse_unknown(entry)
    options = {name: value for name, value in entry.items() if value is not None}
    if (encoded := options.pop("body_base64", None)) is not None:
        options["body_binary"] = base64.b64decode(encoded)
    if (run_at := options.get("run_at")) is not None:
        options["run_at"] = check_argument("run_at", "timestamp", datetime.fromisoformat(run_at))
    return options
