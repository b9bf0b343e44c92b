"""Queries on rowq's tables on MariaDB and MySQL."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.engines.dialect import ShiftedDialect

Connection = Any

PER_QUEUE = (
    "message", "ready", "delayed", "claim", "dead", "dedup", "finished", "archive", "group_waiting",
    "group_slot", "deferred", "blocked", "successor", "started", "topic_binding",
    "expiry", "result", "history", "worker",
)  # fmt: skip
"""The tables with rows per queue."""

_OF_QUEUE = "queue_id = (select queue_id from rowq.queue where queue_name = %(queue)s)"
# Leave out sentinel rows.
_LIVE = {"ready": "message_id > 0", "delayed": "message_id > 0", "claim": "claim_id > 0"}
_LIVE |= {"finished": "finish_id > 0", "group_waiting": "message_id > 0"}
_LIVE |= {"deferred": "deferred_id > 0"}
_LIVE |= {"started": "claim_id > 0", "expiry": "expiry_id > 0", "result": "message_id > 0"}
_LIVE |= {"history": "message_id > 0"}

_IN_A_CLAIM = (
    "json_table(coalesce(b.messages, concat('[[]', repeat(',[]', b.last_id - b.first_id), ']')),"
    " '$[*]' columns (position for ordinality, message_id bigint path '$[0]')) m"
)
_IN_A_BATCH = "json_table(b.messages, '$[*]' columns (message_id bigint path '$[0]')) m"
_CENSUS = (
    f"select message_id, 'ready' from rowq.ready where message_id > 0 and {_OF_QUEUE}",
    f"select message_id, 'delayed' from rowq.delayed where message_id > 0 and {_OF_QUEUE}",
    "select coalesce(m.message_id, b.first_id + m.position - 1), 'leased'"
    f" from rowq.claim b, {_IN_A_CLAIM}"
    f" where claim_id > 0 and b.{_OF_QUEUE}",
    f"select message_id, 'dead' from rowq.dead where {_OF_QUEUE}",
    f"select message_id, 'blocked' from rowq.group_waiting where message_id > 0 and {_OF_QUEUE}",
    f"select message_id, 'blocked' from rowq.blocked where {_OF_QUEUE}",
)
_FINISHED = (
    f"select m.message_id, b.state from rowq.finished b, {_IN_A_BATCH}"
    f" where finish_id > 0 and b.{_OF_QUEUE}",
    f"select message_id, state from rowq.archive where {_OF_QUEUE}",
)
_BODIES = f"select message_id from rowq.message where {_OF_QUEUE}"
_COUNTS = {
    table: f"select count(*) from rowq.{table} where {_LIVE.get(table, 'true')} and {_OF_QUEUE}"
    for table in PER_QUEUE
}

# Table, key, rows to move, and how. Locked and uncommitted rows are skipped: a plain update would
# wait. A message's seq is its time of entry, so it moves with enqueued_at, and the floors with seq.
_BACK = "- interval %(seconds)s second"
_MICROSECONDS = "- %(seconds)s * 1000000"
_SHIFTS = (
    (
        "claim",
        "queue_id, claim_id",
        "claim_id > 0",
        f"t.lease_until = t.lease_until {_BACK}, t.leased_at = t.leased_at {_BACK}",
    ),
    ("delayed", "queue_id, due_at, message_id", "message_id > 0", f"t.due_at = t.due_at {_BACK}"),
    ("blocked", "queue_id, message_id", "true", f"t.due_at = t.due_at {_BACK}"),
    (
        "deferred",
        "queue_id, due_at, deferred_id",
        "deferred_id > 0",
        f"t.due_at = t.due_at {_BACK}",
    ),
    (
        "started",
        "queue_id, started_at, claim_id",
        "claim_id > 0",
        f"t.started_at = t.started_at {_BACK}",
    ),
    (
        "expiry",
        "queue_id, expires_at, expiry_id",
        "expiry_id > 0",
        f"t.expires_at = t.expires_at {_BACK}, t.seq = t.seq {_MICROSECONDS}",
    ),
    ("result", "queue_id, message_id", "message_id > 0", f"t.finished_at = t.finished_at {_BACK}"),
    (
        "history",
        "queue_id, ended_at, message_id, claim_id",
        "message_id > 0",
        f"t.leased_at = t.leased_at {_BACK}, t.ended_at = t.ended_at {_BACK}",
    ),
    ("dead", "queue_id, message_id", "true", f"t.died_at = t.died_at {_BACK}"),
    (
        "schedule",
        "queue_id, schedule_name",
        "true",
        f"t.next_run_at = t.next_run_at {_BACK}, t.starts_at = t.starts_at {_BACK},"
        f" t.ends_at = t.ends_at {_BACK}",
    ),
    (
        "worker",
        "queue_id, worker_id",
        "true",
        f"t.started_at = t.started_at {_BACK}, t.last_seen_at = t.last_seen_at {_BACK}",
    ),
    ("finished", "queue_id, finish_id", "finish_id > 0", f"t.finished_at = t.finished_at {_BACK}"),
    (
        "message",
        "message_id",
        "true",
        f"t.enqueued_at = t.enqueued_at {_BACK}, t.due_at = t.due_at {_BACK},"
        f" t.expires_at = t.expires_at {_BACK}",
    ),
    (
        "ready",
        "queue_id, lane, seq, message_id",
        "message_id > 0",
        f"t.seq = t.seq {_MICROSECONDS}",
    ),
    (
        "lane",
        "queue_id, lane",
        "lane >= 0 or lane in (-2, -4, -5, -6, -7, -8)",
        f"t.floor = greatest(0, t.floor {_MICROSECONDS})",
    ),
)
_CHECKS = ("lane", "queue_id, lane", "true", f"t.check_after = t.check_after {_BACK}")


class MysqlTables(ShiftedDialect):
    """Reads and changes rows as the owner of the tables."""

    counts = _COUNTS
    places = _CENSUS
    ends = _FINISHED
    messages = _BODIES
    shifts = _SHIFTS
    checks = _CHECKS

    archive_table = "rowq.archive"
    is_free_of_deadlocks = False
    row_version = "deferred_id, due_at"
    readers_wait = True
    savepoints_release_locks = False
    expires_predecessors = True

    def is_below_floor(self, connection: Connection, queue: str, message_id: int) -> bool:
        connection.cursor().execute("set transaction isolation level read uncommitted")
        query = (
            "select max(l.floor) > timestampdiff(microsecond, '1970-01-01', m.enqueued_at)"
            " from rowq.lane l join rowq.message m using (queue_id)"
            f" where l.lane >= 0 and m.message_id = {int(message_id)} and m.{_OF_QUEUE}"
        )
        ((passed,),) = self.rows_of(connection, query, queue)
        return bool(passed)

    def tables(self, connection: Connection) -> set[str]:
        query = "select table_name from information_schema.tables where table_schema = 'rowq'"
        cursor = connection.cursor()
        cursor.execute(query)
        return {str(name) for (name,) in cursor.fetchall()}

    def deadlocks(self, connection: Connection) -> int:
        query = "select count from information_schema.innodb_metrics where name = 'lock_deadlocks'"
        ((count,),) = self.rows_of(connection, query, queue="")
        return int(count)

    def expire_claim(self, connection: Connection, claim_id: int) -> None:
        connection.cursor().execute(
            "update rowq.claim set lease_until = lease_until - interval 2 day where claim_id = %s",
            (claim_id,),
        )

    def set_attempt(self, connection: Connection, message_id: int, attempt: int) -> None:
        connection.cursor().execute(
            "update rowq.ready set attempt = %s where message_id = %s", (attempt, message_id)
        )

    def other_sessions(self, connection: Connection) -> int:
        query = (
            "select count(*) from information_schema.processlist"
            " where id <> connection_id() and user not in ('system user', 'event_scheduler')"
        )
        cursor = connection.cursor()
        cursor.execute(query)
        return int(cursor.fetchone()[0])

    def rows_of(self, connection: Connection, query: str, queue: str) -> list[tuple[Any, ...]]:
        cursor = connection.cursor()
        cursor.execute(query, {"queue": queue})
        return list(cursor.fetchall())

    def move(
        self, connection: Connection, queue: str, seconds: int, shift: tuple[str, str, str, str]
    ) -> None:
        table, key, live, how = shift
        with _read_committed(connection) as cursor:
            # Without a limit, MySQL merges the subquery into the update and waits.
            cursor.execute(
                f"update (select {key} from rowq.{table} where ({live}) and {_OF_QUEUE}"
                " limit 1000000 for update skip locked) c"
                f" straight_join rowq.{table} t force index (primary)"
                f" using ({key}) set {how}",
                {"queue": queue, "seconds": seconds},
            )


@contextmanager
def _read_committed(connection: Connection) -> Iterator[Any]:
    cursor = connection.cursor()
    cursor.execute("set transaction isolation level read committed")
    cursor.execute("begin")
    try:
        yield cursor
    except BaseException:
        connection.rollback()
        raise
    connection.commit()
