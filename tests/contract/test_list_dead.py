"""list_dead."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.helpers.queues import CheckedQueue

NEWEST = 9223372036854775807


def listed(queue: CheckedQueue, **arguments: Any) -> list[int]:
    rows = queue.call("list_dead", **arguments)
    return [row.message_id for row in rows]


@pytest.mark.promise("P10")
def test_list_dead_returns_details_of_a_dead_message(queue: CheckedQueue) -> None:
    [message_id] = queue.make_dead("a", priority=2, message_type="type")
    row = queue.call_one("list_dead")
    assert (row.message_id, row.priority, row.attempt) == (message_id, 2, 1)
    assert (row.message_type, row.last_error) == ("type", "broken")
    assert row.enqueued_at <= row.died_at
    assert abs(row.died_at - datetime.now(UTC)) < timedelta(seconds=60)


@pytest.mark.promise("P10")
def test_list_dead_returns_only_dead_messages_of_the_queue(queue: CheckedQueue) -> None:
    other = queue.another()
    other.make_dead("other")
    queue.enqueue("leased")
    queue.dequeue_one()
    [dead] = queue.make_dead("dead")
    queue.enqueue("ready")
    assert listed(queue) == [dead]


@pytest.mark.promise("P10")
def test_list_dead_pages_by_id(queue: CheckedQueue) -> None:
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
    assert listed(queue, after_message_id=NEWEST) == []


@pytest.mark.promise("P10")
def test_list_dead_returns_100_messages_by_default(queue: CheckedQueue) -> None:
    queue.call("alter_queue", max_attempts=1)
    queue.call("enqueue_batch", messages=[{}] * 101)
    for _ in range(101):
        queue.finish_one("retry_later")
    assert len(listed(queue)) == 100
    assert len(listed(queue, max_messages=10000)) == 101


@pytest.mark.promise("P15")
@pytest.mark.parametrize("max_messages", [0, -1, 10001, None])
def test_list_dead_refuses_an_invalid_max_messages(
    queue: CheckedQueue, max_messages: int | None
) -> None:
    text = queue.refused("RQ711", "list_dead", max_messages=max_messages)
    assert "max_messages" in text


@pytest.mark.promise("P10")
def test_list_dead_pages_backwards_from_the_newest(
    queue: CheckedQueue,
) -> None:
    ids = queue.make_dead(*"abcde")
    newest_first = ids[::-1]
    assert listed(queue, before_message_id=NEWEST) == newest_first
    assert listed(queue, before_message_id=NEWEST, max_messages=2) == newest_first[:2]
    assert listed(queue, before_message_id=ids[3], max_messages=2) == [ids[2], ids[1]]
    assert listed(queue, before_message_id=ids[1]) == ids[:1]
    assert listed(queue, before_message_id=ids[0]) == []
    assert listed(queue, before_message_id=-1) == []
    assert listed(queue, before_message_id=None) == ids


@pytest.mark.promise("P10")
def test_list_dead_applies_both_bounds(queue: CheckedQueue) -> None:
    ids = queue.make_dead(*"abcde")
    bounds = {"after_message_id": ids[0], "before_message_id": ids[4]}
    assert listed(queue, **bounds) == [ids[3], ids[2], ids[1]]


@pytest.mark.promise("P10")
def test_list_dead_matches_a_type_exactly(queue: CheckedQueue) -> None:
    accented = "m\N{LATIN SMALL LETTER A WITH ACUTE}il"
    kinds = ["mail", "Mail", "mail ", None, accented, "mail", "mail"]
    ids = [queue.make_dead("x", message_type=kind)[0] for kind in kinds]
    mails = [ids[0], ids[5], ids[6]]
    assert listed(queue, message_type="mail") == mails
    assert listed(queue, message_type="mail", max_messages=2) == mails[:2]
    assert listed(queue, message_type="mail", after_message_id=ids[0]) == mails[1:]
    newest = listed(queue, message_type="mail", before_message_id=NEWEST, max_messages=2)
    assert newest == [ids[6], ids[5]]
    assert listed(queue, message_type="mail", before_message_id=ids[5]) == ids[:1]
    assert listed(queue, message_type="mail ") == [ids[2]]
    assert listed(queue, message_type="x" * 201) == []
    assert listed(queue, message_type=None) == ids


@pytest.mark.promise("P10")
def test_list_dead_backwards_returns_only_the_queues_messages(queue: CheckedQueue) -> None:
    other = queue.another()
    first = other.make_dead("a")
    own = queue.make_dead("b")
    last = other.make_dead("c")
    assert listed(queue, before_message_id=NEWEST) == own
    assert listed(other, before_message_id=NEWEST) == [*last, *first]
