"""alter_message: a waiting or dead message, by its state and by value."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.contract import test_cancel
from tests.helpers.calls import Row, bodies, outcomes, rolled_back
from tests.helpers.queues import CheckedQueue

YEARS = 3650 * 86400


def alter(queue: CheckedQueue, message_id: int, **changes: Any) -> Row:
    """Alter a message and return the row."""
    row = queue.call_one("alter_message", message_id=message_id, **changes)
    assert row.message_id == message_id
    return row


def altered(queue: CheckedQueue, message_id: int, **changes: Any) -> Row:
    """Alter a message that can be altered, and return the row."""
    row = alter(queue, message_id, **changes)
    assert row.outcome == "altered"
    return row


def in_seconds(row: Row, seconds: float) -> bool:
    """Return whether due_at is about that time from now."""
    return bool(
        abs(row.due_at - datetime.now(UTC) - timedelta(seconds=seconds)) < timedelta(seconds=5)
    )


def blocked(queue: CheckedQueue) -> int:
    [first] = queue.enqueue("first", delay_seconds=600)
    return queue.enqueue("blocked", predecessor_ids=[first])[0]


def group_waiting(queue: CheckedQueue) -> int:
    return queue.enqueue("first", "waits", group_key="g")[1]


WAITING = [
    test_cancel.ready,
    test_cancel.delayed,
    test_cancel.retried,
    test_cancel.delayed_for_a_retry,
    test_cancel.promoted,
    test_cancel.released,
    test_cancel.dead,
    test_cancel.reset,
    blocked,
    group_waiting,
]


@pytest.mark.promise("P15", "P20", "P39")
@pytest.mark.parametrize("arrange", WAITING, ids=lambda arrange: arrange.__name__)
def test_alter_changes_content_and_nothing_else(
    queue: CheckedQueue, arrange: Callable[[CheckedQueue], int]
) -> None:
    message_id = arrange(queue)
    before = queue.message(message_id)
    altered(queue, message_id, body="new", message_type="t", headers={"a": 1}, max_attempts=7)
    after = queue.message(message_id)
    assert (after.body, after.message_type, after.max_attempts) == ("new", "t", 7)
    assert after.headers == {"a": 1}
    for name in (
        "state",
        "priority",
        "attempt",
        "enqueued_at",
        "due_at",
        "last_error",
        "waits_for",
    ):
        assert getattr(after, name) == getattr(before, name), name


@pytest.mark.promise("P20")
def test_alter_switches_between_text_and_binary(queue: CheckedQueue) -> None:
    [message_id] = queue.enqueue("text", headers={"a": 1})
    altered(queue, message_id, body_binary=b"\x00\xff")
    found = queue.message(message_id)
    assert (found.body, found.body_binary, found.headers) == (None, b"\x00\xff", {"a": 1})
    altered(queue, message_id, body="again")
    assert (queue.message(message_id).body_binary, queue.take()) == (None, ["again"])


@pytest.mark.promise("P05", "P39")
@pytest.mark.parametrize("arrange", WAITING, ids=lambda arrange: arrange.__name__)
def test_alter_changes_the_priority(
    queue: CheckedQueue, arrange: Callable[[CheckedQueue], int]
) -> None:
    message_id = arrange(queue)
    before = queue.message(message_id)
    altered(queue, message_id, priority=2)
    after = queue.message(message_id)
    assert after.priority == 2
    assert (after.state, after.attempt, after.due_at) == (
        before.state,
        before.attempt,
        before.due_at,
    )


@pytest.mark.promise("P05")
def test_altered_message_goes_to_the_tail_of_its_new_priority(queue: CheckedQueue) -> None:
    first, second, _ = queue.enqueue("1", "2", "3")
    queue.enqueue("urgent", priority=4)
    altered(queue, second, priority=4)
    altered(queue, first, priority=5)
    assert queue.take() == ["urgent", "2", "1", "3"]


@pytest.mark.promise("P11", "P39")
@pytest.mark.parametrize(
    "arrange",
    [arrange for arrange in WAITING if arrange is not test_cancel.dead],
    ids=lambda arrange: arrange.__name__,
)
def test_alter_changes_the_time(
    queue: CheckedQueue, arrange: Callable[[CheckedQueue], int]
) -> None:
    message_id = arrange(queue)
    before = queue.message(message_id)
    row = altered(queue, message_id, delay_seconds=300)
    after = queue.message(message_id)
    assert row.due_at == after.due_at
    assert in_seconds(row, 300)
    assert after.state == ("blocked" if arrange is blocked else "delayed")
    assert (after.attempt, after.last_error) == (before.attempt, before.last_error)
    assert message_id not in [row.message_id for row in queue.dequeue(10)]

    queue.pass_seconds(299)
    assert message_id not in [row.message_id for row in queue.dequeue(10)]
    altered(queue, message_id, run_at=datetime(2020, 1, 1, tzinfo=UTC))
    if arrange is blocked:
        queue.pass_seconds(600)
        queue.finish_one()
    elif arrange is group_waiting:
        return
    assert message_id in [row.message_id for row in queue.dequeue(10)]


@pytest.mark.promise("P11")
def test_blocked_message_is_delayed_until_its_new_time(queue: CheckedQueue) -> None:
    [first] = queue.enqueue("first")
    [message_id] = queue.enqueue("blocked", predecessor_ids=[first], delay_seconds=60)
    altered(queue, message_id, delay_seconds=600)
    queue.finish_one()
    assert queue.state_of(message_id) == "delayed"
    altered(queue, message_id, delay_seconds=900, body="later")
    queue.pass_seconds(599)
    assert queue.take() == []
    queue.pass_seconds(302)
    assert queue.take() == ["later"]


def test_past_time_of_a_blocked_message_is_removed(queue: CheckedQueue) -> None:
    [first] = queue.enqueue("first")
    [message_id] = queue.enqueue("blocked", predecessor_ids=[first], delay_seconds=60)
    assert altered(queue, message_id, delay_seconds=0).due_at is None
    queue.finish_one()
    assert queue.take() == ["blocked"]


def test_ready_message_stays_ready_for_a_past_time(queue: CheckedQueue) -> None:
    first, _ = queue.enqueue("1", "2")
    assert altered(queue, first, delay_seconds=0).due_at is None
    assert queue.take() == ["1", "2"]


@pytest.mark.promise("P21", "P22", "P39")
def test_ready_message_leaves_its_group_until_its_time(queue: CheckedQueue) -> None:
    first, _, _ = queue.enqueue("1", "2", "3", group_key="g")
    altered(queue, first, delay_seconds=60)
    assert queue.finish_next() == "2"
    queue.pass_seconds(61)
    queue.call("maintain")
    assert [queue.finish_next(), queue.finish_next()] == ["3", "1"]
    assert not any(queue.stored().values())


@pytest.mark.promise("P21", "P22")
def test_message_that_was_leased_keeps_its_slot(queue: CheckedQueue) -> None:
    first, _ = queue.enqueue("1", "2", group_key="g")
    queue.finish_one("retry_later", delay_seconds=0)
    altered(queue, first, delay_seconds=60)
    assert queue.take() == []
    queue.pass_seconds(61)
    assert [queue.finish_next(), queue.finish_next()] == ["1", "2"]
    assert not any(queue.stored().values())


@pytest.mark.promise("P21")
def test_message_that_waits_in_its_group_rejoins_it_when_due(queue: CheckedQueue) -> None:
    _, second, _ = queue.enqueue("1", "2", "3", group_key="g")
    altered(queue, second, delay_seconds=60)
    assert [queue.finish_next(), queue.finish_next()] == ["1", "3"]
    queue.pass_seconds(61)
    assert queue.finish_next() == "2"
    assert not any(queue.stored().values())


@pytest.mark.promise("P15", "P39")
def test_leased_message_is_not_changed(queue: CheckedQueue) -> None:
    [message_id] = queue.enqueue("held")
    claim = queue.dequeue_one().claim_id
    before = queue.message(message_id)
    row = alter(queue, message_id, body="new", priority=1, delay_seconds=5, expire_seconds=9)
    assert (row.outcome, row.due_at) == ("leased", None)
    assert queue.message(message_id) == before
    assert outcomes(queue.call("complete", claim_id=claim)) == {message_id: "completed"}


@pytest.mark.promise("P15")
@pytest.mark.parametrize(
    "time", [{"delay_seconds": 0}, {"run_at": datetime(2020, 1, 1, tzinfo=UTC)}]
)
def test_dead_message_takes_no_time(queue: CheckedQueue, time: dict[str, Any]) -> None:
    [message_id] = queue.make_dead("dead")
    before = queue.message(message_id)
    row = alter(queue, message_id, body="new", priority=1, **time)
    assert (row.outcome, row.due_at) == ("dead", None)
    assert queue.message(message_id) == before


@pytest.mark.promise("P39")
def test_dead_message_is_edited_and_tried_again(queue: CheckedQueue) -> None:
    [message_id] = queue.make_dead("broken", dedup_key="k")
    altered(queue, message_id, body="repaired", priority=0)
    queue.call("reset", message_ids=[message_id])
    row = queue.dequeue_one()
    assert (row.message_id, row.body, row.attempt) == (message_id, "repaired", 1)


@pytest.mark.parametrize("archive_days", [0, 1])
def test_unknown_message_is_not_found(queue: CheckedQueue, archive_days: int) -> None:
    queue.call("alter_queue", archive_days=archive_days)
    [message_id] = queue.enqueue("a")
    other = queue.another()
    queue.finish_one()
    for unknown in (message_id, message_id + 1, 0, -1, 2**63 - 1):
        assert alter(queue, unknown, body="x").outcome == "not_found"
    [elsewhere] = other.enqueue("a")
    assert alter(queue, elsewhere, body="x").outcome == "not_found"
    assert other.message(elsewhere).body == "a"


@pytest.mark.promise("P36", "P39")
@pytest.mark.parametrize(
    "arrange",
    [
        arrange
        for arrange in WAITING
        if arrange not in (test_cancel.dead, test_cancel.delayed, test_cancel.delayed_for_a_retry)
    ],
    ids=lambda arrange: arrange.__name__,
)
def test_alter_sets_an_expiry(queue: CheckedQueue, arrange: Callable[[CheckedQueue], int]) -> None:
    message_id = arrange(queue)
    altered(queue, message_id, expire_seconds=60)
    found = queue.message(message_id)
    assert abs(found.expires_at - datetime.now(UTC) - timedelta(seconds=60)) < timedelta(seconds=5)
    assert queue.call_one("maintain").expired == 0
    queue.pass_seconds(61)
    assert queue.call_one("maintain").expired == 1
    assert queue.state_of(message_id) is None


@pytest.mark.promise("P36", "P39")
@pytest.mark.parametrize("changes", [{}, {"priority": 2}, {"delay_seconds": 30}])
def test_alter_postpones_and_removes_an_expiry(
    queue: CheckedQueue, changes: dict[str, Any]
) -> None:
    later, never = queue.enqueue("later", "never", expire_seconds=60)
    altered(queue, later, expire_seconds=600, **changes)
    altered(queue, never, expire_seconds=0, **changes)
    assert queue.message(never).expires_at is None
    queue.pass_seconds(61)
    assert queue.call_one("maintain").expired == 0
    queue.pass_seconds(540)
    assert queue.call_one("maintain").expired == 1
    assert (queue.state_of(later), queue.take()) == (None, ["never"])
    queue.call("complete", claim_id=queue.call("list_claims")[0].claim_id)
    assert not any(queue.stored().values())


def test_expiry_stays_with_a_moved_message(queue: CheckedQueue) -> None:
    [message_id] = queue.enqueue("a", expire_seconds=60)
    altered(queue, message_id, priority=0)
    altered(queue, message_id, delay_seconds=300)
    queue.pass_seconds(61)
    assert queue.call_one("maintain").expired == 1


@pytest.mark.promise("P15")
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"body": "a", "body_binary": b"a"},
        {"message_type": "x" * 201},
        {"headers": []},
        {"priority": -1},
        {"priority": 10},
        {"delay_seconds": -1},
        {"delay_seconds": YEARS + 1},
        {"delay_seconds": 0, "run_at": datetime(2020, 1, 1, tzinfo=UTC)},
        {"run_at": datetime(2100, 1, 1, tzinfo=UTC)},
        {"max_attempts": -1},
        {"max_attempts": 10001},
        {"expire_seconds": -1},
        {"expire_seconds": 0.0009},
        {"expire_seconds": YEARS + 1},
    ],
    ids=str,
)
def test_alter_refuses_invalid_arguments(queue: CheckedQueue, changes: dict[str, Any]) -> None:
    [message_id] = queue.enqueue("a")
    before = queue.message(message_id)
    queue.refused("RQ711", "alter_message", message_id=message_id, **changes)
    assert queue.message(message_id) == before


@pytest.mark.promise("P15")
def test_alter_refuses_a_missing_id_and_a_long_body(queue: CheckedQueue) -> None:
    queue.refused("RQ711", "alter_message", message_id=None, body="a")
    queue.call("alter_queue", max_body_length=3)
    [message_id] = queue.enqueue("a")
    queue.refused("RQ711", "alter_message", message_id=message_id, body="1234")
    queue.refused("RQ711", "alter_message", message_id=message_id, body_binary=b"1234")
    altered(queue, message_id, body="123")


@pytest.mark.promise("P17")
def test_rolled_back_alter_changes_nothing(queue: CheckedQueue) -> None:
    first, second = queue.enqueue("1", "2", group_key="g")
    before = [queue.message(first), queue.message(second)]
    with rolled_back(queue.connection):
        altered(queue, first, body="x", delay_seconds=60)
        altered(queue, second, body="x", delay_seconds=60, priority=1)
    assert [queue.message(first), queue.message(second)] == before
    assert bodies(queue.dequeue(10)) == ["1"]
