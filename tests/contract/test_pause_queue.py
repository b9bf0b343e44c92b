"""pause_queue."""

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import bodies, outcomes, rolled_back
from tests.helpers.queues import CheckedQueue

pytestmark = pytest.mark.promise("P18")


def test_paused_queue_accepts_messages_and_delivers_none(queue: CheckedQueue) -> None:
    queue.enqueue("before")
    row = queue.call_one("pause_queue")
    assert (row.queue_name, row.outcome) == (queue.name, "paused")
    queue.enqueue("after")
    queue.call("enqueue_batch", messages=[{"body": "batch"}])
    assert queue.dequeue(10) == []
    assert queue.call_one("dequeue_wait", wait_seconds=0).messages is None
    assert queue.call_one("queue_stats").is_paused is True
    assert queue.counts() == (3, 0, 0, 0)


def test_peek_reads_a_paused_queue(queue: CheckedQueue) -> None:
    queue.enqueue("seen")
    queue.call("pause_queue")
    assert queue.call_one("peek").body == "seen"


def test_paused_queue_finishes_leased_messages(queue: CheckedQueue) -> None:
    queue.enqueue("a", "b", "c", "d")
    rows = queue.dequeue(4)
    queue.call("pause_queue")
    common = {"claim_id": rows[0].claim_id}
    ids = [row.message_id for row in rows]
    queue.call("extend_lease", **common, lease_seconds=60)
    found = {
        **outcomes(queue.call("complete", **common, message_ids=ids[:1])),
        **outcomes(queue.call("retry_later", **common, message_ids=ids[1:2])),
        **outcomes(queue.call("fail_now", **common, message_ids=ids[2:3])),
        **outcomes(queue.call("release", **common, message_ids=ids[3:])),
    }
    assert list(found.values()) == ["completed", "retrying", "dead", "released"]


def test_maintain_works_on_a_paused_queue(queue: CheckedQueue) -> None:
    queue.enqueue("leased")
    queue.dequeue_one()
    queue.enqueue("delayed", delay_seconds=60)
    queue.call("pause_queue")
    queue.pass_seconds(100)
    row = queue.call_one("maintain")
    assert (row.reaped, row.promoted) == (1, 1)
    assert queue.dequeue(10) == []
    queue.call("resume_queue")
    assert bodies(queue.dequeue(10)) == ["leased", "delayed"]


def test_pause_queue_may_be_repeated(queue: CheckedQueue) -> None:
    for _ in range(2):
        assert queue.call_one("pause_queue").outcome == "paused"


def test_pause_queue_leaves_other_queues(queue: CheckedQueue) -> None:
    other = queue.another()
    other.enqueue("delivered")
    queue.call("pause_queue")
    assert other.dequeue_one().body == "delivered"


@pytest.mark.promise("P17", "P18")
def test_rolled_back_pause_does_not_stop_delivery(
    connection: Connection, queue: CheckedQueue
) -> None:
    queue.enqueue("delivered")
    with rolled_back(connection):
        queue.call("pause_queue")
    assert queue.dequeue_one().body == "delivered"
