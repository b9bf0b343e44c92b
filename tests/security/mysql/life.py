"""Lead a queue through every routine and record what its caller sees.

Two lives are equal if these are: results, errors, times in seconds, consumed numbers, rows left in
tables, and changes to the session.
"""

import contextlib
import re
from datetime import UTC, datetime
from typing import Any

import pymysql

from rowq.contract import load_contract
from tests.engines.base import Connection
from tests.helpers.calls import Row, call
from tests.helpers.dialects import dialect_of
from tests.security.mysql.hostile_values import variables
from tests.stored_times import expire_claim, pass_seconds

NUMBERED = ("queue", "message", "claim", "finished")
ABOUT = 200.0
"""Times are rounded to these seconds. All times of a life are multiples of it, so a slow machine
and the retry jitter of at most 20 seconds stay far from the next one."""

ENOUGH = 50 * 65535
"""Numbers that a life may consume: for its rows and a few long reads, at the largest
auto_increment_increment of a session."""

PASSING = {
    "statement_id",
    *("error_count", "identity", "in_transaction", "last_gtid", "last_insert_id", "warning_count"),
    *("gtid_binlog_pos", "gtid_binlog_state", "gtid_current_pos", "gtid_executed"),
    *("rand_seed1", "rand_seed2", "statement_id", "character_set_database", "collation_database"),
}
"""Variables that every statement changes; the last two by each call into another database."""

CLOCK = "timestamp"
"""It is constant only where the session has set it."""

Seen = list[tuple[Any, ...]]


