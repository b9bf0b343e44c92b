"""retry_later, beyond what it shares with the other finishing routines (test_finishing.py)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import (
    Row,
    bodies,
    call,
    call_one,
    counts,
    dequeue,
    dequeue_one,
    enqueue,
    refused,
    state_of,
)
from tests.stored_times import pass_seconds

DAY = 86400


def retry(connection: Connection, queue: str, row: Row, **arguments: Any) -> Row:
    return call_one(connection, "retry_later", queue_name=queue, claim_id=row.claim_id, **arguments)


def seconds_from_now(moment: datetime) -> float:
    return (moment - datetime.now(UTC)).total_seconds()


def delays(connection: Connection, queue: str, attempts: int, **settings: float) -> list[float]:
    """Return the delay in seconds after each of the first attempts of one message."""
    call(connection, "alter_queue", queue_name=queue, max_attempts=attempts + 1, **settings)
    enqueue(connection, queue, "a")
    found = []
    for _ in range(attempts):
        row = dequeue_one(connection, queue)
        before = datetime.now(UTC)
        done = retry(connection, queue, row)
        assert done.outcome == "retrying"
        found.append((done.due_at - before).total_seconds())
        for _ in range(40):  # The steps add up to a year.
            pass_seconds(connection, queue, 10 * DAY)
        call(connection, "maintain", queue_name=queue)
    return found


@pytest.mark.promise("P10")
@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"backoff_base_seconds": 100, "backoff_factor": 2}, [100, 200, 400, 800, 1600, 3200]),
        ({"backoff_base_seconds": 100, "backoff_factor": 1}, [100, 100, 100]),
        ({"backoff_base_seconds": 100, "backoff_factor": 10}, [100, 1000, 3600, 3600]),
        ({"backoff_base_seconds": 50, "backoff_cap_seconds": 70}, [50, 70, 70]),
        ({"backoff_base_seconds": 100, "backoff_cap_seconds": 40}, [40, 40]),
    ],
)
def test_the_delay_grows_by_the_factor_up_to_the_cap(
    connection: Connection, queue: str, settings: dict[str, float], expected: list[float]
) -> None:
    found = delays(connection, queue, len(expected), backoff_jitter=0, **settings)
    assert found == pytest.approx(expected, abs=20)


@pytest.mark.promise("P10")
def test_the_delay_after_ten_thousand_attempts_is_the_cap(
    connection: Connection, queue: str
) -> None:
    call(
        connection,
        "alter_queue",
        queue_name=queue,
        max_attempts=10000,
        backoff_base_seconds=86400,
        backoff_factor=10,
        backoff_cap_seconds=31536000,
        backoff_jitter=0,
    )
    enqueue(connection, queue, "a")
    for _ in range(100):
        retry(connection, queue, dequeue_one(connection, queue), delay_seconds=0)
    done = retry(connection, queue, dequeue_one(connection, queue))
    assert seconds_from_now(done.due_at) == pytest.approx(31536000, abs=60)


@pytest.mark.promise("P10")
@pytest.mark.parametrize("jitter", [0.5, 1])
def test_jitter_shortens_each_delay_by_a_random_share_within_its_bounds(
    connection: Connection, queue: str, jitter: float
) -> None:
    call(
        connection,
        "alter_queue",
        queue_name=queue,
        backoff_base_seconds=80000,
        backoff_cap_seconds=80000,
        backoff_jitter=jitter,
    )
    call(connection, "enqueue_batch", queue_name=queue, messages=[{}] * 400)
    claim = dequeue(connection, queue, 400)[0].claim_id
    done = call(connection, "retry_later", queue_name=queue, claim_id=claim)
    found = [seconds_from_now(row.due_at) for row in done]
    low = 80000 * (1 - jitter)
    assert low - 60 <= min(found) < low + 8000 * jitter
    assert 80000 - 8000 * jitter < max(found) <= 80001
    assert len(set(found)) > 390


@pytest.mark.promise("P10")
def test_a_delay_that_is_given_is_used_exactly(connection: Connection, queue: str) -> None:
    call(connection, "alter_queue", queue_name=queue, backoff_jitter=1, backoff_cap_seconds=1)
    [message_id] = enqueue(connection, queue, "a")
    done = retry(connection, queue, dequeue_one(connection, queue), delay_seconds=5000)
    assert seconds_from_now(done.due_at) == pytest.approx(5000, abs=20)
    row = call_one(connection, "get_message", queue_name=queue, message_id=message_id)
    assert (row.state, row.due_at) == ("delayed", done.due_at)
    pass_seconds(connection, queue, 4900)
    assert dequeue(connection, queue) == []
    pass_seconds(connection, queue, 101)
    assert dequeue_one(connection, queue).message_id == message_id


@pytest.mark.promise("P10", "P11")
def test_no_delay_makes_a_message_ready_at_once_behind_the_others(
    connection: Connection, queue: str
) -> None:
    enqueue(connection, queue, "a", "b", "c")
    retry(connection, queue, dequeue_one(connection, queue), delay_seconds=0)
    assert bodies(dequeue(connection, queue, 10)) == ["b", "c", "a"]


@pytest.mark.promise("P10")
@pytest.mark.parametrize("setting", ["backoff_base_seconds", "backoff_cap_seconds"])
def test_a_backoff_of_nothing_makes_a_message_ready_at_once(
    connection: Connection, queue: str, setting: str
) -> None:
    call(connection, "alter_queue", queue_name=queue, **{setting: 0})
    enqueue(connection, queue, "a")
    retry(connection, queue, dequeue_one(connection, queue))
    assert dequeue_one(connection, queue).attempt == 2


@pytest.mark.promise("P05", "P10")
def test_a_retried_message_keeps_its_priority(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, "urgent", priority=0)
    retry(connection, queue, dequeue_one(connection, queue), delay_seconds=0)
    enqueue(connection, queue, "normal")
    assert bodies(dequeue(connection, queue, 10)) == ["urgent", "normal"]


@pytest.mark.promise("P10")
def test_a_message_without_an_attempt_left_is_dead_with_its_last_error(
    connection: Connection, queue: str
) -> None:
    [message_id] = enqueue(connection, queue, "a", max_attempts=3, dedup_key="key")
    for attempt in (1, 2, 3):
        row = dequeue_one(connection, queue)
        done = retry(connection, queue, row, delay_seconds=0, error=f"error {attempt}")
    assert (done.outcome, done.due_at) == ("dead", None)
    found = call_one(connection, "get_message", queue_name=queue, message_id=message_id)
    assert (found.state, found.attempt, found.last_error) == ("dead", 3, "error 3")
    assert found.body == "a"
    pass_seconds(connection, queue, DAY)
    call(connection, "maintain", queue_name=queue)
    assert dequeue(connection, queue) == []
    assert call_one(connection, "enqueue", queue_name=queue, dedup_key="key").outcome == "enqueued"


@pytest.mark.promise("P10")
def test_each_message_of_a_claim_has_its_own_number_of_attempts(
    connection: Connection, queue: str
) -> None:
    call(connection, "alter_queue", queue_name=queue, max_attempts=1)
    ids = [
        *enqueue(connection, queue, "the queue's"),
        *enqueue(connection, queue, "more", max_attempts=2),
        *enqueue(connection, queue, "one", max_attempts=1),
    ]
    claim = dequeue(connection, queue, 3)[0].claim_id
    done = call(connection, "retry_later", queue_name=queue, claim_id=claim, message_ids=ids)
    assert [row.outcome for row in done] == ["dead", "retrying", "dead"]
    assert [row.due_at is None for row in done] == [True, False, True]
    assert counts(connection, queue) == (0, 1, 0, 2)


@pytest.mark.promise("P10")
@pytest.mark.parametrize("delay_seconds", [0, 1000])
def test_the_first_2000_characters_of_an_error_are_kept(
    connection: Connection, queue: str, delay_seconds: float
) -> None:
    [message_id] = enqueue(connection, queue, "a")
    error = "é🐘" * 1500
    retry(
        connection, queue, dequeue_one(connection, queue), delay_seconds=delay_seconds, error=error
    )
    row = call_one(connection, "get_message", queue_name=queue, message_id=message_id)
    assert row.last_error == error[:2000]


@pytest.mark.promise("P10")
def test_an_error_is_not_needed(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, "a")
    retry(connection, queue, dequeue_one(connection, queue), delay_seconds=0, error=None)
    assert dequeue_one(connection, queue).last_error is None


@pytest.mark.promise("P15")
@pytest.mark.parametrize(
    "delay_seconds", [-0.001, -1, 315360000.001, float("nan"), float("inf"), float("-inf"), 1e300]
)
def test_a_delay_out_of_range_is_refused_and_the_lease_stays(
    connection: Connection, queue: str, delay_seconds: float
) -> None:
    [message_id] = enqueue(connection, queue, "a")
    claim = dequeue_one(connection, queue).claim_id
    given = {"queue_name": queue, "claim_id": claim, "delay_seconds": delay_seconds}
    assert "delay_seconds" in refused(connection, "RQ711", "retry_later", **given)
    assert state_of(connection, queue, message_id) == "leased"


@pytest.mark.promise("P15")
def test_ten_years_are_taken(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, "a")
    done = retry(connection, queue, dequeue_one(connection, queue), delay_seconds=315360000)
    assert done.due_at - datetime.now(UTC) > timedelta(days=3649)
