"""queue_stats."""

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import call, refused, rolled_back
from tests.helpers.queues import CheckedQueue


@pytest.fixture
def full(queue: CheckedQueue) -> CheckedQueue:
    """Return a queue with 3 ready, 2 delayed, 4 leased and a dead message."""
    queue.make_dead("dead")
    queue.enqueue(*"abcd")
    queue.dequeue(3)
    queue.dequeue_one()
    queue.enqueue("delayed", "delayed", delay_seconds=100)
    queue.enqueue("urgent", priority=0)
    queue.enqueue("normal")
    queue.enqueue("idle", priority=9)
    return queue


@pytest.mark.promise("P02")
def test_queue_stats_counts_messages_by_state(full: CheckedQueue) -> None:
    assert full.counts() == (3, 2, 4, 1)


@pytest.mark.promise("P02")
def test_queue_stats_of_a_new_queue_are_zero(queue: CheckedQueue) -> None:
    row = queue.call_one("queue_stats")
    assert (row.ready, row.delayed, row.leased, row.dead) == (0, 0, 0, 0)
    assert (row.is_paused, row.oldest_ready_seconds) == (False, None)


@pytest.mark.promise("P02")
def test_queue_stats_without_a_name_returns_every_queue(
    connection: Connection, full: CheckedQueue
) -> None:
    rows = call(connection, "queue_stats")
    names = [row.queue_name for row in rows]
    assert full.name in names
    assert len(names) == len(set(names))
    [mine] = [row for row in rows if row.queue_name == full.name]
    assert (mine.ready, mine.delayed, mine.leased, mine.dead) == (3, 2, 4, 1)
    assert len(call(connection, "queue_stats", queue_name=None)) == len(rows)


@pytest.mark.promise("P13")
@pytest.mark.parametrize("size", [1, 2, 10000, None])
def test_queue_stats_returns_every_queue_once_in_pages(
    connection: Connection, queue_name: str, size: int | None
) -> None:
    names = [
        queue_name + end for end in ("", " ", "  ", "-", ".", "A", "a", "ä", "é", "\uffee", "𝄞")
    ]
    for name in names:
        call(connection, "create_queue", queue_name=name)
        call(connection, "enqueue", queue_name=name, body="x")
    found: list[str] = []
    after = queue_name[:-1]
    while set(found) < set(names):
        page = call(connection, "queue_stats", after_queue_name=after, max_queues=size)
        assert 0 < len(page) <= (size or len(page))
        found += [row.queue_name for row in page]
        assert {row.ready for row in page if row.queue_name in names} <= {1}
        after = found[-1]
    assert len(found) == len(set(found))
    assert queue_name[:-1] not in found


def test_queue_stats_of_one_queue_has_no_pages(full: CheckedQueue) -> None:
    [row] = full.call("queue_stats", after_queue_name=full.name, max_queues=1)
    assert row.queue_name == full.name


@pytest.mark.promise("P15")
@pytest.mark.parametrize("max_queues", [0, -1, 10001])
def test_queue_stats_refuses_max_queues_out_of_range(
    connection: Connection, max_queues: int
) -> None:
    text = refused(connection, "RQ711", "queue_stats", max_queues=max_queues)
    assert "max_queues" in text


@pytest.mark.promise("P13")
@pytest.mark.parametrize("max_count", [1, 2, 3, 4, 100000000])
def test_queue_stats_counts_up_to_max_count(full: CheckedQueue, max_count: int) -> None:
    row = full.call_one("queue_stats", max_count=max_count)
    found = (row.ready, row.delayed, row.leased, row.dead)
    assert found == tuple(min(count, max_count) for count in (3, 2, 4, 1))


@pytest.mark.promise("P05")
def test_oldest_ready_seconds_is_of_the_oldest_lane_head(queue: CheckedQueue) -> None:
    queue.enqueue("old", priority=9)
    queue.pass_seconds(1000)
    queue.enqueue("young", priority=0)
    age = queue.call_one("queue_stats").oldest_ready_seconds
    assert 1000 <= age < 1100
    queue.dequeue_one()
    claim = queue.dequeue_one().claim_id
    assert queue.call_one("queue_stats").oldest_ready_seconds is None
    queue.call("release", claim_id=claim)
    assert queue.call_one("queue_stats").oldest_ready_seconds >= 1000


@pytest.mark.promise("P01")
def test_queue_stats_counts_uncommitted_only_for_their_session(queue: CheckedQueue) -> None:
    with rolled_back(queue.connection):
        queue.enqueue("a")
        assert queue.counts() == (1, 0, 0, 0)
    assert queue.counts() == (0, 0, 0, 0)


@pytest.mark.promise("P15")
@pytest.mark.parametrize("max_count", [0, -1, 100000001, None])
def test_queue_stats_refuses_max_count_out_of_range(
    queue: CheckedQueue, max_count: int | None
) -> None:
    text = queue.refused("RQ711", "queue_stats", max_count=max_count)
    assert "max_count" in text
