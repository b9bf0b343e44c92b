"""promote, beyond what it shares with the rest of the housekeeping (test_housekeeping.py)."""

from __future__ import annotations

from collections.abc import Callable

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
    rolled_back,
    transaction,
)
from tests.stored_times import pass_seconds


def promote(connection: Connection, queue: str, batch_size: int = 1000) -> int:
    promoted: int = call_one(
        connection, "promote", queue_name=queue, batch_size=batch_size
    ).promoted
    return promoted


@pytest.mark.promise("P11")
def test_due_messages_are_ready_and_the_others_wait_on(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, "due", delay_seconds=10)
    enqueue(connection, queue, "later", delay_seconds=1000)
    assert promote(connection, queue) == 0
    pass_seconds(connection, queue, 100)
    assert promote(connection, queue) == 1
    assert counts(connection, queue) == (1, 1, 0, 0)
    assert bodies(dequeue(connection, queue, 10)) == ["due"]


@pytest.mark.promise("P05", "P11")
def test_they_go_to_the_tail_of_their_priority_the_earliest_first(
    connection: Connection, queue: str
) -> None:
    enqueue(connection, queue, "due third", delay_seconds=30)
    enqueue(connection, queue, "due first", delay_seconds=10)
    enqueue(connection, queue, "due second", delay_seconds=20)
    enqueue(connection, queue, "urgent", delay_seconds=40, priority=0)
    enqueue(connection, queue, "ready")
    pass_seconds(connection, queue, 100)
    assert promote(connection, queue) == 4
    enqueue(connection, queue, "later")
    assert bodies(dequeue(connection, queue, 10)) == [
        "urgent",
        "ready",
        "due first",
        "due second",
        "due third",
        "later",
    ]


@pytest.mark.promise("P11", "P19")
def test_no_more_than_a_batch_is_promoted_the_earliest_first(
    connection: Connection, queue: str
) -> None:
    for place in range(5):
        enqueue(connection, queue, f"{place}", delay_seconds=10 + place)
    pass_seconds(connection, queue, 100)
    assert [promote(connection, queue, 2) for _ in range(4)] == [2, 2, 1, 0]
    assert bodies(dequeue(connection, queue, 10)) == ["0", "1", "2", "3", "4"]


@pytest.mark.promise("P10", "P11")
def test_a_retried_message_keeps_its_attempt_and_its_error(
    connection: Connection, queue: str
) -> None:
    enqueue(connection, queue, "a")
    claim = dequeue_one(connection, queue).claim_id
    call(
        connection,
        "retry_later",
        queue_name=queue,
        claim_id=claim,
        delay_seconds=10,
        error="broken",
    )
    pass_seconds(connection, queue, 100)
    assert promote(connection, queue) == 1
    row = dequeue_one(connection, queue)
    assert (row.attempt, row.last_error) == (2, "broken")


@pytest.mark.promise("P06", "P11")
@pytest.mark.requires("genuine")
def test_messages_that_another_session_promotes_are_passed_over(
    connection: Connection, connect: Callable[..., Connection], queue: str
) -> None:
    enqueue(connection, queue, "a", "b", delay_seconds=10)
    pass_seconds(connection, queue, 100)
    other = connect()
    with transaction(other):
        assert promote(other, queue, 1) == 1
        assert promote(connection, queue) == 1
    assert counts(connection, queue) == (2, 0, 0, 0)


@pytest.mark.promise("P17")
def test_what_is_rolled_back_is_promoted_by_the_next(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, "a", delay_seconds=10)
    pass_seconds(connection, queue, 100)
    with rolled_back(connection):
        assert promote(connection, queue) == 1
    assert promote(connection, queue) == 1


@pytest.mark.promise("P11")
def test_messages_of_other_queues_are_left_alone(connection: Connection, queue: str) -> None:
    other = f"{queue[:80]} other"
    call(connection, "create_queue", queue_name=other)
    enqueue(connection, other, "a", delay_seconds=10)
    pass_seconds(connection, other, 100)
    assert promote(connection, queue) == 0
    assert counts(connection, other) == (0, 1, 0, 0)
