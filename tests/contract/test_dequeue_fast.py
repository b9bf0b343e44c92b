"""dequeue_fast."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import (
    bodies,
    call,
    call_one,
    counts,
    dequeue,
    dequeue_one,
    enqueue,
    refused,
    rolled_back,
    transaction,
)
from tests.helpers.dialects import dialect_of
from tests.stored_times import pass_seconds


@pytest.mark.promise("P05")
def test_an_empty_queue_returns_nothing_and_makes_no_claim(
    connection: Connection, queue: str
) -> None:
    assert dequeue(connection, queue, 10) == []
    assert sum(dialect_of(connection).stored(connection, queue).values()) == 0


@pytest.mark.promise("P03", "P05")
def test_a_batch_is_one_claim_with_one_lease(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, "a", "b", "c")
    before = datetime.now(UTC)
    rows = dequeue(connection, queue, 2, worker_name="w1", lease_seconds=60)
    assert bodies(rows) == ["a", "b"]
    assert len({(row.claim_id, row.lease_until) for row in rows}) == 1
    assert abs(rows[0].lease_until - before - timedelta(seconds=60)) < timedelta(seconds=20)
    found = call_one(connection, "get_message", queue_name=queue, message_id=rows[0].message_id)
    assert (found.state, found.worker_name, found.claim_id, found.lease_until) == (
        "leased",
        "w1",
        rows[0].claim_id,
        rows[0].lease_until,
    )
    assert bodies(dequeue(connection, queue, 2)) == ["c"]


@pytest.mark.promise("P05")
def test_one_message_is_taken_unless_more_are_asked_for(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, "a", "b")
    assert bodies(call(connection, "dequeue_fast", queue_name=queue)) == ["a"]


@pytest.mark.promise("P03")
def test_the_lease_is_the_queues_unless_given(connection: Connection, queue: str) -> None:
    call(connection, "alter_queue", queue_name=queue, lease_seconds=1000)
    enqueue(connection, queue, "a")
    lease = dequeue_one(connection, queue, lease_seconds=None).lease_until - datetime.now(UTC)
    assert timedelta(seconds=900) < lease <= timedelta(seconds=1010)


@pytest.mark.promise("P03")
@pytest.mark.parametrize("lease_seconds", [1, 86400])
def test_a_lease_at_its_bounds_is_taken(
    connection: Connection, queue: str, lease_seconds: int
) -> None:
    enqueue(connection, queue, "a")
    lease = dequeue_one(connection, queue, lease_seconds=lease_seconds).lease_until
    assert abs((lease - datetime.now(UTC)).total_seconds() - lease_seconds) < 20


@pytest.mark.promise("P03")
def test_a_leased_message_is_not_given_to_anybody_else(
    connection: Connection, connect: Callable[..., Connection], queue: str
) -> None:
    enqueue(connection, queue, "only")
    assert dequeue_one(connection, queue).body == "only"
    assert dequeue(connect(), queue, 10) == []


@pytest.mark.promise("P03")
def test_an_expired_lease_is_not_given_to_anybody_before_it_is_reaped(
    connection: Connection, queue: str
) -> None:
    enqueue(connection, queue, "only")
    first = dequeue_one(connection, queue)
    pass_seconds(connection, queue, 100)
    assert dequeue(connection, queue) == []
    call(connection, "reap", queue_name=queue)
    second = dequeue_one(connection, queue)
    assert (second.message_id, second.attempt) == (first.message_id, 2)
    assert second.claim_id != first.claim_id


@pytest.mark.promise("P05")
def test_priorities_are_strict_even_for_messages_that_come_later(
    connection: Connection, queue: str
) -> None:
    enqueue(connection, queue, *["5"] * 3)
    assert dequeue_one(connection, queue).body == "5"
    enqueue(connection, queue, "9", priority=9)
    enqueue(connection, queue, "0", priority=0)
    assert dequeue_one(connection, queue).body == "0"
    assert bodies(dequeue(connection, queue, 10)) == ["5", "5", "9"]


@pytest.mark.promise("P05")
def test_a_batch_is_filled_from_several_priorities(connection: Connection, queue: str) -> None:
    for priority in range(10):
        enqueue(connection, queue, f"{priority}", priority=priority)
    assert bodies(dequeue(connection, queue, 4)) == ["0", "1", "2", "3"]
    assert bodies(dequeue(connection, queue, 1000)) == ["4", "5", "6", "7", "8", "9"]


@pytest.mark.promise("P05")
def test_one_call_takes_a_thousand_messages(connection: Connection, queue: str) -> None:
    messages = [{"body": str(number)} for number in range(1001)]
    call(connection, "enqueue_batch", queue_name=queue, messages=messages)
    assert bodies(dequeue(connection, queue, 1000)) == [str(number) for number in range(1000)]
    assert counts(connection, queue) == (1, 0, 1000, 0)


@pytest.mark.promise("P06")
@pytest.mark.requires("genuine")
def test_a_message_that_another_session_is_taking_is_passed_over(
    connection: Connection, connect: Callable[..., Connection], queue: str
) -> None:
    enqueue(connection, queue, "held", "free", "free too")
    other = connect()
    with rolled_back(other):
        assert dequeue_one(other, queue).body == "held"
        assert bodies(dequeue(connection, queue, 10)) == ["free", "free too"]
    assert dequeue_one(connection, queue).body == "held"


@pytest.mark.promise("P06")
@pytest.mark.requires("genuine")
def test_a_better_priority_that_is_held_does_not_stop_the_others(
    connection: Connection, connect: Callable[..., Connection], queue: str
) -> None:
    enqueue(connection, queue, "held", priority=0)
    enqueue(connection, queue, "free", priority=9)
    other = connect()
    with transaction(other):
        assert dequeue_one(other, queue).body == "held"
        assert bodies(dequeue(connection, queue, 10)) == ["free"]


@pytest.mark.promise("P07")
def test_a_rolled_back_dequeue_gives_everything_back_at_its_old_place(
    connection: Connection, connect: Callable[..., Connection], queue: str
) -> None:
    enqueue(connection, queue, "a", "b", "c")
    enqueue(connection, queue, "urgent", priority=0)
    enqueue(connection, queue, "delayed", delay_seconds=0.001)
    with rolled_back(connection):
        rows = dequeue(connection, queue, 3)
        assert bodies(rows) == ["urgent", "a", "b"]
        call(connection, "complete", queue_name=queue, claim_id=rows[0].claim_id)
    rows = dequeue(connect(), queue, 4)
    assert bodies(rows) == ["urgent", "a", "b", "c"]
    assert {row.attempt for row in rows} == {1}
    assert dequeue_one(connection, queue).body == "delayed"


@pytest.mark.promise("P02", "P07")
@pytest.mark.requires("genuine")
def test_messages_taken_by_a_session_that_breaks_off_come_back_at_once(
    connection: Connection, connect: Callable[..., Connection], queue: str
) -> None:
    enqueue(connection, queue, "a")
    worker = connect()
    dialect_of(worker).begin(worker)
    assert dequeue_one(worker, queue).body == "a"
    worker.close()
    rows = call_one(connection, "dequeue_wait", queue_name=queue, wait_seconds=10).messages
    assert [(row["body"], row["attempt"]) for row in rows] == [("a", 1)]


@pytest.mark.promise("P01", "P02")
def test_work_and_completion_share_the_callers_transaction(
    connection: Connection, queue: str
) -> None:
    enqueue(connection, queue, "a")
    with transaction(connection):
        claim = dequeue_one(connection, queue).claim_id
        enqueue(connection, queue, "follow-up")
        call(connection, "complete", queue_name=queue, claim_id=claim)
    assert bodies(dequeue(connection, queue, 10)) == ["follow-up"]


@pytest.mark.promise("P11")
def test_what_has_become_due_is_delivered_without_housekeeping(
    connection: Connection, queue: str
) -> None:
    enqueue(connection, queue, "later", delay_seconds=60)
    enqueue(connection, queue, "urgent", delay_seconds=90, priority=0)
    pass_seconds(connection, queue, 100)
    assert bodies(dequeue(connection, queue, 10)) == ["urgent", "later"]


@pytest.mark.promise("P10")
def test_attempt_and_last_error_tell_what_happened_before(
    connection: Connection, queue: str
) -> None:
    enqueue(connection, queue, "a")
    for attempt in range(1, 4):
        row = dequeue_one(connection, queue)
        assert row.attempt == attempt
        assert row.last_error == (None if attempt == 1 else f"error {attempt - 1}")
        call(
            connection,
            "retry_later",
            queue_name=queue,
            claim_id=row.claim_id,
            delay_seconds=0,
            error=f"error {attempt}",
        )


@pytest.mark.promise("P17")
def test_dequeue_does_not_commit_the_callers_transaction(
    connection: Connection, connect: Callable[..., Connection], queue: str
) -> None:
    with rolled_back(connection):
        enqueue(connection, queue, "unborn")
        dequeue(connection, queue)
    assert dequeue(connect(), queue) == []


@pytest.mark.promise("P15")
@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": -1}, "batch_size"),
        ({"batch_size": 1001}, "batch_size"),
        ({"batch_size": None}, "batch_size"),
        ({"batch_size": 2147483647}, "batch_size"),
        ({"lease_seconds": 0}, "lease_seconds"),
        ({"lease_seconds": -1}, "lease_seconds"),
        ({"lease_seconds": 86401}, "lease_seconds"),
        ({"lease_seconds": 2147483647}, "lease_seconds"),
        ({"worker_name": "x" * 201}, "worker_name"),
    ],
    ids=str,
)
def test_an_argument_out_of_range_is_refused_and_nothing_is_leased(
    connection: Connection, queue: str, given: dict[str, Any], named: str
) -> None:
    enqueue(connection, queue, "a")
    assert named in refused(connection, "RQ711", "dequeue_fast", queue_name=queue, **given)
    assert counts(connection, queue) == (1, 0, 0, 0)


@pytest.mark.promise("P20")
@pytest.mark.parametrize("worker_name", ["", "🐘" * 200, "'; --"])
def test_a_workers_name_is_kept(connection: Connection, queue: str, worker_name: str) -> None:
    [message_id] = enqueue(connection, queue, "a")
    dequeue_one(connection, queue, worker_name=worker_name)
    row = call_one(connection, "get_message", queue_name=queue, message_id=message_id)
    assert row.worker_name == dialect_of(connection).short_text(worker_name)


@pytest.mark.promise("P15")
def test_an_unknown_queue_is_refused(connection: Connection, queue_name: str) -> None:
    refused(connection, "RQ701", "dequeue_fast", queue_name=queue_name)


@pytest.mark.promise("P15")
def test_a_missing_name_is_refused(connection: Connection) -> None:
    refused(connection, "RQ711", "dequeue_fast", queue_name=None)
