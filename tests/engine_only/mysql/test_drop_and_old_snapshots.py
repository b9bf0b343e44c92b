"""A transaction drops a queue whose messages are newer than its snapshot."""

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import call, dequeue, enqueue, make_dead
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect


@pytest.mark.promise("P15")
@pytest.mark.parametrize("level", ["read committed", "repeatable read"])
def test_no_body_is_left_behind_that_the_snapshot_does_not_show(
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
    part = "select part_id from rowq.queue where queue_name = %s"
    ((number,),) = connection.execute(part, [queue_name]).fetchall()
    count = "select count(*) from rowq.message where part_id = %s"
    assert connection.execute(count, [number]).fetchone() == (7,)

    call(old, "drop_queue", queue_name=queue_name, force=True)
    dialect.commit(old)
    assert connection.execute(count, [number]).fetchone() == (0,)
