"""bind_topic."""

import pytest

from tests.helpers.calls import rolled_back
from tests.helpers.queues import CheckedQueue
from tests.helpers.together import together
from tests.helpers.topics import bind, names, publish, word

__all__ = ["word"]

pytestmark = pytest.mark.requires("topics")

BAD_PATTERNS = [
    None, "", ".", "a.", ".a", "a..b", "a b", "a.b ", "a.b\n", "#.a", "a.#.b", "a#", "##", "a.##",
    "a*", "*a", "a.**", "a,b", "a/b", "a%", "a!b", "a\\b", "é", "\N{KELVIN SIGN}",
    "\N{LATIN SMALL LETTER LONG S}", "x" * 201, "a." * 100 + "b", "\N{SNAKE}",
]  # fmt: skip
GOOD_PATTERNS = [
    "a", "A-z_0.9", "-", "_", "*", "#", "*.#", "*.*", "a.*.c", "a.#", "a.*.#", "x" * 200,
    "a." * 99 + "bc", "*." * 99 + "#",
]  # fmt: skip


@pytest.mark.promise("P35")
def test_bind_topic_binds_once(queue: CheckedQueue, word: str) -> None:
    row = queue.call_one("bind_topic", topic_pattern=f"{word}.*")
    assert (row.queue_name, row.topic_pattern, row.outcome) == (queue.name, f"{word}.*", "bound")
    assert bind(queue, f"{word}.*", f"{word}.#") == ["exists", "bound"]
    assert names(publish(queue.connection, f"{word}.a")) == [queue.name]


@pytest.mark.promise("P35")
def test_patterns_are_case_sensitive(queue: CheckedQueue, word: str) -> None:
    assert bind(queue, f"{word}.a", f"{word}.A") == ["bound", "bound"]
    patterns = [row.topic_pattern for row in queue.call("list_topics")]
    assert sorted(patterns) == sorted([f"{word}.a", f"{word}.A"])


@pytest.mark.promise("P15")
@together("pattern", BAD_PATTERNS)
def test_bind_topic_refuses_an_invalid_pattern(queue: CheckedQueue, pattern: str | None) -> None:
    assert "topic_pattern" in queue.refused("RQ711", "bind_topic", topic_pattern=pattern)
    queue.refused("RQ711", "unbind_topic", topic_pattern=pattern)
    assert queue.call("list_topics") == []


@pytest.mark.promise("P35")
@together("pattern", GOOD_PATTERNS)
def test_list_topics_returns_patterns_unchanged(queue: CheckedQueue, pattern: str) -> None:
    # Roll back, because other tests publish in the same database.
    with rolled_back(queue.connection):
        assert bind(queue, pattern) == ["bound"]
        assert [row.topic_pattern for row in queue.call("list_topics")] == [pattern]


@pytest.mark.promise("P35")
def test_new_queue_of_the_same_name_has_no_bindings(queue: CheckedQueue, word: str) -> None:
    bind(queue, word)
    queue.call("drop_queue")
    assert publish(queue.connection, word) == []
    queue.call("create_queue")
    assert queue.call("list_topics") == []
    assert publish(queue.connection, word) == []
    assert bind(queue, word) == ["bound"]
