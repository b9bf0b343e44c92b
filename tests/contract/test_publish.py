"""publish."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.contract.test_bind_topic import BAD_PATTERNS
from tests.engines.base import Connection
from tests.helpers.calls import refused
from tests.helpers.queues import CheckedQueue
from tests.helpers.together import together
from tests.helpers.topics import bind, names, publish, word

__all__ = ["word"]

pytestmark = pytest.mark.requires("topics")

BAD_ARGUMENTS: list[dict[str, Any]] = [
    {"priority": 10},
    {"delay_seconds": -1},
    {"delay_seconds": 1, "run_at": datetime(2030, 1, 1, tzinfo=UTC)},
    {"body": "x", "body_binary": b"x"},
    {"message_type": "x" * 201},
    {"headers": []},
    {"dedup_key": ""},
    {"group_key": "x" * 201},
    {"max_attempts": -1},
]


@pytest.mark.promise("P35")
def test_publish_enqueues_once_per_bound_queue_by_name(queue: CheckedQueue, word: str) -> None:
    other = queue.another()
    for each in (other, queue):
        bind(each, f"{word}.*", f"{word}.#", f"{word}.a")
    rows = publish(queue.connection, f"{word}.a", "hello")
    assert names(rows) == sorted([queue.name, other.name])
    assert {row.outcome for row in rows} == {"enqueued"}
    for each in (queue, other):
        [leased] = each.dequeue(10)
        assert leased.body == "hello"
        assert (each.name, leased.message_id) in [(row.queue_name, row.message_id) for row in rows]


@pytest.mark.promise("P35")
def test_publish_without_bound_queue_enqueues_nothing(queue: CheckedQueue, word: str) -> None:
    bind(queue, f"{word}.b", f"{word}.*.a")
    assert publish(queue.connection, f"{word}.a") == []
    assert queue.stored()["message"] == 0


@pytest.mark.promise("P35", "P20")
def test_published_message_has_all_arguments(queue: CheckedQueue, word: str) -> None:
    bind(queue, word)
    [row] = publish(
        queue.connection, word, "hello", message_type="greeting", headers={"a": [1, None]},
        priority=3, dedup_key="key", max_attempts=7, group_key="group", producer_name="shop",
    )  # fmt: skip
    found = queue.message(row.message_id)
    assert (found.body, found.message_type) == ("hello", "greeting")
    assert found.headers == {"a": [1, None]}
    assert (found.priority, found.dedup_key, found.max_attempts) == (3, "key", 7)
    assert (found.group_key, found.producer_name) == ("group", "shop")


@pytest.mark.promise("P35")
def test_message_type_defaults_to_the_topic(queue: CheckedQueue, word: str) -> None:
    bind(queue, f"{word}.#")
    publish(queue.connection, f"{word}.created")
    assert queue.dequeue_one().message_type == f"{word}.created"


@pytest.mark.promise("P20", "P35")
def test_published_body_may_be_binary_or_null(queue: CheckedQueue, word: str) -> None:
    bind(queue, word)
    publish(queue.connection, word, body=None, body_binary=b"\0\xff")
    publish(queue.connection, word, body=None)
    first, second = queue.dequeue(2)
    assert (first.body, first.body_binary) == (None, b"\0\xff")
    assert (second.body, second.body_binary) == (None, None)


@pytest.mark.promise("P11", "P35")
def test_published_message_may_be_delayed(queue: CheckedQueue, word: str) -> None:
    bind(queue, word)
    publish(queue.connection, word, "later", delay_seconds=5)
    publish(queue.connection, word, "then", run_at=datetime.now(UTC) + timedelta(seconds=50))
    assert queue.counts()[:2] == (0, 2)
    queue.pass_seconds(6)
    queue.call("maintain")
    assert queue.take() == ["later"]


@pytest.mark.promise("P12", "P35")
def test_dedup_key_applies_per_queue(queue: CheckedQueue, word: str) -> None:
    other = queue.another()
    bind(queue, word)
    [first] = publish(queue.connection, word, dedup_key="key")
    bind(other, word)
    rows = {row.queue_name: row for row in publish(queue.connection, word, dedup_key="key")}
    assert (rows[queue.name].outcome, rows[other.name].outcome) == ("duplicate", "enqueued")
    assert rows[queue.name].message_id == first.message_id
    assert len(queue.dequeue(9)) == len(other.dequeue(9)) == 1


@pytest.mark.promise("P21", "P22", "P35")
def test_group_keeps_its_order_in_each_queue(queue: CheckedQueue, word: str) -> None:
    other = queue.another()
    for each in (queue, other):
        bind(each, word)
    for body in ("1", "2"):
        publish(queue.connection, word, body, group_key="group")
    assert queue.take() == ["1"]
    assert [other.finish_next(), other.finish_next()] == ["1", "2"]
    assert queue.take() == []


@pytest.mark.promise("P15")
@together("topic", [*BAD_PATTERNS, "*", "#", "a.*", "a.#"])
def test_publish_refuses_an_invalid_topic(connection: Connection, topic: str | None) -> None:
    assert "topic" in refused(connection, "RQ711", "publish", topic=topic)


@pytest.mark.promise("P15")
@pytest.mark.parametrize("is_bound", [True, False])
@together("arguments", BAD_ARGUMENTS)
def test_publish_refuses_invalid_arguments(
    queue: CheckedQueue, word: str, arguments: dict[str, Any], *, is_bound: bool
) -> None:
    if is_bound:
        bind(queue, word)
    refused(queue.connection, "RQ711", "publish", topic=word, **arguments)
    assert queue.stored()["message"] == 0


@pytest.mark.promise("P15", "P35")
def test_body_too_long_for_one_queue_goes_to_none(queue: CheckedQueue, word: str) -> None:
    other = queue.another(max_body_length=3)
    for each in (queue, other):
        bind(each, word)
    assert len(publish(queue.connection, word, "abc")) == 2
    refused(queue.connection, "RQ711", "publish", topic=word, body="abcd")
    refused(queue.connection, "RQ711", "publish", topic=word, body_binary=b"abcd")
    assert queue.counts()[0] == other.counts()[0] == 1


@pytest.mark.promise("P18", "P35")
def test_paused_queue_receives_published_messages(queue: CheckedQueue, word: str) -> None:
    bind(queue, word)
    queue.call("pause_queue")
    assert names(publish(queue.connection, word)) == [queue.name]
    assert queue.dequeue() == []
    queue.call("resume_queue")
    assert len(queue.dequeue()) == 1
