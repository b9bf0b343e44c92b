"""Limits on Oracle: polls of a full queue, and a held limit lock."""

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import call, dequeue, enqueue, rolled_back
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect

PATIENCE_MS = 5000
"""Seconds after which a call must be waiting for a lock."""


@pytest.mark.promise("P17", "P28")
def test_poll_of_a_full_queue_begins_no_transaction(
    connection: Connection, connect: Connect, queue: str
) -> None:
    enqueue(connection, queue, "a", "b")
    call(connection, "alter_queue", queue_name=queue, max_leased=1)
    assert len(dequeue(connection, queue)) == 1
    session = connect(autocommit=False)
    assert dequeue(session, queue) == []
    assert not session.transaction_in_progress


@pytest.mark.pitfall("oracle 29")
@pytest.mark.promise("P28")
def test_dequeue_does_not_wait_for_a_held_limit_lock(
    connection: Connection, connect: Connect, queue: str
) -> None:
    holder = connect()
    connection.call_timeout = PATIENCE_MS
    enqueue(connection, queue, "a")
    call(connection, "alter_queue", queue_name=queue, max_leased=1)
    gate = (
        "select g.queue_id from rowq_limit_lock g"
        " where g.queue_id = (select q.queue_id from rowq_queue q where q.queue_name = %s)"
        " for update"
    )
    with rolled_back(holder):
        assert len(dialect_of(holder).execute(holder, gate, [queue]).fetchall()) == 1
        assert dequeue(connection, queue) == []
    assert len(dequeue(connection, queue)) == 1
