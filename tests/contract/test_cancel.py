"""cancel: messages that no worker holds."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.helpers.calls import bodies, outcomes, rolled_back, transaction
from tests.helpers.queues import CheckedQueue


def cancel(queue: CheckedQueue, *ids: int) -> list[str]:
    rows = queue.call("cancel", message_ids=list(ids))
    assert [row.message_id for row in rows] == list(ids)
    return [row.outcome for row in rows]


def ready(queue: CheckedQueue) -> int:
    return queue.enqueue("ready")[0]


def delayed(queue: CheckedQueue) -> int:
    return queue.enqueue("delayed", delay_seconds=60)[0]


def retried(queue: CheckedQueue) -> int:
    [message_id] = queue.enqueue("retried")
    queue.finish_one("retry_later", delay_seconds=0)
    return message_id


def delayed_for_a_retry(queue: CheckedQueue) -> int:
    [message_id] = queue.enqueue("retried later")
    queue.finish_one("retry_later", delay_seconds=60)
    return message_id


def promoted(queue: CheckedQueue) -> int:
    [message_id] = queue.enqueue("promoted", delay_seconds=60, priority=3)
    queue.pass_seconds(61)
    assert queue.call_one("promote").promoted == 1
    return message_id


def released(queue: CheckedQueue) -> int:
    [message_id] = queue.enqueue("released")
    queue.finish_one("release")
    return message_id


def reaped(queue: CheckedQueue) -> int:
    [message_id] = queue.enqueue("reaped")
    queue.dequeue_one()
    queue.pass_seconds(100)
    assert queue.call_one("reap").reaped == 1
    return message_id


def dead(queue: CheckedQueue) -> int:
    return queue.make_dead("dead")[0]


def reset(queue: CheckedQueue) -> int:
    [message_id] = queue.make_dead("reset")
    queue.call("reset")
    return message_id


@pytest.mark.promise("P04", "P15")
@pytest.mark.parametrize("archive_days", [0, 1])
@pytest.mark.parametrize(
    "arrange",
    [ready, delayed, retried, delayed_for_a_retry, promoted, released, reaped, dead, reset],
    ids=lambda arrange: arrange.__name__,
)
def test_cancel_removes_a_message_that_is_not_leased(
    queue: CheckedQueue, arrange: Callable[[CheckedQueue], int], archive_days: int
) -> None:
    queue.call("alter_queue", archive_days=archive_days)
    message_id = arrange(queue)
    [other_id] = queue.enqueue("other")
    assert cancel(queue, message_id) == ["cancelled"]
    queue.pass_seconds(10000)
    queue.call("maintain")
    assert [row.message_id for row in queue.dequeue(10)] == [other_id]
    assert queue.state_of(message_id) == ("cancelled" if archive_days else None)
    assert cancel(queue, message_id) == ["not_found"]
    assert queue.counts() == (0, 0, 1, 0)


@pytest.mark.promise("P03", "P15")
def test_cancel_skips_a_leased_message(queue: CheckedQueue) -> None:
    [message_id] = queue.enqueue("leased")
    claim = queue.dequeue_one().claim_id
    assert cancel(queue, message_id) == ["leased"]
    done = queue.call("complete", claim_id=claim)
    assert outcomes(done) == {message_id: "completed"}


@pytest.mark.promise("P03", "P06")
@pytest.mark.requires("genuine")
def test_cancel_does_not_wait_for_an_open_dequeue(
    queue: CheckedQueue, elsewhere: CheckedQueue
) -> None:
    [message_id] = queue.enqueue("in an open dequeue")
    with transaction(elsewhere.connection):
        elsewhere.dequeue_one()
        assert cancel(queue, message_id) == ["leased"]
    assert queue.counts() == (0, 0, 1, 0)


@pytest.mark.promise("P15")
@pytest.mark.parametrize("archive_days", [0, 1])
def test_cancel_of_a_completed_message_returns_not_found(
    queue: CheckedQueue, archive_days: int
) -> None:
    queue.call("alter_queue", archive_days=archive_days)
    [message_id] = queue.enqueue("a")
    queue.finish_one()
    assert cancel(queue, message_id) == ["not_found"]
    queue.call("archive")
    assert cancel(queue, message_id) == ["not_found"]


@pytest.mark.promise("P15")
def test_cancel_returns_an_outcome_per_message(queue: CheckedQueue) -> None:
    first, second, third = queue.enqueue("a", "b", "c")
    queue.dequeue_one()
    outcomes = ["cancelled", "not_found", "leased", "cancelled"]
    assert cancel(queue, third, -1, first, second) == outcomes


@pytest.mark.promise("P12")
@pytest.mark.parametrize("delay_seconds", [0, 60])
def test_cancel_releases_the_dedup_key(queue: CheckedQueue, delay_seconds: float) -> None:
    [message_id] = queue.enqueue("a", dedup_key="key", delay_seconds=delay_seconds)
    cancel(queue, message_id)
    assert queue.call_one("enqueue", dedup_key="key").outcome == "enqueued"


@pytest.mark.promise("P12")
def test_cancel_of_a_dead_message_keeps_the_key_of_its_new_owner(queue: CheckedQueue) -> None:
    [dead_id] = queue.make_dead("dead", dedup_key="key")
    queue.enqueue("newer", dedup_key="key")
    assert cancel(queue, dead_id) == ["cancelled"]
    assert queue.call_one("enqueue", dedup_key="key").outcome == "duplicate"


@pytest.mark.promise("P15")
def test_cancel_of_another_queues_message_returns_not_found(queue: CheckedQueue) -> None:
    other = queue.another()
    [message_id] = queue.enqueue("a")
    assert cancel(other, message_id) == ["not_found"]
    assert queue.dequeue_one().body == "a"


@pytest.mark.slow("10,000 messages")
@pytest.mark.promise("P15")
def test_cancel_removes_10000_messages_in_one_call(queue: CheckedQueue) -> None:
    messages = [{"delay_seconds": number % 2 * 60} for number in range(10000)]
    rows = queue.call("enqueue_batch", messages=messages)
    ids = [row.message_id for row in rows]
    assert cancel(queue, *ids) == ["cancelled"] * 10000
    assert sum(queue.stored().values()) == 0


@pytest.mark.promise("P17")
def test_rolled_back_cancel_changes_nothing(queue: CheckedQueue) -> None:
    ids = queue.enqueue("a", "b")
    with rolled_back(queue.connection):
        assert cancel(queue, *ids) == ["cancelled", "cancelled"]
    assert bodies(queue.dequeue(2)) == ["a", "b"]


@pytest.mark.promise("P15")
def test_cancel_accepts_an_empty_list_and_a_repeated_id(queue: CheckedQueue) -> None:
    [message_id] = queue.enqueue("a")
    assert cancel(queue) == []
    assert "cancelled" in cancel(queue, message_id, message_id)
    assert cancel(queue, message_id) == ["not_found"]


@pytest.mark.promise("P15")
@pytest.mark.parametrize(
    "message_ids", [None, [None], [[1, 2], [3, 4]], [1] * 10001], ids=lambda ids: len(ids or [])
)
def test_cancel_refuses_an_invalid_list(queue: CheckedQueue, message_ids: list[Any] | None) -> None:
    queue.enqueue("a")
    text = queue.refused("RQ711", "cancel", message_ids=message_ids)
    assert "message_ids" in text
    assert queue.counts() == (1, 0, 0, 0)
