"""cancel."""

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
    state_of,
    transaction,
)
from tests.helpers.dialects import dialect_of
from tests.stored_times import pass_seconds


def cancel(connection: Connection, queue: str, *ids: int) -> list[str]:
    rows = call(connection, "cancel", queue_name=queue, message_ids=list(ids))
    assert [row.message_id for row in rows] == list(ids)
    return [row.outcome for row in rows]


def ready(connection: Connection, queue: str) -> int:
    return enqueue(connection, queue, "ready")[0]


def delayed(connection: Connection, queue: str) -> int:
    return enqueue(connection, queue, "delayed", delay_seconds=60)[0]


def retried(connection: Connection, queue: str) -> int:
    [message_id] = enqueue(connection, queue, "retried")
    claim = dequeue_one(connection, queue).claim_id
    call(connection, "retry_later", queue_name=queue, claim_id=claim, delay_seconds=0)
    return message_id


def waiting_for_its_retry(connection: Connection, queue: str) -> int:
    [message_id] = enqueue(connection, queue, "retried later")
    claim = dequeue_one(connection, queue).claim_id
    call(connection, "retry_later", queue_name=queue, claim_id=claim, delay_seconds=60)
    return message_id


def promoted(connection: Connection, queue: str) -> int:
    [message_id] = enqueue(connection, queue, "promoted", delay_seconds=60, priority=3)
    pass_seconds(connection, queue, 61)
    assert call_one(connection, "promote", queue_name=queue).promoted == 1
    return message_id


def released(connection: Connection, queue: str) -> int:
    [message_id] = enqueue(connection, queue, "released")
    claim = dequeue_one(connection, queue).claim_id
    call(connection, "release", queue_name=queue, claim_id=claim)
    return message_id


def reaped(connection: Connection, queue: str) -> int:
    [message_id] = enqueue(connection, queue, "reaped")
    dequeue_one(connection, queue)
    pass_seconds(connection, queue, 100)
    assert call_one(connection, "reap", queue_name=queue).reaped == 1
    return message_id


def dead(connection: Connection, queue: str) -> int:
    return make_dead(connection, queue, "dead")[0]


def reset(connection: Connection, queue: str) -> int:
    [message_id] = make_dead(connection, queue, "reset")
    call(connection, "reset", queue_name=queue)
    return message_id


@pytest.mark.promise("P04", "P15")
@pytest.mark.parametrize("archive_days", [0, 1])
@pytest.mark.parametrize(
    "arrange",
    [ready, delayed, retried, waiting_for_its_retry, promoted, released, reaped, dead, reset],
    ids=lambda arrange: arrange.__name__,
)
def test_a_message_that_no_worker_holds_is_withdrawn(
    connection: Connection,
    queue: str,
    arrange: Callable[[Connection, str], int],
    archive_days: int,
) -> None:
    call(connection, "alter_queue", queue_name=queue, archive_days=archive_days)
    message_id = arrange(connection, queue)
    [other_id] = enqueue(connection, queue, "other")
    assert cancel(connection, queue, message_id) == ["cancelled"]
    pass_seconds(connection, queue, 10000)
    call(connection, "maintain", queue_name=queue)
    assert [row.message_id for row in dequeue(connection, queue, 10)] == [other_id]
    assert state_of(connection, queue, message_id) == ("cancelled" if archive_days else None)
    assert cancel(connection, queue, message_id) == ["not_found"]
    assert counts(connection, queue) == (0, 0, 1, 0)


@pytest.mark.promise("P03", "P15")
def test_a_leased_message_stays_with_its_worker(connection: Connection, queue: str) -> None:
    [message_id] = enqueue(connection, queue, "leased")
    claim = dequeue_one(connection, queue).claim_id
    assert cancel(connection, queue, message_id) == ["leased"]
    done = call(connection, "complete", queue_name=queue, claim_id=claim)
    assert outcomes(done) == {message_id: "completed"}


@pytest.mark.promise("P03", "P06")
@pytest.mark.requires("genuine")
def test_a_message_that_another_session_is_taking_is_leased_and_nobody_waits(
    connection: Connection, connect: Callable[..., Connection], queue: str
) -> None:
    [message_id] = enqueue(connection, queue, "being taken")
    worker = connect()
    with transaction(worker):
        dequeue_one(worker, queue)
        assert cancel(connection, queue, message_id) == ["leased"]
    assert counts(connection, queue) == (0, 0, 1, 0)


