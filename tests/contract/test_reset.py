"""reset."""

from __future__ import annotations

from collections.abc import Callable
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
    make_dead,
    outcomes,
    refused,
    rolled_back,
    transaction,
)


@pytest.mark.promise("P10")
def test_a_dead_message_is_ready_again_with_fresh_attempts(
    connection: Connection, queue: str
) -> None:
    [message_id] = enqueue(connection, queue, "a", max_attempts=2)
    for _ in range(2):
        claim = dequeue_one(connection, queue).claim_id
        call(
            connection,
            "retry_later",
            queue_name=queue,
            claim_id=claim,
            delay_seconds=0,
            error="broken",
        )
    done = call(connection, "reset", queue_name=queue, message_ids=[message_id])
    assert outcomes(done) == {message_id: "reset"}
    for attempt, outcome in ((1, "retrying"), (2, "dead")):
        row = dequeue_one(connection, queue)
        assert (row.attempt, row.body, row.last_error) == (attempt, "a", "broken")
        done = call(
            connection,
            "retry_later",
            queue_name=queue,
            claim_id=row.claim_id,
            delay_seconds=0,
            error="broken",
        )
        assert outcomes(done) == {message_id: outcome}


@pytest.mark.promise("P05", "P10")
def test_it_goes_to_the_tail_of_its_priority(connection: Connection, queue: str) -> None:
    make_dead(connection, queue, "urgent", priority=0)
    make_dead(connection, queue, "first dead", "second dead")
    enqueue(connection, queue, "alive")
    call(connection, "reset", queue_name=queue)
    assert bodies(dequeue(connection, queue, 10)) == [
        "urgent",
        "alive",
        "first dead",
        "second dead",
    ]


@pytest.mark.promise("P05", "P10")
def test_a_message_that_died_at_the_front_goes_to_the_tail(
    connection: Connection, queue: str
) -> None:
    enqueue(connection, queue, "a")
    claim = dequeue_one(connection, queue).claim_id
    call(connection, "release", queue_name=queue, claim_id=claim)
    claim = dequeue_one(connection, queue).claim_id
    call(connection, "fail_now", queue_name=queue, claim_id=claim)
    enqueue(connection, queue, "b")
    call(connection, "reset", queue_name=queue)
    assert bodies(dequeue(connection, queue, 10)) == ["b", "a"]


@pytest.mark.promise("P10")
def test_null_takes_the_oldest(connection: Connection, queue: str) -> None:
    ids = make_dead(connection, queue, "a", "b", "c", "d")
    done = call(connection, "reset", queue_name=queue, max_messages=3)
    assert outcomes(done) == dict.fromkeys(ids[:3], "reset")
    assert counts(connection, queue) == (3, 0, 0, 1)
    done = call(connection, "reset", queue_name=queue, message_ids=None)
    assert outcomes(done) == {ids[3]: "reset"}
    assert call(connection, "reset", queue_name=queue) == []


@pytest.mark.promise("P10")
def test_a_list_is_reset_whatever_max_messages_says(connection: Connection, queue: str) -> None:
    ids = make_dead(connection, queue, "a", "b")
    done = call(connection, "reset", queue_name=queue, message_ids=ids, max_messages=1)
    assert outcomes(done) == dict.fromkeys(ids, "reset")


@pytest.mark.promise("P10")
def test_only_dead_messages_are_found(connection: Connection, queue: str) -> None:
    [leased] = enqueue(connection, queue, "leased")
    dequeue_one(connection, queue)
    [dead] = make_dead(connection, queue, "dead")
    [ready] = enqueue(connection, queue, "ready")
    ids = [ready, leased, dead, -1]
    done = call(connection, "reset", queue_name=queue, message_ids=ids)
    assert [row.message_id for row in done] == ids
    assert [row.outcome for row in done] == ["not_found", "not_found", "reset", "not_found"]


@pytest.mark.promise("P12")
def test_a_key_that_a_newer_message_holds_keeps_the_dead_one_dead(
    connection: Connection, queue: str
) -> None:
    [dead] = make_dead(connection, queue, "old", dedup_key="key")
    enqueue(connection, queue, "newer", dedup_key="key")
    done = call(connection, "reset", queue_name=queue, message_ids=[dead])
    assert outcomes(done) == {dead: "duplicate"}
    assert counts(connection, queue) == (1, 0, 0, 1)
    claim = dequeue_one(connection, queue).claim_id
    call(connection, "complete", queue_name=queue, claim_id=claim)
    assert outcomes(call(connection, "reset", queue_name=queue)) == {dead: "reset"}


