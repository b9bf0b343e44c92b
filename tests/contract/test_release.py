"""release, beyond what it shares with the other finishing routines (test_finishing.py)."""

from __future__ import annotations

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import bodies, call, call_one, dequeue, dequeue_one, enqueue


@pytest.mark.promise("P05", "P08")
def test_released_messages_go_to_the_front_of_their_priority_in_their_order(
    connection: Connection, queue: str
) -> None:
    enqueue(connection, queue, "a", "b", "c", "d")
    claim = dequeue(connection, queue, 2)[0].claim_id
    call(connection, "release", queue_name=queue, claim_id=claim)
    assert bodies(dequeue(connection, queue, 10)) == ["a", "b", "c", "d"]


@pytest.mark.promise("P05", "P08")
def test_the_front_of_a_priority_is_behind_all_better_ones(
    connection: Connection, queue: str
) -> None:
    enqueue(connection, queue, "5a", "5b")
    claim = dequeue_one(connection, queue).claim_id
    enqueue(connection, queue, "4", priority=4)
    call(connection, "release", queue_name=queue, claim_id=claim)
    assert bodies(dequeue(connection, queue, 10)) == ["4", "5a", "5b"]


@pytest.mark.promise("P08")
def test_the_attempt_is_not_spent(connection: Connection, queue: str) -> None:
    [message_id] = enqueue(connection, queue, "a", max_attempts=1)
    for _ in range(3):
        row = dequeue_one(connection, queue)
        assert row.attempt == 1
        call(connection, "release", queue_name=queue, claim_id=row.claim_id)
        found = call_one(connection, "get_message", queue_name=queue, message_id=message_id)
        assert (found.state, found.attempt) == ("ready", 0)


@pytest.mark.promise("P08", "P10")
def test_earlier_attempts_and_their_error_are_kept(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, "a")
    row = dequeue_one(connection, queue)
    call(
        connection,
        "retry_later",
        queue_name=queue,
        claim_id=row.claim_id,
        delay_seconds=0,
        error="broken",
    )
    row = dequeue_one(connection, queue)
    call(connection, "release", queue_name=queue, claim_id=row.claim_id)
    row = dequeue_one(connection, queue)
    assert (row.attempt, row.last_error) == (2, "broken")


@pytest.mark.promise("P12")
def test_a_released_message_keeps_its_key(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, "a", dedup_key="key")
    claim = dequeue_one(connection, queue).claim_id
    call(connection, "release", queue_name=queue, claim_id=claim)
    assert call_one(connection, "enqueue", queue_name=queue, dedup_key="key").outcome == "duplicate"
