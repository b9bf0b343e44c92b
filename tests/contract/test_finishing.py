"""The promises that complete, retry_later, fail_now and release share: the fence of the claim."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import (
    bodies,
    call,
    counts,
    dequeue,
    dequeue_one,
    enqueue,
    outcomes,
    refused,
    rolled_back,
    state_of,
)
from tests.helpers.dialects import dialect_of
from tests.stored_times import pass_seconds

DONE = {
    "complete": ("completed", None),
    "retry_later": ("retrying", "delayed"),
    "fail_now": ("dead", "dead"),
    "release": ("released", "ready"),
}
"""The outcome that each routine says, and the state that a message is in afterwards."""

each_routine = pytest.mark.parametrize("routine", DONE)


@pytest.mark.promise("P08")
@each_routine
def test_null_finishes_every_message_of_the_claim(
    connection: Connection, queue: str, routine: str
) -> None:
    outcome, state = DONE[routine]
    enqueue(connection, queue, "a", "b", "c")
    rows = dequeue(connection, queue, 2)
    done = call(connection, routine, queue_name=queue, claim_id=rows[0].claim_id, message_ids=None)
    assert outcomes(done) == {row.message_id: outcome for row in rows}
    assert [state_of(connection, queue, row.message_id) for row in rows] == [state, state]
    assert counts(connection, queue)[2] == 0


@pytest.mark.promise("P08")
@each_routine
def test_messages_are_finished_one_by_one(connection: Connection, queue: str, routine: str) -> None:
    outcome, state = DONE[routine]
    enqueue(connection, queue, "a", "b", "c")
    rows = dequeue(connection, queue, 3)
    common = {"queue_name": queue, "claim_id": rows[0].claim_id}
    for left, row in zip((2, 1, 0), (rows[1], rows[0], rows[2]), strict=True):
        done = call(connection, routine, **common, message_ids=[row.message_id])
        assert outcomes(done) == {row.message_id: outcome}
        assert state_of(connection, queue, row.message_id) == state
        assert counts(connection, queue)[2] == left
    refused(connection, "RQ721", routine, **common)


@pytest.mark.promise("P08")
@each_routine
def test_null_means_what_the_claim_still_holds(
    connection: Connection, queue: str, routine: str
) -> None:
    enqueue(connection, queue, "a", "b", "c")
    rows = dequeue(connection, queue, 3)
    common = {"queue_name": queue, "claim_id": rows[0].claim_id}
    call(connection, "complete", **common, message_ids=[rows[0].message_id])
    done = call(connection, routine, **common)
    assert outcomes(done) == {row.message_id: DONE[routine][0] for row in rows[1:]}


@pytest.mark.promise("P08")
@each_routine
def test_the_messages_of_a_claim_are_finished_one_by_one_in_any_order(
    connection: Connection, queue: str, routine: str
) -> None:
    enqueue(connection, queue, *(f"{number}" for number in range(25)))
    rows = dequeue(connection, queue, 25)
    ids = [row.message_id for row in rows]
    common = {"queue_name": queue, "claim_id": rows[0].claim_id}
    for place, one_id in enumerate(ids[7:] + ids[:7], start=1):
        for outcome in (DONE[routine][0], "stale"):
            done = call(connection, routine, **common, message_ids=[one_id])
            assert outcomes(done) == {one_id: outcome}
        assert counts(connection, queue)[2] == 25 - place
    assert {state_of(connection, queue, one_id) for one_id in ids} == {DONE[routine][1]}


@pytest.mark.promise("P08")
@each_routine
def test_messages_that_the_claim_does_not_hold_are_stale_and_the_others_are_finished(
    connection: Connection, queue: str, routine: str
) -> None:
    ids = enqueue(connection, queue, "mine", "of another claim", "ready")
    mine = dequeue_one(connection, queue)
    dequeue_one(connection, queue)
    done = call(
        connection,
        routine,
        queue_name=queue,
        claim_id=mine.claim_id,
        message_ids=[ids[1], ids[0], ids[2], 9223372036854775807, -1],
    )
    assert [row.outcome for row in done] == ["stale", DONE[routine][0], "stale", "stale", "stale"]
    assert [state_of(connection, queue, one_id) for one_id in ids] == [
        DONE[routine][1],
        "leased",
        "ready",
    ]


@pytest.mark.promise("P08")
@each_routine
def test_a_claim_that_is_gone_is_stale_and_changes_nothing(
    connection: Connection, queue: str, routine: str
) -> None:
    ids = enqueue(connection, queue, "a", "b")
    claim = dequeue(connection, queue, 2)[0].claim_id
    pass_seconds(connection, queue, 100)
    call(connection, "reap", queue_name=queue)
    now = dequeue(connection, queue, 2)
    before = dialect_of(connection).stored(connection, queue)
    assert "claim" in refused(connection, "RQ721", routine, queue_name=queue, claim_id=claim)
    done = call(connection, routine, queue_name=queue, claim_id=claim, message_ids=ids)
    assert outcomes(done) == dict.fromkeys(ids, "stale")
    assert dialect_of(connection).stored(connection, queue) == before
    done = call(connection, "complete", queue_name=queue, claim_id=now[0].claim_id)
    assert set(outcomes(done).values()) == {"completed"}


@pytest.mark.promise("P08")
@each_routine
def test_the_second_call_for_the_same_messages_is_stale(
    connection: Connection, queue: str, routine: str
) -> None:
    ids = enqueue(connection, queue, "a")
    claim = dequeue_one(connection, queue).claim_id
    given = {"queue_name": queue, "claim_id": claim, "message_ids": ids}
    assert [row.outcome for row in call(connection, routine, **given)] == [DONE[routine][0]]
    state = state_of(connection, queue, ids[0])
    assert [row.outcome for row in call(connection, routine, **given)] == ["stale"]
    assert state_of(connection, queue, ids[0]) == state


@pytest.mark.promise("P08")
@each_routine
def test_a_claim_of_another_queue_is_stale(
    connection: Connection, queue: str, routine: str
) -> None:
    other = f"{queue[:80]} other"
    call(connection, "create_queue", queue_name=other)
    ids = enqueue(connection, queue, "a")
    claim = dequeue_one(connection, queue).claim_id
    refused(connection, "RQ721", routine, queue_name=other, claim_id=claim)
    done = call(connection, routine, queue_name=other, claim_id=claim, message_ids=ids)
    assert outcomes(done) == {ids[0]: "stale"}
    assert state_of(connection, queue, ids[0]) == "leased"


@pytest.mark.promise("P08")
@each_routine
def test_a_claim_whose_lease_ran_out_still_holds_until_it_is_reaped(
    connection: Connection, queue: str, routine: str
) -> None:
    ids = enqueue(connection, queue, "a")
    claim = dequeue_one(connection, queue).claim_id
    pass_seconds(connection, queue, 100)
    done = call(connection, routine, queue_name=queue, claim_id=claim)
    assert outcomes(done) == {ids[0]: DONE[routine][0]}


@pytest.mark.promise("P08")
@each_routine
def test_no_messages_are_nothing_to_do(connection: Connection, queue: str, routine: str) -> None:
    enqueue(connection, queue, "a")
    claim = dequeue_one(connection, queue).claim_id
    assert call(connection, routine, queue_name=queue, claim_id=claim, message_ids=[]) == []
    assert counts(connection, queue) == (0, 0, 1, 0)


@pytest.mark.promise("P08")
@each_routine
def test_a_message_named_twice_is_finished_once(
    connection: Connection, queue: str, routine: str
) -> None:
    ids = enqueue(connection, queue, "a", "b")
    claim = dequeue(connection, queue, 2)[0].claim_id
    call(connection, routine, queue_name=queue, claim_id=claim, message_ids=[ids[0], ids[0]])
    assert state_of(connection, queue, ids[0]) == DONE[routine][1]
    assert counts(connection, queue)[2] == 1
    assert sum(counts(connection, queue)) == (1 if routine == "complete" else 2)


@pytest.mark.promise("P07", "P08", "P17")
@each_routine
def test_what_is_rolled_back_is_leased_as_before(
    connection: Connection, queue: str, routine: str
) -> None:
    call(connection, "alter_queue", queue_name=queue, archive_days=1)
    enqueue(connection, queue, "a", "b", dedup_key=None)
    rows = dequeue(connection, queue, 2)
    before = dialect_of(connection).stored(connection, queue)
    with rolled_back(connection):
        call(connection, routine, queue_name=queue, claim_id=rows[0].claim_id)
    assert dialect_of(connection).stored(connection, queue) == before
    done = call(connection, "complete", queue_name=queue, claim_id=rows[0].claim_id)
    assert outcomes(done) == {row.message_id: "completed" for row in rows}


@pytest.mark.promise("P15")
@each_routine
@pytest.mark.parametrize(
    "message_ids", [[None], [1, None], [[1, 2], [3, 4]], [1] * 10001], ids=lambda ids: len(ids)
)
def test_a_bad_list_is_refused_and_nothing_is_finished(
    connection: Connection, queue: str, routine: str, message_ids: list[Any]
) -> None:
    enqueue(connection, queue, "a")
    claim = dequeue_one(connection, queue).claim_id
    text = refused(
        connection,
        "RQ711",
        routine,
        queue_name=queue,
        claim_id=claim,
        message_ids=message_ids,
    )
    assert "message_ids" in text
    assert counts(connection, queue) == (0, 0, 1, 0)


@pytest.mark.promise("P08", "P15")
@each_routine
def test_ten_thousand_messages_may_be_named(
    connection: Connection, queue: str, routine: str
) -> None:
    [message_id] = enqueue(connection, queue, "a")
    claim = dequeue_one(connection, queue).claim_id
    ids = [message_id, *range(-9999, 0)]
    done = call(connection, routine, queue_name=queue, claim_id=claim, message_ids=ids)
    assert [row.outcome for row in done] == [DONE[routine][0]] + ["stale"] * 9999


@pytest.mark.promise("P05", "P08")
@each_routine
def test_a_thousand_messages_are_finished_at_once(
    connection: Connection, queue: str, routine: str
) -> None:
    messages = [{"body": str(number)} for number in range(1000)]
    call(connection, "enqueue_batch", queue_name=queue, messages=messages)
    rows = dequeue(connection, queue, 1000)
    assert len(bodies(rows)) == 1000
    done = call(connection, routine, queue_name=queue, claim_id=rows[0].claim_id)
    assert outcomes(done) == {row.message_id: DONE[routine][0] for row in rows}


@pytest.mark.promise("P15")
@each_routine
def test_a_missing_claim_is_refused(connection: Connection, queue: str, routine: str) -> None:
    refused(connection, "RQ711", routine, queue_name=queue, claim_id=None)
    refused(connection, "RQ711", routine, queue_name=queue, claim_id=None, message_ids=[1])


@pytest.mark.promise("P15")
@each_routine
def test_an_unknown_queue_is_refused(connection: Connection, queue_name: str, routine: str) -> None:
    refused(connection, "RQ701", routine, queue_name=queue_name, claim_id=1)


@pytest.mark.promise("P15")
@each_routine
def test_a_missing_name_is_refused(connection: Connection, routine: str) -> None:
    refused(connection, "RQ711", routine, queue_name=None, claim_id=1)
