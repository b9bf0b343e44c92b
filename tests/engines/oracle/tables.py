"""Queries on rowq's tables on Oracle."""

from contextlib import closing
from typing import Any

from tests.engines.dialect import ShiftedDialect

Connection = Any

PER_QUEUE = (
    "message", "ready", "delayed", "claim", "leased", "dead", "dedup", "finished", "archive",
    "group_waiting", "group_slot", "deferred", "blocked", "successor", "started", "topic_binding",
    "expiry", "result", "history", "worker",
)  # fmt: skip
"""The tables with rows per queue, without their prefix."""

_OF_QUEUE = (
    "queue_id = (select q.queue_id from rowq_queue q"
    " where q.queue_key = utl_raw.cast_to_raw(:queue))"
)
_COUNTS = {table: f"select count(*) from rowq_{table} where {_OF_QUEUE}" for table in PER_QUEUE}
_BODIES = f"select message_id from rowq_message where {_OF_QUEUE}"
_STATES = {state: state for state in ("ready", "delayed", "leased", "dead", "blocked")} | {
    "group_waiting": "blocked"
}
_CENSUS = tuple(
    f"select message_id, '{state}' from rowq_{table} where {_OF_QUEUE}"
    for table, state in _STATES.items()
)
_FINISHED = tuple(
    f"select message_id, state from {table} where {_OF_QUEUE}"
    for table in ("rowq_finished", "rowq_archive")
)
_NOW = """
    select extract(day from s.since) * 86400000000 + extract(hour from s.since) * 3600000000
        + extract(minute from s.since) * 60000000 + extract(second from s.since) * 1000000
    from (select sys_extract_utc(systimestamp) - timestamp '1970-01-01 00:00:00' as since from dual)
    s
    """

# Table, rows to move, and how. A message's seq is its time of entry in microseconds, so it moves
# with enqueued_at, and so do the floors, except lanes -1 (claim_id) and -3 (finish_id).
_BACK = "t.{0} = t.{0} - numtodsinterval(:seconds, 'second')"
_EARLIER = "t.{0} = greatest(t.{0} - :seconds * 1000000, 0)"
_CHECKS = ("lane", "1 = 1", _BACK.format("check_after"))
_SHIFTS = (
    ("claim", "1 = 1", f"{_BACK.format('lease_until')}, {_BACK.format('leased_at')}"),
    ("delayed", "1 = 1", _BACK.format("due_at")),
    ("deferred", "1 = 1", _BACK.format("due_at")),
    ("blocked", "t.due_at is not null", _BACK.format("due_at")),
    ("started", "1 = 1", _BACK.format("started_at")),
    (
        "expiry",
        "1 = 1",
        f"{_BACK.format('expires_at')}, t.seq = greatest(t.seq - :seconds * 1000000, 0)",
    ),
    ("result", "1 = 1", _BACK.format("finished_at")),
    ("history", "1 = 1", f"{_BACK.format('ended_at')}, {_BACK.format('leased_at')}"),
    ("dead", "1 = 1", _BACK.format("died_at")),
    ("schedule", "t.next_run_at is not null", _BACK.format("next_run_at")),
    ("schedule", "1 = 1", _BACK.format("starts_at")),
    ("schedule", "t.ends_at is not null", _BACK.format("ends_at")),
    ("worker", "1 = 1", f"{_BACK.format('started_at')}, {_BACK.format('last_seen_at')}"),
    ("finished", "1 = 1", _BACK.format("finished_at")),
    ("message", "1 = 1", f"{_BACK.format('enqueued_at')}, {_EARLIER.format('seq')}"),
    ("message", "t.due_at is not null", _BACK.format("due_at")),
    ("message", "t.expires_at is not null", _BACK.format("expires_at")),
    ("ready", "1 = 1", _EARLIER.format("seq")),
    ("lane", "t.lane >= 0 or t.lane in (-2, -4, -5, -6, -7, -8)", _EARLIER.format("floor_seq")),
)
# A plain update would wait for locked rows; a row may have a logical address.
_MOVE = """
declare
    type t_addresses is table of urowid index by pls_integer;
    v_found t_addresses;
    cursor found is
        select t.rowid from rowq_{table} t where t.{part} and ({which}) for update skip locked;
begin
    open found;
    fetch found bulk collect into v_found;
    close found;
    forall i in 1 .. v_found.count
        update rowq_{table} t set {how} where t.rowid = v_found(i);
end;
"""


class OracleTables(ShiftedDialect):
    """Reads and changes rows as the owner of the tables."""

    counts = _COUNTS
    places = _CENSUS
    ends = _FINISHED
    messages = _BODIES
    shifts = _SHIFTS
    checks = _CHECKS

    archive_table = "rowq_archive"
    is_free_of_deadlocks = False
    row_version = "deferred_id, due_at"
    readers_wait = False
    savepoints_release_locks = True
    expires_in_transactions = True

    def __init__(self) -> None:
        self._called_at: dict[int, int] = {}

    def is_below_floor(self, connection: Connection, queue: str, message_id: int) -> bool:
        """Return whether a floor has passed an uncommitted message.

        The row is invisible, but its position is its time of entry, which is before the first call
        of this method: compare the floor with that.
        """
        ((now,),) = _rows(connection, _NOW)
        called_at = self._called_at.setdefault(message_id, int(now))
        query = f"select max(l.floor_seq) from rowq_lane l where l.lane >= 0 and l.{_OF_QUEUE}"
        ((floor,),) = self.rows_of(connection, query, queue)
        return bool(floor > called_at)

    def tables(self, connection: Connection) -> set[str]:
        query = (
            "select lower(substr(table_name, 6)) from user_tables"
            " where substr(table_name, 1, 5) = 'ROWQ_'"
        )
        return {name for (name,) in _rows(connection, query)}

    def deadlocks(self, connection: Connection) -> int:
        return int(connection.server.deadlocks())

    def expire_claim(self, connection: Connection, claim_id: int) -> None:
        _run(
            connection,
            "update rowq_claim set lease_until = lease_until - interval '2' day"
            " where claim_id = :claim_id",
            claim_id=claim_id,
        )

    def set_attempt(self, connection: Connection, message_id: int, attempt: int) -> None:
        _run(
            connection,
            "update rowq_ready set attempt = :attempt where message_id = :message_id",
            attempt=attempt,
            message_id=message_id,
        )

    def other_sessions(self, connection: Connection) -> int:
        return int(connection.server.sessions_of(connection.username.upper())) - 1

    def rows_of(self, connection: Connection, query: str, queue: str) -> list[tuple[Any, ...]]:
        return _rows(connection, query, queue=queue)

    def move(
        self, connection: Connection, queue: str, seconds: int, shift: tuple[str, str, str]
    ) -> None:
        table, which, how = shift
        block = _MOVE.format(table=table, part=_OF_QUEUE, which=which, how=how)
        _run(connection, block, queue=queue, seconds=int(seconds))


def _run(connection: Connection, statement: str, **values: Any) -> None:
    with closing(connection.cursor()) as cursor:
        cursor.execute(statement, values)


def _rows(connection: Connection, query: str, **values: Any) -> list[tuple[Any, ...]]:
    with closing(connection.cursor()) as cursor:
        return list(cursor.execute(query, values))
