"""resume_queue."""

import pytest

from tests.helpers.calls import bodies
from tests.helpers.queues import CheckedQueue

pytestmark = pytest.mark.promise("P18")


def test_resume_queue_delivers_in_order(queue: CheckedQueue) -> None:
    queue.enqueue("first")
    queue.call("pause_queue")
    queue.enqueue("second")
    row = queue.call_one("resume_queue")
    assert (row.queue_name, row.outcome) == (queue.name, "resumed")
    assert queue.call_one("queue_stats").is_paused is False
    assert bodies(queue.dequeue(10)) == ["first", "second"]


def test_resume_queue_accepts_a_queue_that_is_not_paused(queue: CheckedQueue) -> None:
    assert queue.call_one("resume_queue").outcome == "resumed"
