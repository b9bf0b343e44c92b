"""alter_schedule."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.contract.test_create_schedule import BAD, HOURLY, scheduled
from tests.helpers.queues import CheckedQueue
from tests.helpers.together import together


@pytest.fixture
def nightly(queue: CheckedQueue) -> CheckedQueue:
    """Return a queue with the schedule `nightly`."""
    queue.call("create_schedule", schedule_name="nightly", body="first", **HOURLY)
    return queue


@pytest.mark.promise("P15", "P31")
@pytest.mark.parametrize(
    "changed",
    [
        {"cron": "30 5 * * *"},
        {"time_zone": "Asia/Kolkata"},
        {"missed": "skip"},
        {"overlap": False},
        {"message_type": "type"},
        {"priority": 0},
        {"max_attempts": 7},
        {"group_key": "group"},
        {"starts_at": datetime(2040, 1, 1, tzinfo=UTC)},
        {"ends_at": datetime(2090, 1, 1, tzinfo=UTC)},
    ],
)
def test_alter_schedule_changes_only_the_passed_setting(
    nightly: CheckedQueue, changed: dict[str, Any]
) -> None:
    before = vars(scheduled(nightly))
    row = nightly.call_one("alter_schedule", schedule_name="nightly", **changed)
    assert (row.schedule_name, row.outcome) == ("nightly", "altered")
    after = vars(scheduled(nightly))
    assert after == before | changed | {"next_run_at": row.next_run_at}


@pytest.mark.promise("P31")
def test_interval_replaces_cron_and_back(nightly: CheckedQueue) -> None:
    nightly.call("alter_schedule", schedule_name="nightly", interval_seconds=90)
    shown = scheduled(nightly)
    assert (shown.cron, shown.interval_seconds) == (None, 90)
    assert shown.next_run_at - shown.starts_at == timedelta(seconds=90)
    nightly.call("alter_schedule", schedule_name="nightly", cron="@daily")
    shown = scheduled(nightly)
    assert (shown.cron, shown.interval_seconds) == ("@daily", None)


@pytest.mark.promise("P31")
def test_binary_body_replaces_text_and_back(nightly: CheckedQueue) -> None:
    for change in ({"body_binary": b"\0"}, {"body": "text"}, {"headers": {"a": [1]}}):
        nightly.call("alter_schedule", schedule_name="nightly", **change)
        nightly.call("run_schedule", schedule_name="nightly")
    rows = nightly.dequeue(3)
    assert [(row.body, row.body_binary) for row in rows] == [
        (None, b"\0"), ("text", None), ("text", None),
    ]  # fmt: skip
    assert rows[2].headers["a"] == [1]


@pytest.mark.promise("P31")
def test_resumed_schedule_does_not_run_missed_ticks(nightly: CheckedQueue) -> None:
    row = nightly.call_one("alter_schedule", schedule_name="nightly", is_paused=True)
    assert row.next_run_at is None
    nightly.pass_seconds(7200)
    nightly.call("maintain")
    row = nightly.call_one("alter_schedule", schedule_name="nightly", is_paused=False)
    assert row.next_run_at > datetime.now(UTC) - timedelta(seconds=5)
    nightly.call("maintain")
    assert nightly.counts() == (0, 0, 0, 0)


@pytest.mark.promise("P31")
def test_schedule_with_too_long_body_can_be_paused(nightly: CheckedQueue) -> None:
    nightly.call("alter_queue", max_body_length=3)
    assert "body" in nightly.refused("RQ711", "alter_schedule", schedule_name="nightly", priority=1)
    nightly.call("alter_schedule", schedule_name="nightly", is_paused=True)
    assert scheduled(nightly).next_run_at is None
    assert "body" in nightly.refused(
        "RQ711", "alter_schedule", schedule_name="nightly", is_paused=False
    )


@pytest.mark.promise("P31")
def test_alter_schedule_drops_a_due_tick(nightly: CheckedQueue) -> None:
    nightly.pass_seconds(7200)
    nightly.call("alter_schedule", schedule_name="nightly", message_type="new")
    nightly.call("maintain")
    assert nightly.counts() == (0, 0, 0, 0)


@pytest.mark.promise("P15")
@together(("wrong", "word"), [(wrong, word) for wrong, word in BAD if wrong and "cron" in wrong])
def test_alter_schedule_refuses_invalid_arguments(
    nightly: CheckedQueue, wrong: dict[str, Any], word: str
) -> None:
    nightly.call("alter_queue", max_body_length=100)
    before = scheduled(nightly)
    assert word in nightly.refused("RQ711", "alter_schedule", schedule_name="nightly", **wrong)
    assert scheduled(nightly) == before


@pytest.mark.promise("P15")
def test_alter_schedule_refuses_unknown_name(nightly: CheckedQueue) -> None:
    assert "Nightly" in nightly.refused("RQ702", "alter_schedule", schedule_name="Nightly")
    assert "schedule_name" in nightly.refused("RQ711", "alter_schedule", schedule_name=None)
