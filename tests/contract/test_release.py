"""release, apart from test_finishing.py."""

from datetime import UTC, datetime

import pytest

from tests.helpers.calls import bodies, outcomes
from tests.helpers.queues import CheckedQueue


@pytest.mark.promise("P05", "P08")
def test_released_messages_return_to_the_front_in_order(
    queue: CheckedQueue,
) -> None:
    queue.enqueue("a", "b", "c", "d")
    claim = queue.dequeue(2)[0].claim_id
    queue.call("release", claim_id=claim)
    assert bodies(queue.dequeue(10)) == ["a", "b", "c", "d"]


@pytest.mark.promise("P05", "P08")
def test_released_message_stays_behind_better_priorities(queue: CheckedQueue) -> None:
    queue.enqueue("5a", "5b")
    claim = queue.dequeue_one().claim_id
    queue.enqueue("4", priority=4)
    queue.call("release", claim_id=claim)
    assert bodies(queue.dequeue(10)) == ["4", "5a", "5b"]


@pytest.mark.promise("P08")
def test_release_does_not_spend_the_attempt(queue: CheckedQueue) -> None:
    [message_id] = queue.enqueue("a", max_attempts=1)
    for _ in range(3):
        row = queue.dequeue_one()
        assert row.attempt == 1
        queue.call("release", claim_id=row.claim_id)
        found = queue.message(message_id)
        assert (found.state, found.attempt) == ("ready", 0)


@pytest.mark.promise("P08", "P10")
def test_release_keeps_earlier_attempts_and_error(queue: CheckedQueue) -> None:
    queue.enqueue("a")
    row = queue.dequeue_one()
    queue.call("retry_later", claim_id=row.claim_id, delay_seconds=0, error="broken")
    row = queue.dequeue_one()
    queue.call("release", claim_id=row.claim_id)
    row = queue.dequeue_one()
    assert (row.attempt, row.last_error) == (2, "broken")


@pytest.mark.promise("P12")
def test_released_message_keeps_its_dedup_key(queue: CheckedQueue) -> None:
    queue.enqueue("a", dedup_key="key")
    queue.finish_one("release")
    assert queue.call_one("enqueue", dedup_key="key").outcome == "duplicate"


@pytest.mark.promise("P38")
def test_snoozed_message_comes_after_its_delay_to_the_tail(queue: CheckedQueue) -> None:
    queue.enqueue(*"abc")
    row = queue.dequeue(2)[0]
    before = datetime.now(UTC)
    done = queue.call("release", claim_id=row.claim_id, delay_seconds=60)
    assert [each.outcome for each in done] == ["snoozed", "snoozed"]
    seconds = [(each.due_at - before).total_seconds() for each in done]
    assert seconds == pytest.approx([60, 60], abs=20)
    assert (queue.state_of(row.message_id), queue.counts()) == ("delayed", (1, 2, 0, 0))
    queue.pass_seconds(30)
    queue.call("promote")
    assert queue.counts() == (1, 2, 0, 0)
    queue.pass_seconds(60)
    queue.call("promote")
    assert bodies(queue.dequeue(10)) == ["c", "a", "b"]


@pytest.mark.promise("P38")
def test_snooze_spends_no_attempt(queue: CheckedQueue) -> None:
    [message_id] = queue.enqueue("a", max_attempts=2)
    for _ in range(5):
        row = queue.dequeue_one()
        assert row.attempt == 1
        done = queue.call_one("release", claim_id=row.claim_id, delay_seconds=5)
        assert (done.message_id, done.outcome) == (message_id, "snoozed")
        assert queue.message(message_id).attempt == 0
        assert queue.dequeue(10) == []
        queue.pass_seconds(10)
        queue.call("promote")
    assert queue.dequeue_one().attempt == 1


@pytest.mark.promise("P38")
def test_snoozed_messages_keep_their_errors_and_keys(queue: CheckedQueue) -> None:
    queue.enqueue("a", "b")
    for row, error in zip(queue.dequeue(2), ["first", "second"], strict=True):
        arguments = {"claim_id": row.claim_id, "message_ids": [row.message_id]}
        queue.call("retry_later", **arguments, delay_seconds=0, error=error)
    queue.enqueue("c", dedup_key="key")
    claim = queue.dequeue(3)[0].claim_id
    queue.call("release", claim_id=claim, delay_seconds=5)
    assert queue.call_one("enqueue", dedup_key="key").outcome == "duplicate"
    queue.pass_seconds(10)
    queue.call("promote")
    found = {row.body: (row.attempt, row.last_error) for row in queue.dequeue(10)}
    assert found == {"a": (2, "first"), "b": (2, "second"), "c": (1, None)}


@pytest.mark.promise("P38")
@pytest.mark.parametrize(
    ("delay", "outcome"),
    [(None, "released"), (0, "released"), (0.001, "snoozed"), (315360000, "snoozed")],
)
def test_release_accepts_delays_up_to_ten_years(
    queue: CheckedQueue, delay: float | None, outcome: str
) -> None:
    queue.enqueue("a")
    done = queue.finish_one("release", delay_seconds=delay)
    assert (done.outcome, done.due_at is None) == (outcome, outcome == "released")


@pytest.mark.promise("P15")
@pytest.mark.parametrize("delay", [-1, -0.001, 315360001])
def test_release_refuses_other_delays(queue: CheckedQueue, delay: float) -> None:
    queue.enqueue("a")
    claim = queue.dequeue_one().claim_id
    queue.refused("RQ711", "release", claim_id=claim, delay_seconds=delay)
    assert queue.counts() == (0, 0, 1, 0)


@pytest.mark.promise("P08", "P38")
def test_part_of_a_claim_can_be_snoozed(queue: CheckedQueue) -> None:
    ids = queue.enqueue(*"abc")
    claim = queue.dequeue(3)[0].claim_id
    asked = [ids[1], -1]
    done = queue.call("release", claim_id=claim, message_ids=asked, delay_seconds=5)
    assert [(row.message_id, row.outcome) for row in done] == [(ids[1], "snoozed"), (-1, "stale")]
    assert [row.due_at is None for row in done] == [False, True]
    assert outcomes(queue.call("complete", claim_id=claim)) == {
        ids[0]: "completed",
        ids[2]: "completed",
    }
    queue.refused("RQ721", "release", claim_id=claim, delay_seconds=5)


@pytest.mark.promise("P36", "P38")
def test_snoozed_message_expires(queue: CheckedQueue) -> None:
    [message_id] = queue.enqueue("a", expire_seconds=60)
    queue.finish_one("release", delay_seconds=3600)
    queue.pass_seconds(100)
    queue.call("maintain")
    assert queue.state_of(message_id) is None


@pytest.mark.promise("P28", "P38")
def test_snoozed_message_frees_its_share_of_the_limit(queue: CheckedQueue) -> None:
    queue.call("alter_queue", max_leased=1)
    queue.enqueue("a", "b")
    row = queue.dequeue_one()
    assert queue.dequeue(1) == []
    queue.call("release", claim_id=row.claim_id, delay_seconds=60)
    assert queue.take() == ["b"]
