"""drop_queue in a transaction whose snapshot is older than messages."""

import pymysql
import pytest

from tests.engines.base import Connection
from tests.helpers.calls import call, dequeue, enqueue, make_dead
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect


@pytest.mark.promise("P15")
@pytest.mark.parametrize("level", ["read committed", "repeatable read"])
def test_drop_with_an_old_snapshot_leaves_no_body(
    connection: Connection, connect: Connect, queue_name: str, level: str
) -> None:
    call(connection, "create_queue", queue_name=queue_name, archive_days=1)
    old = connect()
    dialect = dialect_of(old)
    old.execute("set session binlog_format = row")
    dialect.begin(old, level)
    old.execute("select count(*) from rowq.message").fetchall()

    make_dead(connection, queue_name, "dead")
    enqueue(connection, queue_name, "delayed", delay_seconds=100)
    ids = enqueue(connection, queue_name, "1", "2", "3", "4", "5")
    claim_id = dequeue(connection, queue_name, 3)[0].claim_id
    call(connection, "complete", queue_name=queue_name, claim_id=claim_id, message_ids=[ids[0]])
    part = "select queue_id from rowq.queue where queue_name = %s"
    ((number,),) = connection.execute(part, [queue_name]).fetchall()
    count = "select count(*) from rowq.message where queue_id = %s"
    assert connection.execute(count, [number]).fetchone() == (7,)

    call(old, "drop_queue", queue_name=queue_name, force=True)
    dialect.commit(old)
    assert connection.execute(count, [number]).fetchone() == (0,)


@pytest.mark.promise("P15")
@pytest.mark.parametrize("level", ["read committed", "repeatable read"])
def test_open_drop_blocks_the_next_queue_at_repeatable_read(
    connection: Connection, connect: Connect, queue_name: str, level: str
) -> None:
    """The rows are deleted as a range, up to the first row of the next queue."""
    names = [f"{queue_name} {place}" for place in ("before", "dropped", "next")]
    for name in names:
        call(connection, "create_queue", queue_name=name, history_days=1)
    for name in names[:2]:
        end_one(connection, name)
    admin, worker = connect(), connect()
    worker.execute("set session innodb_lock_wait_timeout = 1")
    admin.execute("set session binlog_format = row")
    dialect = dialect_of(admin)

    def blocked() -> list[str]:
        dialect.begin(admin, level)
        call(admin, "drop_queue", queue_name=names[1], force=True)
        found = [name for name in (names[0], names[2]) if is_blocked(worker, name)]
        dialect.rollback(admin)
        return found

    assert blocked() == ([] if level == "read committed" else [names[2]])
    end_one(connection, names[2])
    assert blocked() == []


def end_one(connection: Connection, queue_name: str) -> None:
    """End one attempt."""
    enqueue(connection, queue_name, "x")
    claim_id = dequeue(connection, queue_name)[0].claim_id
    call(connection, "complete", queue_name=queue_name, claim_id=claim_id)


def is_blocked(session: Connection, queue_name: str) -> bool:
    """Return whether only a row of history waits for another session."""
    try:
        session.execute(
            "insert into rowq.history (queue_id, ended_at, message_id, claim_id, attempt,"
            " leased_at, outcome) select queue_id, utc_timestamp(6), 1, 1, 1, utc_timestamp(6),"
            " 'released' from rowq.queue where queue_name = %s",
            [queue_name],
        )
    except pymysql.err.OperationalError as error:
        if error.args[0] != 1205:
            raise
        return True
    return False
