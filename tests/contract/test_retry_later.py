"""retry_later, apart from test_finishing.py."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.helpers.calls import Row, bodies
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import CheckedQueue

DAY = 86400


def retry(queue: CheckedQueue, row: Row, **arguments: Any) -> Row:
    return queue.call_one("retry_later", claim_id=row.claim_id, **arguments)


def seconds_from_now(time: datetime) -> float:
    return (time - datetime.now(UTC)).total_seconds()


def delays(queue: CheckedQueue, attempts: int, **settings: float) -> list[float]:
    """Return the delay in seconds after each of the first attempts of one message."""
    queue.call("alter_queue", max_attempts=attempts + 1, **settings)
    queue.enqueue("a")
    found = []
    for _ in range(attempts):
        row = queue.dequeue_one()
        before = datetime.now(UTC)
        done = retry(queue, row)
        assert done.outcome == "retrying"
        found.append((done.due_at - before).total_seconds())
        for _ in range(40):  # more than a year
            queue.pass_seconds(10 * DAY)
        queue.call("maintain")
    return found


@pytest.mark.slow("waits for each delay", on="mariadb", ci="mariadb")
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
def test_backoff_grows_by_the_factor_up_to_the_cap(
    queue: CheckedQueue, settings: dict[str, float], expected: list[float]
) -> None:
    found = delays(queue, len(expected), backoff_jitter=0, **settings)
    assert found == pytest.approx(expected, abs=20)


@pytest.mark.promise("P10")
def test_backoff_after_100_attempts_is_the_cap(queue: CheckedQueue) -> None:
    queue.call(
        "alter_queue",
        max_attempts=10000,
        backoff_base_seconds=86400,
        backoff_factor=10,
        backoff_cap_seconds=31536000,
        backoff_jitter=0,
    )
    queue.enqueue("a")
    for _ in range(100):
        retry(queue, queue.dequeue_one(), delay_seconds=0)
    done = retry(queue, queue.dequeue_one())
    assert seconds_from_now(done.due_at) == pytest.approx(31536000, abs=60)


@pytest.mark.promise("P10")
@pytest.mark.parametrize("jitter", [0.5, 1])
def test_jitter_shortens_delays_within_its_bounds(queue: CheckedQueue, jitter: float) -> None:
    queue.call(
        "alter_queue", backoff_base_seconds=80000, backoff_cap_seconds=80000, backoff_jitter=jitter
    )
    queue.call("enqueue_batch", messages=[{}] * 400)
    claim = queue.dequeue(400)[0].claim_id
    done = queue.call("retry_later", claim_id=claim)
    found = [seconds_from_now(row.due_at) for row in done]
    low = 80000 * (1 - jitter)
    assert low - 60 <= min(found) < low + 8000 * jitter
    assert 80000 - 8000 * jitter < max(found) <= 80001
    assert len(set(found)) > 390


@pytest.mark.promise("P10")
def test_delay_seconds_overrides_the_backoff(queue: CheckedQueue) -> None:
    queue.call("alter_queue", backoff_jitter=1, backoff_cap_seconds=1)
    [message_id] = queue.enqueue("a")
    done = retry(queue, queue.dequeue_one(), delay_seconds=5000)
    assert seconds_from_now(done.due_at) == pytest.approx(5000, abs=20)
    row = queue.message(message_id)
    assert (row.state, row.due_at) == ("delayed", done.due_at)
    queue.pass_seconds(4900)
    assert queue.dequeue() == []
    queue.pass_seconds(101)
    assert queue.dequeue_one().message_id == message_id


@pytest.mark.promise("P10", "P11")
def test_delay_0_moves_the_message_behind_the_others(queue: CheckedQueue) -> None:
    queue.enqueue("a", "b", "c")
    retry(queue, queue.dequeue_one(), delay_seconds=0)
    assert bodies(queue.dequeue(10)) == ["b", "c", "a"]


@pytest.mark.promise("P10")
@pytest.mark.parametrize("setting", ["backoff_base_seconds", "backoff_cap_seconds"])
def test_backoff_0_makes_the_message_ready_at_once(queue: CheckedQueue, setting: str) -> None:
    queue.call("alter_queue", **{setting: 0})
    queue.enqueue("a")
    retry(queue, queue.dequeue_one())
    assert queue.dequeue_one().attempt == 2


@pytest.mark.promise("P05", "P10")
def test_retried_message_keeps_its_priority(queue: CheckedQueue) -> None:
    queue.enqueue("urgent", priority=0)
    retry(queue, queue.dequeue_one(), delay_seconds=0)
    queue.enqueue("normal")
    assert bodies(queue.dequeue(10)) == ["urgent", "normal"]


@pytest.mark.promise("P10")
def test_message_is_dead_after_its_last_attempt(queue: CheckedQueue) -> None:
    [message_id] = queue.enqueue("a", max_attempts=3, dedup_key="key")
    for attempt in (1, 2, 3):
        row = queue.dequeue_one()
        done = retry(queue, row, delay_seconds=0, error=f"error {attempt}")
    assert (done.outcome, done.due_at) == ("dead", None)
    found = queue.message(message_id)
    assert (found.state, found.attempt, found.last_error) == ("dead", 3, "error 3")
    assert found.body == "a"
    queue.pass_seconds(DAY)
    queue.call("maintain")
    assert queue.dequeue() == []
    assert queue.call_one("enqueue", dedup_key="key").outcome == "enqueued"


@pytest.mark.promise("P10")
def test_max_attempts_applies_per_message(queue: CheckedQueue) -> None:
    queue.call("alter_queue", max_attempts=1)
    ids = [
        *queue.enqueue("the queue's"),
        *queue.enqueue("more", max_attempts=2),
        *queue.enqueue("one", max_attempts=1),
    ]
    claim = queue.dequeue(3)[0].claim_id
    done = queue.call("retry_later", claim_id=claim, message_ids=ids)
    assert [row.outcome for row in done] == ["dead", "retrying", "dead"]
    assert [row.due_at is None for row in done] == [True, False, True]
    assert queue.counts() == (0, 1, 0, 2)


@pytest.mark.promise("P10")
@pytest.mark.parametrize("delay_seconds", [0, 1000])
def test_error_is_truncated_to_2000_characters(queue: CheckedQueue, delay_seconds: float) -> None:
    [message_id] = queue.enqueue("a")
    error = "é🐘" * 1500
    retry(queue, queue.dequeue_one(), delay_seconds=delay_seconds, error=error)
    row = queue.message(message_id)
    assert row.last_error == error[:2000]


@pytest.mark.promise("P10")
def test_error_may_be_null(queue: CheckedQueue) -> None:
    queue.enqueue("a")
    retry(queue, queue.dequeue_one(), delay_seconds=0, error=None)
    assert queue.dequeue_one().last_error is None


@pytest.mark.promise("P15")
@pytest.mark.parametrize(
    "delay_seconds", [-0.001, -1, 315360000.001, float("nan"), float("inf"), float("-inf"), 1e300]
)
def test_delay_out_of_range_is_refused(queue: CheckedQueue, delay_seconds: float) -> None:
    [message_id] = queue.enqueue("a")
    claim = queue.dequeue_one().claim_id
    given = {"claim_id": claim, "delay_seconds": delay_seconds}
    assert "delay_seconds" in queue.refused("RQ711", "retry_later", **given)
    assert queue.state_of(message_id) == "leased"


@pytest.mark.promise("P15")
def test_delay_seconds_accepts_ten_years(queue: CheckedQueue) -> None:
    queue.enqueue("a")
    done = retry(queue, queue.dequeue_one(), delay_seconds=315360000)
    assert done.due_at - datetime.now(UTC) > timedelta(days=3649)


def fail(queue: CheckedQueue, way: str) -> int:
    """Let an attempt of the only message fail; return its number."""
    row = queue.dequeue_one()
    if way == "reap":
        queue.pass_seconds(100)
        assert queue.call_one("reap").reaped == 1
    else:
        assert retry(queue, row, delay_seconds=0).outcome == "retrying"
    return int(row.attempt)


@pytest.mark.promise("P47")
@pytest.mark.parametrize("way", ["retry_later", "reap"])
@pytest.mark.parametrize("limited", ["queue", "message"])
def test_message_without_a_limit_is_retried(queue: CheckedQueue, limited: str, way: str) -> None:
    queue.call("alter_queue", max_attempts=0 if limited == "queue" else 1)
    queue.enqueue("a", max_attempts=None if limited == "queue" else 0)
    assert [fail(queue, way) for _ in range(12)] == [*range(1, 13)]


@pytest.mark.promise("P47")
@pytest.mark.parametrize("way", ["retry_later", "reap"])
def test_attempt_stops_at_32767(queue: CheckedQueue, way: str) -> None:
    [message_id] = queue.enqueue("a", max_attempts=0)
    dialect_of(queue.connection).set_attempt(queue.connection, message_id, 32765)
    assert [fail(queue, way) for _ in range(4)] == [32766, 32767, 32767, 32767]
    claim = queue.dequeue_one().claim_id
    assert queue.call_one("fail_now", claim_id=claim).outcome == "dead"


@pytest.mark.promise("P47")
def test_own_limit_of_a_message_applies_without_one_of_the_queue(queue: CheckedQueue) -> None:
    queue.call("alter_queue", max_attempts=0)
    queue.enqueue("a", max_attempts=1)
    assert retry(queue, queue.dequeue_one()).outcome == "dead"
