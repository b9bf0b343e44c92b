"""health."""

from __future__ import annotations

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import Row, call, dequeue_one, enqueue, make_dead
from tests.stored_times import pass_seconds

OF_EACH_QUEUE = ("oldest_ready", "dead_messages", "overdue_delayed", "expired_leases")


def check(connection: Connection, name: str, queue: str | None) -> Row:
    [row] = [
        row
        for row in call(connection, "health")
        if (row.check_name, row.queue_name) == (name, queue)
    ]
    return row


@pytest.mark.promise("P19")
def test_a_new_queue_is_in_good_health(connection: Connection, queue: str) -> None:
    found = [row for row in call(connection, "health") if row.queue_name == queue]
    assert {row.check_name for row in found} == set(OF_EACH_QUEUE)
    assert {(row.status, row.value) for row in found} == {("ok", 0)}


@pytest.mark.promise("P19")
def test_every_check_has_a_status_a_figure_and_a_sentence(
    connection: Connection, queue: str
) -> None:
    enqueue(connection, queue, "a")
    for row in call(connection, "health"):
        assert row.status in ("ok", "warning", "critical")
        assert row.value >= 0
        assert row.detail


@pytest.mark.promise("P18", "P19")
@pytest.mark.parametrize(("seconds", "status"), [(100, "ok"), (400, "warning"), (4000, "critical")])
def test_a_message_that_waits_too_long_is_named(
    connection: Connection, queue: str, seconds: int, status: str
) -> None:
    enqueue(connection, queue, "a")
    pass_seconds(connection, queue, seconds)
    row = check(connection, "oldest_ready", queue)
    assert row.status == status
    assert seconds <= row.value < seconds + 60
    call(connection, "pause_queue", queue_name=queue)
    assert "paused" in check(connection, "oldest_ready", queue).detail


@pytest.mark.promise("P11", "P19")
@pytest.mark.parametrize(("seconds", "status"), [(5, "ok"), (100, "warning"), (400, "critical")])
def test_a_due_message_that_nobody_promotes_is_named(
    connection: Connection, queue: str, seconds: int, status: str
) -> None:
    enqueue(connection, queue, "due", delay_seconds=10)
    enqueue(connection, queue, "not due", delay_seconds=100000)
    pass_seconds(connection, queue, 10 + seconds)
    row = check(connection, "overdue_delayed", queue)
    assert row.status == status
    assert seconds <= row.value < seconds + 25


@pytest.mark.promise("P09", "P19")
@pytest.mark.parametrize(("seconds", "status"), [(5, "ok"), (100, "warning"), (400, "critical")])
def test_an_expired_lease_that_nobody_reaps_is_named(
    connection: Connection, queue: str, seconds: int, status: str
) -> None:
    enqueue(connection, queue, "a", "b")
    dequeue_one(connection, queue, lease_seconds=30)
    dequeue_one(connection, queue, lease_seconds=10000)
    pass_seconds(connection, queue, 30 + seconds)
    row = check(connection, "expired_leases", queue)
    assert row.status == status
    assert seconds <= row.value < seconds + 25


@pytest.mark.promise("P10", "P19")
def test_dead_messages_are_counted(connection: Connection, queue: str) -> None:
    make_dead(connection, queue, "a", "b")
    row = check(connection, "dead_messages", queue)
    assert (row.status, row.value) == ("warning", 2)
    call(connection, "reset", queue_name=queue)
    assert check(connection, "dead_messages", queue).status == "ok"
