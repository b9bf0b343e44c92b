"""health."""

from collections.abc import Callable

import pytest

from tests.engines.base import Connection, Server
from tests.helpers.calls import Row, call
from tests.helpers.queues import CheckedQueue

pytestmark = pytest.mark.promise("P19")

OF_EACH_QUEUE = (
    "oldest_ready",
    "dead_messages",
    "overdue_delayed",
    "overdue_history",
    "expired_leases",
    "overdue_schedules",
    "failed_schedules",
)


def check(connection: Connection, name: str, queue: str | None = None) -> Row:
    """Return one check of a queue, or of the server."""
    [row] = [
        row
        for row in call(connection, "health")
        if (row.check_name, row.queue_name) == (name, queue)
    ]
    return row


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


def test_health_accepts_retention_of_a_hundred_years(
    connection: Connection, queue: CheckedQueue
) -> None:
    queue.call("alter_queue", archive_days=36500, history_days=36500)
    queue.enqueue("a")
    claim = queue.call("dequeue_fast")[0].claim_id
    queue.call("complete", claim_id=claim)
    assert check(connection, "overdue_history", queue.name).value == 0


def test_every_check_has_status_value_and_detail(queue: CheckedQueue) -> None:
    queue.enqueue("a")
    for row in call(queue.connection, "health"):
        assert row.status in ("ok", "warning", "critical")
        assert row.value >= 0
        assert row.detail


def leave_delayed(queue: CheckedQueue) -> None:
    queue.enqueue("due", delay_seconds=10)
    queue.enqueue("not due", delay_seconds=100000)


def leave_leased(queue: CheckedQueue) -> None:
    queue.enqueue("a", "b")
    queue.dequeue_one(lease_seconds=30)
    queue.dequeue_one(lease_seconds=10000)


def leave_expiring(queue: CheckedQueue) -> None:
    queue.enqueue("due", expire_seconds=10)
    queue.enqueue("not due", expire_seconds=100000)


def leave_completed(queue: CheckedQueue) -> None:
    queue.call("alter_queue", history_days=2, result_seconds=60)
    queue.enqueue("a")
    queue.finish_one()


OVERDUE: dict[str, tuple[int, tuple[int, int, int], Callable[[CheckedQueue], object]]] = {
    "oldest_ready": (0, (100, 400, 4000), lambda queue: queue.enqueue("a")),
    "overdue_delayed": (10, (5, 100, 400), leave_delayed),
    "expired_leases": (30, (5, 100, 400), leave_leased),
    "overdue_expiries": (10, (5, 100, 400), leave_expiring),
    "overdue_results": (60, (100, 400, 4000), leave_completed),
    "overdue_history": (2 * 86400, (1800, 18000, 108000), leave_completed),
}
"""By check: seconds until work is due, seconds overdue for each status, and what leaves it."""


@pytest.mark.promise("P09", "P11", "P18", "P32", "P36", "P37")
@pytest.mark.requires("expiry", "results")
@pytest.mark.parametrize("name", OVERDUE)
@pytest.mark.parametrize(("position", "status"), list(enumerate(("ok", "warning", "critical"))))
def test_health_reports_overdue_work(
    connection: Connection, queue: CheckedQueue, name: str, position: int, status: str
) -> None:
    due, seconds, leave = OVERDUE[name]
    leave(queue)
    queue.pass_seconds(due + seconds[position])
    row = check(connection, name, queue.name)
    assert row.status == status
    assert seconds[position] <= row.value < seconds[position] + 60
    if name == "oldest_ready":
        queue.call("pause_queue")
        assert "paused" in check(connection, name, queue.name).detail
    else:
        queue.call("maintain")
        row = check(connection, name, queue.name)
        assert (row.status, row.value) == ("ok", 0)


@pytest.mark.promise("P10")
def test_health_counts_dead_messages(connection: Connection, queue: CheckedQueue) -> None:
    queue.make_dead("a", "b")
    row = check(connection, "dead_messages", queue.name)
    assert (row.status, row.value) == ("warning", 2)
    queue.call("reset")
    assert check(connection, "dead_messages", queue.name).status == "ok"
