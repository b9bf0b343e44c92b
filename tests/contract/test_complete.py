"""complete, apart from test_finishing.py."""

import pytest

from tests.helpers.queues import CheckedQueue


@pytest.mark.promise("P04")
def test_completed_message_is_never_delivered_again(queue: CheckedQueue) -> None:
    queue.enqueue("a")
    row = queue.dequeue_one()
    queue.call("complete", claim_id=row.claim_id)
    queue.pass_seconds(100000)
    queue.call("maintain")
    assert queue.dequeue(10) == []
    assert queue.state_of(row.message_id) is None


@pytest.mark.promise("P04")
def test_completed_messages_leave_no_rows_without_archive(
    queue: CheckedQueue,
) -> None:
    for number in range(5):
        queue.enqueue("a", dedup_key=f"{number}")
    claim = queue.dequeue(5)[0].claim_id
    queue.call("complete", claim_id=claim)
    assert sum(queue.stored().values()) == 0


@pytest.mark.promise("P04", "P12")
@pytest.mark.parametrize("archive_days", [0, 1])
def test_partial_complete_releases_only_its_dedup_keys(
    queue: CheckedQueue, archive_days: int
) -> None:
    queue.call("alter_queue", archive_days=archive_days)
    ids = queue.enqueue("a", dedup_key="a") + queue.enqueue("b", dedup_key="b")
    claim = queue.dequeue(2)[0].claim_id
    queue.call("complete", claim_id=claim, message_ids=ids[:1])
    assert queue.call_one("enqueue", dedup_key="a").outcome == "enqueued"
    assert queue.call_one("enqueue", dedup_key="b").outcome == "duplicate"


@pytest.mark.promise("P04")
def test_archived_message_has_finished_at(
    queue: CheckedQueue,
) -> None:
    queue.call("alter_queue", archive_days=1)
    queue.enqueue("a")
    leased = queue.dequeue_one()
    queue.call("complete", claim_id=leased.claim_id)
    row = queue.message(leased.message_id)
    assert (row.state, row.body, row.attempt) == ("completed", "a", 1)
    assert row.finished_at >= row.enqueued_at


@pytest.mark.promise("P08")
@pytest.mark.parametrize("place", range(4))
def test_partial_complete_keeps_the_other_messages(queue: CheckedQueue, place: int) -> None:
    for failures, body in enumerate("abcd"):
        (message_id,) = queue.enqueue(body, priority=3 - failures)
        for number in range(failures):
            error = f"{body}{number}"
            queue.finish_one("retry_later", message_ids=[message_id], delay_seconds=0, error=error)
            queue.call("promote")
    before = queue.dequeue(4)
    common = {"claim_id": before[0].claim_id}
    queue.call("complete", **common, message_ids=[before[place].message_id])
    queue.call("release", **common)
    after = queue.dequeue(4)
    rest = before[:place] + before[place + 1 :]
    assert [(row.body, row.attempt, row.last_error) for row in after] == [
        (row.body, row.attempt, row.last_error) for row in rest
    ]
