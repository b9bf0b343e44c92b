"""get_message."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.helpers.calls import Row, transaction
from tests.helpers.queues import CheckedQueue


def empty(row: Row, *names: str) -> bool:
    return all(getattr(row, name) is None for name in names)


@pytest.mark.promise("P20")
def test_get_message_returns_all_values_of_a_ready_message(queue: CheckedQueue) -> None:
    [message_id] = queue.enqueue(
        "🐘", message_type="type", headers={"a": 1}, priority=7, dedup_key="key", max_attempts=3
    )
    row = queue.message(message_id)
    assert (row.message_id, row.state, row.priority) == (message_id, "ready", 7)
    assert (row.attempt, row.max_attempts, row.last_error) == (0, 3, None)
    assert (row.body, row.message_type, row.headers) == ("🐘", "type", {"a": 1})
    assert row.dedup_key == "key"
    assert empty(row, "due_at", "claim_id", "worker_name", "lease_until", "finished_at")


@pytest.mark.promise("P10")
def test_max_attempts_defaults_to_the_queue(queue: CheckedQueue) -> None:
    [message_id] = queue.enqueue("a")
    assert queue.message(message_id).max_attempts == 10
    queue.call("alter_queue", max_attempts=4)
    assert queue.message(message_id).max_attempts == 4


@pytest.mark.promise("P11")
def test_get_message_returns_the_due_time_of_a_delayed_message(queue: CheckedQueue) -> None:
    [message_id] = queue.enqueue("a", delay_seconds=100)
    row = queue.message(message_id)
    assert (row.state, row.attempt) == ("delayed", 0)
    assert row.due_at - row.enqueued_at == timedelta(seconds=100)
    assert empty(row, "claim_id", "worker_name", "lease_until", "finished_at")


@pytest.mark.promise("P03")
def test_get_message_returns_the_worker_of_a_leased_message(queue: CheckedQueue) -> None:
    ids = queue.enqueue("a", "b")
    leased = queue.dequeue(2, worker_name="w")
    for message_id in ids:
        row = queue.message(message_id)
        assert (row.state, row.attempt, row.worker_name) == ("leased", 1, "w")
        assert (row.claim_id, row.lease_until) == (leased[0].claim_id, leased[0].lease_until)
        assert empty(row, "due_at", "finished_at")


@pytest.mark.promise("P03", "P06")
@pytest.mark.requires("genuine")
def test_get_message_ignores_an_open_dequeue(queue: CheckedQueue, elsewhere: CheckedQueue) -> None:
    [message_id] = queue.enqueue("a")
    with transaction(elsewhere.connection):
        elsewhere.dequeue_one()
        assert elsewhere.message(message_id).state == "leased"
        assert queue.message(message_id).state == "ready"
    assert queue.message(message_id).state == "leased"


@pytest.mark.promise("P10")
def test_get_message_returns_the_error_of_a_dead_message(queue: CheckedQueue) -> None:
    [message_id] = queue.make_dead("a", priority=1)
    row = queue.message(message_id)
    assert (row.state, row.attempt, row.last_error, row.body) == ("dead", 1, "broken", "a")
    assert row.priority == 1
    assert empty(row, "due_at", "claim_id", "worker_name", "lease_until")


@pytest.mark.promise("P10")
def test_get_message_returns_the_state_of_a_retried_message(queue: CheckedQueue) -> None:
    [message_id] = queue.enqueue("a", priority=2)
    for delay_seconds, state in ((100, "delayed"), (0, "ready")):
        queue.finish_one("retry_later", delay_seconds=delay_seconds, error="broken")
        row = queue.message(message_id)
        assert (row.state, row.last_error, row.priority) == (state, "broken", 2)
        queue.pass_seconds(200)
        queue.call("promote")
    assert queue.message(message_id).attempt == 2


@pytest.mark.promise("P09")
def test_get_message_returns_a_reaped_message_as_ready(queue: CheckedQueue) -> None:
    [message_id] = queue.enqueue("a")
    queue.dequeue_one()
    queue.pass_seconds(100)
    assert queue.message(message_id).state == "leased"
    queue.call("reap")
    row = queue.message(message_id)
    assert (row.state, row.attempt) == ("ready", 1)


@pytest.mark.promise("P04")
@pytest.mark.parametrize("archived", [False, True])
@pytest.mark.parametrize("state", ["completed", "cancelled"])
def test_get_message_returns_a_finished_message(
    queue: CheckedQueue, state: str, archived: bool
) -> None:
    queue.call("alter_queue", archive_days=1)
    [message_id] = queue.enqueue("a", dedup_key="key")
    if state == "cancelled":
        queue.call("cancel", message_ids=[message_id])
    else:
        queue.finish_one()
    if archived:
        assert queue.call_one("archive").archived == 1
    row = queue.message(message_id)
    assert (row.state, row.body, row.dedup_key) == (state, "a", "key")
    assert row.attempt == (0 if state == "cancelled" else 1)
    assert abs(row.finished_at - datetime.now(UTC)) < timedelta(seconds=60)
    assert empty(row, "due_at", "claim_id", "worker_name", "lease_until")


@pytest.mark.promise("P15")
def test_get_message_returns_no_row_for_an_unknown_id(queue: CheckedQueue) -> None:
    [of_another_queue] = queue.another().enqueue("a")
    for message_id in (of_another_queue, 0, -1, 2**63 - 1, -(2**63)):
        assert queue.call("get_message", message_id=message_id) == []


@pytest.mark.promise("P15")
def test_get_message_refuses_a_null_id(queue: CheckedQueue) -> None:
    assert "message_id" in queue.refused("RQ711", "get_message", message_id=None)
