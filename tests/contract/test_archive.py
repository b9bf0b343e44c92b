"""archive; test_maintenance.py covers what the routines of maintenance share."""

from typing import Any

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import outcomes, rolled_back, transaction
from tests.helpers.queues import CheckedQueue, Connect

pytestmark = pytest.mark.promise("P19")

DAY = 86400


@pytest.fixture
def keeping(queue: CheckedQueue) -> CheckedQueue:
    """Return a queue that archives messages for a year."""
    queue.call("alter_queue", archive_days=365)
    return queue


def finish(queue: CheckedQueue, *bodies: str, **arguments: Any) -> list[int]:
    """Enqueue and complete messages in one claim."""
    ids = queue.enqueue(*bodies, **arguments)
    claim = queue.dequeue(len(bodies))[0].claim_id
    done = queue.call("complete", claim_id=claim)
    assert outcomes(done) == dict.fromkeys(ids, "completed")
    return ids


def stored(queue: CheckedQueue, table: str) -> int:
    return queue.stored()[table]


@pytest.mark.promise("P20")
@pytest.mark.parametrize("body", [{"body": "🐘"}, {"body_binary": bytes(range(256))}])
def test_archive_keeps_every_field_of_a_message(
    keeping: CheckedQueue, body: dict[str, Any]
) -> None:
    fields = {"headers": {"a": [1]}, "message_type": "type", "dedup_key": "key", "priority": 2}
    fields["producer_name"] = "shop"
    message_id = keeping.call_one("enqueue", **body, **fields).message_id
    keeping.finish_one()
    before = keeping.message(message_id)
    assert keeping.call_one("archive").archived == 1
    after = keeping.message(message_id)
    assert (after.state, after.priority, after.attempt) == ("completed", 2, 1)
    kept = [
        "message_id", "state", "priority", "attempt", "message_type", "headers", "body",
        "body_binary", "dedup_key", "enqueued_at", "finished_at", "producer_name",
    ]  # fmt: skip
    for name in kept:
        assert getattr(after, name) == getattr(before, name)
    assert after.producer_name == "shop"
    assert stored(keeping, "message") == 0


def test_archive_keeps_cancelled_messages(keeping: CheckedQueue) -> None:
    [message_id] = keeping.enqueue("a")
    keeping.call("cancel", message_ids=[message_id])
    assert keeping.state_of(message_id) == "cancelled"
    keeping.call("archive")
    assert keeping.state_of(message_id) == "cancelled"


def test_archive_skips_unfinished_and_dead_messages(keeping: CheckedQueue) -> None:
    keeping.enqueue("leased", "dead")
    keeping.dequeue_one()
    keeping.finish_one("fail_now")
    keeping.enqueue("ready")
    keeping.enqueue("delayed", delay_seconds=60)
    assert keeping.call_one("archive").archived == 0
    assert stored(keeping, "message") == 4


@pytest.mark.promise("P04")
def test_completed_messages_are_deleted_without_archive_days(queue: CheckedQueue) -> None:
    finish(queue, "a", "b")
    assert queue.call_one("archive").archived == 0
    assert sum(queue.stored().values()) == 0


@pytest.mark.promise("P45")
def test_archive_moves_at_most_batch_size_messages(
    keeping: CheckedQueue,
) -> None:
    ids = [*finish(keeping, "a", "b", "c", "d", "e"), *finish(keeping, "f", "g")]
    moved = [keeping.call_one("archive", batch_size=2).archived for _ in range(5)]
    assert moved == [2, 2, 2, 1, 0]
    assert (stored(keeping, "archive"), stored(keeping, "finished")) == (7, 0)
    assert {keeping.state_of(message_id) for message_id in ids} == {"completed"}


def test_get_message_finds_a_partly_archived_batch(
    keeping: CheckedQueue,
) -> None:
    ids = finish(keeping, *"abcde")
    keeping.call("archive", batch_size=3)
    assert (stored(keeping, "archive"), stored(keeping, "message")) == (3, 2)
    rows = [keeping.message(message_id) for message_id in ids]
    assert [(row.body, row.state, row.attempt) for row in rows] == [
        (body, "completed", 1) for body in "abcde"
    ]
    assert len({row.finished_at for row in rows}) == 1


def test_maintain_archives_at_most_batch_size_messages(keeping: CheckedQueue) -> None:
    finish(keeping, *"abcde")
    assert keeping.call_one("maintain", batch_size=3).archived == 3


def test_get_message_finds_archived_messages_of_many_days(keeping: CheckedQueue) -> None:
    ids = []
    for _ in range(4):
        ids += finish(keeping, "a")
        keeping.pass_seconds(3 * DAY)
    assert keeping.call_one("archive").archived == 4
    rows = [keeping.message(message_id) for message_id in ids]
    assert {row.state for row in rows} == {"completed"}
    days = [row.finished_at for row in rows]
    assert days == sorted(days)
    assert (days[-1] - days[0]).days in (8, 9)


@pytest.mark.promise("P06")
@pytest.mark.requires("genuine")
def test_archive_skips_messages_locked_by_another_session(
    connect: Connect, keeping: CheckedQueue
) -> None:
    finish(keeping, "opens the day")
    keeping.call("archive")
    finish(keeping, "a")
    finish(keeping, "b")
    other = connect()
    with transaction(other):
        assert keeping.via(other).call_one("archive", batch_size=1).archived == 1
        assert keeping.call_one("archive").archived == 1
    assert stored(keeping, "archive") == 3


@pytest.mark.promise("P17")
def test_rolled_back_archive_is_repeated_by_the_next_call(
    connection: Connection, keeping: CheckedQueue
) -> None:
    [message_id] = finish(keeping, "a")
    with rolled_back(connection):
        assert keeping.call_one("archive").archived == 1
    assert keeping.state_of(message_id) == "completed"
    assert keeping.call_one("archive").archived == 1
