"""reap; test_maintenance.py covers what the routines of maintenance share."""

import pytest

from tests.helpers.calls import bodies, outcomes, rolled_back, transaction
from tests.helpers.queues import CheckedQueue
from tests.stored_times import expire_claim


@pytest.mark.promise("P03", "P09")
def test_reaped_messages_return_to_the_front(
    queue: CheckedQueue,
) -> None:
    queue.enqueue("a", "b", "c")
    queue.dequeue(2, worker_name="w1")
    queue.enqueue("d")
    queue.enqueue("urgent", priority=0)
    queue.pass_seconds(31)
    row = queue.call_one("reap")
    assert (row.reaped, row.died) == (2, 0)
    rows = queue.dequeue(10)
    assert bodies(rows) == ["urgent", "a", "b", "c", "d"]
    assert [row.attempt for row in rows] == [1, 2, 2, 1, 1]
    assert rows[1].last_error is not None
    assert "lease expired" in rows[1].last_error
    assert "w1" in rows[1].last_error


@pytest.mark.promise("P09")
def test_valid_lease_is_not_reaped(queue: CheckedQueue) -> None:
    queue.enqueue("a")
    queue.dequeue_one(lease_seconds=60)
    queue.pass_seconds(30)
    row = queue.call_one("reap")
    assert (row.reaped, row.died) == (0, 0)
    assert queue.counts() == (0, 0, 1, 0)


@pytest.mark.promise("P09")
def test_only_expired_claims_are_reaped(queue: CheckedQueue) -> None:
    queue.enqueue("a", "b", "c")
    claims = [queue.dequeue_one().claim_id for _ in range(3)]
    expire_claim(queue.connection, claims[1])
    assert queue.call_one("reap").reaped == 1
    assert bodies(queue.dequeue(10)) == ["b"]


@pytest.mark.promise("P09")
def test_finished_messages_of_a_claim_are_not_reaped(queue: CheckedQueue) -> None:
    ids = queue.enqueue("a", "b", "c")
    claim = queue.dequeue(3)[0].claim_id
    queue.call("complete", claim_id=claim, message_ids=[ids[1]])
    queue.pass_seconds(100)
    assert queue.call_one("reap").reaped == 2
    assert bodies(queue.dequeue(10)) == ["a", "c"]


@pytest.mark.promise("P09", "P10")
def test_reap_makes_messages_dead_after_the_last_attempt(queue: CheckedQueue) -> None:
    queue.call("alter_queue", max_attempts=1)
    first, second = (
        *queue.enqueue("dies", dedup_key="key", priority=2),
        *queue.enqueue("lives", max_attempts=2),
    )
    queue.dequeue(2, worker_name="w1")
    queue.pass_seconds(100)
    row = queue.call_one("reap")
    assert (row.reaped, row.died) == (1, 1)
    dead = queue.message(first)
    assert (dead.state, dead.attempt, dead.priority) == ("dead", 1, 2)
    assert "lease expired" in dead.last_error
    assert queue.dequeue_one().message_id == second
    assert queue.call_one("enqueue", dedup_key="key").outcome == "enqueued"


@pytest.mark.promise("P09", "P10")
def test_poison_message_is_dead_after_max_attempts(queue: CheckedQueue) -> None:
    queue.enqueue("poison", max_attempts=3)
    found = []
    for _ in range(3):
        queue.dequeue_one()
        queue.pass_seconds(100)
        row = queue.call_one("reap")
        found.append((row.reaped, row.died))
    assert found == [(1, 0), (1, 0), (0, 1)]
    assert queue.counts() == (0, 0, 0, 1)


@pytest.mark.promise("P05", "P09")
def test_reaped_messages_keep_their_order(queue: CheckedQueue) -> None:
    for place in range(3):
        for priority in (0, 5, 9):
            queue.enqueue(f"{priority}{place}", priority=priority)
    order = bodies(queue.dequeue(9))
    queue.pass_seconds(100)
    queue.call("reap")
    assert bodies(queue.dequeue(9)) == order


@pytest.mark.promise("P09", "P19")
def test_batch_size_1_reaps_one_claim(queue: CheckedQueue) -> None:
    queue.enqueue(*"abcdef")
    for _ in range(3):
        queue.dequeue(2)
    queue.pass_seconds(100)
    reaped = [queue.call_one("reap", batch_size=1).reaped for _ in range(4)]
    assert reaped == [2, 2, 2, 0]
    assert bodies(queue.dequeue(10)) == [*"abcdef"]


@pytest.mark.promise("P03", "P06", "P08")
@pytest.mark.requires("genuine")
def test_reap_skips_a_claim_being_finished(queue: CheckedQueue, elsewhere: CheckedQueue) -> None:
    queue.enqueue("a")
    claim = queue.dequeue_one().claim_id
    queue.pass_seconds(100)
    with transaction(elsewhere.connection):
        done = elsewhere.call("complete", claim_id=claim)
        assert list(outcomes(done).values()) == ["completed"]
        assert queue.call_one("reap").reaped == 0
    assert queue.call_one("reap").reaped == 0
    assert queue.counts() == (0, 0, 0, 0)


@pytest.mark.promise("P17")
def test_rolled_back_reap_is_repeated(queue: CheckedQueue) -> None:
    queue.enqueue("a")
    queue.dequeue_one()
    queue.pass_seconds(100)
    with rolled_back(queue.connection):
        assert queue.call_one("reap").reaped == 1
    assert queue.call_one("reap").reaped == 1
