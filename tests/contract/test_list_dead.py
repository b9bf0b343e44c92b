"""list_dead."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.helpers.queues import CheckedQueue


def listed(queue: CheckedQueue, **arguments: int | None) -> list[int]:
    rows = queue.call("list_dead", **arguments)
    return [row.message_id for row in rows]


@pytest.mark.promise("P10")
def test_a_dead_message_is_listed_with_what_is_known_of_its_end(queue: CheckedQueue) -> None:
    [message_id] = queue.make_dead("a", priority=2, message_type="type")
    row = queue.call_one("list_dead")
    assert (row.message_id, row.priority, row.attempt) == (message_id, 2, 1)
    assert (row.message_type, row.last_error) == ("type", "broken")
    assert row.enqueued_at <= row.died_at
    assert abs(row.died_at - datetime.now(UTC)) < timedelta(seconds=60)


@pytest.mark.promise("P10")
def test_only_dead_messages_of_the_queue_are_listed(queue: CheckedQueue) -> None:
    other = queue.another()
    other.make_dead("other")
    queue.enqueue("leased")
    queue.dequeue_one()
    [dead] = queue.make_dead("dead")
    queue.enqueue("ready")
    assert listed(queue) == [dead]


@pytest.mark.promise("P10")
def test_pages_follow_the_order_of_the_ids(queue: CheckedQueue) -> None:
    first, second = queue.enqueue("dies last", "dies first")
    claims = {row.message_id: row.claim_id for row in (queue.dequeue_one() for _ in "ab")}
    for message_id in (second, first):
        queue.call("fail_now", claim_id=claims[message_id])
    ids = [first, second, *queue.make_dead("c", "d", "e")]
    assert listed(queue) == ids
    assert listed(queue, after_message_id=None) == ids
    assert listed(queue, max_messages=2) == ids[:2]
    assert listed(queue, max_messages=2, after_message_id=ids[1]) == ids[2:4]
    assert listed(queue, max_messages=2, after_message_id=ids[3]) == ids[4:]
    assert listed(queue, after_message_id=ids[4]) == []
    assert listed(queue, after_message_id=9223372036854775807) == []


@pytest.mark.promise("P10")
def test_a_hundred_are_listed_unless_more_are_asked_for(queue: CheckedQueue) -> None:
    queue.call("alter_queue", max_attempts=1)
    queue.call("enqueue_batch", messages=[{}] * 101)
    for _ in range(101):
        queue.finish_one("retry_later")
    assert len(listed(queue)) == 100
    assert len(listed(queue, max_messages=10000)) == 101


@pytest.mark.promise("P15")
@pytest.mark.parametrize("max_messages", [0, -1, 10001, None])
def test_a_number_out_of_range_is_refused(queue: CheckedQueue, max_messages: int | None) -> None:
    text = queue.refused("RQ711", "list_dead", max_messages=max_messages)
    assert "max_messages" in text
