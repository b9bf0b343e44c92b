"""Schedules as run by maintain."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.contract.test_create_schedule import HOURLY, scheduled
from tests.contract.test_health import check
from tests.engines.base import wait_until
from tests.helpers.calls import Row, call, rolled_back
from tests.helpers.queues import CheckedQueue


def every(queue: CheckedQueue, seconds: float, name: str = "often", **settings: object) -> datetime:
    """Create a schedule of an interval; return its first tick."""
    row = queue.call_one(
        "create_schedule", schedule_name=name, interval_seconds=seconds, **settings
    )
    return datetime.fromisoformat(str(row.next_run_at))


def ticks(rows: list[Row]) -> list[datetime]:
    """Return the ticks in the messages' headers."""
    return [datetime.fromisoformat(row.headers["tick"]) for row in rows]


@pytest.mark.promise("P30")
def test_due_tick_makes_one_message_in_repeated_calls(queue: CheckedQueue) -> None:
    first = every(queue, 3600, body="body")
    queue.pass_seconds(3600)
    for _ in range(3):
        queue.call("maintain")
    [row] = queue.dequeue(10)
    assert row.body == "body"
    assert row.headers == {
        "schedule": "often", "tick": f"{first - timedelta(hours=1):%Y-%m-%dT%H:%M:%S.%fZ}",
    }  # fmt: skip
    shown = scheduled(queue, "often")
    assert shown.next_run_at == first
    assert (shown.last_message_id, shown.last_error) == (row.message_id, None)
    assert abs(shown.last_run_at - datetime.now(UTC)) < timedelta(seconds=60)


@pytest.mark.promise("P30")
def test_maintain_of_all_queues_runs_schedules(queue: CheckedQueue) -> None:
    every(queue, 3600)
    queue.pass_seconds(3600)
    # A call maintains 1000 queues, and other tests may have left more.
    wait_until(
        lambda: queue.name in {row.queue_name for row in call(queue.connection, "maintain")},
        "the queue is maintained",
    )
    assert queue.counts() == (1, 0, 0, 0)


@pytest.mark.promise("P30")
def test_tick_runs_again_after_rollback_of_maintain(queue: CheckedQueue) -> None:
    every(queue, 3600)
    queue.pass_seconds(3600)
    with rolled_back(queue.connection):
        queue.call("maintain")
    assert queue.counts() == (0, 0, 0, 0)
    queue.call("maintain")
    assert queue.counts() == (1, 0, 0, 0)


@pytest.mark.promise("P31")
@pytest.mark.parametrize(("missed", "messages"), [("once", 1), ("all", 6), ("skip", 0)])
def test_missed_decides_on_late_ticks(queue: CheckedQueue, missed: str, messages: int) -> None:
    first = every(queue, 600, missed=missed)
    queue.pass_seconds(4000)
    queue.call("maintain")
    rows = queue.dequeue(10)
    start = first - timedelta(seconds=4000)
    assert ticks(rows) == [start + timedelta(seconds=600) * number for number in range(messages)]
    assert scheduled(queue, "often").next_run_at == start + timedelta(seconds=3600)


@pytest.mark.promise("P31")
def test_skip_runs_ticks_at_most_60_seconds_late(queue: CheckedQueue) -> None:
    first = every(queue, 20, missed="skip")
    queue.pass_seconds(1000)
    queue.call("maintain")
    found = ticks(queue.dequeue(10))
    assert len(found) in {2, 3}
    assert all(datetime.now(UTC) - tick < timedelta(seconds=65) for tick in found)
    assert all((tick - first) % timedelta(seconds=20) == timedelta() for tick in found)


@pytest.mark.promise("P31")
def test_once_runs_each_tick_at_most_60_seconds_late(queue: CheckedQueue) -> None:
    every(queue, 10)
    queue.pass_seconds(35)
    queue.call("maintain")
    assert len(queue.dequeue(10)) == 3


