"""cancel of leased messages on MariaDB and MySQL: large claims."""

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import call, dequeue


@pytest.mark.promise("P34")
def test_large_claim_records_repeated_cancels(connection: Connection, queue_name: str) -> None:
    call(connection, "create_queue", queue_name=queue_name)
    call(connection, "enqueue_batch", queue_name=queue_name, messages=[{"body": "x"}] * 1000)
    messages = dequeue(connection, queue_name, 1000)
    ids = [message.message_id for message in messages]
    for part in (ids[:600], ids, ids[800:]):
        rows = call(
            connection, "cancel", queue_name=queue_name, message_ids=part, include_leased=True
        )
        assert [row.message_id for row in rows] == part
        assert {row.outcome for row in rows} == {"requested"}
    query = "select cancel_ids from rowq.claim where claim_id = %s"
    ((recorded,),) = connection.execute(query, [messages[0].claim_id]).fetchall()
    assert recorded.count(",") == 999
    assert recorded.startswith("[")
    call(connection, "complete", queue_name=queue_name, claim_id=messages[0].claim_id)
