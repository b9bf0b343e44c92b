"""peek."""

import pytest

from tests.helpers.calls import Row, bodies, transaction
from tests.helpers.queues import CheckedQueue


def peek(queue: CheckedQueue, max_messages: int = 1000) -> list[Row]:
    return queue.call("peek", max_messages=max_messages)


@pytest.mark.promise("P05")
def test_peek_returns_messages_in_delivery_order(queue: CheckedQueue) -> None:
    for priority in (5, 0, 9, 5, 0):
        queue.enqueue(f"{priority}", priority=priority)
    queue.enqueue("delayed", delay_seconds=60)
    shown = peek(queue)
    assert [(row.body, row.priority) for row in shown] == [
        ("0", 0),
        ("0", 0),
        ("5", 5),
        ("5", 5),
        ("9", 9),
    ]
    assert [row.message_id for row in queue.dequeue(10)] == [row.message_id for row in shown]


@pytest.mark.promise("P05")
def test_peek_changes_no_message(queue: CheckedQueue) -> None:
    queue.enqueue("a", "b")
    for _ in range(3):
        assert bodies(peek(queue)) == ["a", "b"]
    assert queue.counts() == (2, 0, 0, 0)
    assert {row.attempt for row in queue.dequeue(2)} == {1}


@pytest.mark.promise("P05")
def test_peek_returns_one_message_by_default(queue: CheckedQueue) -> None:
    queue.enqueue("a", "b", "c")
    assert bodies(queue.call("peek")) == ["a"]
    assert bodies(peek(queue, 2)) == ["a", "b"]


@pytest.mark.promise("P20")
def test_peek_returns_all_columns_of_a_message(queue: CheckedQueue) -> None:
    [message_id] = queue.enqueue("🐘", headers={"a": 1}, message_type="type")
    queue.call_one("enqueue", body_binary=b"\x00\xff", priority=6)
    queue.finish_one("retry_later", delay_seconds=0, error="broken")
    text, binary = peek(queue)
    assert (text.message_id, text.attempt, text.last_error) == (message_id, 1, "broken")
    assert (text.body, text.headers, text.message_type) == ("🐘", {"a": 1}, "type")
    # A server clock may stand still for 16 milliseconds.
    assert text.enqueued_at <= binary.enqueued_at
    assert (binary.body, bytes(binary.body_binary)) == (None, b"\x00\xff")
    assert (binary.attempt, binary.last_error) == (0, None)


@pytest.mark.promise("P06")
def test_peek_does_not_wait_for_an_open_dequeue(
    queue: CheckedQueue, elsewhere: CheckedQueue
) -> None:
    queue.enqueue("held", "free")
    with transaction(elsewhere.connection):
        elsewhere.dequeue_one()
        assert "free" in bodies(peek(queue))
    assert bodies(peek(queue)) == ["free"]


@pytest.mark.promise("P05")
def test_peek_into_an_empty_queue_returns_no_rows(queue: CheckedQueue) -> None:
    assert peek(queue) == []


@pytest.mark.promise("P15")
@pytest.mark.parametrize("max_messages", [0, -1, 1001, None, 2147483647])
def test_max_messages_out_of_range_is_refused(
    queue: CheckedQueue, max_messages: int | None
) -> None:
    text = queue.refused("RQ711", "peek", max_messages=max_messages)
    assert "max_messages" in text
