"""drop_schedule."""

import pytest

from tests.contract.test_create_schedule import HOURLY
from tests.helpers.calls import rolled_back
from tests.helpers.queues import CheckedQueue


@pytest.mark.promise("P30")
def test_drop_schedule_keeps_its_messages(queue: CheckedQueue) -> None:
    for name in ("nightly", "other"):
        queue.call("create_schedule", schedule_name=name, **HOURLY)
    queue.call("run_schedule", schedule_name="nightly")
    row = queue.call_one("drop_schedule", schedule_name="nightly")
    assert (row.schedule_name, row.outcome) == ("nightly", "dropped")
    assert [row.schedule_name for row in queue.call("list_schedules")] == ["other"]
    assert queue.counts() == (1, 0, 0, 0)


@pytest.mark.promise("P15")
def test_drop_schedule_refuses_unknown_name(queue: CheckedQueue) -> None:
    assert "nightly" in queue.refused("RQ702", "drop_schedule", schedule_name="nightly")
    assert "schedule_name" in queue.refused("RQ711", "drop_schedule", schedule_name=None)


@pytest.mark.promise("P01")
def test_drop_schedule_can_be_rolled_back(queue: CheckedQueue) -> None:
    queue.call("create_schedule", schedule_name="nightly", **HOURLY)
    with rolled_back(queue.connection):
        queue.call("drop_schedule", schedule_name="nightly")
    assert len(queue.call("list_schedules")) == 1


@pytest.mark.promise("P30")
def test_drop_queue_drops_its_schedules(queue: CheckedQueue) -> None:
    other = queue.another()
    for one in (queue, other):
        one.call("create_schedule", schedule_name="nightly", **HOURLY)
    queue.call("drop_queue")
    queue.call("create_queue")
    assert queue.call("list_schedules") == []
    assert len(other.call("list_schedules")) == 1
