"""enqueue."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import (
    bodies,
    call_one,
    counts,
    dequeue,
    dequeue_one,
    enqueue,
    refused,
    rolled_back,
    state_of,
    transaction,
)
from tests.helpers.dialects import dialect_of
from tests.stored_times import pass_seconds

TEN_YEARS = 315360000


@pytest.mark.promise("P01")
def test_a_message_is_delivered_with_everything_it_was_given(
    connection: Connection, queue: str
) -> None:
    before = datetime.now(UTC) - timedelta(seconds=60)
    sent = call_one(
        connection,
        "enqueue",
        queue_name=queue,
        body="hello",
        message_type="greeting",
        headers={"trace": [1, {"a": None}]},
    )
    assert sent.outcome == "enqueued"
    row = dequeue_one(connection, queue)
    assert row.message_id == sent.message_id
    assert (row.body, row.body_binary, row.message_type) == ("hello", None, "greeting")
    assert row.headers == {"trace": [1, {"a": None}]}
    assert (row.attempt, row.last_error) == (1, None)
    assert before < row.enqueued_at < datetime.now(UTC) + timedelta(seconds=60)


@pytest.mark.promise("P01")
def test_a_message_needs_no_body(connection: Connection, queue: str) -> None:
    call_one(connection, "enqueue", queue_name=queue)
    row = dequeue_one(connection, queue)
    assert (row.body, row.body_binary, row.message_type, row.headers) == (None, None, None, None)


@pytest.mark.promise("P01", "P17")
def test_an_enqueue_that_was_rolled_back_never_happened(connection: Connection, queue: str) -> None:
    with rolled_back(connection):
        [ready] = enqueue(connection, queue, "ready", dedup_key="a")
        [delayed] = enqueue(connection, queue, "delayed", delay_seconds=1, dedup_key="b")
        assert dequeue_one(connection, queue).body == "ready"
    assert sum(dialect_of(connection).stored(connection, queue).values()) == 0
    assert state_of(connection, queue, ready) is state_of(connection, queue, delayed) is None
    for key in ("a", "b"):
        assert (
            call_one(connection, "enqueue", queue_name=queue, dedup_key=key).outcome == "enqueued"
        )


@pytest.mark.promise("P01")
def test_a_message_is_invisible_until_its_transaction_commits(
    connection: Connection, connect: Callable[..., Connection], queue: str
) -> None:
    producer = connect()
    with transaction(producer):
        enqueue(producer, queue, "hello")
        assert dequeue(connection, queue) == []
    assert dequeue_one(connection, queue).body == "hello"


@pytest.mark.promise("P05")
def test_better_priorities_go_first_and_each_in_the_order_it_came(
    connection: Connection, queue: str
) -> None:
    for priority in (5, 0, 9, 1, 5, 0, 9, 4, 6):
        enqueue(connection, queue, f"{priority}", priority=priority)
    rows = dequeue(connection, queue, 100)
    assert bodies(rows) == ["0", "0", "1", "4", "5", "5", "6", "9", "9"]
    by_priority: dict[str, list[int]] = {}
    for row in rows:
        by_priority.setdefault(row.body, []).append(row.message_id)
    assert all(ids == sorted(ids) for ids in by_priority.values())


@pytest.mark.promise("P05")
@pytest.mark.parametrize("priority", range(10))
def test_each_priority_is_taken(connection: Connection, queue: str, priority: int) -> None:
    [message_id] = enqueue(connection, queue, "x", priority=priority)
    row = call_one(connection, "get_message", queue_name=queue, message_id=message_id)
    assert row.priority == priority
    assert dequeue_one(connection, queue).message_id == message_id


@pytest.mark.promise("P05")
def test_the_priority_is_5_unless_given(connection: Connection, queue: str) -> None:
    for priority in (4, 6):
        enqueue(connection, queue, f"{priority}", priority=priority)
    enqueue(connection, queue, "default")
    assert bodies(dequeue(connection, queue, 3)) == ["4", "default", "6"]


@pytest.mark.promise("P11")
def test_a_delayed_message_waits_and_then_comes_after_those_that_were_ready(
    connection: Connection, queue: str
) -> None:
    [message_id] = enqueue(connection, queue, "delayed", delay_seconds=60)
    enqueue(connection, queue, "ready")
    assert counts(connection, queue) == (1, 1, 0, 0)
    assert bodies(dequeue(connection, queue, 10)) == ["ready"]
    assert state_of(connection, queue, message_id) == "delayed"
    pass_seconds(connection, queue, 59)
    assert dequeue(connection, queue, 10) == []
    pass_seconds(connection, queue, 2)
    assert bodies(dequeue(connection, queue, 10)) == ["delayed"]


@pytest.mark.promise("P11")
def test_a_message_is_delivered_no_sooner_than_run_at(connection: Connection, queue: str) -> None:
    run_at = datetime.now(UTC) + timedelta(hours=1)
    [message_id] = enqueue(connection, queue, "later", run_at=run_at)
    row = call_one(connection, "get_message", queue_name=queue, message_id=message_id)
    assert (row.state, row.due_at) == ("delayed", run_at)
    pass_seconds(connection, queue, 3500)
    assert dequeue(connection, queue) == []
    pass_seconds(connection, queue, 200)
    assert dequeue_one(connection, queue).message_id == message_id


@pytest.mark.promise("P11")
def test_a_short_delay_is_kept_and_then_ends_by_itself(connection: Connection, queue: str) -> None:
    row = call_one(connection, "enqueue", queue_name=queue, delay_seconds=0.2)
    due_at = call_one(connection, "get_message", queue_name=queue, message_id=row.message_id).due_at
    waited = call_one(connection, "dequeue_wait", queue_name=queue, wait_seconds=10)
    [message] = waited.messages
    assert message["message_id"] == row.message_id
    leased_at = datetime.fromisoformat(message["lease_until"]) - timedelta(seconds=30)
    assert leased_at >= due_at


@pytest.mark.promise("P11")
@pytest.mark.parametrize(
    "given",
    [
        {"delay_seconds": 0},
        {"delay_seconds": -0.0},
        {"run_at": datetime(1970, 1, 1, tzinfo=UTC)},
        {"run_at": datetime(1, 1, 2, tzinfo=UTC)},
        {"delay_seconds": None, "run_at": None},
    ],
)
def test_no_delay_or_a_moment_in_the_past_means_now(
    connection: Connection, queue: str, given: dict[str, Any]
) -> None:
    enqueue(connection, queue, "now", **given)
    assert dequeue_one(connection, queue).body == "now"


@pytest.mark.promise("P11", "P15")
def test_ten_years_of_delay_are_taken(connection: Connection, queue: str) -> None:
    [message_id] = enqueue(connection, queue, "one day", delay_seconds=TEN_YEARS)
    row = call_one(connection, "get_message", queue_name=queue, message_id=message_id)
    assert row.due_at - row.enqueued_at == timedelta(seconds=TEN_YEARS)


@pytest.mark.promise("P10")
@pytest.mark.parametrize("max_attempts", [1, 2, 10000])
def test_a_message_may_have_its_own_number_of_attempts(
    connection: Connection, queue: str, max_attempts: int
) -> None:
    [message_id] = enqueue(connection, queue, "x", max_attempts=max_attempts)
    row = call_one(connection, "get_message", queue_name=queue, message_id=message_id)
    assert row.max_attempts == max_attempts
    for attempt in range(1, min(max_attempts, 3) + 1):
        leased = dequeue_one(connection, queue)
        assert leased.attempt == attempt
        outcome = call_one(
            connection,
            "retry_later",
            queue_name=queue,
            claim_id=leased.claim_id,
            delay_seconds=0,
        ).outcome
        assert outcome == ("dead" if attempt == max_attempts else "retrying")


@pytest.mark.promise("P15")
@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"priority": -1}, "priority"),
        ({"priority": 10}, "priority"),
        ({"priority": None}, "priority"),
        ({"priority": 100000}, "priority"),
        ({"priority": 2147483647}, "priority"),
        ({"priority": -2147483648}, "priority"),
        ({"delay_seconds": -0.001}, "delay_seconds"),
        ({"delay_seconds": TEN_YEARS + 0.001}, "delay_seconds"),
        ({"delay_seconds": float("nan")}, "delay_seconds"),
        ({"delay_seconds": float("inf")}, "delay_seconds"),
        ({"delay_seconds": float("-inf")}, "delay_seconds"),
        ({"run_at": "infinity"}, "run_at"),
        ({"run_at": "-infinity"}, "run_at"),
        ({"run_at": datetime(9999, 12, 31, tzinfo=UTC)}, "run_at"),
        ({"delay_seconds": 1, "run_at": datetime(2000, 1, 1, tzinfo=UTC)}, "run_at"),
        ({"delay_seconds": 0, "run_at": datetime(2000, 1, 1, tzinfo=UTC)}, "run_at"),
        ({"body_binary": b"both"}, "body_binary"),
        ({"body_binary": b""}, "body_binary"),
        ({"message_type": "x" * 201}, "message_type"),
        ({"dedup_key": ""}, "dedup_key"),
        ({"dedup_key": "x" * 201}, "dedup_key"),
        ({"headers": []}, "headers"),
        ({"headers": "text"}, "headers"),
        ({"headers": 1}, "headers"),
        ({"headers": True}, "headers"),
        ({"max_attempts": 0}, "max_attempts"),
        ({"max_attempts": -1}, "max_attempts"),
        ({"max_attempts": 10001}, "max_attempts"),
        ({"max_attempts": 2147483647}, "max_attempts"),
    ],
    ids=str,
)
def test_an_argument_out_of_range_is_refused_and_nothing_is_stored(
    connection: Connection, queue: str, given: dict[str, Any], named: str
) -> None:
    text = refused(connection, "RQ711", "enqueue", queue_name=queue, body="x", **given)
    assert named in text
    assert sum(dialect_of(connection).stored(connection, queue).values()) == 0


@pytest.mark.promise("P15", "P20")
@pytest.mark.parametrize("character", ["x", "é", "🐘"])
def test_labels_of_200_characters_are_taken(
    connection: Connection, queue: str, character: str
) -> None:
    label = character * 200
    call_one(connection, "enqueue", queue_name=queue, message_type=label, dedup_key=label)
    assert dequeue_one(connection, queue).message_type == label


@pytest.mark.promise("P15")
def test_an_unknown_queue_is_refused(connection: Connection, queue_name: str) -> None:
    assert queue_name in refused(connection, "RQ701", "enqueue", queue_name=queue_name)


@pytest.mark.promise("P15")
def test_a_missing_name_is_refused(connection: Connection) -> None:
    refused(connection, "RQ711", "enqueue", queue_name=None)
