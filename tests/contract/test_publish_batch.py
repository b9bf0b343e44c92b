"""publish_batch."""

import base64
from typing import Any

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import Row, call, refused
from tests.helpers.queues import CheckedQueue
from tests.helpers.together import together
from tests.helpers.topics import bind, word

__all__ = ["word"]

pytestmark = pytest.mark.requires("topics")


def batch(queue: CheckedQueue, *messages: dict[str, Any]) -> list[Row]:
    return call(queue.connection, "publish_batch", messages=list(messages))


@pytest.mark.promise("P35", "P05")
def test_batch_goes_to_the_bound_queues_in_order(queue: CheckedQueue, word: str) -> None:
    other = queue.another()
    bind(queue, f"{word}.#", f"{word}.a")
    bind(other, f"{word}.a")
    rows = batch(
        queue,
        {"topic": f"{word}.a", "body": "1"},
        {"topic": f"no.{word}", "body": "2"},
        {"topic": f"{word}.b", "body": "3"},
        {"topic": f"{word}.a", "body": "4"},
    )
    assert [(row.queue_name, row.position) for row in rows] == [
        *((queue.name, position) for position in (1, 3, 4)),
        *((other.name, position) for position in (1, 4)),
    ]
    assert {row.outcome for row in rows} == {"enqueued"}
    for each, bodies in ((queue, ["1", "3", "4"]), (other, ["1", "4"])):
        leased = each.dequeue(10)
        assert [row.body for row in leased] == bodies
        own = [row.message_id for row in rows if row.queue_name == each.name]
        assert [row.message_id for row in leased] == own


@pytest.mark.promise("P20", "P35")
def test_published_batch_message_has_all_keys(queue: CheckedQueue, word: str) -> None:
    bind(queue, word)
    values = {"message_type": "greeting", "headers": {"a": [1, None]}, "priority": 3}
    values["producer_name"] = "shop"
    rows = batch(
        queue,
        {"topic": word, "body": "x", "dedup_key": "key", "max_attempts": 7, **values},
        {"topic": word, "body": {"a": [1.5, None]}, "message_type": None, "group_key": "group"},
        {"topic": word, "body_base64": base64.b64encode(b"\0\xff").decode()},
    )
    first, second, third = (queue.message(row.message_id) for row in rows)
    assert (first.body, first.message_type, first.headers) == ("x", "greeting", {"a": [1, None]})
    assert (first.priority, first.dedup_key, first.max_attempts) == (3, "key", 7)
    assert (first.producer_name, second.producer_name) == ("shop", None)
    assert (second.message_type, second.group_key) == (word, "group")
    assert second.body.replace(" ", "") == '{"a":[1.5,null]}'
    assert (third.message_type, third.body, third.body_binary) == (word, None, b"\0\xff")


@pytest.mark.promise("P12", "P21", "P35")
def test_keys_apply_per_queue(queue: CheckedQueue, word: str) -> None:
    other = queue.another()
    bind(queue, f"{word}.#")
    bind(other, f"{word}.b")
    rows = batch(
        queue,
        {"topic": f"{word}.a", "body": "1", "dedup_key": "key", "group_key": "g"},
        {"topic": f"{word}.b", "body": "2", "dedup_key": "key", "group_key": "g"},
        {"topic": f"{word}.b", "body": "3", "group_key": "g"},
    )
    assert [row.outcome for row in rows] == [
        *("enqueued", "duplicate", "enqueued"),
        *("enqueued", "enqueued"),
    ]
    assert rows[1].message_id == rows[0].message_id
    assert [queue.take(), other.take()] == [["1"], ["2"]]


@pytest.mark.promise("P11", "P35")
def test_published_batch_messages_may_be_delayed(queue: CheckedQueue, word: str) -> None:
    bind(queue, word)
    batch(queue, {"topic": word, "delay_seconds": 5}, {"topic": word, "run_at": "2000-01-01T00:00"})
    assert queue.counts()[:2] == (1, 1)


@pytest.mark.promise("P35")
def test_batch_may_be_empty_or_unbound(queue: CheckedQueue, word: str) -> None:
    assert batch(queue) == []
    assert batch(queue, {"topic": word}) == []


BAD = [
    ({}, "topic is required"),
    ({"topic": None}, "topic is required"),
    ({"topic": 5}, "topic must be a JSON string"),
    ({"topic": "a.*"}, "topic must be words"),
    ({"topic": "x" * 201}, "topic must be at most 200"),
    ({"predecessor_ids": [1]}, "predecessor"),
    ({"predecessor_positions": [1]}, "predecessor"),
    ({"on_predecessor_dead": "hold"}, "predecessor"),
    ({"bdoy": "x"}, "bdoy"),
    ({"priority": 10}, "priority"),
    ({"delay_seconds": "soon"}, "delay_seconds"),
    ({"run_at": "never"}, "run_at"),
    ({"body": "x", "body_base64": "AAA="}, "body"),
    ({"dedup_key": ""}, "dedup_key"),
]


@pytest.mark.promise("P15", "P35")
@pytest.mark.parametrize("is_bound", [True, False])
@together(("invalid", "error"), BAD)
def test_publish_batch_refuses_an_invalid_message_by_position(
    queue: CheckedQueue, word: str, invalid: dict[str, Any], error: str, *, is_bound: bool
) -> None:
    if is_bound:
        bind(queue, word)
    bind(queue, f"{word}.first")
    messages = [
        {"topic": f"{word}.other"},
        {"topic": f"{word}.first"},
        {"topic": word} | invalid if invalid else {},
    ]
    text = refused(queue.connection, "RQ711", "publish_batch", messages=messages)
    assert error in text
    assert "(message 3)" in text
    assert queue.stored()["message"] == 0


@pytest.mark.promise("P15", "P35")
@pytest.mark.parametrize(
    "messages", [None, {}, "x", 5, [5], [None], [[]], [{"topic": "a"}] * 10_001], ids=type
)
def test_publish_batch_refuses_anything_but_objects(connection: Connection, messages: Any) -> None:
    refused(connection, "RQ711", "publish_batch", messages=messages)


@pytest.mark.promise("P15", "P35")
def test_body_too_long_for_one_queue_is_refused_by_position(queue: CheckedQueue, word: str) -> None:
    other = queue.another(max_body_length=3)
    bind(queue, f"{word}.#")
    bind(other, f"{word}.short")
    messages = [
        {"topic": f"{word}.long", "body": "abcd"},
        {"topic": f"{word}.short", "body": "abc"},
        {"topic": f"{word}.short", "body": "abcd"},
    ]
    assert len(batch(queue, *messages[:2])) == 3
    text = refused(queue.connection, "RQ711", "publish_batch", messages=messages)
    assert "max_body_length" in text
    assert "(message 3)" in text
    assert queue.counts()[0] == 2
    assert other.counts()[0] == 1


@pytest.mark.slow("thousands of messages", on="mariadb", ci="mariadb")
@pytest.mark.promise("P35")
def test_publish_10000_messages_of_1000_topics(queue: CheckedQueue, word: str) -> None:
    other = queue.another()
    bind(queue, f"{word}.#")
    bind(other, f"{word}.7.*", f"{word}.*.x")
    numbers = range(10_000)
    messages = [{"topic": f"{word}.{each % 1000}.x", "body": str(each)} for each in numbers]
    rows = batch(queue, *messages)
    assert [row.position for row in rows] == [*range(1, 10_001), *range(1, 10_001)]
    assert queue.counts()[0] == other.counts()[0] == 10_000
    assert [row.body for row in queue.dequeue(1000)] == [*map(str, range(1000))]
