"""peek."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import (
    Row,
    bodies,
    call,
    call_one,
    counts,
    dequeue,
    dequeue_one,
    enqueue,
    refused,
    transaction,
)


def peek(connection: Connection, queue: str, batch_size: int = 1000) -> list[Row]:
    return call(connection, "peek", queue_name=queue, batch_size=batch_size)


@pytest.mark.promise("P05")
def test_the_next_messages_are_shown_in_the_order_of_their_delivery(
    connection: Connection, queue: str
) -> None:
    for priority in (5, 0, 9, 5, 0):
        enqueue(connection, queue, f"{priority}", priority=priority)
    enqueue(connection, queue, "delayed", delay_seconds=60)
    shown = peek(connection, queue)
    assert [(row.body, row.priority) for row in shown] == [
        ("0", 0),
        ("0", 0),
        ("5", 5),
        ("5", 5),
        ("9", 9),
    ]
    assert [row.message_id for row in dequeue(connection, queue, 10)] == [
        row.message_id for row in shown
    ]


@pytest.mark.promise("P05")
def test_peeking_changes_nothing(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, "a", "b")
    for _ in range(3):
        assert bodies(peek(connection, queue)) == ["a", "b"]
    assert counts(connection, queue) == (2, 0, 0, 0)
    assert {row.attempt for row in dequeue(connection, queue, 2)} == {1}


@pytest.mark.promise("P05")
def test_one_message_is_shown_unless_more_are_asked_for(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, "a", "b", "c")
    assert bodies(call(connection, "peek", queue_name=queue)) == ["a"]
    assert bodies(peek(connection, queue, 2)) == ["a", "b"]


@pytest.mark.promise("P20")
def test_everything_about_a_message_is_shown(connection: Connection, queue: str) -> None:
    [message_id] = enqueue(connection, queue, "🐘", headers={"a": 1}, message_type="type")
    call_one(connection, "enqueue", queue_name=queue, body_binary=b"\x00\xff", priority=6)
    claim = dequeue_one(connection, queue).claim_id
    call(
        connection,
        "retry_later",
        queue_name=queue,
        claim_id=claim,
        delay_seconds=0,
        error="broken",
    )
    text, binary = peek(connection, queue)
    assert (text.message_id, text.attempt, text.last_error) == (message_id, 1, "broken")
    assert (text.body, text.headers, text.message_type) == ("🐘", {"a": 1}, "type")
    assert text.enqueued_at < binary.enqueued_at
    assert (binary.body, bytes(binary.body_binary)) == (None, b"\x00\xff")
    assert (binary.attempt, binary.last_error) == (0, None)


@pytest.mark.promise("P06")
def test_peek_waits_for_nobody(
    connection: Connection, connect: Callable[..., Connection], queue: str
) -> None:
    enqueue(connection, queue, "held", "free")
    other = connect()
    with transaction(other):
        dequeue_one(other, queue)
        assert "free" in bodies(peek(connection, queue))
    assert bodies(peek(connection, queue)) == ["free"]


@pytest.mark.promise("P05")
def test_an_empty_queue_shows_nothing(connection: Connection, queue: str) -> None:
    assert peek(connection, queue) == []


@pytest.mark.promise("P15")
@pytest.mark.parametrize("batch_size", [0, -1, 1001, None, 2147483647])
def test_a_batch_size_out_of_range_is_refused(
    connection: Connection, queue: str, batch_size: int | None
) -> None:
    refused(connection, "RQ711", "peek", queue_name=queue, batch_size=batch_size)


@pytest.mark.promise("P15")
def test_an_unknown_queue_is_refused(connection: Connection, queue_name: str) -> None:
    refused(connection, "RQ701", "peek", queue_name=queue_name)


@pytest.mark.promise("P15")
def test_a_missing_name_is_refused(connection: Connection) -> None:
    refused(connection, "RQ711", "peek", queue_name=None)