class Life:
    """A life of a queue.

    Attributes:
        seen: what the caller saw.
    """

    def __init__(
        self,
        session: Connection,
        admin: Connection,
        queue: str,
        *,
        is_open: bool = False,
        before: str | None = None,
    ) -> None:
        """Prepare a life.

        Args:
            session: the caller's.
            admin: a session that may read and change the tables.
            queue: a new queue's name.
            is_open: whether each call is the caller's transaction.
            before: what the session executes before each call, or None.
        """
        self.seen: Seen = []
        self._session, self._admin, self._queue = session, admin, queue
        self._is_open, self._before = is_open, before
        left_out = PASSING if re.search(rf"\b{CLOCK} = ", before or "") else {*PASSING, CLOCK}
        self._names = [
            variable.name for variable in variables(admin) if variable.name not in left_out
        ]
        # Read no table and set a limit, because the session may limit both. Read one value, because
        # the driver is slow with hundreds.
        values = ", ".join(f"quote(@@{name})" for name in self._names)
        self._look = f"select concat_ws(char(10), {values}) limit 1"
        self._messages: dict[int, str] = {}
        self._claims: dict[int, str] = {}

    def live(self) -> None:
        """Call every routine."""
        before = _last_numbers(self._admin)
        self._settings()
        ids = self._sent()
        self._finished(ids)
        self._kept()
        self._step("create_queue")
        with contextlib.suppress(pymysql.Error):
            call(self._admin, "drop_queue", queue_name=self._queue, force=True)
        after = _last_numbers(self._admin)
        self.seen += [("burnt", name, after[name] - before[name] > ENOUGH) for name in NUMBERED]
        self.seen.append(("left", _strays(self._admin)))

    def _settings(self) -> None:
        self._step(
            "create_queue",
            lease_seconds=1000,
            max_attempts=2,
            backoff_base_seconds=2000,
            backoff_jitter=0.01,
            archive_days=3,
            history_days=3,
        )
        self._step("create_queue")
        self._step("alter_queue", archive_days=2)
        self._step("pause_queue")
        self._step("enqueue", body="first")
        self._step("dequeue_fast")
        self._step("resume_queue")
        for routine, arguments in (
            ("alter_queue", {"queue_name": "nowhere"}),
            ("enqueue", {"priority": 10}),
            ("dequeue_fast", {"batch_size": 0}),
            ("complete", {"claim_id": 2**40}),
            ("cancel", {"message_ids": [2**62, -5]}),
        ):
            self._step(routine, **arguments)

    def _sent(self) -> list[int]:
        ids = [
            row.message_id for row in self._step("enqueue", body="key", dedup_key="k" * 90 + "1")
        ]
        self._step("enqueue", body="again", dedup_key="k" * 90 + "1")
        self._step("enqueue", body="later", delay_seconds=5000)
        self._step("enqueue", body="at", run_at=datetime(2001, 1, 1, tzinfo=UTC), priority=9)
        self._step("enqueue", body_binary=bytes(range(256)), headers={"a": [1]}, message_type="t")
        batch = [
            {"body": "plain"},
            {"body": "b", "dedup_key": "k" * 90 + "2", "priority": 3},
            {"body": "b", "dedup_key": "k" * 90 + "1"},
            {"body": "c", "delay_seconds": 5000, "headers": {"x": "é"}},
            {"body_base64": "AAEC", "run_at": "2001-01-01T00:00:00.5Z", "max_attempts": 1},
        ]
        ids += [row.message_id for row in self._step("enqueue_batch", messages=batch)]
        self._published()
        self._step("get_message", message_id=ids[0] if ids else 1)
        self._step("find_message", dedup_key="k" * 90 + "1")
        self._step("list_delayed")
        self._step("peek", max_messages=20)
        self._step("queue_stats")
        return ids

    def _published(self) -> None:
        """Publish to the queue with a type, because each life has another topic."""
        topic = f"life.{re.sub(r'[^A-Za-z0-9]', '_', self._queue)}"
        for routine in ("bind_topic", "bind_topic", "unbind_topic", "bind_topic"):
            self._step(routine, topic_pattern=f"{topic}.*")
        self._step("bind_topic", topic_pattern=f"{topic}.*.#")
        self._step("list_topics")
        for _ in range(2):
            self._step(
                "publish", topic=f"{topic}.a", body="p", message_type="t", dedup_key="published",
                priority=9,
            )  # fmt: skip
        kind = {"topic": f"{topic}.b", "message_type": "t", "priority": 9}
        batch = [
            {"body": "q", "group_key": "g", "headers": {"x": "é"}, **kind},
            {"topic": topic, "body": "unbound"},
            {"delay_seconds": 5000, "dedup_key": "published", **kind},
        ]
        self._step("publish_batch", messages=batch)
        self._step("publish", topic="a..b")
        self._step("publish_batch", messages=[kind, {"topic": "a", "priority": 10}])

    def _finished(self, ids: list[int]) -> None:
        taken = self._step("dequeue_fast", batch_size=4, worker_name="w")
        claim = taken[0].claim_id if taken else 1
        held = [row.message_id for row in taken] or [1]
        self._step("extend_lease", claim_id=claim, lease_seconds=3000)
        self._step("list_claims")
        self._step("complete", claim_id=claim, message_ids=held[:1])
        self._step("retry_later", claim_id=claim, message_ids=held[1:2], error="no")
        self._step("release", claim_id=claim, message_ids=held[2:3])
        exchanged = self._step("complete_and_dequeue", claim_id=claim)
        self._step("complete", claim_id=exchanged[-1].claim_id if exchanged else claim)
        for message in held:
            self._step("get_history", message_id=message)
        waits = "dequeue_fast" if self._is_open else "dequeue_wait"
        waited = self._step(waits, batch_size=2, **({} if self._is_open else {"wait_seconds": 0}))
        for claim in {_claim_of(row) for row in waited} - {None}:
            self._step("fail_now", claim_id=claim, error="dead")
        self._step("list_dead")
        self._step("discard_dead", message_type="unknown")
        self._step("reset", max_messages=1)
        self._step("cancel", message_ids=ids or [1])

    def _kept(self) -> None:
        taken = self._step("dequeue_fast", batch_size=2)
        for claim in {row.claim_id for row in taken}:
            self._step("reap")
            expire_claim(self._admin, claim)
            self._step("reap")
        for message in [row.message_id for row in taken] or [1]:
            self._step("get_history", message_id=message)
        pass_seconds(self._admin, self._queue, 6000)
        self._step("promote", batch_size=1)
        self._admin.execute(
            "update rowq.finished set finished_at = finished_at - interval 5 day"
            " where finish_id > 0 and queue_id ="
            " (select queue_id from rowq.queue where queue_name = %s)",
            [self._queue],
        )
        self._step("archive", batch_size=1)
        self._step("purge_archive")
        self._step("maintain")
        self._step("health")
        self._step("version")
        self._step("purge_queue", include_dead=True)
        self._step("drop_queue")
        self._step("drop_queue", force=True)

    def _step(self, routine: str, **arguments: Any) -> list[Row]:
        """Call a routine as the caller and record the result."""
        takes = {parameter.name for parameter in load_contract().routine(routine).parameters}
        if "queue_name" in takes:
            arguments = {"queue_name": self._queue, **arguments}
        try:
            rows = self._call(routine, arguments)
        except pymysql.Error as error:
            number, text = dialect_of(self._session).error(error)
            words = text.replace(self._queue, "the queue")
            self.seen.append((routine, number, words, self._is_left_open()))
            # Roll back, because an open transaction would keep its locks.
            with contextlib.suppress(pymysql.Error):
                self._session.execute("rollback and no chain no release")
            return []
        if routine == "health":
            rows = [row for row in rows if row.queue_name == self._queue]
        self.seen.append((routine, *(self._plain(row) for row in rows)))
        return rows

    def _call(self, routine: str, arguments: dict[str, Any]) -> list[Row]:
        if self._before:
            self._session.execute(self._before)
        before = self._variables()
        try:
            return self._answered(routine, arguments)
        finally:
            if (after := self._variables()) != before:
                values = zip(self._names, before, after, strict=True)
                changed = [f"{name}: {old}, {new}" for name, old, new in values if old != new]
                self.seen.append((routine, "changed", changed))

    def _answered(self, routine: str, arguments: dict[str, Any]) -> list[Row]:
        if not self._is_open:
            return call(self._session, routine, **arguments)
        self._session.execute("start transaction")
        try:
            rows = call(self._session, routine, **arguments)
        except pymysql.Error:
            self._session.execute("rollback and no chain no release")
            raise
        self._session.execute("commit and no chain no release")
        return rows

    def _variables(self) -> list[str]:
        """Return the session variables' values."""
        ((values,),) = self._session.execute(self._look).fetchall()
        return str(values).split("\n")

    def _is_left_open(self) -> bool:
        """Return whether the session is in a transaction, which no call may leave open."""
        if "mariadb" not in self._session.server_version.lower():
            return False
        try:
            return bool(self._session.execute("select @@in_transaction").fetchone() == (1,))
        except pymysql.Error:
            return False

    def _plain(self, row: Row) -> tuple[Any, ...]:
        """Return a row without the values that differ between lives."""
        return tuple((name, self._value(name, value)) for name, value in vars(row).items())

    def _value(self, name: str, value: Any) -> Any:
        match name, value:
            case ("messages", list()):
                return [self._plain(Row(**message)) for message in value]
            case ("message_id", int()) | ("claim_id", int()):
                known = self._messages if name == "message_id" else self._claims
                return known.setdefault(value, f"{name} {len(known) + 1}")
            case (_, datetime()):
                return _about((value - datetime.now(UTC)).total_seconds())
            case (("enqueued_at" | "lease_until"), str()):
                return self._value(name, datetime.fromisoformat(value))
            case (_, float()):
                return _about(value)
            case ("last_error", str()):
                return value.partition(":")[0]
            case (("queue_name" | "topic_pattern"), str()):
                return f"the {name}"
        return value


def _claim_of(row: Row) -> int | None:
    """Return the claim of a row of dequeue_fast or dequeue_wait."""
    if not hasattr(row, "messages"):
        return int(row.claim_id)
    return int(row.messages[0]["claim_id"]) if row.messages else None


def _about(seconds: float) -> float:
    return round(seconds / ABOUT) * ABOUT


def _last_numbers(admin: Connection) -> dict[str, int]:
    """Return the next numbers."""
    found = {}
    for name in NUMBERED:
        ((_, text),) = admin.execute(f"show create table rowq.{name}").fetchall()
        (number,) = [word for word in text.split() if word.startswith("AUTO_INCREMENT=")] or ["=1"]
        found[name] = int(number.partition("=")[2])
    return found


def _strays(admin: Connection) -> int:
    """Return the number of messages without a queue."""
    ((count,),) = admin.execute(
        "select count(*) from rowq.message m left join rowq.queue q using (queue_id)"
        " where q.queue_id is null"
    ).fetchall()
    return int(count)
