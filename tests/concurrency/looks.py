"""What the judge of a run reads straight from the tables and from the server, on PostgreSQL."""

from __future__ import annotations

from tests.engines.base import Connection

_CENSUS = """
    with part as (select part_id from rowq.queue where queue_name = %s)
    select message_id, 'ready' from rowq.ready join part using (part_id)
    union all
    select message_id, 'delayed' from rowq.delayed join part using (part_id)
    union all
    select unnest(message_ids), 'leased' from rowq.claim join part using (part_id)
    union all
    select message_id, 'dead' from rowq.dead join part using (part_id)
    """
_BODIES = """
    select message_id from rowq.message
    where part_id = (select part_id from rowq.queue where queue_name = %s)
    """
_FINISHED = """
    with part as (select part_id from rowq.queue where queue_name = %s)
    select unnest(message_ids), state from rowq.finished join part using (part_id)
    union all
    select message_id, state from rowq.archive join part using (part_id)
    """
_KEYS = """
    select count(*) from rowq.dedup
    where part_id = (select part_id from rowq.queue where queue_name = %s)
    """


def census(connection: Connection, queue: str) -> list[tuple[int, str]]:
    """Return every unfinished message and where it is, as often as it is somewhere."""
    return [(int(one), str(state)) for one, state in connection.execute(_CENSUS, [queue])]


def finished(connection: Connection, queue: str) -> list[tuple[int, str]]:
    """Return the finished messages that are kept for the archive, or are in it."""
    return [(int(one), str(state)) for one, state in connection.execute(_FINISHED, [queue])]


def bodies(connection: Connection, queue: str) -> set[int]:
    """Return the messages whose bodies are there."""
    return {int(one) for (one,) in connection.execute(_BODIES, [queue])}


def held_keys(connection: Connection, queue: str) -> int:
    """Return how many dedup keys are taken."""
    return int(connection.execute(_KEYS, [queue]).fetchone()[0])


def deadlocks(connection: Connection) -> int:
    """Return how many deadlocks the server has broken in this database, as far as reported.

    A session reports at the latest when it ends.
    """
    query = "select deadlocks from pg_stat_database where datname = current_database()"
    return int(connection.execute(query).fetchone()[0])
