"""enqueue."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.helpers.calls import bodies, rolled_back, transaction
from tests.helpers.queues import CheckedQueue

TEN_YEARS = 315360000


@pytest.mark.promise("P01")
def test_message_is_delivered_with_all_arguments(queue: CheckedQueue) -> None:
    before = datetime.now(UTC) - timedelta(seconds=60)
    sent = queue.call_one(
        "enqueue", body="hello", message_type="greeting", headers={"trace": [1, {"a": None}]}
    )
    assert sent.outcome == "enqueued"
    row = queue.dequeue_one()
    assert row.message_id == sent.message_id
    assert (row.body, row.body_binary, row.message_type) == ("hello", None, "greeting")
    assert row.headers == {"trace": [1, {"a": None}]}
    assert (row.attempt, row.last_error) == (1, None)
    assert before < row.enqueued_at < datetime.now(UTC) + timedelta(seconds=60)


@pytest.mark.promise("P01")
def test_message_needs_no_body(queue: CheckedQueue) -> None:
    queue.call_one("enqueue")
    row = queue.dequeue_one()
    assert (row.body, row.body_binary, row.message_type, row.headers) == (None, None, None, None)


@pytest.mark.promise("P01", "P17")
def test_rolled_back_enqueue_stores_nothing(queue: CheckedQueue) -> None:
    with rolled_back(queue.connection):
        [ready] = queue.enqueue("ready", dedup_key="a")
        [delayed] = queue.enqueue("delayed", delay_seconds=1, dedup_key="b")
        assert queue.dequeue_one().body == "ready"
    assert sum(queue.stored().values()) == 0
    assert queue.state_of(ready) is queue.state_of(delayed) is None
    for key in ("a", "b"):
        assert queue.call_one("enqueue", dedup_key=key).outcome == "enqueued"


@pytest.mark.promise("P01")
def test_message_is_invisible_until_commit(queue: CheckedQueue, elsewhere: CheckedQueue) -> None:
    with transaction(elsewhere.connection):
        elsewhere.enqueue("hello")
        assert queue.dequeue() == []
    assert queue.dequeue_one().body == "hello"


@pytest.mark.promise("P05")
def test_messages_are_ordered_by_priority_then_by_arrival(queue: CheckedQueue) -> None:
    for priority in (5, 0, 9, 1, 3, 8, 5, 0, 9, 4, 2, 6, 7):
        queue.enqueue(f"{priority}", priority=priority)
    rows = queue.dequeue(100)
    assert bodies(rows) == list("0012345567899")
    by_priority: dict[str, list[int]] = {}
    for row in rows:
        by_priority.setdefault(row.body, []).append(row.message_id)
    assert all(ids == sorted(ids) for ids in by_priority.values())


@pytest.mark.promise("P05")
def test_priority_defaults_to_5(queue: CheckedQueue) -> None:
    for priority in (4, 6):
        queue.enqueue(f"{priority}", priority=priority)
    queue.enqueue("default")
    assert bodies(queue.dequeue(3)) == ["4", "default", "6"]


@pytest.mark.promise("P11")
def test_delayed_message_is_ready_after_its_delay(
    queue: CheckedQueue,
) -> None:
    [message_id] = queue.enqueue("delayed", delay_seconds=60)
    queue.enqueue("ready")
    assert queue.counts() == (1, 1, 0, 0)
    assert bodies(queue.dequeue(10)) == ["ready"]
    assert queue.state_of(message_id) == "delayed"
    queue.pass_seconds(59)
    assert queue.dequeue(10) == []
    queue.pass_seconds(2)
    assert bodies(queue.dequeue(10)) == ["delayed"]


@pytest.mark.promise("P11")
def test_message_is_not_delivered_before_run_at(queue: CheckedQueue) -> None:
    run_at = datetime.now(UTC) + timedelta(hours=1)
    [message_id] = queue.enqueue("later", run_at=run_at)
    row = queue.message(message_id)
    assert (row.state, row.due_at) == ("delayed", run_at)
    queue.pass_seconds(3500)
    assert queue.dequeue() == []
    queue.pass_seconds(200)
    assert queue.dequeue_one().message_id == message_id


@pytest.mark.promise("P11")
def test_short_delay_ends_without_maintain(queue: CheckedQueue) -> None:
    row = queue.call_one("enqueue", delay_seconds=0.2)
    due_at = queue.message(row.message_id).due_at
    waited = queue.call_one("dequeue_wait", wait_seconds=10)
    [message] = waited.messages
    assert message["message_id"] == row.message_id
    leased_at = datetime.fromisoformat(message["lease_until"]) - timedelta(seconds=30)
    assert leased_at >= due_at


@pytest.mark.promise("P11")
@pytest.mark.parametrize(
    "delay",
    [
        {"delay_seconds": 0},
        {"delay_seconds": -0.0},
        {"run_at": datetime(1970, 1, 1, tzinfo=UTC)},
        {"run_at": datetime(1, 1, 2, tzinfo=UTC)},
        {"delay_seconds": None, "run_at": None},
    ],
)
def test_zero_delay_or_past_run_at_means_now(queue: CheckedQueue, delay: dict[str, Any]) -> None:
    queue.enqueue("now", **delay)
    assert queue.dequeue_one().body == "now"


@pytest.mark.promise("P11", "P15")
def test_delay_of_10_years_is_accepted(queue: CheckedQueue) -> None:
    [message_id] = queue.enqueue("one day", delay_seconds=TEN_YEARS)
    row = queue.message(message_id)
    assert row.due_at - row.enqueued_at == timedelta(seconds=TEN_YEARS)


@pytest.mark.promise("P10")
@pytest.mark.parametrize("max_attempts", [0, 1, 2, 10000])
def test_message_max_attempts_overrides_the_queue(queue: CheckedQueue, max_attempts: int) -> None:
    [message_id] = queue.enqueue("x", max_attempts=max_attempts)
    row = queue.message(message_id)
    assert row.max_attempts == max_attempts
    for attempt in range(1, min(max_attempts or 3, 3) + 1):
        leased = queue.dequeue_one()
        assert leased.attempt == attempt
        outcome = queue.call_one("retry_later", claim_id=leased.claim_id, delay_seconds=0).outcome
        assert outcome == ("dead" if attempt == max_attempts else "retrying")


INVALID: dict[str, list[Any]] = {
    "priority": [-1, 10, None, 100000, 2147483647, -2147483648],
    "delay_seconds": [-0.001, TEN_YEARS + 0.001, *map(float, ("nan", "inf", "-inf"))],
    "run_at": ["infinity", "-infinity", datetime(9999, 12, 31, tzinfo=UTC)],
    "body_binary": [b"both", b""],
    "message_type": ["x" * 201],
    "producer_name": ["x" * 201],
    "dedup_key": ["", "x" * 201],
    "headers": [[], "text", 1, True],
    "max_attempts": [-1, 10001, 2147483647],
}
INVALID_ARGUMENTS = [({name: value}, name) for name, values in INVALID.items() for value in values]
INVALID_ARGUMENTS += [
    ({"delay_seconds": delay, "run_at": datetime(2000, 1, 1, tzinfo=UTC)}, "run_at")
    for delay in (0, 1)
]


@pytest.mark.promise("P15")
@pytest.mark.parametrize(("arguments", "named"), INVALID_ARGUMENTS, ids=str)
def test_enqueue_refuses_invalid_arguments(
    queue: CheckedQueue, arguments: dict[str, Any], named: str
) -> None:
    assert named in queue.refused("RQ711", "enqueue", body="x", **arguments)
    assert sum(queue.stored().values()) == 0


@pytest.mark.promise("P15", "P20")
@pytest.mark.parametrize("character", ["x", "é", "🐘"])
def test_labels_of_200_characters_are_accepted(queue: CheckedQueue, character: str) -> None:
    label = character * 200
    queue.call_one("enqueue", message_type=label, dedup_key=label, producer_name=label)
    leased = queue.dequeue_one()
    assert leased.message_type == label
    assert queue.message(leased.message_id).producer_name == label
