"""list_dead."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import call, call_one, dequeue_one, enqueue, make_dead, refused


def listed(connection: Connection, queue: str, **arguments: int | None) -> list[int]:
    rows = call(connection, "list_dead", queue_name=queue, **arguments)
    return [row.message_id for row in rows]


@pytest.mark.promise("P10")
def test_a_dead_message_is_listed_with_what_is_known_of_its_end(
    connection: Connection, queue: str
) -> None:
    [message_id] = make_dead(connection, queue, "a", priority=2, message_type="type")
    row = call_one(connection, "list_dead", queue_name=queue)
    assert (row.message_id, row.priority, row.attempt) == (message_id, 2, 1)
    assert (row.message_type, row.last_error) == ("type", "broken")
    assert row.enqueued_at <= row.died_at
    assert abs(row.died_at - datetime.now(UTC)) < timedelta(seconds=60)


@pytest.mark.promise("P10")
def test_only_dead_messages_of_the_queue_are_listed(connection: Connection, queue: str) -> None:
    other = f"{queue[:80]} other"
    call(connection, "create_queue", queue_name=other)
    make_dead(connection, other, "other")
    enqueue(connection, queue, "leased")
    dequeue_one(connection, queue)
    [dead] = make_dead(connection, queue, "dead")
    enqueue(connection, queue, "ready")
    assert listed(connection, queue) == [dead]


@pytest.mark.promise("P10")
def test_pages_follow_the_order_of_the_ids(connection: Connection, queue: str) -> None:
    first, second = enqueue(connection, queue, "dies last", "dies first")
    claims = {
        row.message_id: row.claim_id for row in (dequeue_one(connection, queue) for _ in "ab")
    }
    for message_id in (second, first):
        call(connection, "fail_now", queue_name=queue, claim_id=claims[message_id])
    ids = [first, second, *make_dead(connection, queue, "c", "d", "e")]
    assert listed(connection, queue) == ids
    assert listed(connection, queue, after_message_id=None) == ids
    assert listed(connection, queue, max_messages=2) == ids[:2]
    assert listed(connection, queue, max_messages=2, after_message_id=ids[1]) == ids[2:4]
    assert listed(connection, queue, max_messages=2, after_message_id=ids[3]) == ids[4:]
    assert listed(connection, queue, after_message_id=ids[4]) == []
    assert listed(connection, queue, after_message_id=9223372036854775807) == []


@pytest.mark.promise("P10")
def test_a_hundred_are_listed_unless_more_are_asked_for(connection: Connection, queue: str) -> None:
    call(connection, "alter_queue", queue_name=queue, max_attempts=1)
    call(connection, "enqueue_batch", queue_name=queue, messages=[{}] * 101)
    for _ in range(101):
        claim = dequeue_one(connection, queue).claim_id
        call(connection, "retry_later", queue_name=queue, claim_id=claim)
    assert len(listed(connection, queue)) == 100
    assert len(listed(connection, queue, max_messages=10000)) == 101


@pytest.mark.promise("P15")
@pytest.mark.parametrize("max_messages", [0, -1, 10001, None])
def test_a_number_out_of_range_is_refused(
    connection: Connection, queue: str, max_messages: int | None
) -> None:
    text = refused(connection, "RQ711", "list_dead", queue_name=queue, max_messages=max_messages)
    assert "max_messages" in text


@pytest.mark.promise("P15")
def test_an_unknown_queue_is_refused(connection: Connection, queue_name: str) -> None:
    refused(connection, "RQ701", "list_dead", queue_name=queue_name)


@pytest.mark.promise("P15")
def test_a_missing_name_is_refused(connection: Connection) -> None:
    refused(connection, "RQ711", "list_dead", queue_name=None)
