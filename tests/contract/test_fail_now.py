"""fail_now, apart from test_finishing.py."""

import pytest

from tests.helpers.queues import CheckedQueue


@pytest.mark.promise("P10")
def test_fail_now_ignores_remaining_attempts(queue: CheckedQueue) -> None:
    queue.enqueue("a", priority=2, max_attempts=5)
    leased = queue.dequeue_one()
    queue.call("fail_now", claim_id=leased.claim_id, error="no use")
    queue.pass_seconds(100000)
    queue.call("maintain")
    assert queue.dequeue() == []
    row = queue.message(leased.message_id)
    assert (row.state, row.attempt, row.last_error) == ("dead", 1, "no use")
    assert (row.priority, row.body, row.max_attempts) == (2, "a", 5)
    assert queue.counts() == (0, 0, 0, 1)


@pytest.mark.promise("P10")
@pytest.mark.parametrize("error", [None, "", "é🐘" * 1500, "x" + "🐘" * 2500])
def test_error_of_dead_message_is_truncated_to_2000_characters(
    queue: CheckedQueue, error: str | None
) -> None:
    queue.enqueue("a")
    queue.finish_one("fail_now", error=error)
    [row] = queue.call("list_dead")
    assert row.last_error == (error and error[:2000])


@pytest.mark.promise("P10", "P12")
def test_dead_message_releases_its_dedup_key(queue: CheckedQueue) -> None:
    queue.enqueue("a", dedup_key="key")
    queue.finish_one("fail_now")
    assert queue.call_one("enqueue", dedup_key="key").outcome == "enqueued"
