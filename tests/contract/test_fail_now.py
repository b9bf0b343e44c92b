"""fail_now, beyond what it shares with the other finishing routines (test_finishing.py)."""

from __future__ import annotations

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import call, call_one, counts, dequeue, dequeue_one, enqueue
from tests.stored_times import pass_seconds


@pytest.mark.promise("P10")
def test_a_message_is_dead_although_it_has_attempts_left(
    connection: Connection, queue: str
) -> None:
    enqueue(connection, queue, "a", priority=2, max_attempts=5)
    leased = dequeue_one(connection, queue)
    call(connection, "fail_now", queue_name=queue, claim_id=leased.claim_id, error="no use")
    pass_seconds(connection, queue, 100000)
    call(connection, "maintain", queue_name=queue)
    assert dequeue(connection, queue) == []
    row = call_one(connection, "get_message", queue_name=queue, message_id=leased.message_id)
    assert (row.state, row.attempt, row.last_error) == ("dead", 1, "no use")
    assert (row.priority, row.body, row.max_attempts) == (2, "a", 5)
    assert counts(connection, queue) == (0, 0, 0, 1)


@pytest.mark.promise("P10")
@pytest.mark.parametrize("error", [None, "", "é🐘" * 1500, "x" + "🐘" * 2500])
def test_the_error_is_kept_up_to_2000_characters(
    connection: Connection, queue: str, error: str | None
) -> None:
    enqueue(connection, queue, "a")
    claim = dequeue_one(connection, queue).claim_id
    call(connection, "fail_now", queue_name=queue, claim_id=claim, error=error)
    [row] = call(connection, "list_dead", queue_name=queue)
    assert row.last_error == (error and error[:2000])


@pytest.mark.promise("P10", "P12")
def test_a_dead_message_frees_its_key(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, "a", dedup_key="key")
    claim = dequeue_one(connection, queue).claim_id
    call(connection, "fail_now", queue_name=queue, claim_id=claim)
    assert call_one(connection, "enqueue", queue_name=queue, dedup_key="key").outcome == "enqueued"
