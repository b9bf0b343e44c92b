"""run_schedule."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.contract.test_create_schedule import HOURLY, scheduled
from tests.helpers.queues import CheckedQueue


@pytest.mark.promise("P20", "P30")
def test_run_schedule_enqueues_message_and_keeps_next_tick(queue: CheckedQueue) -> None:
    made = queue.call_one(
        "create_schedule",
        schedule_name="nightly",
        body="body",
        message_type="type",
        headers={"schedule": "another", "own": [1, "2"]},
        priority=1,
        max_attempts=3,
        **HOURLY,
    )
    row = queue.call_one("run_schedule", schedule_name="nightly")
    assert row.outcome == "enqueued"
    message = queue.message(row.message_id)
    assert (message.body, message.message_type, message.priority) == ("body", "type", 1)
    assert (message.max_attempts, message.dedup_key, message.state) == (3, None, "ready")
    tick = message.headers.pop("tick")
    assert message.headers == {"schedule": "nightly", "own": [1, "2"]}
    assert abs(datetime.fromisoformat(tick) - datetime.now(UTC)) < timedelta(seconds=60)
    shown = scheduled(queue)
    assert (shown.next_run_at, shown.last_message_id) == (made.next_run_at, row.message_id)
    assert abs(shown.last_run_at - datetime.now(UTC)) < timedelta(seconds=60)


@pytest.mark.promise("P12", "P30")
def test_run_schedule_without_overlap_returns_duplicate(queue: CheckedQueue) -> None:
    queue.call("create_schedule", schedule_name="nightly", overlap=False, **HOURLY)
    first = queue.call_one("run_schedule", schedule_name="nightly")
    again = queue.call_one("run_schedule", schedule_name="nightly")
    assert (again.outcome, again.message_id) == ("duplicate", first.message_id)
    assert queue.message(first.message_id).dedup_key == "schedule:nightly"
    queue.finish_one()
    assert queue.call_one("run_schedule", schedule_name="nightly").outcome == "enqueued"


@pytest.mark.promise("P30")
def test_run_schedule_runs_a_paused_schedule(queue: CheckedQueue) -> None:
    queue.call("create_schedule", schedule_name="nightly", **HOURLY)
    queue.call("alter_schedule", schedule_name="nightly", is_paused=True)
    assert queue.call_one("run_schedule", schedule_name="nightly").outcome == "enqueued"
    assert scheduled(queue).next_run_at is None


@pytest.mark.promise("P21")
def test_run_schedule_enqueues_into_group(queue: CheckedQueue) -> None:
    queue.call("create_schedule", schedule_name="nightly", group_key="group", **HOURLY)
    ids = [queue.call_one("run_schedule", schedule_name="nightly").message_id for _ in "ab"]
    assert [queue.state_of(message_id) for message_id in ids] == ["ready", "blocked"]


@pytest.mark.promise("P15")
def test_run_schedule_refuses_unknown_name(queue: CheckedQueue) -> None:
    assert "nightly" in queue.refused("RQ702", "run_schedule", schedule_name="nightly")
    assert "schedule_name" in queue.refused("RQ711", "run_schedule", schedule_name=None)


@pytest.mark.promise("P12", "P15", "P30")
def test_producer_cannot_use_dedup_key_of_schedule(queue: CheckedQueue) -> None:
    queue.call(
        "create_schedule",
        schedule_name="nightly", interval_seconds=3600, overlap=False, body="tick",
    )  # fmt: skip
    key = "schedule:nightly"
    message = {"body": "evil", "dedup_key": key, "delay_seconds": 3e8}
    assert "schedule" in queue.refused("RQ711", "enqueue", **message)
    assert "schedule" in queue.refused("RQ711", "enqueue_batch", messages=[message])
    assert queue.enqueue("other", dedup_key="Schedule:nightly")
    assert queue.finish_next() == "other"
    queue.pass_seconds(3600)
    queue.call("maintain")
    [row] = queue.dequeue(10)
    assert row.body == "tick"
    assert queue.message(row.message_id).dedup_key == key
    assert queue.call_one("run_schedule", schedule_name="nightly").outcome == "duplicate"
    queue.call("complete", claim_id=row.claim_id)
    assert queue.call_one("run_schedule", schedule_name="nightly").outcome == "enqueued"
    assert queue.held_keys() == 1
