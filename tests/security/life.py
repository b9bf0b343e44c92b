"""Lead messages through every routine and record the answers for comparison.

Whatever a caller sets in its session, each routine must do and answer the same.
"""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from rowq.contract import load_contract
from rowq.engines import engine_for_connection
from tests.engines.base import Connection
from tests.helpers.calls import Row, call, refused
from tests.stored_times import pass_seconds

HOUR = 3600
DAY = 24 * HOUR
_SMALL = 600
"""Seconds that count as "now" on a slow machine; all delays are much longer."""
_MEASURED = {
    "value",
    "oldest_ready_seconds",
    "lease_left_seconds",
    "detail",
    "server_version",
    "topic_pattern",
}


class Life:
    """The answers to a session's calls, in order.

    Attributes:
        answers: each call with its rows or error text. Ids are replaced by their order of
            appearance, times by their distance in hours.
    """

    def __init__(self, session: Connection, queue: str) -> None:
        self.answers: list[tuple[Any, ...]] = []
        self._session = session
        self._queue = queue
        self._ids: dict[tuple[str, int], int] = {}

    def call(self, routine: str, **arguments: Any) -> list[Row]:
        """Call a routine for the queue and record its answer."""
        if routine not in {"health", "version", "publish", "publish_batch"}:
            arguments["queue_name"] = self._queue
        rows = call(self._session, routine, **arguments)
        mine = [row for row in rows if getattr(row, "queue_name", self._queue) == self._queue]
        self.answers.append((routine, [self._plain(vars(row)) for row in mine]))
        return rows

    def refuse(self, routine: str, **arguments: Any) -> None:
        """Call a routine that must fail, and record the error text."""
        text = refused(self._session, "RQ711", routine, queue_name=self._queue, **arguments)
        self.answers.append((routine, text))

    def record(self, what: str, value: Any) -> None:
        """Record a conclusion from the answers."""
        self.answers.append((what, value))

    def _plain(self, fields: dict[str, Any]) -> dict[str, Any]:
        return {
            name: self._value(name, value)
            for name, value in fields.items()
            if name not in _MEASURED and value != self._queue
        }

    def _value(self, name: str, value: Any) -> Any:
        if isinstance(value, list):
            return [
                self._plain(element) if isinstance(element, dict) else element for element in value
            ]
        if name in {"message_id", "claim_id"} and value is not None:
            return self._ids.setdefault((name, value), len(self._ids))
        if isinstance(value, str) and name in {"enqueued_at", "lease_until"}:
            value = datetime.fromisoformat(value)
        if isinstance(value, datetime):
            seconds = (value - datetime.now(UTC)).total_seconds()
            return "now" if abs(seconds) < _SMALL else f"{round(seconds / HOUR)} h"
        return value


