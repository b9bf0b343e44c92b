"""reap, beyond what it shares with the rest of the housekeeping (test_housekeeping.py)."""

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
    outcomes,
    rolled_back,
    transaction,
)
from tests.stored_times import expire_claim, pass_seconds


@pytest.mark.promise("P03", "P09")
def test_messages_return_to_the_front_of_their_priority_with_the_attempt_counted(
    connection: Connection, queue: str
) -> None:
    enqueue(connection, queue, "a", "b", "c")
    dequeue(connection, queue, 2, worker_name="w1")
    enqueue(connection, queue, "d")
    enqueue(connection, queue, "urgent", priority=0)
    pass_seconds(connection, queue, 31)
    row = call_one(connection, "reap", queue_name=queue)
    assert (row.reaped, row.died) == (2, 0)
    rows = dequeue(connection, queue, 10)
    assert bodies(rows) == ["urgent", "a", "b", "c", "d"]
    assert [row.attempt for row in rows] == [1, 2, 2, 1, 1]
    assert rows[1].last_error is not None
    assert "lease expired" in rows[1].last_error
    assert "w1" in rows[1].last_error


@pytest.mark.promise("P09")
def test_a_lease_that_has_not_run_out_is_left_alone(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, "a")
    dequeue_one(connection, queue, lease_seconds=60)
    pass_seconds(connection, queue, 30)
    row = call_one(connection, "reap", queue_name=queue)
    assert (row.reaped, row.died) == (0, 0)
    assert counts(connection, queue) == (0, 0, 1, 0)


@pytest.mark.promise("P09")
def test_only_the_claim_whose_lease_ran_out_is_reaped(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, "a", "b", "c")
    claims = [dequeue_one(connection, queue).claim_id for _ in range(3)]
    expire_claim(connection, claims[1])
    assert call_one(connection, "reap", queue_name=queue).reaped == 1
    assert bodies(dequeue(connection, queue, 10)) == ["b"]


@pytest.mark.promise("P09")
def test_what_the_worker_finished_before_is_not_reaped(connection: Connection, queue: str) -> None:
    ids = enqueue(connection, queue, "a", "b", "c")
    claim = dequeue(connection, queue, 3)[0].claim_id
    call(connection, "complete", queue_name=queue, claim_id=claim, message_ids=[ids[1]])
    pass_seconds(connection, queue, 100)
    assert call_one(connection, "reap", queue_name=queue).reaped == 2
    assert bodies(dequeue(connection, queue, 10)) == ["a", "c"]


@pytest.mark.promise("P09", "P10")
def test_messages_without_an_attempt_left_are_dead(connection: Connection, queue: str) -> None:
    call(connection, "alter_queue", queue_name=queue, max_attempts=1)
    first, second = (
        *enqueue(connection, queue, "dies", dedup_key="key", priority=2),
        *enqueue(connection, queue, "lives", max_attempts=2),
    )
    dequeue(connection, queue, 2, worker_name="w1")
    pass_seconds(connection, queue, 100)
    row = call_one(connection, "reap", queue_name=queue)
    assert (row.reaped, row.died) == (1, 1)
    dead = call_one(connection, "get_message", queue_name=queue, message_id=first)
    assert (dead.state, dead.attempt, dead.priority) == ("dead", 1, 2)
    assert "lease expired" in dead.last_error
    assert dequeue_one(connection, queue).message_id == second
    assert call_one(connection, "enqueue", queue_name=queue, dedup_key="key").outcome == "enqueued"


@pytest.mark.promise("P09", "P10")
def test_a_message_that_always_kills_its_worker_dies_in_the_end(
    connection: Connection, queue: str
) -> None:
    enqueue(connection, queue, "poison", max_attempts=3)
    found = []
    for _ in range(3):
        dequeue_one(connection, queue)
        pass_seconds(connection, queue, 100)
        row = call_one(connection, "reap", queue_name=queue)
        found.append((row.reaped, row.died))
    assert found == [(1, 0), (1, 0), (0, 1)]
    assert counts(connection, queue) == (0, 0, 0, 1)


@pytest.mark.promise("P05", "P09")
def test_reaped_messages_of_each_priority_keep_their_order(
    connection: Connection, queue: str
) -> None:
    for place in range(3):
        for priority in (0, 5, 9):
            enqueue(connection, queue, f"{priority}{place}", priority=priority)
    order = bodies(dequeue(connection, queue, 9))
    pass_seconds(connection, queue, 100)
    call(connection, "reap", queue_name=queue)
    assert bodies(dequeue(connection, queue, 9)) == order


@pytest.mark.promise("P09", "P19")
def test_a_small_batch_size_reaps_claim_by_claim(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, *"abcdef")
    for _ in range(3):
        dequeue(connection, queue, 2)
    pass_seconds(connection, queue, 100)
    reaped = [call_one(connection, "reap", queue_name=queue, batch_size=1).reaped for _ in range(4)]
    assert reaped == [2, 2, 2, 0]
    assert bodies(dequeue(connection, queue, 10)) == [*"abcdef"]


@pytest.mark.promise("P03", "P06", "P08")
@pytest.mark.requires("genuine")
def test_a_claim_that_is_being_finished_is_passed_over(
    connection: Connection, connect: Callable[..., Connection], queue: str
) -> None:
    enqueue(connection, queue, "a")
    claim = dequeue_one(connection, queue).claim_id
    pass_seconds(connection, queue, 100)
    worker = connect()
    with transaction(worker):
        done = call(worker, "complete", queue_name=queue, claim_id=claim)
        assert list(outcomes(done).values()) == ["completed"]
        assert call_one(connection, "reap", queue_name=queue).reaped == 0
    assert call_one(connection, "reap", queue_name=queue).reaped == 0
    assert counts(connection, queue) == (0, 0, 0, 0)


@pytest.mark.promise("P17")
def test_what_is_rolled_back_is_reaped_by_the_next(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, "a")
    dequeue_one(connection, queue)
    pass_seconds(connection, queue, 100)
    with rolled_back(connection):
        assert call_one(connection, "reap", queue_name=queue).reaped == 1
    assert call_one(connection, "reap", queue_name=queue).reaped == 1
