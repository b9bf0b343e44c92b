"""reap; test_maintenance.py covers what the routines of maintenance share."""

import pytest

from tests.helpers import calls
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


@pytest.mark.promise("P09", "P45")
@pytest.mark.parametrize("spread", [False, True], ids=["consecutive ids", "others between"])
def test_batch_size_is_a_maximum(queue: CheckedQueue, spread: bool) -> None:
    for body in "abcdef":
        queue.enqueue(body)
        if spread:
            queue.another().enqueue("between")
    for size in (1, 4, 1):
        queue.dequeue(size)
    queue.pass_seconds(100)
    found = []
    for _ in range(4):
        row = queue.call_one("reap", batch_size=2)
        claims = calls.call(queue.connection, "list_claims", queue_name=queue.name)
        found.append((row.reaped, [claim.message_count for claim in claims]))
    assert found == [(2, [3, 1]), (2, [1, 1]), (2, []), (0, [])]
    assert bodies(queue.dequeue(10)) == [*"abcdef"]


@pytest.mark.promise("P08", "P45")
def test_worker_finishes_what_reap_left_in_its_claim(queue: CheckedQueue) -> None:
    ids = queue.enqueue(*"abcd")
    claim = queue.dequeue(4)[0].claim_id
    queue.pass_seconds(100)
    assert queue.call_one("reap", batch_size=2).reaped == 2
    done = queue.call("complete", claim_id=claim, message_ids=ids[:3])
    assert [row.outcome for row in done] == ["stale", "stale", "completed"]
    assert queue.call_one("extend_lease", claim_id=claim).claim_id == claim
    assert queue.call_one("reap").reaped == 0
    assert outcomes(queue.call("complete", claim_id=claim)) == {ids[3]: "completed"}
    assert [(row.body, row.attempt) for row in queue.dequeue(10)] == [("a", 2), ("b", 2)]


@pytest.mark.promise("P09", "P45")
def test_cut_claim_keeps_the_errors_and_attempts_of_its_rest(queue: CheckedQueue) -> None:
    queue.enqueue(*"abc")
    for row, error in zip(queue.dequeue(2), ["first", "second"], strict=True):
        arguments = {"claim_id": row.claim_id, "message_ids": [row.message_id]}
        queue.call("retry_later", **arguments, delay_seconds=0, error=error)
    claim = queue.dequeue(3)[0].claim_id
    queue.pass_seconds(100)
    assert queue.call_one("reap", batch_size=1).reaped == 1
    queue.call("release", claim_id=claim)
    found = {row.body: (row.attempt, row.last_error) for row in queue.dequeue(10)}
    assert found == {"a": (2, "first"), "b": (2, "second"), "c": (2, "lease expired")}


@pytest.mark.promise("P34", "P45")
def test_cut_claim_keeps_the_cancels_of_its_rest(queue: CheckedQueue) -> None:
    ids = queue.enqueue(*"abcdef")
    claim = queue.dequeue(6)[0].claim_id
    cancelled = [ids[0], ids[3], ids[5]]
    queue.call("cancel", message_ids=cancelled, include_leased=True)
    queue.pass_seconds(100)
    found = []
    for _ in range(3):
        row = queue.call_one("reap", batch_size=2)
        found.append((row.reaped, row.died))
        if len(found) < 3:
            left = queue.call_one("extend_lease", claim_id=claim).cancel_ids
            assert sorted(left) == [one for one in cancelled if one in ids[2 * len(found) :]]
            expire_claim(queue.connection, claim)
    assert found == [(1, 0), (1, 0), (1, 0)]
    assert bodies(queue.dequeue(10)) == ["b", "c", "e"]


@pytest.mark.promise("P09", "P45")
def test_dead_messages_count_toward_batch_size(queue: CheckedQueue) -> None:
    queue.enqueue(*"abc", max_attempts=1)
    queue.dequeue(3)
    queue.pass_seconds(100)
    rows = [queue.call_one("reap", batch_size=2) for _ in range(2)]
    assert [(row.reaped, row.died) for row in rows] == [(0, 2), (0, 1)]


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
