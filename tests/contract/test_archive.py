"""archive, beyond what it shares with the rest of the housekeeping (test_housekeeping.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import (
    call,
    call_one,
    dequeue,
    dequeue_one,
    enqueue,
    outcomes,
    rolled_back,
    state_of,
    transaction,
)
from tests.helpers.dialects import dialect_of
from tests.stored_times import pass_seconds

DAY = 86400


@pytest.fixture
def keeping(connection: Connection, queue: str) -> str:
    """Return a queue that keeps finished messages for a year."""
    call(connection, "alter_queue", queue_name=queue, archive_days=365)
    return queue


def finish(connection: Connection, queue: str, *bodies: str, **arguments: Any) -> list[int]:
    """Enqueue and complete messages in one claim."""
    ids = enqueue(connection, queue, *bodies, **arguments)
    claim = dequeue(connection, queue, len(bodies))[0].claim_id
    done = call(connection, "complete", queue_name=queue, claim_id=claim)
    assert outcomes(done) == dict.fromkeys(ids, "completed")
    return ids


def stored(connection: Connection, queue: str, table: str) -> int:
    return dialect_of(connection).stored(connection, queue)[table]


@pytest.mark.promise("P19", "P20")
def test_a_finished_message_is_kept_with_everything_about_it(
    connection: Connection, keeping: str
) -> None:
    [message_id] = finish(
        connection,
        keeping,
        "🐘",
        headers={"a": [1]},
        message_type="type",
        dedup_key="key",
        priority=2,
    )
    given = {"queue_name": keeping, "message_id": message_id}
    before = call_one(connection, "get_message", **given)
    assert call_one(connection, "archive", queue_name=keeping).archived == 1
    after = call_one(connection, "get_message", **given)
    assert after.state == "completed"
    kept = [
        "message_id", "state", "priority", "attempt", "message_type", "headers", "body",
        "body_binary", "dedup_key", "enqueued_at", "finished_at",
    ]  # fmt: skip
    assert {name: getattr(after, name) for name in kept} == {
        name: getattr(before, name) for name in kept
    }
    assert (after.body, after.priority, after.attempt) == ("🐘", 2, 1)
    assert stored(connection, keeping, "message") == 0


@pytest.mark.promise("P20")
def test_a_binary_body_is_kept(connection: Connection, keeping: str) -> None:
    call_one(connection, "enqueue", queue_name=keeping, body_binary=bytes(range(256)))
    leased = dequeue_one(connection, keeping)
    call(connection, "complete", queue_name=keeping, claim_id=leased.claim_id)
    call(connection, "archive", queue_name=keeping)
    row = call_one(connection, "get_message", queue_name=keeping, message_id=leased.message_id)
    assert bytes(row.body_binary) == bytes(range(256))


@pytest.mark.promise("P19")
def test_a_cancelled_message_is_kept_as_cancelled(connection: Connection, keeping: str) -> None:
    [message_id] = enqueue(connection, keeping, "a")
    call(connection, "cancel", queue_name=keeping, message_ids=[message_id])
    assert state_of(connection, keeping, message_id) == "cancelled"
    call(connection, "archive", queue_name=keeping)
    assert state_of(connection, keeping, message_id) == "cancelled"


@pytest.mark.promise("P19")
def test_unfinished_and_dead_messages_are_not_archived(
    connection: Connection, keeping: str
) -> None:
    enqueue(connection, keeping, "leased", "dead")
    dequeue_one(connection, keeping)
    claim = dequeue_one(connection, keeping).claim_id
    call(connection, "fail_now", queue_name=keeping, claim_id=claim)
    enqueue(connection, keeping, "ready")
    enqueue(connection, keeping, "delayed", delay_seconds=60)
    assert call_one(connection, "archive", queue_name=keeping).archived == 0
    assert stored(connection, keeping, "message") == 4


@pytest.mark.promise("P04")
def test_a_queue_without_an_archive_keeps_nothing(connection: Connection, queue: str) -> None:
    finish(connection, queue, "a", "b")
    assert call_one(connection, "archive", queue_name=queue).archived == 0
    assert sum(dialect_of(connection).stored(connection, queue).values()) == 0


@pytest.mark.promise("P19")
def test_a_small_batch_size_moves_batch_by_batch(connection: Connection, keeping: str) -> None:
    for _ in range(3):
        finish(connection, keeping, "a", "b")
    moved = [call_one(connection, "archive", queue_name=keeping, batch_size=1) for _ in range(7)]
    # Messages finished in one call are moved in one piece where the engine keeps them as one row.
    assert {row.archived for row in moved} in ({2, 0}, {1, 0})
    assert sum(row.archived for row in moved) == 6
    assert stored(connection, keeping, "archive") == 6


@pytest.mark.promise("P19")
def test_messages_of_many_days_are_all_found_again(connection: Connection, keeping: str) -> None:
    ids = []
    for _ in range(4):
        ids += finish(connection, keeping, "a")
        pass_seconds(connection, keeping, 3 * DAY)
    assert call_one(connection, "archive", queue_name=keeping).archived == 4
    rows = [
        call_one(connection, "get_message", queue_name=keeping, message_id=message_id)
        for message_id in ids
    ]
    assert {row.state for row in rows} == {"completed"}
    days = [row.finished_at for row in rows]
    assert days == sorted(days)
    assert (days[-1] - days[0]).days in (8, 9)


@pytest.mark.promise("P06", "P19")
@pytest.mark.requires("genuine")
def test_what_another_session_archives_is_passed_over(
    connection: Connection, connect: Callable[..., Connection], keeping: str
) -> None:
    finish(connection, keeping, "opens the day")
    call(connection, "archive", queue_name=keeping)
    finish(connection, keeping, "a")
    finish(connection, keeping, "b")
    other = connect()
    with transaction(other):
        assert call_one(other, "archive", queue_name=keeping, batch_size=1).archived == 1
        assert call_one(connection, "archive", queue_name=keeping).archived == 1
    assert stored(connection, keeping, "archive") == 3


@pytest.mark.promise("P17")
def test_what_is_rolled_back_is_archived_by_the_next(connection: Connection, keeping: str) -> None:
    [message_id] = finish(connection, keeping, "a")
    with rolled_back(connection):
        assert call_one(connection, "archive", queue_name=keeping).archived == 1
    assert state_of(connection, keeping, message_id) == "completed"
    assert call_one(connection, "archive", queue_name=keeping).archived == 1
