"""pause_queue."""

from __future__ import annotations

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import (
    bodies,
    call,
    call_one,
    counts,
    dequeue,
    dequeue_one,
    enqueue,
    outcomes,
    refused,
    rolled_back,
)
from tests.stored_times import pass_seconds


@pytest.mark.promise("P18")
def test_a_paused_queue_accepts_messages_and_delivers_none(
    connection: Connection, queue: str
) -> None:
    enqueue(connection, queue, "before")
    row = call_one(connection, "pause_queue", queue_name=queue)
    assert (row.queue_name, row.outcome) == (queue, "paused")
    enqueue(connection, queue, "after")
    call(connection, "enqueue_batch", queue_name=queue, messages=[{"body": "batch"}])
    assert dequeue(connection, queue, 10) == []
    assert call_one(connection, "dequeue_wait", queue_name=queue, wait_seconds=0).messages is None
    assert call_one(connection, "queue_stats", queue_name=queue).is_paused is True
    assert counts(connection, queue) == (3, 0, 0, 0)


@pytest.mark.promise("P18")
def test_a_paused_queue_can_be_looked_at(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, "seen")
    call(connection, "pause_queue", queue_name=queue)
    assert call_one(connection, "peek", queue_name=queue).body == "seen"


@pytest.mark.promise("P18")
def test_leased_messages_are_finished_while_the_queue_is_paused(
    connection: Connection, queue: str
) -> None:
    enqueue(connection, queue, "a", "b", "c", "d")
    rows = dequeue(connection, queue, 4)
    call(connection, "pause_queue", queue_name=queue)
    common = {"queue_name": queue, "claim_id": rows[0].claim_id}
    ids = [row.message_id for row in rows]
    call(connection, "extend_lease", **common, lease_seconds=60)
    found = {
        **outcomes(call(connection, "complete", **common, message_ids=ids[:1])),
        **outcomes(call(connection, "retry_later", **common, message_ids=ids[1:2])),
        **outcomes(call(connection, "fail_now", **common, message_ids=ids[2:3])),
        **outcomes(call(connection, "release", **common, message_ids=ids[3:])),
    }
    assert list(found.values()) == ["completed", "retrying", "dead", "released"]


@pytest.mark.promise("P18")
def test_housekeeping_goes_on_while_the_queue_is_paused(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, "leased")
    dequeue_one(connection, queue)
    enqueue(connection, queue, "delayed", delay_seconds=60)
    call(connection, "pause_queue", queue_name=queue)
    pass_seconds(connection, queue, 100)
    row = call_one(connection, "maintain", queue_name=queue)
    assert (row.reaped, row.promoted) == (1, 1)
    assert dequeue(connection, queue, 10) == []
    call(connection, "resume_queue", queue_name=queue)
    assert bodies(dequeue(connection, queue, 10)) == ["leased", "delayed"]


@pytest.mark.promise("P18")
def test_a_paused_queue_may_be_paused_again(connection: Connection, queue: str) -> None:
    for _ in range(2):
        assert call_one(connection, "pause_queue", queue_name=queue).outcome == "paused"


@pytest.mark.promise("P18")
def test_other_queues_go_on(connection: Connection, queue: str) -> None:
    other = f"{queue[:80]} other"
    call(connection, "create_queue", queue_name=other)
    enqueue(connection, other, "delivered")
    call(connection, "pause_queue", queue_name=queue)
    assert dequeue_one(connection, other).body == "delivered"


@pytest.mark.promise("P17", "P18")
def test_a_rolled_back_pause_stops_nothing(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, "delivered")
    with rolled_back(connection):
        call(connection, "pause_queue", queue_name=queue)
    assert dequeue_one(connection, queue).body == "delivered"


@pytest.mark.promise("P15")
def test_an_unknown_queue_is_refused(connection: Connection, queue_name: str) -> None:
    refused(connection, "RQ701", "pause_queue", queue_name=queue_name)


@pytest.mark.promise("P15")
def test_a_missing_name_is_refused(connection: Connection) -> None:
    refused(connection, "RQ711", "pause_queue", queue_name=None)
