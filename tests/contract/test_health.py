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
def test_a_new_queue_is_in_good_health(
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
def test_what_is_kept_for_a_hundred_years_is_in_good_health(
    connection: Connection, queue: CheckedQueue
) -> None:
    queue.call("alter_queue", archive_days=36500, history_days=36500)
    queue.enqueue("a")
    claim = queue.call("dequeue_fast")[0].claim_id
    queue.call("complete", claim_id=claim)
    assert check(connection, "overdue_history", queue.name).value == 0


@pytest.mark.promise("P19")
def test_every_check_has_a_status_a_figure_and_a_sentence(queue: CheckedQueue) -> None:
    queue.enqueue("a")
    for row in call(queue.connection, "health"):
        assert row.status in ("ok", "warning", "critical")
        assert row.value >= 0
        assert row.detail


@pytest.mark.promise("P18", "P19")
@pytest.mark.parametrize(("seconds", "status"), [(100, "ok"), (400, "warning"), (4000, "critical")])
def test_a_message_that_waits_too_long_is_named(
    connection: Connection, queue: CheckedQueue, seconds: int, status: str
) -> None:
    queue.enqueue("a")
    queue.pass_seconds(seconds)
    row = check(connection, "oldest_ready", queue.name)
    assert row.status == status
    assert seconds <= row.value < seconds + 60
    queue.call("pause_queue")
    assert "paused" in check(connection, "oldest_ready", queue.name).detail


@pytest.mark.promise("P11", "P19")
@pytest.mark.parametrize(("seconds", "status"), [(5, "ok"), (100, "warning"), (400, "critical")])
def test_a_due_message_that_nobody_promotes_is_named(
    connection: Connection, queue: CheckedQueue, seconds: int, status: str
) -> None:
    queue.enqueue("due", delay_seconds=10)
    queue.enqueue("not due", delay_seconds=100000)
    queue.pass_seconds(10 + seconds)
    row = check(connection, "overdue_delayed", queue.name)
    assert row.status == status
    assert seconds <= row.value < seconds + 25


@pytest.mark.promise("P09", "P19")
@pytest.mark.parametrize(("seconds", "status"), [(5, "ok"), (100, "warning"), (400, "critical")])
def test_an_expired_lease_that_nobody_reaps_is_named(
    connection: Connection, queue: CheckedQueue, seconds: int, status: str
) -> None:
    queue.enqueue("a", "b")
    queue.dequeue_one(lease_seconds=30)
    queue.dequeue_one(lease_seconds=10000)
    queue.pass_seconds(30 + seconds)
    row = check(connection, "expired_leases", queue.name)
    assert row.status == status
    assert seconds <= row.value < seconds + 25


@pytest.mark.requires("expiry")
@pytest.mark.promise("P19", "P36")
@pytest.mark.parametrize(("seconds", "status"), [(5, "ok"), (100, "warning"), (400, "critical")])
def test_a_message_whose_time_has_come_and_that_nobody_withdraws_is_named(
    connection: Connection, queue: CheckedQueue, seconds: int, status: str
) -> None:
    queue.enqueue("due", expire_seconds=10)
    queue.enqueue("not due", expire_seconds=100000)
    queue.pass_seconds(10 + seconds)
    row = check(connection, "overdue_expiries", queue.name)
    assert row.status == status
    assert seconds <= row.value < seconds + 25
    queue.call("maintain")
    row = check(connection, "overdue_expiries", queue.name)
    assert (row.status, row.value) == ("ok", 0)


@pytest.mark.promise("P19", "P37")
@pytest.mark.parametrize(("hours", "status"), [(0.5, "ok"), (5, "warning"), (30, "critical")])
def test_history_that_nobody_deletes_is_named(
    connection: Connection, queue: CheckedQueue, hours: float, status: str
) -> None:
    queue.call("alter_queue", history_days=2)
    queue.enqueue("a")
    queue.call("complete", claim_id=queue.dequeue_one().claim_id)
    seconds = hours * 3600
    queue.pass_seconds(int(2 * 86400 + seconds))
    row = check(connection, "overdue_history", queue.name)
    assert row.status == status
    assert seconds <= row.value < seconds + 25
    queue.call("maintain")
    row = check(connection, "overdue_history", queue.name)
    assert (row.status, row.value) == ("ok", 0)


@pytest.mark.promise("P10", "P19")
def test_dead_messages_are_counted(connection: Connection, queue: CheckedQueue) -> None:
    queue.make_dead("a", "b")
    row = check(connection, "dead_messages", queue.name)
    assert (row.status, row.value) == ("warning", 2)
    queue.call("reset")
    assert check(connection, "dead_messages", queue.name).status == "ok"
