"""promote; test_maintenance.py covers what the routines of maintenance share."""

import pytest

from tests.helpers.calls import bodies, rolled_back, transaction
from tests.helpers.queues import CheckedQueue


def promote(queue: CheckedQueue, batch_size: int = 1000) -> int:
    promoted: int = queue.call_one("promote", batch_size=batch_size).promoted
    return promoted


@pytest.mark.promise("P11")
def test_only_due_messages_are_promoted(queue: CheckedQueue) -> None:
    queue.enqueue("due", delay_seconds=10)
    queue.enqueue("later", delay_seconds=1000)
    assert promote(queue) == 0
    queue.pass_seconds(100)
    assert promote(queue) == 1
    assert queue.counts() == (1, 1, 0, 0)
    assert bodies(queue.dequeue(10)) == ["due"]


@pytest.mark.promise("P05", "P11")
def test_promoted_messages_go_to_the_tail_in_due_order(queue: CheckedQueue) -> None:
    queue.enqueue("due third", delay_seconds=30)
    queue.enqueue("due first", delay_seconds=10)
    queue.enqueue("due second", delay_seconds=20)
    queue.enqueue("urgent", delay_seconds=40, priority=0)
    queue.enqueue("ready")
    queue.pass_seconds(100)
    assert promote(queue) == 4
    queue.enqueue("later")
    assert bodies(queue.dequeue(10)) == [
        "urgent",
        "ready",
        "due first",
        "due second",
        "due third",
        "later",
    ]


@pytest.mark.promise("P11", "P19")
@pytest.mark.promise("P45")
def test_promote_stops_at_the_batch_size(queue: CheckedQueue) -> None:
    for place in range(5):
        queue.enqueue(f"{place}", delay_seconds=10 + place)
    queue.pass_seconds(100)
    assert [promote(queue, 2) for _ in range(4)] == [2, 2, 1, 0]
    assert bodies(queue.dequeue(10)) == ["0", "1", "2", "3", "4"]


@pytest.mark.promise("P10", "P11")
def test_promoted_retry_keeps_attempt_and_error(queue: CheckedQueue) -> None:
    queue.enqueue("a")
    queue.finish_one("retry_later", delay_seconds=10, error="broken")
    queue.pass_seconds(100)
    assert promote(queue) == 1
    row = queue.dequeue_one()
    assert (row.attempt, row.last_error) == (2, "broken")


@pytest.mark.promise("P06", "P11")
@pytest.mark.requires("genuine")
def test_promote_skips_messages_locked_by_another_session(
    queue: CheckedQueue, elsewhere: CheckedQueue
) -> None:
    queue.enqueue("a", "b", delay_seconds=10)
    queue.pass_seconds(100)
    with transaction(elsewhere.connection):
        assert promote(elsewhere, 1) == 1
        assert promote(queue) == 1
    assert queue.counts() == (2, 0, 0, 0)


@pytest.mark.promise("P17")
def test_rolled_back_promote_is_repeated(queue: CheckedQueue) -> None:
    queue.enqueue("a", delay_seconds=10)
    queue.pass_seconds(100)
    with rolled_back(queue.connection):
        assert promote(queue) == 1
    assert promote(queue) == 1


@pytest.mark.promise("P11")
def test_promote_leaves_other_queues_unchanged(queue: CheckedQueue) -> None:
    other = queue.another()
    other.enqueue("a", delay_seconds=10)
    other.pass_seconds(100)
    assert promote(queue) == 0
    assert other.counts() == (0, 1, 0, 0)