@pytest.mark.promise("P31")
def test_maintain_runs_at_most_100_ticks_per_call(queue: CheckedQueue) -> None:
    every(queue, 10, missed="all")
    queue.pass_seconds(1505)
    queue.call("maintain")
    assert queue.counts()[0] == 100
    queue.call("maintain")
    assert queue.counts()[0] == 150
    found = ticks(queue.dequeue(200))
    assert found == sorted(set(found))


@pytest.mark.promise("P31")
def test_schedule_stops_after_ends_at(queue: CheckedQueue) -> None:
    ends = datetime.now(UTC) + timedelta(hours=2.5)
    first = every(queue, 3600, missed="all", ends_at=ends)
    queue.pass_seconds(4 * 3600)
    queue.call("maintain")
    start = first - timedelta(hours=4)
    assert ticks(queue.dequeue(10)) == [start, start + timedelta(hours=1)]
    assert scheduled(queue, "often").next_run_at is None
    queue.call("maintain")
    assert queue.dequeue() == []


@pytest.mark.promise("P12", "P30")
def test_schedule_without_overlap_skips_tick_and_records_error(queue: CheckedQueue) -> None:
    every(queue, 3600, overlap=False)
    for number in range(2):
        queue.pass_seconds(3600)
        queue.call("maintain")
        assert queue.counts()[0] == 1, number
    shown = scheduled(queue, "often")
    assert str(shown.last_message_id) in shown.last_error
    queue.finish_one()
    queue.pass_seconds(3600)
    queue.call("maintain")
    assert queue.counts()[0] == 1
    assert scheduled(queue, "often").last_error is None


@pytest.mark.promise("P30")
def test_failing_schedule_records_error_and_stops_no_other(queue: CheckedQueue) -> None:
    every(queue, 3600, "a", body="x" * 100)
    every(queue, 3600, "b", body="short")
    queue.call("alter_queue", max_body_length=50)
    queue.pass_seconds(3600)
    queue.call("maintain")
    assert queue.take() == ["short"]
    shown = scheduled(queue, "a")
    assert "max_body_length" in shown.last_error
    assert shown.next_run_at > datetime.now(UTC)
    assert shown.last_message_id is None


@pytest.mark.promise("P18", "P30")
def test_schedules_enqueue_into_paused_queue(queue: CheckedQueue) -> None:
    every(queue, 3600)
    queue.call("pause_queue")
    queue.pass_seconds(3600)
    queue.call("maintain")
    assert queue.dequeue() == []
    assert queue.counts() == (1, 0, 0, 0)


@pytest.mark.promise("P30")
def test_maintain_runs_many_schedules_of_a_queue(queue: CheckedQueue) -> None:
    for number in range(20):
        every(queue, 3600, f"{number}", body=f"{number}")
    queue.pass_seconds(3600)
    queue.call("maintain")
    assert sorted(map(int, map(str, queue.take(30)))) == list(range(20))


@pytest.mark.promise("P31")
def test_purge_keeps_schedules(queue: CheckedQueue) -> None:
    queue.call("create_schedule", schedule_name="nightly", **HOURLY)
    queue.call("purge_queue")
    assert len(queue.call("list_schedules")) == 1


def test_health_warns_of_overdue_schedule(queue: CheckedQueue) -> None:
    every(queue, 3600)
    queue.pass_seconds(3660)
    row = check(queue.connection, "overdue_schedules", queue.name)
    assert row.status == "warning"
    assert 50 < row.value < 200
    queue.call("maintain")


def test_health_warns_of_failed_schedule(queue: CheckedQueue) -> None:
    every(queue, 3600, overlap=False)
    for _ in range(2):
        queue.pass_seconds(3600)
        queue.call("maintain")
    failed = check(queue.connection, "failed_schedules", queue.name)
    assert (failed.status, failed.value) == ("warning", 1)
    assert check(queue.connection, "overdue_schedules", queue.name).status == "ok"