def live(session: Connection, clean: Connection, queue: str) -> list[tuple[Any, ...]]:
    """Call all routines in one session with a new queue; let time pass in another session."""
    life = Life(session, queue)
    # Keep it whole hours away, so that a slow machine does not change the result.
    run_at = datetime.now(UTC).replace(microsecond=789012) + timedelta(days=300)
    life.call(
        "create_queue", lease_seconds=HOUR, backoff_base_seconds=2 * HOUR, backoff_factor=1.5,
        backoff_jitter=0.0, max_attempts=2, archive_days=1,
    )  # fmt: skip
    life.call("alter_queue", backoff_jitter=0.0, backoff_cap_seconds=31536000.0)
    life.call("create_queue")
    _send(life, run_at)
    if "publish" in load_contract().of(engine_for_connection(session).name):
        _publish(life, f"life.{uuid.uuid4().hex}")
    life.call("peek", max_messages=10)
    life.call("queue_stats")
    life.call("list_delayed")
    for key in ("Key", "key ", "KEY"):
        life.call("find_message", dedup_key=key)
    life.refuse("enqueue", priority=10)
    life.refuse("enqueue", delay_seconds=-0.1)
    life.refuse("dequeue_fast", batch_size=0)

    held = life.call("dequeue_fast", batch_size=2, worker_name="w \u2603")
    claim = held[0].claim_id
    life.call("extend_lease", claim_id=claim, lease_seconds=5 * HOUR)
    life.call("list_claims")
    life.call("complete", claim_id=claim, message_ids=[held[0].message_id, 1 << 60])
    life.call("retry_later", claim_id=claim, error="broken, 1.5 times")
    life.call("get_message", message_id=held[1].message_id)
    (waited,) = life.call("dequeue_wait", batch_size=2, wait_seconds=0.0)
    life.call("release", claim_id=waited.messages[0]["claim_id"])
    life.call("fail_now", claim_id=life.call("dequeue_fast")[0].claim_id, error="x" * 3000)
    life.call("list_dead")
    life.call("list_dead", before_message_id=1 << 62, message_type="t")
    life.call("discard_dead", message_type="unknown")
    life.call("reset")

    life.call("dequeue_fast", batch_size=1)
    pass_seconds(clean, queue, 4 * HOUR)
    for routine in ("health", "reap", "promote", "maintain", "queue_stats"):
        life.call(routine)
    life.call("pause_queue")
    life.call("dequeue_fast", batch_size=10)
    life.call("resume_queue")
    for row in life.call("dequeue_fast", batch_size=3):
        life.call("get_message", message_id=row.message_id)
        last = row
    life.call("complete", claim_id=last.claim_id)
    delayed = life.call("enqueue", body="to be cancelled", delay_seconds=100 * DAY)
    life.call("cancel", message_ids=[delayed[0].message_id, last.message_id])
    life.call("purge_queue")
    life.call("archive")
    life.call("get_message", message_id=last.message_id)
    pass_seconds(clean, queue, 3 * DAY)
    life.call("maintain")
    life.call("purge_archive")
    life.call("queue_stats")
    life.call("version")
    life.call("drop_queue", force=True)
    return life.answers


def _publish(life: Life, topic: str) -> None:
    """Publish to the queue with a type, because each life has another topic."""
    for pattern in (f"{topic}.*", f"{topic}.*", f"{topic}.a_b.#"):
        (bound,) = life.call("bind_topic", topic_pattern=pattern)
        assert bound.topic_pattern == pattern
    life.call("list_topics")
    for _ in range(2):
        life.call(
            "publish", topic=f"{topic}.a_b", body="p", message_type="t", dedup_key="published",
            priority=9,
        )  # fmt: skip
    kind = {"topic": f"{topic}.axb", "message_type": "t", "priority": 9}
    batch = [
        {"body": "q", "group_key": "g", "headers": {"e": 1e-3}, **kind},
        {"topic": topic, "body": "unbound"},
        {"delay_seconds": 2 * HOUR, "dedup_key": "published", **kind},
    ]
    life.call("publish_batch", messages=batch)
    life.call("unbind_topic", topic_pattern=f"{topic}.*")


def _send(life: Life, run_at: datetime) -> None:
    """Send messages of every kind, with similar keys."""
    life.call("enqueue", body="one", headers={"pi": 3.25}, message_type="t \u00e9", dedup_key="Key")
    for key in ("Key", "key", "Key ", "k\u00e9y"):
        life.call("enqueue", body=f"[{key}]", dedup_key=key, priority=3)
    life.call("enqueue", body_binary=b"\x00\x01\xff" * 4000, priority=7)
    life.call("enqueue", body="y" * 70_000, priority=7)
    life.call("enqueue", body="delayed", delay_seconds=2 * HOUR + 0.5)
    (sent,) = life.call("enqueue", body="some day", run_at=run_at)
    (found,) = life.call("get_message", message_id=sent.message_id)
    life.record("run_at", found.due_at == run_at)
    offset = (run_at + timedelta(hours=5, minutes=45)).replace(tzinfo=None)
    batch = life.call(
        "enqueue_batch",
        messages=[
            {"body": "a", "dedup_key": "batch", "priority": 2, "max_attempts": 1},
            {"body": "b", "dedup_key": "batch"},
            {"body": "c", "delay_seconds": 1.25 * HOUR, "headers": {"e": 1e-3}},
            {"body": "d", "run_at": f"{offset.isoformat()}+05:45"},
            {"body": "e", "run_at": run_at.isoformat().replace("T", " ")},
            {"body_base64": "AAH/", "message_type": "binary"},
        ],
    )
    for row in batch[2:5]:
        (found,) = life.call("get_message", message_id=row.message_id)
        life.record("run_at", found.due_at == run_at)
