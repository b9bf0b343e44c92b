"""archive, beyond what it shares with the rest of the housekeeping (test_housekeeping.py)."""

from typing import Any

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import outcomes, rolled_back, transaction
from tests.helpers.queues import CheckedQueue, Connect

DAY = 86400


@pytest.fixture
def keeping(queue: CheckedQueue) -> CheckedQueue:
    """Return a queue that keeps finished messages for a year."""
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


@pytest.mark.promise("P19", "P20")
def test_a_finished_message_is_kept_with_everything_about_it(keeping: CheckedQueue) -> None:
    [message_id] = finish(
        keeping, "🐘", headers={"a": [1]}, message_type="type", dedup_key="key", priority=2
    )
    given = {"message_id": message_id}
    before = keeping.call_one("get_message", **given)
    assert keeping.call_one("archive").archived == 1
    after = keeping.call_one("get_message", **given)
    assert after.state == "completed"
    kept = [
        "message_id", "state", "priority", "attempt", "message_type", "headers", "body",
        "body_binary", "dedup_key", "enqueued_at", "finished_at",
    ]  # fmt: skip
    assert {name: getattr(after, name) for name in kept} == {
        name: getattr(before, name) for name in kept
    }
    assert (after.body, after.priority, after.attempt) == ("🐘", 2, 1)
    assert stored(keeping, "message") == 0


@pytest.mark.promise("P20")
def test_a_binary_body_is_kept(keeping: CheckedQueue) -> None:
    keeping.call_one("enqueue", body_binary=bytes(range(256)))
    leased = keeping.dequeue_one()
    keeping.call("complete", claim_id=leased.claim_id)
    keeping.call("archive")
    row = keeping.message(leased.message_id)
    assert bytes(row.body_binary) == bytes(range(256))


@pytest.mark.promise("P19")
def test_a_cancelled_message_is_kept_as_cancelled(keeping: CheckedQueue) -> None:
    [message_id] = keeping.enqueue("a")
    keeping.call("cancel", message_ids=[message_id])
    assert keeping.state_of(message_id) == "cancelled"
    keeping.call("archive")
    assert keeping.state_of(message_id) == "cancelled"


@pytest.mark.promise("P19")
def test_unfinished_and_dead_messages_are_not_archived(keeping: CheckedQueue) -> None:
    keeping.enqueue("leased", "dead")
    keeping.dequeue_one()
    keeping.finish_one("fail_now")
    keeping.enqueue("ready")
    keeping.enqueue("delayed", delay_seconds=60)
    assert keeping.call_one("archive").archived == 0
    assert stored(keeping, "message") == 4


@pytest.mark.promise("P04")
def test_a_queue_without_an_archive_keeps_nothing(queue: CheckedQueue) -> None:
    finish(queue, "a", "b")
    assert queue.call_one("archive").archived == 0
    assert sum(queue.stored().values()) == 0


@pytest.mark.promise("P19")
def test_a_call_moves_no_more_than_batch_size_of_what_was_finished_at_once(
    keeping: CheckedQueue,
) -> None:
    ids = [*finish(keeping, "a", "b", "c", "d", "e"), *finish(keeping, "f", "g")]
    moved = [keeping.call_one("archive", batch_size=2).archived for _ in range(5)]
    assert moved == [2, 2, 2, 1, 0]
    assert (stored(keeping, "archive"), stored(keeping, "finished")) == (7, 0)
    assert {keeping.state_of(message_id) for message_id in ids} == {"completed"}


@pytest.mark.promise("P19")
def test_the_messages_of_a_batch_that_is_archived_in_part_are_all_found(
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


@pytest.mark.promise("P19")
def test_maintain_archives_no_more_than_batch_size(keeping: CheckedQueue) -> None:
    finish(keeping, *"abcde")
    assert keeping.call_one("maintain", batch_size=3).archived == 3


@pytest.mark.promise("P19")
def test_messages_of_many_days_are_all_found_again(keeping: CheckedQueue) -> None:
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


@pytest.mark.promise("P06", "P19")
@pytest.mark.requires("genuine")
def test_what_another_session_archives_is_passed_over(
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
def test_what_is_rolled_back_is_archived_by_the_next(
    connection: Connection, keeping: CheckedQueue
) -> None:
    [message_id] = finish(keeping, "a")
    with rolled_back(connection):
        assert keeping.call_one("archive").archived == 1
    assert keeping.state_of(message_id) == "completed"
    assert keeping.call_one("archive").archived == 1
