"""purge_queue."""

from __future__ import annotations

from collections.abc import Callable

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
    refused,
    rolled_back,
    state_of,
    transaction,
)
from tests.helpers.dialects import dialect_of
from tests.stored_times import pass_seconds


@pytest.fixture
def full(connection: Connection, queue: str) -> str:
    """Return a queue with a dead, a leased, two delayed and three ready messages."""
    make_dead(connection, queue, "dead")
    enqueue(connection, queue, "leased")
    dequeue_one(connection, queue)
    enqueue(connection, queue, "later", "much later", delay_seconds=1000)
    enqueue(connection, queue, "ready")
    enqueue(connection, queue, "urgent", priority=0)
    enqueue(connection, queue, "idle", priority=9)
    return queue


@pytest.mark.promise("P15")
def test_waiting_messages_go_and_leased_and_dead_ones_stay(
    connection: Connection, full: str
) -> None:
    assert call_one(connection, "purge_queue", queue_name=full).removed == 5
    assert counts(connection, full) == (0, 0, 1, 1)
    assert dequeue(connection, full, 10) == []
    assert dialect_of(connection).stored(connection, full)["message"] == 2


@pytest.mark.promise("P15")
def test_dead_ones_go_too_when_asked_for(connection: Connection, full: str) -> None:
    assert call_one(connection, "purge_queue", queue_name=full, include_dead=True).removed == 6
    assert counts(connection, full) == (0, 0, 1, 0)


@pytest.mark.promise("P02")
def test_a_leased_message_is_delivered_again_after_a_purge(
    connection: Connection, full: str
) -> None:
    call(connection, "purge_queue", queue_name=full, include_dead=True)
    pass_seconds(connection, full, 100)
    call(connection, "maintain", queue_name=full)
    assert bodies(dequeue(connection, full, 10)) == ["leased"]


@pytest.mark.promise("P15")
def test_a_purge_in_parts_takes_no_more_than_asked_for(connection: Connection, full: str) -> None:
    sizes = [2, 2, 2, 2]
    removed = [
        call_one(
            connection, "purge_queue", queue_name=full, include_dead=True, max_messages=size
        ).removed
        for size in sizes
    ]
    assert removed == [2, 2, 2, 0]
    assert counts(connection, full) == (0, 0, 1, 0)


@pytest.mark.promise("P15")
def test_purged_messages_are_gone_and_their_dedup_keys_free(
    connection: Connection, queue: str
) -> None:
    call(connection, "alter_queue", queue_name=queue, archive_days=1)
    ids = enqueue(connection, queue, "ready", dedup_key="a")
    ids += enqueue(connection, queue, "delayed", dedup_key="b", delay_seconds=9)
    assert call_one(connection, "purge_queue", queue_name=queue).removed == 2
    assert [state_of(connection, queue, one_id) for one_id in ids] == [None, None]
    for key in ("a", "b"):
        assert (
            call_one(connection, "enqueue", queue_name=queue, dedup_key=key).outcome == "enqueued"
        )


@pytest.mark.promise("P15")
def test_a_retried_message_is_purged_too(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, "again")
    claim = dequeue_one(connection, queue).claim_id
    call(connection, "release", queue_name=queue, claim_id=claim)
    assert call_one(connection, "purge_queue", queue_name=queue).removed == 1
    assert dequeue(connection, queue) == []


@pytest.mark.promise("P06")
@pytest.mark.requires("genuine")
def test_a_message_that_another_session_is_taking_is_left_to_it(
    connection: Connection, connect: Callable[..., Connection], queue: str
) -> None:
    enqueue(connection, queue, "taken", "purged")
    worker = connect()
    with transaction(worker):
        assert dequeue_one(worker, queue).body == "taken"
        assert call_one(connection, "purge_queue", queue_name=queue).removed == 1
    assert counts(connection, queue) == (0, 0, 1, 0)


@pytest.mark.promise("P15")
def test_more_than_one_step_is_purged_in_one_call(connection: Connection, queue: str) -> None:
    messages = [{"body": "x", "priority": number % 10} for number in range(10000)]
    for _ in range(2):
        call(connection, "enqueue_batch", queue_name=queue, messages=messages)
    enqueue(connection, queue, "the last one")
    assert call_one(connection, "purge_queue", queue_name=queue).removed == 20001
    assert dialect_of(connection).stored(connection, queue)["message"] == 0


@pytest.mark.promise("P15")
def test_an_empty_queue_has_nothing_to_purge(connection: Connection, queue: str) -> None:
    assert call_one(connection, "purge_queue", queue_name=queue, include_dead=True).removed == 0


@pytest.mark.promise("P17")
def test_a_rolled_back_purge_removes_nothing(connection: Connection, full: str) -> None:
    with rolled_back(connection):
        call(connection, "purge_queue", queue_name=full, include_dead=True)
    assert counts(connection, full) == (3, 2, 1, 1)


@pytest.mark.promise("P15")
@pytest.mark.parametrize("max_messages", [0, -1, 10001])
def test_a_part_beyond_its_bounds_is_refused(
    connection: Connection, full: str, max_messages: int
) -> None:
    text = refused(connection, "RQ711", "purge_queue", queue_name=full, max_messages=max_messages)
    assert "max_messages" in text
    assert counts(connection, full) == (3, 2, 1, 1)


@pytest.mark.promise("P15")
@pytest.mark.parametrize("max_messages", [1, 10000])
def test_a_part_at_its_bounds_is_taken(
    connection: Connection, full: str, max_messages: int
) -> None:
    row = call_one(connection, "purge_queue", queue_name=full, max_messages=max_messages)
    assert row.removed == min(max_messages, 5)


@pytest.mark.promise("P15")
def test_an_unknown_queue_is_refused(connection: Connection, queue_name: str) -> None:
    refused(connection, "RQ701", "purge_queue", queue_name=queue_name)


@pytest.mark.promise("P15")
def test_a_missing_name_is_refused(connection: Connection) -> None:
    refused(connection, "RQ711", "purge_queue", queue_name=None)