@pytest.mark.promise("P12")
def test_a_reset_message_holds_its_key_again(connection: Connection, queue: str) -> None:
    [dead] = make_dead(connection, queue, "a", dedup_key="key")
    call(connection, "reset", queue_name=queue)
    row = call_one(connection, "enqueue", queue_name=queue, dedup_key="key")
    assert (row.message_id, row.outcome) == (dead, "duplicate")


@pytest.mark.promise("P12")
def test_of_two_dead_messages_with_one_key_the_older_is_reset(
    connection: Connection, queue: str
) -> None:
    ids = make_dead(connection, queue, "a", "b", dedup_key="key")
    done = call(connection, "reset", queue_name=queue, message_ids=list(reversed(ids)))
    assert outcomes(done) == {ids[0]: "reset", ids[1]: "duplicate"}


@pytest.mark.promise("P06")
@pytest.mark.requires("genuine")
def test_a_dead_message_that_another_session_resets_is_passed_over(
    connection: Connection, connect: Callable[..., Connection], queue: str
) -> None:
    ids = make_dead(connection, queue, "a", "b")
    other = connect()
    with transaction(other):
        call(other, "reset", queue_name=queue, message_ids=ids[:1])
        done = call(connection, "reset", queue_name=queue, message_ids=ids)
    assert outcomes(done) == {ids[0]: "not_found", ids[1]: "reset"}
    assert counts(connection, queue) == (2, 0, 0, 0)


@pytest.mark.promise("P17")
def test_a_rolled_back_reset_changes_nothing(connection: Connection, queue: str) -> None:
    make_dead(connection, queue, "a", dedup_key="key")
    with rolled_back(connection):
        call(connection, "reset", queue_name=queue)
    assert counts(connection, queue) == (0, 0, 0, 1)
    assert call_one(connection, "enqueue", queue_name=queue, dedup_key="key").outcome == "enqueued"


@pytest.mark.promise("P10")
def test_no_messages_are_nothing_to_do(connection: Connection, queue: str) -> None:
    make_dead(connection, queue, "a")
    assert call(connection, "reset", queue_name=queue, message_ids=[]) == []
    assert counts(connection, queue) == (0, 0, 0, 1)


@pytest.mark.promise("P15")
@pytest.mark.parametrize("max_messages", [0, -1, 10001, None, 2147483647])
def test_a_number_out_of_range_is_refused_and_nothing_is_reset(
    connection: Connection, queue: str, max_messages: int | None
) -> None:
    make_dead(connection, queue, "a")
    text = refused(connection, "RQ711", "reset", queue_name=queue, max_messages=max_messages)
    assert "max_messages" in text
    assert counts(connection, queue) == (0, 0, 0, 1)


@pytest.mark.promise("P15")
@pytest.mark.parametrize("max_messages", [1, 10000])
def test_a_number_at_its_bounds_is_taken(
    connection: Connection, queue: str, max_messages: int
) -> None:
    make_dead(connection, queue, "a", "b")
    done = call(connection, "reset", queue_name=queue, max_messages=max_messages)
    assert len(done) == min(max_messages, 2)


@pytest.mark.promise("P15")
@pytest.mark.parametrize(
    "message_ids", [[None], [[1, 2], [3, 4]], [1] * 10001], ids=lambda ids: len(ids)
)
def test_a_bad_list_is_refused(connection: Connection, queue: str, message_ids: list[Any]) -> None:
    text = refused(connection, "RQ711", "reset", queue_name=queue, message_ids=message_ids)
    assert "message_ids" in text


@pytest.mark.promise("P15")
def test_an_unknown_queue_is_refused(connection: Connection, queue_name: str) -> None:
    refused(connection, "RQ701", "reset", queue_name=queue_name)


@pytest.mark.promise("P15")
def test_a_missing_name_is_refused(connection: Connection) -> None:
    refused(connection, "RQ711", "reset", queue_name=None)
