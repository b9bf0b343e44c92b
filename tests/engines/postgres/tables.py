"""Queries on rowq's tables on PostgreSQL."""

from typing import Any

import psycopg

from tests.engines.dialect import Dialect

Connection = psycopg.Connection[Any]

PER_QUEUE = (
    "message", "ready", "delayed", "claim", "dead", "dedup", "finished", "archive", "group_waiting",
    "group_slot", "deferred", "started", "blocked", "successor", "topic_binding", "expiry",
    "result", "history", "worker",
)  # fmt: skip
"""The tables with rows per queue."""

_OF_QUEUE = "queue_id = (select queue_id from rowq.queue where queue_name = %s)"
# Append a row: an open transaction that has moved the floor may have locked the old one. The floors
# of these lanes are times.
_FLOOR = (
    "insert into rowq.floor select n.queue_id, n.lane, least(n.generation, 0) - 5000000000,"
    " n.start_seq - s.shift, n.safe_seq - s.shift, n.pending_seq - s.shift, n.pending_xid,"
    " n.rescan_at - interval '{0}' second, n.sweep_at - interval '{0}' second"
    " from (select distinct on (lane) * from rowq.floor where "
    + _OF_QUEUE
    + " order by lane, generation) n"
    " cross join lateral"
    " (select case when lane in (-2, -4, -5, -6, -7, -8) then {1} * 1000000::bigint else 0 end)"
    " s (shift)"
)
_SHIFTS = (
    "update rowq.claim set lease_until = lease_until - interval '{0}' second,"
    " leased_at = leased_at - interval '{0}' second where " + _OF_QUEUE,
    "update rowq.history set leased_at = leased_at - interval '{0}' second,"
    " ended_at = ended_at - interval '{0}' second where " + _OF_QUEUE,
    "update rowq.delayed set due_at = due_at - interval '{0}' second where " + _OF_QUEUE,
    "update rowq.blocked set due_at = due_at - interval '{0}' second where " + _OF_QUEUE,
    "update rowq.deferred set due_at = due_at - interval '{0}' second where " + _OF_QUEUE,
    "update rowq.dead set died_at = died_at - interval '{0}' second where " + _OF_QUEUE,
    "update rowq.finished set finished_at = finished_at - interval '{0}' second where " + _OF_QUEUE,
    "update rowq.started set started_at = started_at - interval '{0}' second where " + _OF_QUEUE,
    "update rowq.result set finished_at = finished_at - interval '{0}' second where " + _OF_QUEUE,
    "update rowq.message set enqueued_at = enqueued_at - interval '{0}' second,"
    " expires_at = expires_at - interval '{0}' second where " + _OF_QUEUE,
    "update rowq.expiry set expires_at = expires_at - interval '{0}' second where " + _OF_QUEUE,
    "update rowq.schedule set next_run_at = next_run_at - interval '{0}' second,"
    " starts_at = starts_at - interval '{0}' second, ends_at = ends_at - interval '{0}' second"
    " where " + _OF_QUEUE,
    "update rowq.worker set started_at = started_at - interval '{0}' second,"
    " last_seen_at = last_seen_at - interval '{0}' second where " + _OF_QUEUE,
)

_CENSUS = f"""
    select message_id, 'ready' from rowq.ready where {_OF_QUEUE}
    union all
    select message_id, 'delayed' from rowq.delayed where {_OF_QUEUE}
    union all
    select unnest(message_ids), 'leased' from rowq.claim where {_OF_QUEUE}
    union all
    select message_id, 'dead' from rowq.dead where {_OF_QUEUE}
    union all
    select message_id, 'blocked' from rowq.group_waiting where {_OF_QUEUE}
    union all
    select message_id, 'blocked' from rowq.blocked where {_OF_QUEUE}
    """
_FINISHED = f"""
    select unnest(message_ids), state from rowq.finished where {_OF_QUEUE}
    union all
    select message_id, state from rowq.archive where {_OF_QUEUE}
    """
_BODIES = f"select message_id from rowq.message where {_OF_QUEUE}"
_COUNTS = {table: f"select count(*) from rowq.{table} where {_OF_QUEUE}" for table in PER_QUEUE}


class PostgresTables(Dialect):
    """Reads and changes rows as the owner of the tables."""

    counts = _COUNTS
    places = (_CENSUS,)
    ends = (_FINISHED,)
    messages = _BODIES

    archive_table = "rowq.archive"
    is_free_of_deadlocks = True
    readers_wait = True
    row_version = "xmin::text, ctid::text"
    savepoints_release_locks = True
    expires_in_transactions = True
    expires_predecessors = True

    def is_below_floor(self, connection: Connection, queue: str, message_id: int) -> bool:
        query = f"select max(start_seq) from rowq.floor where lane >= 0 and {_OF_QUEUE}"
        return int(self.rows_of(connection, query, queue)[0][0]) > message_id

    def tables(self, connection: Connection) -> set[str]:
        query = "select tablename from pg_tables where schemaname = 'rowq'"
        return {name for (name,) in connection.execute(query).fetchall()}

    def deadlocks(self, connection: Connection) -> int:
        """Return the database's count of deadlocks; a session reports them at its end."""
        query = "select deadlocks from pg_stat_database where datname = current_database()"
        return _number(connection, query)

    def pass_seconds(self, connection: Connection, queue: str, seconds: int) -> None:
        for shift in (*_SHIFTS, _FLOOR):
            connection.execute(shift.format(int(seconds), int(seconds)).encode(), (queue,))

    def tick(self, connection: Connection, queue: str) -> None:
        connection.execute(_FLOOR.format(2, 0).encode(), (queue,))

    def expire_claim(self, connection: Connection, claim_id: int) -> None:
        connection.execute(
            "update rowq.claim set lease_until = lease_until - interval '2' day"
            " where claim_id = %s",
            (claim_id,),
        )

    def set_attempt(self, connection: Connection, message_id: int, attempt: int) -> None:
        connection.execute(
            "update rowq.ready set attempt = %s where message_id = %s", (attempt, message_id)
        )

    def other_sessions(self, connection: Connection) -> int:
        query = (
            "select count(*) from pg_stat_activity where datname = current_database()"
            " and backend_type = 'client backend' and pid <> pg_backend_pid()"
        )
        return _number(connection, query)

    def rows_of(self, connection: Connection, query: str, queue: str) -> list[tuple[Any, ...]]:
        values = [queue] * query.count("%s")
        return connection.execute(query.encode(), values).fetchall()


def _number(connection: Connection, query: str) -> int:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return int(row[0])
