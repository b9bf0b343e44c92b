"""health."""

import pytest

from tests.engines.base import Connection, Server
from tests.helpers.calls import Row, call
from tests.helpers.queues import CheckedQueue

OF_EACH_QUEUE = (
    "oldest_ready",
    "dead_messages",
    "overdue_delayed",
    "overdue_history",
    "expired_leases",
    "overdue_schedules",
    "failed_schedules",
)


def check(connection: Connection, name: str, queue: str | None) -> Row:
    [row] = [
        row
        for row in call(connection, "health")
        if (row.check_name, row.queue_name) == (name, queue)
    ]
    return row


@pytest.mark.promise("P19")
def test_health_of_a_new_queue_is_ok(
    server: Server, connection: Connection, queue: CheckedQueue
) -> None:
    found = [row for row in call(connection, "health") if row.queue_name == queue.name]
    of_some = {
        "overdue_expiries": "expiry",
        "overdue_groups": "groups",
        "overdue_results": "results",
        "waits_for_dead": "predecessors",
    }
    here = {name for name, capability in of_some.items() if capability in server.capabilities}
    assert {row.check_name for row in found} == {*OF_EACH_QUEUE, *here}
    assert {(row.status, row.value) for row in found} == {("ok", 0)}


@pytest.mark.promise("P19")
def test_health_accepts_retention_of_a_hundred_years(
    connection: Connection, queue: CheckedQueue
) -> None:
    queue.call("alter_queue", archive_days=36500, history_days=36500)
    queue.enqueue("a")
    claim = queue.call("dequeue_fast")[0].claim_id
    queue.call("complete", claim_id=claim)
    assert check(connection, "overdue_history", queue.name).value == 0


@pytest.mark.promise("P19")
def test_every_check_has_status_value_and_detail(queue: CheckedQueue) -> None:
    queue.enqueue("a")
    for row in call(queue.connection, "health"):
        assert row.status in ("ok", "warning", "critical")
        assert row.value >= 0
        assert row.detail


within_seconds = pytest.mark.parametrize(
    ("seconds", "status"), [(5, "ok"), (100, "warning"), (400, "critical")]
)


def late_by(row: Row, seconds: float, status: str) -> bool:
    """Return whether a check has this status and about this value."""
    return row.status == status and seconds <= row.value < seconds + 60


@pytest.mark.promise("P18", "P19")
@pytest.mark.parametrize(("seconds", "status"), [(100, "ok"), (400, "warning"), (4000, "critical")])
def test_health_reports_the_oldest_ready_message(
    connection: Connection, queue: CheckedQueue, seconds: int, status: str
) -> None:
    queue.enqueue("a")
    queue.pass_seconds(seconds)
    assert late_by(check(connection, "oldest_ready", queue.name), seconds, status)
    queue.call("pause_queue")
    assert "paused" in check(connection, "oldest_ready", queue.name).detail


@pytest.mark.promise("P11", "P19")
@within_seconds
def test_health_reports_overdue_delayed_messages(
    connection: Connection, queue: CheckedQueue, seconds: int, status: str
) -> None:
    queue.enqueue("due", delay_seconds=10)
    queue.enqueue("not due", delay_seconds=100000)
    queue.pass_seconds(10 + seconds)
    assert late_by(check(connection, "overdue_delayed", queue.name), seconds, status)


@pytest.mark.promise("P09", "P19")
@within_seconds
def test_health_reports_expired_leases(
    connection: Connection, queue: CheckedQueue, seconds: int, status: str
) -> None:
    queue.enqueue("a", "b")
    queue.dequeue_one(lease_seconds=30)
    queue.dequeue_one(lease_seconds=10000)
    queue.pass_seconds(30 + seconds)
    assert late_by(check(connection, "expired_leases", queue.name), seconds, status)


@pytest.mark.requires("expiry")
@pytest.mark.promise("P19", "P36")
@within_seconds
def test_health_reports_overdue_expiries(
    connection: Connection, queue: CheckedQueue, seconds: int, status: str
) -> None:
    queue.enqueue("due", expire_seconds=10)
    queue.enqueue("not due", expire_seconds=100000)
    queue.pass_seconds(10 + seconds)
    assert late_by(check(connection, "overdue_expiries", queue.name), seconds, status)
    queue.call("maintain")
    row = check(connection, "overdue_expiries", queue.name)
    assert (row.status, row.value) == ("ok", 0)


@pytest.mark.promise("P19", "P37")
@pytest.mark.parametrize(("hours", "status"), [(0.5, "ok"), (5, "warning"), (30, "critical")])
def test_health_reports_overdue_history(
    connection: Connection, queue: CheckedQueue, hours: float, status: str
) -> None:
    queue.call("alter_queue", history_days=2)
    queue.enqueue("a")
    queue.call("complete", claim_id=queue.dequeue_one().claim_id)
    seconds = hours * 3600
    queue.pass_seconds(int(2 * 86400 + seconds))
    assert late_by(check(connection, "overdue_history", queue.name), seconds, status)
    queue.call("maintain")
    row = check(connection, "overdue_history", queue.name)
    assert (row.status, row.value) == ("ok", 0)


@pytest.mark.promise("P10", "P19")
def test_health_counts_dead_messages(connection: Connection, queue: CheckedQueue) -> None:
    queue.make_dead("a", "b")
    row = check(connection, "dead_messages", queue.name)
    assert (row.status, row.value) == ("warning", 2)
    queue.call("reset")
    assert check(connection, "dead_messages", queue.name).status == "ok"
