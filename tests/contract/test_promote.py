"""promote; test_maintenance.py covers what the routines of maintenance share."""

import pytest

from tests.helpers.calls import bodies, rolled_back, transaction
from tests.helpers.queues import CheckedQueue


def promote(queue: CheckedQueue, batch_size: int = 1000) -> int:
    promoted: int = queue.call_one("promote", batch_size=batch_size).promoted
    return promoted


@pytest.mark.promise("P11")
def test_due_messages_are_ready_and_the_others_wait_on(queue: CheckedQueue) -> None:
    queue.enqueue("due", delay_seconds=10)
    queue.enqueue("later", delay_seconds=1000)
    assert promote(queue) == 0
    queue.pass_seconds(100)
    assert promote(queue) == 1
    assert queue.counts() == (1, 1, 0, 0)
    assert bodies(queue.dequeue(10)) == ["due"]


@pytest.mark.promise("P05", "P11")
def test_they_go_to_the_tail_of_their_priority_the_earliest_first(queue: CheckedQueue) -> None:
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
def test_no_more_than_a_batch_is_promoted_the_earliest_first(queue: CheckedQueue) -> None:
    for place in range(5):
        queue.enqueue(f"{place}", delay_seconds=10 + place)
    queue.pass_seconds(100)
    assert [promote(queue, 2) for _ in range(4)] == [2, 2, 1, 0]
    assert bodies(queue.dequeue(10)) == ["0", "1", "2", "3", "4"]


@pytest.mark.promise("P10", "P11")
def test_a_retried_message_keeps_its_attempt_and_its_error(queue: CheckedQueue) -> None:
    queue.enqueue("a")
    queue.finish_one("retry_later", delay_seconds=10, error="broken")
    queue.pass_seconds(100)
    assert promote(queue) == 1
    row = queue.dequeue_one()
    assert (row.attempt, row.last_error) == (2, "broken")


@pytest.mark.promise("P06", "P11")
@pytest.mark.requires("genuine")
def test_messages_that_another_session_promotes_are_passed_over(
    queue: CheckedQueue, elsewhere: CheckedQueue
) -> None:
    queue.enqueue("a", "b", delay_seconds=10)
    queue.pass_seconds(100)
    with transaction(elsewhere.connection):
        assert promote(elsewhere, 1) == 1
        assert promote(queue) == 1
    assert queue.counts() == (2, 0, 0, 0)


@pytest.mark.promise("P17")
def test_what_is_rolled_back_is_promoted_by_the_next(queue: CheckedQueue) -> None:
    queue.enqueue("a", delay_seconds=10)
    queue.pass_seconds(100)
    with rolled_back(queue.connection):
        assert promote(queue) == 1
    assert promote(queue) == 1


@pytest.mark.promise("P11")
def test_messages_of_other_queues_are_left_alone(queue: CheckedQueue) -> None:
    other = queue.another()
    other.enqueue("a", delay_seconds=10)
    other.pass_seconds(100)
    assert promote(queue) == 0
    assert other.counts() == (0, 1, 0, 0)
