"""What complete, retry_later, fail_now and release share: the fence of the claim."""

from typing import Any

import pytest

from tests.helpers.calls import bodies, outcomes, rolled_back
from tests.helpers.queues import CheckedQueue

DONE = {
    "complete": ("completed", None),
    "retry_later": ("retrying", "delayed"),
    "fail_now": ("dead", "dead"),
    "release": ("released", "ready"),
}
"""The outcome of each routine, and the state of a message afterwards."""

each_routine = pytest.mark.parametrize("routine", DONE)


@pytest.mark.promise("P08")
@each_routine
def test_null_finishes_all_messages_of_the_claim(queue: CheckedQueue, routine: str) -> None:
    outcome, state = DONE[routine]
    queue.enqueue("a", "b", "c")
    rows = queue.dequeue(2)
    done = queue.call(routine, claim_id=rows[0].claim_id, message_ids=None)
    assert outcomes(done) == {row.message_id: outcome for row in rows}
    assert [queue.state_of(row.message_id) for row in rows] == [state, state]
    assert queue.counts()[2] == 0


@pytest.mark.promise("P08")
@each_routine
def test_null_finishes_the_remaining_messages(queue: CheckedQueue, routine: str) -> None:
    queue.enqueue("a", "b", "c")
    rows = queue.dequeue(3)
    common = {"claim_id": rows[0].claim_id}
    queue.call("complete", **common, message_ids=[rows[0].message_id])
    done = queue.call(routine, **common)
    assert outcomes(done) == {row.message_id: DONE[routine][0] for row in rows[1:]}


@pytest.mark.promise("P08")
@each_routine
def test_messages_are_finished_one_by_one_in_any_order(queue: CheckedQueue, routine: str) -> None:
    queue.enqueue(*(f"{number}" for number in range(25)))
    rows = queue.dequeue(25)
    ids = [row.message_id for row in rows]
    common = {"claim_id": rows[0].claim_id}
    for place, one_id in enumerate(ids[7:] + ids[:7], start=1):
        for outcome in (DONE[routine][0], "stale"):
            done = queue.call(routine, **common, message_ids=[one_id])
            assert outcomes(done) == {one_id: outcome}
        assert queue.counts()[2] == 25 - place
    assert {queue.state_of(one_id) for one_id in ids} == {DONE[routine][1]}
    queue.refused("RQ721", routine, **common)


@pytest.mark.promise("P08")
@each_routine
def test_messages_of_other_claims_are_stale(queue: CheckedQueue, routine: str) -> None:
    ids = queue.enqueue("mine", "of another claim", "ready")
    mine = queue.dequeue_one()
    queue.dequeue_one()
    done = queue.call(
        routine,
        claim_id=mine.claim_id,
        message_ids=[ids[1], ids[0], ids[2], 9223372036854775807, -1],
    )
    assert [row.outcome for row in done] == ["stale", DONE[routine][0], "stale", "stale", "stale"]
    assert [queue.state_of(one_id) for one_id in ids] == [
        DONE[routine][1],
        "leased",
        "ready",
    ]


@pytest.mark.promise("P08")
@each_routine
def test_list_of_many_names_the_stale_ones(queue: CheckedQueue, routine: str) -> None:
    ids = queue.enqueue("a", "b", "of another claim")
    claim = queue.dequeue(2)[0].claim_id
    queue.dequeue_one()
    done = queue.call(routine, claim_id=claim, message_ids=[ids[1], ids[2], ids[0]])
    assert [row.message_id for row in done] == [ids[1], ids[2], ids[0]]
    assert [row.outcome for row in done] == [DONE[routine][0], "stale", DONE[routine][0]]


@pytest.mark.promise("P08")
@each_routine
def test_reaped_claim_is_stale_and_changes_nothing(queue: CheckedQueue, routine: str) -> None:
    ids = queue.enqueue("a", "b")
    claim = queue.dequeue(2)[0].claim_id
    queue.pass_seconds(100)
    queue.call("reap")
    now = queue.dequeue(2)
    before = queue.stored()
    assert "claim" in queue.refused("RQ721", routine, claim_id=claim)
    done = queue.call(routine, claim_id=claim, message_ids=ids)
    assert outcomes(done) == dict.fromkeys(ids, "stale")
    assert queue.stored() == before
    done = queue.call("complete", claim_id=now[0].claim_id)
    assert set(outcomes(done).values()) == {"completed"}


