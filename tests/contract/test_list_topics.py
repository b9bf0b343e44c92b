"""list_topics."""

import pytest

from tests.helpers.calls import call
from tests.helpers.queues import CheckedQueue
from tests.helpers.topics import bind, word

__all__ = ["word"]

pytestmark = pytest.mark.requires("topics")


@pytest.mark.promise("P35")
def test_list_topics_returns_patterns_in_order(queue: CheckedQueue, word: str) -> None:
    other = queue.another()
    assert queue.call("list_topics") == []
    bind(other, f"{word}.a")
    bind(queue, f"{word}.b", f"{word}.B", f"{word}.#")
    own = [(queue.name, f"{word}.{rest}") for rest in ("#", "B", "b")]
    listed = [(row.queue_name, row.topic_pattern) for row in queue.call("list_topics")]
    assert listed == own
    everything = [
        (row.queue_name, row.topic_pattern) for row in call(queue.connection, "list_topics")
    ]
    assert [row for row in everything if word in row[1]] == [*own, (other.name, f"{word}.a")]
