"""Under the engine's default isolation cancel and reset lock rows, and no gaps beside them."""

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import call, dequeue_one, enqueue, transaction
from tests.helpers.queues import Connect


@pytest.mark.promise("P06")
@pytest.mark.parametrize("routine", ["cancel", "reset"])
@pytest.mark.parametrize("level", ["read committed", "repeatable read"])
def test_producers_and_failures_go_on_beside_an_open_call_that_missed_messages(
    connection: Connection, connect: Connect, queue_name: str, level: str, routine: str
) -> None:
    call(connection, "create_queue", queue_name=queue_name)
    (ready,) = enqueue(connection, queue_name, "ready")
    (later,) = enqueue(connection, queue_name, "later", delay_seconds=60)
    caller = connect()
    caller.execute(f"set session transaction isolation level {level}")
    connection.execute("set session innodb_lock_wait_timeout = 1")
    with transaction(caller):
        call(
            caller,
            routine,
            queue_name=queue_name,
            message_ids=[ready, later, later + 1000, ready],
        )
        enqueue(connection, queue_name, "next")
        enqueue(connection, queue_name, "next later", delay_seconds=30)
        row = dequeue_one(connection, queue_name)
        call(connection, "fail_now", queue_name=queue_name, claim_id=row.claim_id)
