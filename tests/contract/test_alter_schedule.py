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
def test_one_setting_changes_and_the_others_stay(
    nightly: CheckedQueue, changed: dict[str, Any]
) -> None:
    before = vars(scheduled(nightly))
    row = nightly.call_one("alter_schedule", schedule_name="nightly", **changed)
    assert (row.schedule_name, row.outcome) == ("nightly", "altered")
    after = vars(scheduled(nightly))
    assert after == before | changed | {"next_run_at": row.next_run_at}


@pytest.mark.promise("P31")
def test_an_interval_takes_the_place_of_cron_and_back(nightly: CheckedQueue) -> None:
    nightly.call("alter_schedule", schedule_name="nightly", interval_seconds=90)
    shown = scheduled(nightly)
    assert (shown.cron, shown.interval_seconds) == (None, 90)
    assert shown.next_run_at - shown.starts_at == timedelta(seconds=90)
    nightly.call("alter_schedule", schedule_name="nightly", cron="@daily")
    shown = scheduled(nightly)
    assert (shown.cron, shown.interval_seconds) == ("@daily", None)


@pytest.mark.promise("P31")
def test_a_binary_body_takes_the_place_of_a_text_and_back(nightly: CheckedQueue) -> None:
    for given in ({"body_binary": b"\0"}, {"body": "text"}, {"headers": {"a": [1]}}):
        nightly.call("alter_schedule", schedule_name="nightly", **given)
        nightly.call("run_schedule", schedule_name="nightly")
    rows = nightly.dequeue(3)
    assert [(row.body, row.body_binary) for row in rows] == [
        (None, b"\0"), ("text", None), ("text", None),
    ]  # fmt: skip
    assert rows[2].headers["a"] == [1]


@pytest.mark.promise("P31")
def test_a_paused_schedule_makes_nothing_and_makes_nothing_up(nightly: CheckedQueue) -> None:
    row = nightly.call_one("alter_schedule", schedule_name="nightly", is_paused=True)
    assert row.next_run_at is None
    nightly.pass_seconds(7200)
    nightly.call("maintain")
    row = nightly.call_one("alter_schedule", schedule_name="nightly", is_paused=False)
    assert row.next_run_at > datetime.now(UTC) - timedelta(seconds=5)
    nightly.call("maintain")
    assert nightly.counts() == (0, 0, 0, 0)


@pytest.mark.promise("P31")
def test_a_schedule_that_cannot_run_any_more_can_be_paused(nightly: CheckedQueue) -> None:
    nightly.call("alter_queue", max_body_length=3)
    assert "body" in nightly.refused("RQ711", "alter_schedule", schedule_name="nightly", priority=1)
    nightly.call("alter_schedule", schedule_name="nightly", is_paused=True)
    assert scheduled(nightly).next_run_at is None
    assert "body" in nightly.refused(
        "RQ711", "alter_schedule", schedule_name="nightly", is_paused=False
    )


@pytest.mark.promise("P31")
def test_what_is_changed_while_a_tick_is_due_counts_from_now(nightly: CheckedQueue) -> None:
    nightly.pass_seconds(7200)
    nightly.call("alter_schedule", schedule_name="nightly", message_type="new")
    nightly.call("maintain")
    assert nightly.counts() == (0, 0, 0, 0)


@pytest.mark.promise("P15")
@together(("wrong", "word"), [(wrong, word) for wrong, word in BAD if wrong and "cron" in wrong])
def test_what_cannot_be_is_refused_and_changes_nothing(
    nightly: CheckedQueue, wrong: dict[str, Any], word: str
) -> None:
    nightly.call("alter_queue", max_body_length=100)
    before = scheduled(nightly)
    assert word in nightly.refused("RQ711", "alter_schedule", schedule_name="nightly", **wrong)
    assert scheduled(nightly) == before


@pytest.mark.promise("P15")
def test_an_unknown_schedule_is_refused_by_its_name(nightly: CheckedQueue) -> None:
    assert "Nightly" in nightly.refused("RQ702", "alter_schedule", schedule_name="Nightly")
    assert "schedule_name" in nightly.refused("RQ711", "alter_schedule", schedule_name=None)