@pytest.mark.promise("P08")
@each_routine
def test_claim_of_another_queue_is_stale(queue: CheckedQueue, routine: str) -> None:
    other = queue.another()
    ids = queue.enqueue("a")
    claim = queue.dequeue_one().claim_id
    other.refused("RQ721", routine, claim_id=claim)
    done = other.call(routine, claim_id=claim, message_ids=ids)
    assert outcomes(done) == {ids[0]: "stale"}
    assert queue.state_of(ids[0]) == "leased"


@pytest.mark.promise("P08")
@each_routine
def test_expired_claim_can_finish_until_it_is_reaped(queue: CheckedQueue, routine: str) -> None:
    ids = queue.enqueue("a")
    claim = queue.dequeue_one().claim_id
    queue.pass_seconds(100)
    done = queue.call(routine, claim_id=claim)
    assert outcomes(done) == {ids[0]: DONE[routine][0]}


@pytest.mark.promise("P08")
@each_routine
def test_empty_list_finishes_no_messages(queue: CheckedQueue, routine: str) -> None:
    queue.enqueue("a")
    claim = queue.dequeue_one().claim_id
    assert queue.call(routine, claim_id=claim, message_ids=[]) == []
    assert queue.counts() == (0, 0, 1, 0)


@pytest.mark.promise("P08")
@each_routine
def test_repeated_message_id_is_finished_once(queue: CheckedQueue, routine: str) -> None:
    ids = queue.enqueue("a", "b")
    claim = queue.dequeue(2)[0].claim_id
    queue.call(routine, claim_id=claim, message_ids=[ids[0], ids[0]])
    assert queue.state_of(ids[0]) == DONE[routine][1]
    assert queue.counts()[2] == 1
    assert sum(queue.counts()) == (1 if routine == "complete" else 2)


@pytest.mark.promise("P07", "P08", "P17")
@each_routine
def test_rolled_back_finish_keeps_the_lease(queue: CheckedQueue, routine: str) -> None:
    queue.call("alter_queue", archive_days=1)
    queue.enqueue("a", "b", dedup_key=None)
    rows = queue.dequeue(2)
    before = queue.stored()
    with rolled_back(queue.connection):
        queue.call(routine, claim_id=rows[0].claim_id)
    assert queue.stored() == before
    done = queue.call("complete", claim_id=rows[0].claim_id)
    assert outcomes(done) == {row.message_id: "completed" for row in rows}


@pytest.mark.promise("P15")
@each_routine
@pytest.mark.parametrize(
    "message_ids", [[None], [1, None], [[1, 2], [3, 4]], [1] * 10001], ids=lambda ids: len(ids)
)
def test_invalid_list_is_refused_and_finishes_no_message(
    queue: CheckedQueue, routine: str, message_ids: list[Any]
) -> None:
    queue.enqueue("a")
    claim = queue.dequeue_one().claim_id
    text = queue.refused("RQ711", routine, claim_id=claim, message_ids=message_ids)
    assert "message_ids" in text
    assert queue.counts() == (0, 0, 1, 0)


@pytest.mark.promise("P08", "P15")
@each_routine
def test_list_accepts_10000_messages(queue: CheckedQueue, routine: str) -> None:
    [message_id] = queue.enqueue("a")
    claim = queue.dequeue_one().claim_id
    ids = [message_id, *range(-9999, 0)]
    done = queue.call(routine, claim_id=claim, message_ids=ids)
    assert [row.outcome for row in done] == [DONE[routine][0]] + ["stale"] * 9999


@pytest.mark.promise("P05", "P08")
@each_routine
def test_1000_messages_are_finished_in_one_call(queue: CheckedQueue, routine: str) -> None:
    messages = [{"body": str(number)} for number in range(1000)]
    queue.call("enqueue_batch", messages=messages)
    rows = queue.dequeue(1000)
    assert len(bodies(rows)) == 1000
    done = queue.call(routine, claim_id=rows[0].claim_id)
    assert outcomes(done) == {row.message_id: DONE[routine][0] for row in rows}


@pytest.mark.promise("P15")
@each_routine
def test_null_claim_is_refused(queue: CheckedQueue, routine: str) -> None:
    queue.refused("RQ711", routine, claim_id=None)
    queue.refused("RQ711", routine, claim_id=None, message_ids=[1])
