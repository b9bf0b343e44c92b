"""get_message."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import (
    Row,
    call,
    call_one,
    dequeue,
    dequeue_one,
    enqueue,
    make_dead,
    refused,
    transaction,
)
from tests.stored_times import pass_seconds


def get(connection: Connection, queue: str, message_id: int) -> Row:
    return call_one(connection, "get_message", queue_name=queue, message_id=message_id)


def empty(row: Row, *names: str) -> bool:
    return all(getattr(row, name) is None for name in names)


@pytest.mark.promise("P20")
def test_a_ready_message_is_shown_with_everything_it_was_given(
    connection: Connection, queue: str
) -> None:
    [message_id] = enqueue(
        connection,
        queue,
        "🐘",
        message_type="type",
        headers={"a": 1},
        priority=7,
        dedup_key="key",
        max_attempts=3,
    )
    row = get(connection, queue, message_id)
    assert (row.message_id, row.state, row.priority) == (message_id, "ready", 7)
    assert (row.attempt, row.max_attempts, row.last_error) == (0, 3, None)
    assert (row.body, row.message_type, row.headers) == ("🐘", "type", {"a": 1})
    assert row.dedup_key == "key"
    assert empty(row, "due_at", "claim_id", "worker_name", "lease_until", "finished_at")


@pytest.mark.promise("P10")
def test_the_attempts_are_the_queues_unless_the_message_has_its_own(
    connection: Connection, queue: str
) -> None:
    [message_id] = enqueue(connection, queue, "a")
    assert get(connection, queue, message_id).max_attempts == 10
    call(connection, "alter_queue", queue_name=queue, max_attempts=4)
    assert get(connection, queue, message_id).max_attempts == 4


@pytest.mark.promise("P11")
def test_a_delayed_message_is_shown_with_its_time(connection: Connection, queue: str) -> None:
    [message_id] = enqueue(connection, queue, "a", delay_seconds=100)
    row = get(connection, queue, message_id)
    assert (row.state, row.attempt) == ("delayed", 0)
    assert row.due_at - row.enqueued_at == timedelta(seconds=100)
    assert empty(row, "claim_id", "worker_name", "lease_until", "finished_at")


@pytest.mark.promise("P03")
def test_a_leased_message_is_shown_with_its_worker(connection: Connection, queue: str) -> None:
    ids = enqueue(connection, queue, "a", "b")
    leased = dequeue(connection, queue, 2, worker_name="w")
    for message_id in ids:
        row = get(connection, queue, message_id)
        assert (row.state, row.attempt, row.worker_name) == ("leased", 1, "w")
        assert (row.claim_id, row.lease_until) == (leased[0].claim_id, leased[0].lease_until)
        assert empty(row, "due_at", "finished_at")


@pytest.mark.promise("P03", "P06")
@pytest.mark.requires("genuine")
def test_a_message_that_another_session_is_taking_is_shown_as_before(
    connection: Connection, connect: Callable[..., Connection], queue: str
) -> None:
    [message_id] = enqueue(connection, queue, "a")
    worker = connect()
    with transaction(worker):
        dequeue_one(worker, queue)
        assert get(worker, queue, message_id).state == "leased"
        assert get(connection, queue, message_id).state == "ready"
    assert get(connection, queue, message_id).state == "leased"


@pytest.mark.promise("P10")
def test_a_dead_message_is_shown_with_its_error_and_body(
    connection: Connection, queue: str
) -> None:
    [message_id] = make_dead(connection, queue, "a", priority=1)
    row = get(connection, queue, message_id)
    assert (row.state, row.attempt, row.last_error, row.body) == ("dead", 1, "broken", "a")
    assert row.priority == 1
    assert empty(row, "due_at", "claim_id", "worker_name", "lease_until")


@pytest.mark.promise("P10")
def test_a_retried_message_is_shown_where_it_waits(connection: Connection, queue: str) -> None:
    [message_id] = enqueue(connection, queue, "a", priority=2)
    for delay_seconds, state in ((100, "delayed"), (0, "ready")):
        claim = dequeue_one(connection, queue).claim_id
        call(
            connection,
            "retry_later",
            queue_name=queue,
            claim_id=claim,
            delay_seconds=delay_seconds,
            error="broken",
        )
        row = get(connection, queue, message_id)
        assert (row.state, row.last_error, row.priority) == (state, "broken", 2)
        pass_seconds(connection, queue, 200)
        call(connection, "promote", queue_name=queue)
    assert get(connection, queue, message_id).attempt == 2


@pytest.mark.promise("P09")
def test_a_reaped_message_is_ready(connection: Connection, queue: str) -> None:
    [message_id] = enqueue(connection, queue, "a")
    dequeue_one(connection, queue)
    pass_seconds(connection, queue, 100)
    assert get(connection, queue, message_id).state == "leased"
    call(connection, "reap", queue_name=queue)
    row = get(connection, queue, message_id)
    assert (row.state, row.attempt) == ("ready", 1)


@pytest.mark.promise("P04")
@pytest.mark.parametrize("archived", [False, True])
@pytest.mark.parametrize("state", ["completed", "cancelled"])
def test_a_finished_message_is_shown_before_and_after_it_is_archived(
    connection: Connection, queue: str, state: str, archived: bool
) -> None:
    call(connection, "alter_queue", queue_name=queue, archive_days=1)
    [message_id] = enqueue(connection, queue, "a", dedup_key="key")
    if state == "cancelled":
        call(connection, "cancel", queue_name=queue, message_ids=[message_id])
    else:
        claim = dequeue_one(connection, queue).claim_id
        call(connection, "complete", queue_name=queue, claim_id=claim)
    if archived:
        assert call_one(connection, "archive", queue_name=queue).archived == 1
    row = get(connection, queue, message_id)
    assert (row.state, row.body, row.dedup_key) == (state, "a", "key")
    assert row.attempt == (0 if state == "cancelled" else 1)
    assert abs(row.finished_at - datetime.now(UTC)) < timedelta(seconds=60)
    assert empty(row, "due_at", "claim_id", "worker_name", "lease_until")


@pytest.mark.promise("P15")
@pytest.mark.parametrize("message_id", [0, -1, 9223372036854775807, -9223372036854775808])
def test_a_message_that_rowq_does_not_know_has_no_row(
    connection: Connection, queue: str, message_id: int
) -> None:
    assert call(connection, "get_message", queue_name=queue, message_id=message_id) == []


@pytest.mark.promise("P15")
def test_a_message_of_another_queue_has_no_row(connection: Connection, queue: str) -> None:
    other = f"{queue[:80]} other"
    call(connection, "create_queue", queue_name=other)
    [message_id] = enqueue(connection, other, "a")
    assert call(connection, "get_message", queue_name=queue, message_id=message_id) == []


@pytest.mark.promise("P15")
def test_a_missing_message_is_refused(connection: Connection, queue: str) -> None:
    text = refused(connection, "RQ711", "get_message", queue_name=queue, message_id=None)
    assert "message_id" in text


@pytest.mark.promise("P15")
def test_an_unknown_queue_is_refused(connection: Connection, queue_name: str) -> None:
    refused(connection, "RQ701", "get_message", queue_name=queue_name, message_id=1)


@pytest.mark.promise("P15")
def test_a_missing_name_is_refused(connection: Connection) -> None:
    refused(connection, "RQ711", "get_message", queue_name=None, message_id=1)
