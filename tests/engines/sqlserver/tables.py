"""Queries on rowq's tables on SQL Server."""

from contextlib import closing
from typing import Any

from tests.engines.dialect import ShiftedDialect

Connection = Any

_TABLES = (
    "message", "ready", "delayed", "claim", "leased", "dead", "dedup", "finished", "group_waiting",
    "group_slot", "deferred", "blocked", "successor", "started", "topic_binding", "expiry",
    "result", "history", "worker",
)  # fmt: skip
PER_QUEUE = {**{table: table for table in _TABLES}, "archive": "archived"}
"""The tables with rows per queue, by the contract's name."""

# Compare names by bytes, as the routines do: trailing blanks count.
_OF_QUEUE = (
    "queue_id = (select q.queue_id from rowq.queue q"
    " where q.queue_key = convert(varbinary(402), cast(? as nvarchar(200)) + N'.'))"
)
_COUNTS = {
    name: f"select count(*) from rowq.{table} where {_OF_QUEUE}"
    for name, table in PER_QUEUE.items()
}
_BODIES = f"select message_id from rowq.message where {_OF_QUEUE}"
_CENSUS = tuple(
    f"select message_id, '{state}' from rowq.{table} where {_OF_QUEUE}"
    for state, table in (
        ("ready", "ready"),
        ("delayed", "delayed"),
        ("leased", "leased"),
        ("dead", "dead"),
        ("blocked", "group_waiting"),
        ("blocked", "blocked"),
    )
)
_FINISHED = tuple(
    f"select message_id, state from rowq.{table} where {_OF_QUEUE}"
    for table in ("finished", "archived")
)

# Table and column to move. Locked and uncommitted rows are skipped. A message's seq is its time of
# entry in microseconds, so it moves with enqueued_at, and so do the floors, except lane -1
# (claim_id).
_BACK = "dateadd(second, -{seconds}, {column})"
_EARLIER = "iif({column} > {seconds}000000, {column} - {seconds}000000, 0)"
_SHIFTS = (
    ("claim", "lease_until", _BACK, ""),
    ("claim", "leased_at", _BACK, ""),
    ("history", "leased_at", _BACK, ""),
    ("history", "ended_at", _BACK, ""),
    ("delayed", "due_at", _BACK, ""),
    ("deferred", "due_at", _BACK, ""),
    ("blocked", "due_at", _BACK, ""),
    ("started", "started_at", _BACK, ""),
    ("dead", "died_at", _BACK, ""),
    ("schedule", "next_run_at", _BACK, ""),
    ("schedule", "starts_at", _BACK, ""),
    ("schedule", "ends_at", _BACK, ""),
    ("worker", "started_at", _BACK, ""),
    ("worker", "last_seen_at", _BACK, ""),
    ("finished", "finished_at", _BACK, ""),
    ("result", "finished_at", _BACK, ""),
    ("message", "enqueued_at", _BACK, ""),
    ("message", "due_at", _BACK, ""),
    ("message", "expires_at", _BACK, ""),
    ("expiry", "expires_at", _BACK, ""),
    ("expiry", "seq", _EARLIER, " and seq is not null"),
    ("ready", "seq", _EARLIER, ""),
    ("leased", "seq", _EARLIER, ""),
    ("lane", "floor", _EARLIER, " and lane <> -1"),
)
_CHECKS = ("lane", "check_after", _BACK, "")


class SqlserverTables(ShiftedDialect):
    """Reads and changes rows as the owner of the tables."""

    counts = _COUNTS
    places = _CENSUS
    ends = _FINISHED
    messages = _BODIES
    shifts = _SHIFTS
    checks = _CHECKS

    archive_table = "rowq.archived"
    is_free_of_deadlocks = False
    readers_wait = True
    savepoints_release_locks = False
    sees_newer = True
    shows_before = False

    def is_below_floor(self, connection: Connection, queue: str, message_id: int) -> bool:
        query = (
            "select max(l.floor), max(datediff_big(microsecond, '1970-01-01', m.enqueued_at))"
            " from rowq.lane l with (readuncommitted)"
            " join rowq.message m with (readuncommitted) on m.queue_id = l.queue_id"
            f" where l.lane >= 0 and m.message_id = ? and m.{_OF_QUEUE}"
        )
        ((floor, entry),) = _rows(connection, query, message_id, queue)
        return bool(floor > entry)

    def tables(self, connection: Connection) -> set[str]:
        query = "select t.name from sys.tables t where schema_name(t.schema_id) = 'rowq'"
        return {name for (name,) in _rows(connection, query)}

    def deadlocks(self, connection: Connection) -> int:
        query = (
            "select cntr_value from sys.dm_os_performance_counters"
            " where counter_name = 'Number of Deadlocks/sec' and instance_name = '_Total'"
        )
        return sum(int(count) for (count,) in _rows(connection, query))

    def expire_claim(self, connection: Connection, claim_id: int) -> None:
        _run(
            connection,
            "update rowq.claim set lease_until = dateadd(day, -2, lease_until) where claim_id = ?",
            claim_id,
        )

    def set_attempt(self, connection: Connection, message_id: int, attempt: int) -> None:
        _run(
            connection,
            "update rowq.ready set attempt = ? where message_id = ?",
            attempt,
            message_id,
        )

    def other_sessions(self, connection: Connection) -> int:
        query = (
            "select count(*) from sys.dm_exec_sessions"
            " where is_user_process = 1 and session_id <> @@spid and database_id = db_id()"
        )
        ((count,),) = _rows(connection, query)
        return int(count)

    def rows_of(self, connection: Connection, query: str, queue: str) -> list[tuple[Any, ...]]:
        return _rows(connection, query, queue)

    def move(
        self, connection: Connection, queue: str, seconds: int, shift: tuple[str, str, str, str]
    ) -> None:
        table, column, how, also = shift
        hints = "with (rowlock, readpast, readcommittedlock)"
        change = f"{column} = {how.format(column=column, seconds=int(seconds))}"
        _run(connection, f"update rowq.{table} {hints} set {change} where {_OF_QUEUE}{also}", queue)


def _run(connection: Connection, statement: str, *values: Any) -> None:
    with closing(connection.cursor()) as cursor:
        cursor.execute(statement, *values)


def _rows(connection: Connection, query: str, *values: Any) -> list[tuple[Any, ...]]:
    with closing(connection.cursor()) as cursor:
        cursor.execute(query, *values)
        return [tuple(row) for row in cursor.fetchall()]
