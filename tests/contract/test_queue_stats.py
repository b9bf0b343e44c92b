"""queue_stats."""

from __future__ import annotations

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import (
    call,
    call_one,
    counts,
    dequeue,
    dequeue_one,
    enqueue,
    make_dead,
    refused,
    rolled_back,
)
from tests.stored_times import pass_seconds


@pytest.fixture
def full(connection: Connection, queue: str) -> str:
    """Return a queue with 3 ready, 2 delayed, 4 leased and a dead message."""
    make_dead(connection, queue, "dead")
    enqueue(connection, queue, *"abcd")
    dequeue(connection, queue, 3)
    dequeue_one(connection, queue)
    enqueue(connection, queue, "delayed", "delayed", delay_seconds=100)
    enqueue(connection, queue, "urgent", priority=0)
    enqueue(connection, queue, "normal")
    enqueue(connection, queue, "idle", priority=9)
    return queue


@pytest.mark.promise("P02")
def test_messages_are_counted_by_where_they_are(connection: Connection, full: str) -> None:
    assert counts(connection, full) == (3, 2, 4, 1)


@pytest.mark.promise("P02")
def test_a_new_queue_has_nothing(connection: Connection, queue: str) -> None:
    row = call_one(connection, "queue_stats", queue_name=queue)
    assert (row.ready, row.delayed, row.leased, row.dead) == (0, 0, 0, 0)
    assert (row.is_paused, row.oldest_ready_seconds) == (False, None)


@pytest.mark.promise("P02")
def test_without_a_name_every_queue_is_shown_in_the_order_of_names(
    connection: Connection, full: str
) -> None:
    rows = call(connection, "queue_stats")
    names = [row.queue_name for row in rows]
    assert full in names
    assert len(names) == len(set(names))
    [mine] = [row for row in rows if row.queue_name == full]
    assert (mine.ready, mine.delayed, mine.leased, mine.dead) == (3, 2, 4, 1)
    assert len(call(connection, "queue_stats", queue_name=None)) == len(rows)


@pytest.mark.promise("P13")
@pytest.mark.parametrize("max_count", [1, 2, 3, 4, 100000000])
def test_counting_stops_at_max_count(connection: Connection, full: str, max_count: int) -> None:
    row = call_one(connection, "queue_stats", queue_name=full, max_count=max_count)
    found = (row.ready, row.delayed, row.leased, row.dead)
    assert found == tuple(min(count, max_count) for count in (3, 2, 4, 1))


@pytest.mark.promise("P05")
def test_the_age_is_that_of_the_oldest_message_at_the_head_of_a_lane(
    connection: Connection, queue: str
) -> None:
    enqueue(connection, queue, "old", priority=9)
    pass_seconds(connection, queue, 1000)
    enqueue(connection, queue, "young", priority=0)
    age = call_one(connection, "queue_stats", queue_name=queue).oldest_ready_seconds
    assert 1000 <= age < 1100
    dequeue_one(connection, queue)
    claim = dequeue_one(connection, queue).claim_id
    assert call_one(connection, "queue_stats", queue_name=queue).oldest_ready_seconds is None
    call(connection, "release", queue_name=queue, claim_id=claim)
    assert call_one(connection, "queue_stats", queue_name=queue).oldest_ready_seconds >= 1000


@pytest.mark.promise("P01")
def test_only_what_is_committed_counts_for_others(connection: Connection, queue: str) -> None:
    with rolled_back(connection):
        enqueue(connection, queue, "a")
        assert counts(connection, queue) == (1, 0, 0, 0)
    assert counts(connection, queue) == (0, 0, 0, 0)


@pytest.mark.promise("P15")
@pytest.mark.parametrize("max_count", [0, -1, 100000001, None])
def test_a_number_out_of_range_is_refused(
    connection: Connection, queue: str, max_count: int | None
) -> None:
    text = refused(connection, "RQ711", "queue_stats", queue_name=queue, max_count=max_count)
    assert "max_count" in text


@pytest.mark.promise("P15")
def test_an_unknown_queue_is_refused(connection: Connection, queue_name: str) -> None:
    refused(connection, "RQ701", "queue_stats", queue_name=queue_name)
