"""complete, beyond what it shares with the other finishing routines (test_finishing.py)."""

from __future__ import annotations

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import call, call_one, dequeue, dequeue_one, enqueue, state_of
from tests.helpers.dialects import dialect_of
from tests.stored_times import pass_seconds


@pytest.mark.promise("P04")
def test_a_completed_message_is_never_delivered_again(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, "a")
    row = dequeue_one(connection, queue)
    call(connection, "complete", queue_name=queue, claim_id=row.claim_id)
    pass_seconds(connection, queue, 100000)
    call(connection, "maintain", queue_name=queue)
    assert dequeue(connection, queue, 10) == []
    assert state_of(connection, queue, row.message_id) is None


@pytest.mark.promise("P04")
def test_a_queue_without_an_archive_keeps_nothing_of_completed_messages(
    connection: Connection, queue: str
) -> None:
    for number in range(5):
        enqueue(connection, queue, "a", dedup_key=f"{number}")
    claim = dequeue(connection, queue, 5)[0].claim_id
    call(connection, "complete", queue_name=queue, claim_id=claim)
    assert sum(dialect_of(connection).stored(connection, queue).values()) == 0


@pytest.mark.promise("P04", "P12")
@pytest.mark.parametrize("archive_days", [0, 1])
def test_completing_part_of_a_claim_frees_only_its_keys(
    connection: Connection, queue: str, archive_days: int
) -> None:
    call(connection, "alter_queue", queue_name=queue, archive_days=archive_days)
    ids = enqueue(connection, queue, "a", dedup_key="a") + enqueue(
        connection, queue, "b", dedup_key="b"
    )
    claim = dequeue(connection, queue, 2)[0].claim_id
    call(connection, "complete", queue_name=queue, claim_id=claim, message_ids=ids[:1])
    assert call_one(connection, "enqueue", queue_name=queue, dedup_key="a").outcome == "enqueued"
    assert call_one(connection, "enqueue", queue_name=queue, dedup_key="b").outcome == "duplicate"


@pytest.mark.promise("P04")
def test_a_message_of_a_queue_with_an_archive_is_completed_with_its_time(
    connection: Connection, queue: str
) -> None:
    call(connection, "alter_queue", queue_name=queue, archive_days=1)
    enqueue(connection, queue, "a")
    leased = dequeue_one(connection, queue)
    call(connection, "complete", queue_name=queue, claim_id=leased.claim_id)
    row = call_one(connection, "get_message", queue_name=queue, message_id=leased.message_id)
    assert (row.state, row.body, row.attempt) == ("completed", "a", 1)
    assert row.finished_at >= row.enqueued_at


@pytest.mark.promise("P08")
@pytest.mark.parametrize("place", range(4))
def test_what_a_claim_still_holds_keeps_its_priority_attempt_and_error(
    connection: Connection, queue: str, place: int
) -> None:
    for failures, body in enumerate("abcd"):
        (message_id,) = enqueue(connection, queue, body, priority=3 - failures)
        for number in range(failures):
            common = {"queue_name": queue, "claim_id": dequeue_one(connection, queue).claim_id}
            call(
                connection,
                "retry_later",
                **common,
                message_ids=[message_id],
                delay_seconds=0,
                error=f"{body}{number}",
            )
            call(connection, "promote", queue_name=queue)
    before = dequeue(connection, queue, 4)
    common = {"queue_name": queue, "claim_id": before[0].claim_id}
    call(connection, "complete", **common, message_ids=[before[place].message_id])
    call(connection, "release", **common)
    after = dequeue(connection, queue, 4)
    rest = before[:place] + before[place + 1 :]
    assert [(row.body, row.attempt, row.last_error) for row in after] == [
        (row.body, row.attempt, row.last_error) for row in rest
    ]
