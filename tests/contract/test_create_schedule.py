"""create_schedule."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.helpers.calls import Row, rolled_back
from tests.helpers.queues import CheckedQueue
from tests.helpers.together import together

HOURLY = {"cron": "0 * * * *"}


def scheduled(queue: CheckedQueue, name: str = "nightly") -> Row:
    """Return a schedule's row of list_schedules."""
    [row] = [row for row in queue.call("list_schedules") if row.schedule_name == name]
    return row


def next_hour() -> datetime:
    return datetime.now(UTC).replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)


@pytest.mark.promise("P30")
def test_new_schedule_waits_for_its_first_tick(queue: CheckedQueue) -> None:
    before = next_hour()
    row = queue.call_one("create_schedule", schedule_name="nightly", **HOURLY)
    assert (row.schedule_name, row.outcome) == ("nightly", "created")
    assert row.next_run_at in {before, next_hour()}
    queue.call("maintain")
    assert queue.counts() == (0, 0, 0, 0)
    shown = scheduled(queue)
    assert (shown.queue_name, shown.cron, shown.interval_seconds) == (queue.name, "0 * * * *", None)
    assert (shown.time_zone, shown.missed, shown.overlap) == ("UTC", "once", True)
    assert (shown.is_paused, shown.next_run_at) == (False, row.next_run_at)
    assert (shown.last_run_at, shown.last_message_id, shown.last_error) == (None, None, None)
    assert (shown.ends_at, shown.message_type, shown.priority) == (None, None, 5)
    assert (shown.max_attempts, shown.group_key) == (None, None)
    assert abs(shown.starts_at - datetime.now(UTC)) < timedelta(seconds=60)


@pytest.mark.promise("P30")
def test_create_schedule_stores_every_parameter(queue: CheckedQueue) -> None:
    starts = datetime(2030, 1, 1, 12, 0, 0, 250000, tzinfo=UTC)
    ends = datetime(2031, 1, 1, tzinfo=UTC)
    row = queue.call_one(
        "create_schedule",
        schedule_name="all",
        interval_seconds=1.5,
        time_zone="Europe/Berlin",
        body="body",
        message_type="type",
        headers={"a": 1},
        priority=2,
        max_attempts=3,
        group_key="group",
        missed="all",
        overlap=False,
        starts_at=starts,
        ends_at=ends,
    )
    assert row.next_run_at == starts
    shown = scheduled(queue, "all")
    assert (shown.cron, shown.interval_seconds, shown.time_zone) == (None, 1.5, "Europe/Berlin")
    assert (shown.missed, shown.overlap, shown.starts_at, shown.ends_at) == (
        "all", False, starts, ends,
    )  # fmt: skip
    assert (shown.message_type, shown.priority, shown.max_attempts) == ("type", 2, 3)
    assert shown.group_key == "group"


@pytest.mark.promise("P15")
def test_create_schedule_keeps_an_existing_schedule(queue: CheckedQueue) -> None:
    first = queue.call_one("create_schedule", schedule_name="nightly", **HOURLY)
    again = queue.call_one("create_schedule", schedule_name="nightly", interval_seconds=5)
    assert (again.outcome, again.next_run_at) == ("exists", first.next_run_at)
    assert scheduled(queue).cron == "0 * * * *"


@pytest.mark.promise("P30")
def test_schedule_names_are_per_queue_and_case_sensitive(queue: CheckedQueue) -> None:
    other = queue.another()
    made = [
        one.call_one("create_schedule", schedule_name=name, **HOURLY).outcome
        for one in (queue, other)
        for name in ("nightly", "Nightly", "n" * 100, "\N{SNAKE}")
    ]
    assert made == ["created"] * 8
    assert len(other.call("list_schedules")) == 4


@pytest.mark.promise("P30")
def test_interval_counts_from_now_by_default(queue: CheckedQueue) -> None:
    row = queue.call_one("create_schedule", schedule_name="often", interval_seconds=3600)
    assert row.next_run_at - scheduled(queue, "often").starts_at == timedelta(hours=1)


@pytest.mark.promise("P30")
def test_interval_counts_from_past_starts_at(queue: CheckedQueue) -> None:
    start = datetime(2020, 2, 29, 3, 4, 5, tzinfo=UTC)
    row = queue.call_one(
        "create_schedule", schedule_name="often", interval_seconds=3600, starts_at=start
    )
    assert (row.next_run_at - start) % timedelta(hours=1) == timedelta()
    assert timedelta() < row.next_run_at - datetime.now(UTC) + timedelta(seconds=5)


@pytest.mark.promise("P01")
def test_create_schedule_can_be_rolled_back(queue: CheckedQueue) -> None:
    with rolled_back(queue.connection):
        queue.call("create_schedule", schedule_name="nightly", **HOURLY)
    assert queue.call("list_schedules") == []


BAD: list[tuple[dict[str, Any], str]] = [
    ({}, "cron"),
    ({"cron": "* * * * *", "interval_seconds": 5}, "cron"),
    ({"cron": "61 * * * *"}, "minute"),
    ({"cron": "* 24 * * *"}, "hour"),
    ({"cron": "* * 0 * *"}, "day"),
    ({"cron": "* * * 13 *"}, "month"),
    ({"cron": "* * * * 8"}, "weekday"),
    ({"cron": "0 0 30 2 *"}, "tick"),
    ({"interval_seconds": 0.5}, "interval_seconds"),
    ({"interval_seconds": 315360001}, "interval_seconds"),
    ({**HOURLY, "time_zone": "Nowhere"}, "time_zone"),
    ({**HOURLY, "missed": "never"}, "missed"),
    ({**HOURLY, "priority": 10}, "priority"),
    ({**HOURLY, "max_attempts": -1}, "max_attempts"),
    ({**HOURLY, "message_type": "x" * 201}, "message_type"),
    ({**HOURLY, "group_key": "x" * 201}, "group_key"),
    ({**HOURLY, "headers": [1]}, "headers"),
    ({**HOURLY, "body": "a", "body_binary": b"a"}, "body"),
    ({**HOURLY, "body": "x" * 101}, "body"),
    ({**HOURLY, "starts_at": datetime(1999, 12, 31, tzinfo=UTC)}, "starts_at"),
    ({**HOURLY, "ends_at": datetime(2100, 1, 2, tzinfo=UTC)}, "ends_at"),
    ({**HOURLY, "ends_at": datetime(2020, 1, 1, tzinfo=UTC)}, "ends_at"),
]


@pytest.mark.promise("P15")
@together(("wrong", "word"), BAD)
def test_create_schedule_refuses_invalid_arguments(
    queue: CheckedQueue, wrong: dict[str, Any], word: str
) -> None:
    queue.call("alter_queue", max_body_length=100)
    assert word in queue.refused("RQ711", "create_schedule", schedule_name="nightly", **wrong)
    assert queue.call("list_schedules") == []


@pytest.mark.promise("P15")
@pytest.mark.parametrize("name", ["", "n" * 101, "a\nb", None])
def test_create_schedule_refuses_invalid_name(queue: CheckedQueue, name: str | None) -> None:
    text = queue.refused("RQ711", "create_schedule", schedule_name=name, **HOURLY)
    assert "schedule_name" in text
