"""unbind_topic."""

import pytest

from tests.helpers.queues import CheckedQueue
from tests.helpers.topics import bind, names, publish, word

__all__ = ["word"]

pytestmark = pytest.mark.requires("topics")


@pytest.mark.promise("P35")
def test_unbound_queue_keeps_received_messages(queue: CheckedQueue, word: str) -> None:
    bind(queue, word)
    publish(queue.connection, word, "before")
    row = queue.call_one("unbind_topic", topic_pattern=word)
    assert (row.queue_name, row.topic_pattern, row.outcome) == (queue.name, word, "unbound")
    assert publish(queue.connection, word, "after") == []
    assert queue.take() == ["before"]


@pytest.mark.promise("P35")
def test_unbind_topic_removes_only_this_pattern(queue: CheckedQueue, word: str) -> None:
    other = queue.another()
    bind(queue, f"{word}.*", f"{word}.a")
    bind(other, f"{word}.*")
    assert queue.call_one("unbind_topic", topic_pattern=f"{word}.*").outcome == "unbound"
    assert names(publish(queue.connection, f"{word}.a")) == sorted([queue.name, other.name])
    assert names(publish(queue.connection, f"{word}.b")) == [other.name]


@pytest.mark.promise("P35")
def test_unbind_topic_returns_not_bound(queue: CheckedQueue, word: str) -> None:
    bind(queue, f"{word}.*")
    for pattern in (word, f"{word}.#", f"{word}.a"):
        assert queue.call_one("unbind_topic", topic_pattern=pattern).outcome == "not_bound"
    assert len(queue.call("list_topics")) == 1
