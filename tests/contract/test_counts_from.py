"""Schedules that count from the end of the message before."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.contract.test_create_schedule import scheduled
from tests.contract.test_schedules import every
from tests.helpers.calls import Row, rolled_back
from tests.helpers.queues import CheckedQueue, Connect

pytestmark = pytest.mark.promise("P48")

HOUR = 3600
HOURLY = "0 * * * *"


def started(queue: CheckedQueue, **settings: Any) -> Row:
    """Create an hourly schedule that counts from the end; return its first leased message."""
    every(queue, HOUR, counts_from="end", **settings)
    return next_run(queue)


def next_run(queue: CheckedQueue) -> Row:
    """Let an hour pass; return the leased message of the run."""
    queue.pass_seconds(HOUR)
    queue.call("maintain")
    [row] = queue.dequeue(10, lease_seconds=24 * HOUR)
    return row


def complete(queue: CheckedQueue, row: Row) -> None:
    queue.call("complete", claim_id=row.claim_id)


def maintained(queue: CheckedQueue, seconds: int = 2) -> Row:
    """Return the schedule after maintain, some seconds later."""
    queue.pass_seconds(seconds)
    queue.call("maintain")
    return scheduled(queue, "often")


def is_about(found: datetime, seconds: float) -> bool:
    """Whether a time is about some seconds from now."""
    return abs(found - datetime.now(UTC) - timedelta(seconds=seconds)) < timedelta(seconds=30)


def test_next_run_counts_from_the_end(queue: CheckedQueue) -> None:
    first = started(queue, body="body")
    assert first.body == "body"
    assert "previous_message_id" not in first.headers
    # However long it takes, no other message is added.
    for _ in range(3):
        shown = maintained(queue, HOUR)
        assert is_about(shown.next_run_at, 1)
        assert (shown.last_message_id, shown.last_error) == (first.message_id, None)
    assert queue.counts()[0] == 0
    complete(queue, first)
    assert is_about(maintained(queue).next_run_at, HOUR)
    assert maintained(queue, HOUR - 60).last_message_id == first.message_id
    second = maintained(queue, 90)
    assert second.last_message_id > first.message_id
    [row] = queue.dequeue(10)
    assert row.headers["previous_message_id"] == first.message_id
    assert row.headers["schedule"] == "often"


@pytest.mark.parametrize("end", ["fail", "cancel", "purge"])
def test_any_end_counts(queue: CheckedQueue, end: str) -> None:
    every(queue, HOUR, counts_from="end")
    queue.pass_seconds(HOUR)
    queue.call("maintain")
    message_id = scheduled(queue, "often").last_message_id
    if end == "fail":
        [row] = queue.dequeue(1)
        queue.call("fail_now", claim_id=row.claim_id, message_ids=[message_id])
    elif end == "cancel":
        queue.call("cancel", message_ids=[message_id])
    else:
        queue.call("purge_queue")
    assert is_about(maintained(queue).next_run_at, HOUR)


def test_retry_and_release_are_no_end(queue: CheckedQueue) -> None:
    row = started(queue)
    queue.call("retry_later", claim_id=row.claim_id, delay_seconds=2 * HOUR)
    assert is_about(maintained(queue).next_run_at, 1)
    queue.pass_seconds(2 * HOUR)
    queue.call("maintain")
    [row] = queue.dequeue(1)
    queue.call("release", claim_id=row.claim_id)
    assert is_about(maintained(queue).next_run_at, 1)
    assert queue.counts() == (1, 0, 0, 0)


def test_reset_of_the_message_is_waited_for(queue: CheckedQueue) -> None:
    first = started(queue)
    queue.call("fail_now", claim_id=first.claim_id)
    maintained(queue)
    queue.call("reset", message_ids=[first.message_id])
    shown = maintained(queue, HOUR)
    assert is_about(shown.next_run_at, 1)
    assert (shown.last_message_id, shown.last_error) == (first.message_id, None)
    [again] = queue.dequeue(10)
    assert again.message_id == first.message_id
    complete(queue, again)
    assert is_about(maintained(queue).next_run_at, HOUR)


def test_rolled_back_end_is_no_end(queue: CheckedQueue, connect: Connect) -> None:
    row = started(queue)
    worker = connect()
    with rolled_back(worker):
        complete(queue.via(worker), row)
        time.sleep(1.1)
        queue.call("maintain")
    assert is_about(maintained(queue).next_run_at, 1)


def test_first_run_comes_at_starts_at(queue: CheckedQueue) -> None:
    starts_at = datetime.now(UTC).replace(microsecond=0) + timedelta(days=2)
    first = every(queue, HOUR, counts_from="end", starts_at=starts_at)
    assert first == starts_at


def test_run_schedule_begins_the_wait(queue: CheckedQueue) -> None:
    every(queue, HOUR, counts_from="end")
    queue.call("run_schedule", schedule_name="often")
    assert queue.call_one("run_schedule", schedule_name="often").outcome == "duplicate"
    assert is_about(maintained(queue).next_run_at, 1)
    [row] = queue.dequeue(10)
    complete(queue, row)
    assert is_about(maintained(queue).next_run_at, HOUR)


def test_late_run_comes_once(queue: CheckedQueue) -> None:
    every(queue, HOUR, counts_from="end", missed="all")
    queue.pass_seconds(10 * HOUR)
    for _ in range(2):
        queue.call("maintain")
    assert queue.counts() == (1, 0, 0, 0)


def test_schedule_stops_after_ends_at(queue: CheckedQueue) -> None:
    ends_at = datetime.now(UTC) + timedelta(seconds=1.5 * HOUR)
    row = started(queue, ends_at=ends_at)
    complete(queue, row)
    assert maintained(queue).next_run_at is None


def alter(queue: CheckedQueue, **changes: object) -> Row:
    return queue.call_one("alter_schedule", schedule_name="often", **changes)


def test_altered_while_running_waits_for_the_end(queue: CheckedQueue) -> None:
    row = started(queue)
    assert is_about(alter(queue, interval_seconds=2 * HOUR).next_run_at, 1)
    assert is_about(maintained(queue).next_run_at, 1)
    complete(queue, row)
    assert is_about(maintained(queue).next_run_at, 2 * HOUR)
    assert is_about(alter(queue, interval_seconds=HOUR).next_run_at, HOUR)


def test_paused_while_running_waits_for_the_end(queue: CheckedQueue) -> None:
    row = started(queue)
    assert alter(queue, is_paused=True).next_run_at is None
    assert is_about(alter(queue, is_paused=False).next_run_at, 1)
    assert is_about(maintained(queue).next_run_at, 1)
    complete(queue, row)
    assert is_about(maintained(queue).next_run_at, HOUR)


def test_counts_from_changes_both_ways(queue: CheckedQueue) -> None:
    every(queue, HOUR, overlap=False)
    row = next_run(queue)
    alter(queue, counts_from="end")
    shown = scheduled(queue, "often")
    assert (shown.counts_from, shown.overlap) == ("end", False)
    assert is_about(maintained(queue, HOUR).next_run_at, 1)
    complete(queue, row)
    assert is_about(maintained(queue).next_run_at, HOUR)
    alter(queue, counts_from="start", overlap=True)
    next_run(queue)
    shown = maintained(queue, HOUR)
    assert (shown.counts_from, shown.overlap) == ("start", True)
    assert queue.counts()[0] == 1


def test_refused_message_is_recorded(queue: CheckedQueue) -> None:
    every(queue, HOUR, counts_from="end", body="x" * 100)
    queue.call("alter_queue", max_body_length=10)
    shown = maintained(queue, HOUR)
    assert "RQ711" in shown.last_error
    assert is_about(shown.next_run_at, HOUR)
    queue.call("alter_queue", max_body_length=1000)
    assert maintained(queue, HOUR).last_error is None
    assert queue.counts() == (1, 0, 0, 0)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"interval_seconds": 1, "counts_from": "END"}, "must be start or end, got END"),
        ({"interval_seconds": 1, "counts_from": "end "}, "must be start or end, got end"),
        ({"cron": HOURLY, "counts_from": "end"}, "counts_from end requires interval_seconds"),
        ({"counts_from": "end"}, "exactly one of cron and interval_seconds is required"),
    ],
)
def test_wrong_counts_from_is_refused(
    queue: CheckedQueue, settings: dict[str, object], text: str
) -> None:
    assert text in queue.refused("RQ711", "create_schedule", schedule_name="often", **settings)


def test_cron_replaces_an_interval_from_the_end_with_start_only(queue: CheckedQueue) -> None:
    every(queue, HOUR, counts_from="end")
    queue.refused("RQ711", "alter_schedule", schedule_name="often", cron=HOURLY)
    alter(queue, cron=HOURLY, counts_from="start")
    assert scheduled(queue, "often").counts_from == "start"