@pytest.mark.promise("P15")
@pytest.mark.parametrize("archive_days", [0, 1])
def test_a_completed_message_is_not_found(
    connection: Connection, queue: str, archive_days: int
) -> None:
    call(connection, "alter_queue", queue_name=queue, archive_days=archive_days)
    [message_id] = enqueue(connection, queue, "a")
    call(connection, "complete", queue_name=queue, claim_id=dequeue_one(connection, queue).claim_id)
    assert cancel(connection, queue, message_id) == ["not_found"]
    call(connection, "archive", queue_name=queue)
    assert cancel(connection, queue, message_id) == ["not_found"]


@pytest.mark.promise("P15")
def test_each_message_has_its_own_outcome(connection: Connection, queue: str) -> None:
    first, second, third = enqueue(connection, queue, "a", "b", "c")
    dequeue_one(connection, queue)
    assert cancel(connection, queue, third, -1, first, second) == [
        "cancelled",
        "not_found",
        "leased",
        "cancelled",
    ]


@pytest.mark.promise("P12")
@pytest.mark.parametrize("delay_seconds", [0, 60])
def test_the_key_of_a_withdrawn_message_is_free(
    connection: Connection, queue: str, delay_seconds: float
) -> None:
    [message_id] = enqueue(connection, queue, "a", dedup_key="key", delay_seconds=delay_seconds)
    cancel(connection, queue, message_id)
    assert call_one(connection, "enqueue", queue_name=queue, dedup_key="key").outcome == "enqueued"


@pytest.mark.promise("P12")
def test_withdrawing_a_dead_message_leaves_its_key_to_a_newer_one(
    connection: Connection, queue: str
) -> None:
    [dead_id] = make_dead(connection, queue, "dead", dedup_key="key")
    enqueue(connection, queue, "newer", dedup_key="key")
    assert cancel(connection, queue, dead_id) == ["cancelled"]
    assert call_one(connection, "enqueue", queue_name=queue, dedup_key="key").outcome == "duplicate"


@pytest.mark.promise("P15")
def test_a_message_of_another_queue_is_not_found(connection: Connection, queue: str) -> None:
    other = f"{queue[:80]} other"
    call(connection, "create_queue", queue_name=other)
    [message_id] = enqueue(connection, queue, "a")
    assert cancel(connection, other, message_id) == ["not_found"]
    assert dequeue_one(connection, queue).body == "a"


@pytest.mark.promise("P15")
def test_ten_thousand_messages_are_withdrawn_at_once(connection: Connection, queue: str) -> None:
    messages = [{"delay_seconds": number % 2 * 60} for number in range(10000)]
    rows = call(connection, "enqueue_batch", queue_name=queue, messages=messages)
    ids = [row.message_id for row in rows]
    assert cancel(connection, queue, *ids) == ["cancelled"] * 10000
    assert sum(dialect_of(connection).stored(connection, queue).values()) == 0


@pytest.mark.promise("P17")
def test_a_rolled_back_withdrawal_changes_nothing(connection: Connection, queue: str) -> None:
    ids = enqueue(connection, queue, "a", "b")
    with rolled_back(connection):
        assert cancel(connection, queue, *ids) == ["cancelled", "cancelled"]
    assert bodies(dequeue(connection, queue, 2)) == ["a", "b"]


@pytest.mark.promise("P15")
def test_no_messages_are_nothing_to_do(connection: Connection, queue: str) -> None:
    assert cancel(connection, queue) == []


@pytest.mark.promise("P15")
def test_a_message_named_twice_is_withdrawn_once(connection: Connection, queue: str) -> None:
    [message_id] = enqueue(connection, queue, "a")
    assert "cancelled" in cancel(connection, queue, message_id, message_id)
    assert cancel(connection, queue, message_id) == ["not_found"]


@pytest.mark.promise("P15")
@pytest.mark.parametrize(
    "message_ids", [None, [None], [[1, 2], [3, 4]], [1] * 10001], ids=lambda ids: len(ids or [])
)
def test_a_bad_list_is_refused_and_nothing_is_withdrawn(
    connection: Connection, queue: str, message_ids: list[Any] | None
) -> None:
    enqueue(connection, queue, "a")
    text = refused(connection, "RQ711", "cancel", queue_name=queue, message_ids=message_ids)
    assert "message_ids" in text
    assert counts(connection, queue) == (1, 0, 0, 0)


@pytest.mark.promise("P15")
def test_an_unknown_queue_is_refused(connection: Connection, queue_name: str) -> None:
    refused(connection, "RQ701", "cancel", queue_name=queue_name, message_ids=[1])


@pytest.mark.promise("P15")
def test_a_missing_name_is_refused(connection: Connection) -> None:
    refused(connection, "RQ711", "cancel", queue_name=None, message_ids=[1])
