"""dequeue_fast."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.helpers.calls import bodies, rolled_back, transaction
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import CheckedQueue


@pytest.mark.promise("P05")
def test_dequeue_from_empty_queue_creates_no_claim(queue: CheckedQueue) -> None:
    assert queue.dequeue(10) == []
    assert sum(queue.stored().values()) == 0


@pytest.mark.promise("P03", "P05")
def test_batch_has_one_claim_and_one_lease(queue: CheckedQueue) -> None:
    queue.enqueue("a", "b", "c")
    before = datetime.now(UTC)
    rows = queue.dequeue(2, worker_name="w1", lease_seconds=60)
    assert bodies(rows) == ["a", "b"]
    assert len({(row.claim_id, row.lease_until) for row in rows}) == 1
    assert abs(rows[0].lease_until - before - timedelta(seconds=60)) < timedelta(seconds=20)
    found = queue.message(rows[0].message_id)
    assert (found.state, found.worker_name, found.claim_id, found.lease_until) == (
        "leased",
        "w1",
        rows[0].claim_id,
        rows[0].lease_until,
    )
    assert bodies(queue.dequeue(2)) == ["c"]


@pytest.mark.promise("P05")
def test_dequeue_leases_one_message_by_default(queue: CheckedQueue) -> None:
    queue.enqueue("a", "b")
    assert bodies(queue.call("dequeue_fast")) == ["a"]


@pytest.mark.promise("P03")
def test_lease_defaults_to_the_queue_setting(queue: CheckedQueue) -> None:
    queue.call("alter_queue", lease_seconds=1000)
    queue.enqueue("a")
    lease = queue.dequeue_one(lease_seconds=None).lease_until - datetime.now(UTC)
    assert timedelta(seconds=900) < lease <= timedelta(seconds=1010)


@pytest.mark.promise("P03")
@pytest.mark.parametrize("lease_seconds", [1, 86400])
def test_lease_seconds_accepts_its_bounds(queue: CheckedQueue, lease_seconds: int) -> None:
    queue.enqueue("a")
    lease = queue.dequeue_one(lease_seconds=lease_seconds).lease_until
    assert abs((lease - datetime.now(UTC)).total_seconds() - lease_seconds) < 20


@pytest.mark.promise("P03")
def test_leased_message_is_not_delivered_before_reap(
    queue: CheckedQueue, elsewhere: CheckedQueue
) -> None:
    queue.enqueue("only")
    first = queue.dequeue_one()
    assert elsewhere.dequeue(10) == []
    queue.pass_seconds(100)
    assert elsewhere.dequeue() == []
    queue.call("reap")
    second = queue.dequeue_one()
    assert (second.message_id, second.attempt) == (first.message_id, 2)
    assert second.claim_id != first.claim_id


@pytest.mark.promise("P05")
def test_better_priority_is_delivered_first(queue: CheckedQueue) -> None:
    queue.enqueue(*["5"] * 3)
    assert queue.dequeue_one().body == "5"
    queue.enqueue("9", priority=9)
    queue.enqueue("0", priority=0)
    assert queue.dequeue_one().body == "0"
    assert bodies(queue.dequeue(10)) == ["5", "5", "9"]


@pytest.mark.promise("P05")
def test_batch_spans_several_priorities(queue: CheckedQueue) -> None:
    for priority in range(10):
        queue.enqueue(f"{priority}", priority=priority)
    assert bodies(queue.dequeue(4)) == ["0", "1", "2", "3"]
    assert bodies(queue.dequeue(1000)) == ["4", "5", "6", "7", "8", "9"]


@pytest.mark.promise("P05")
def test_dequeue_leases_up_to_1000_messages(queue: CheckedQueue) -> None:
    messages = [{"body": str(number)} for number in range(1001)]
    queue.call("enqueue_batch", messages=messages)
    assert bodies(queue.dequeue(1000)) == [str(number) for number in range(1000)]
    assert queue.counts() == (1, 0, 1000, 0)


@pytest.mark.promise("P06")
@pytest.mark.requires("genuine")
def test_dequeue_skips_messages_locked_by_another_session(
    queue: CheckedQueue, elsewhere: CheckedQueue
) -> None:
    queue.enqueue("held", priority=0)
    queue.enqueue("held too", "free", priority=9)
    with rolled_back(elsewhere.connection):
        assert bodies(elsewhere.dequeue(2)) == ["held", "held too"]
        assert bodies(queue.dequeue(10)) == ["free"]
    assert bodies(queue.dequeue(10)) == ["held", "held too"]


@pytest.mark.promise("P07")
def test_rolled_back_dequeue_restores_positions(
    queue: CheckedQueue, elsewhere: CheckedQueue
) -> None:
    queue.enqueue("a", "b", "c")
    queue.enqueue("urgent", priority=0)
    queue.enqueue("delayed", delay_seconds=0.001)
    with rolled_back(queue.connection):
        rows = queue.dequeue(3)
        assert bodies(rows) == ["urgent", "a", "b"]
        queue.call("complete", claim_id=rows[0].claim_id)
    rows = elsewhere.dequeue(4)
    assert bodies(rows) == ["urgent", "a", "b", "c"]
    assert {row.attempt for row in rows} == {1}
    assert queue.dequeue_one().body == "delayed"


@pytest.mark.promise("P02", "P07")
@pytest.mark.requires("genuine")
def test_lost_session_returns_its_messages_at_once(
    queue: CheckedQueue, elsewhere: CheckedQueue
) -> None:
    queue.enqueue("a")
    dialect_of(elsewhere.connection).begin(elsewhere.connection)
    assert elsewhere.dequeue_one().body == "a"
    elsewhere.connection.close()
    rows = queue.call_one("dequeue_wait", wait_seconds=10).messages
    assert [(row["body"], row["attempt"]) for row in rows] == [("a", 1)]


@pytest.mark.promise("P01", "P02")
def test_completion_commits_with_the_callers_transaction(queue: CheckedQueue) -> None:
    queue.enqueue("a")
    with transaction(queue.connection):
        claim = queue.dequeue_one().claim_id
        queue.enqueue("follow-up")
        queue.call("complete", claim_id=claim)
    assert bodies(queue.dequeue(10)) == ["follow-up"]


@pytest.mark.promise("P11")
def test_dequeue_delivers_due_messages_without_maintain(queue: CheckedQueue) -> None:
    queue.enqueue("later", delay_seconds=60)
    queue.enqueue("urgent", delay_seconds=90, priority=0)
    queue.pass_seconds(100)
    assert bodies(queue.dequeue(10)) == ["urgent", "later"]


@pytest.mark.promise("P10")
def test_dequeue_returns_attempt_and_last_error(queue: CheckedQueue) -> None:
    queue.enqueue("a")
    for attempt in range(1, 4):
        row = queue.dequeue_one()
        assert row.attempt == attempt
        assert row.last_error == (None if attempt == 1 else f"error {attempt - 1}")
        queue.call("retry_later", claim_id=row.claim_id, delay_seconds=0, error=f"error {attempt}")


@pytest.mark.promise("P17")
def test_dequeue_does_not_commit_the_callers_transaction(
    queue: CheckedQueue, elsewhere: CheckedQueue
) -> None:
    with rolled_back(queue.connection):
        queue.enqueue("unborn")
        queue.dequeue()
    assert elsewhere.dequeue() == []


@pytest.mark.promise("P15")
@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": 1001}, "batch_size"),
        ({"batch_size": None}, "batch_size"),
        ({"lease_seconds": 0}, "lease_seconds"),
        ({"lease_seconds": 86401}, "lease_seconds"),
        ({"worker_name": "x" * 201}, "worker_name"),
    ],
    ids=str,
)
def test_dequeue_refuses_arguments_out_of_range(
    queue: CheckedQueue, given: dict[str, Any], named: str
) -> None:
    queue.enqueue("a")
    assert named in queue.refused("RQ711", "dequeue_fast", **given)
    assert queue.counts() == (1, 0, 0, 0)


@pytest.mark.promise("P20")
@pytest.mark.parametrize("worker_name", ["", "🐘" * 200, "'; --"])
def test_worker_name_is_stored_unchanged(queue: CheckedQueue, worker_name: str) -> None:
    [message_id] = queue.enqueue("a")
    queue.dequeue_one(worker_name=worker_name)
    row = queue.message(message_id)
    assert row.worker_name == dialect_of(queue.connection).short_text(worker_name)
