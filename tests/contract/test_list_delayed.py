"""list_delayed."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.helpers.queues import CheckedQueue


def listed(queue: CheckedQueue, **arguments: Any) -> list[int]:
    return [row.message_id for row in queue.call("list_delayed", **arguments)]


def pages(queue: CheckedQueue, size: int) -> list[list[int]]:
    """Return the ids of each page, up to the first that is not full."""
    found: list[list[int]] = []
    start: dict[str, Any] = {}
    while not found or len(found[-1]) == size:
        rows = queue.call("list_delayed", max_messages=size, **start)
        found.append([row.message_id for row in rows])
        if rows:
            start = {"after_due_at": rows[-1].due_at, "after_message_id": rows[-1].message_id}
    return found


@pytest.mark.promise("P11")
def test_list_delayed_returns_details_of_a_delayed_message(queue: CheckedQueue) -> None:
    run_at = datetime.now(UTC).replace(microsecond=123456) + timedelta(hours=1)
    [message_id] = queue.enqueue("a", run_at=run_at, priority=2, message_type="type")
    row = queue.call_one("list_delayed")
    assert (row.message_id, row.priority, row.attempt) == (message_id, 2, 0)
    assert (row.message_type, row.last_error, row.due_at) == ("type", None, run_at)


@pytest.mark.promise("P10")
def test_list_delayed_returns_the_error_of_a_retried_message(queue: CheckedQueue) -> None:
    queue.enqueue("a")
    done = queue.finish_one("retry_later", delay_seconds=1000, error="broken")
    row = queue.call_one("list_delayed")
    assert (row.message_id, row.attempt, row.last_error) == (done.message_id, 1, "broken")
    assert row.due_at == done.due_at


@pytest.mark.promise("P11")
def test_list_delayed_returns_only_delayed_messages_of_the_queue(queue: CheckedQueue) -> None:
    queue.another().enqueue("other", delay_seconds=1000)
    queue.make_dead("dead")
    queue.enqueue("leased")
    queue.dequeue_one()
    queue.enqueue("ready")
    assert listed(queue) == []
    [delayed] = queue.enqueue("delayed", delay_seconds=1000)
    assert listed(queue) == [delayed]


@pytest.mark.promise("P11")
def test_list_delayed_returns_a_due_message_until_it_is_promoted(queue: CheckedQueue) -> None:
    [message_id] = queue.enqueue("a", delay_seconds=500)
    queue.pass_seconds(1000)
    row = queue.call_one("list_delayed")
    assert row.message_id == message_id
    assert row.due_at < datetime.now(UTC)
    queue.call("promote")
    assert listed(queue) == []


@pytest.mark.promise("P11")
def test_list_delayed_pages_by_time_and_id(queue: CheckedQueue) -> None:
    noon = datetime.now(UTC) + timedelta(hours=1)
    later = noon + timedelta(microseconds=1)
    times = [later, noon, noon + timedelta(hours=1), noon, noon, later, noon]
    ids = [queue.enqueue("x", run_at=run_at)[0] for run_at in times]
    wanted = [ids[position] for position in (1, 3, 4, 6, 0, 5, 2)]
    assert listed(queue) == wanted
    assert listed(queue, after_due_at=None, after_message_id=None) == wanted
    assert listed(queue, after_message_id=0) == wanted
    for size in (1, 2, 3, 7):
        assert [one for page in pages(queue, size) for one in page] == wanted
    assert listed(queue, after_due_at=noon) == wanted
    assert listed(queue, after_due_at=noon, after_message_id=9223372036854775807) == wanted[4:]
    assert listed(queue, after_due_at=datetime(1999, 1, 1, tzinfo=UTC)) == wanted
    assert listed(queue, after_due_at=datetime(9998, 1, 1, tzinfo=UTC)) == []
    assert listed(queue, after_due_at=datetime.max.replace(tzinfo=UTC)) == []


@pytest.mark.promise("P11")
def test_list_delayed_pages_while_messages_change(queue: CheckedQueue) -> None:
    ids = [queue.enqueue("x", delay_seconds=1000 + number)[0] for number in range(4)]
    first, second = queue.call("list_delayed", max_messages=2)
    queue.call("cancel", message_ids=[second.message_id])
    queue.enqueue("sooner", delay_seconds=10)
    start = {"after_due_at": second.due_at, "after_message_id": second.message_id}
    assert first.message_id == ids[0]
    assert listed(queue, **start) == ids[2:]


@pytest.mark.promise("P11")
def test_list_delayed_returns_100_messages_by_default(queue: CheckedQueue) -> None:
    queue.call("enqueue_batch", messages=[{"delay_seconds": 1000}] * 101)
    assert len(listed(queue)) == 100
    assert len(listed(queue, max_messages=10000)) == 101


@pytest.mark.promise("P15")
@pytest.mark.parametrize("max_messages", [0, -1, 10001, None])
def test_list_delayed_refuses_an_invalid_max_messages(
    queue: CheckedQueue, max_messages: int | None
) -> None:
    text = queue.refused("RQ711", "list_delayed", max_messages=max_messages)
    assert "max_messages" in text


@pytest.mark.promise("P15")
@pytest.mark.parametrize("message_id", [1, -1])
def test_list_delayed_refuses_after_message_id_alone(queue: CheckedQueue, message_id: int) -> None:
    text = queue.refused("RQ711", "list_delayed", after_message_id=message_id)
    assert "after_due_at" in text
