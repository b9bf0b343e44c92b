"""release, apart from test_finishing.py."""

import pytest

from tests.helpers.calls import bodies
from tests.helpers.queues import CheckedQueue


@pytest.mark.promise("P05", "P08")
def test_released_messages_return_to_the_front_in_order(
    queue: CheckedQueue,
) -> None:
    queue.enqueue("a", "b", "c", "d")
    claim = queue.dequeue(2)[0].claim_id
    queue.call("release", claim_id=claim)
    assert bodies(queue.dequeue(10)) == ["a", "b", "c", "d"]


@pytest.mark.promise("P05", "P08")
def test_released_message_stays_behind_better_priorities(queue: CheckedQueue) -> None:
    queue.enqueue("5a", "5b")
    claim = queue.dequeue_one().claim_id
    queue.enqueue("4", priority=4)
    queue.call("release", claim_id=claim)
    assert bodies(queue.dequeue(10)) == ["4", "5a", "5b"]


@pytest.mark.promise("P08")
def test_release_does_not_spend_the_attempt(queue: CheckedQueue) -> None:
    [message_id] = queue.enqueue("a", max_attempts=1)
    for _ in range(3):
        row = queue.dequeue_one()
        assert row.attempt == 1
        queue.call("release", claim_id=row.claim_id)
        found = queue.message(message_id)
        assert (found.state, found.attempt) == ("ready", 0)


@pytest.mark.promise("P08", "P10")
def test_release_keeps_earlier_attempts_and_error(queue: CheckedQueue) -> None:
    queue.enqueue("a")
    row = queue.dequeue_one()
    queue.call("retry_later", claim_id=row.claim_id, delay_seconds=0, error="broken")
    row = queue.dequeue_one()
    queue.call("release", claim_id=row.claim_id)
    row = queue.dequeue_one()
    assert (row.attempt, row.last_error) == (2, "broken")


@pytest.mark.promise("P12")
def test_released_message_keeps_its_dedup_key(queue: CheckedQueue) -> None:
    queue.enqueue("a", dedup_key="key")
    queue.finish_one("release")
    assert queue.call_one("enqueue", dedup_key="key").outcome == "duplicate"
