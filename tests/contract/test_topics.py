"""Matching of topics and patterns."""

from collections.abc import Iterator

import pytest

from tests.dice import dice, limit, times
from tests.engines.base import Connection
from tests.helpers.calls import call
from tests.helpers.dialects import dialect_of, matching_dialect_of
from tests.helpers.queues import CheckedQueue, new_queue
from tests.helpers.topics import bind, matches, names, publish, word

__all__ = ["word"]

pytestmark = pytest.mark.requires("topics")

TOPICS_AT_ONCE = 2000
FIRST = ["#", "*", "*.*", "*.#", "a.#", "a_b.*", *["a.b"] * 24]
WORDS = ["a", "b", "A", "ab", "a_b", "axb", "a-b", "_", "-", "1"]

CASES = [
    ("w", ["w"], ["w.a", "W", "ww", "a.w"]),
    ("w.a", ["w.a"], ["w", "w.A", "w.ab", "w.a.b", "a.w"]),
    ("w.*", ["w.a", "w._", "w.-"], ["w", "w.a.b", "a.w", "ww.a"]),
    ("w.*.c", ["w.a.c", "w.c.c"], ["w.c", "w.a.b.c", "w.a.cc", "w.a.c.d", "w.a.b"]),
    ("w.*.*", ["w.a.b"], ["w.a", "w.a.b.c", "w"]),
    ("w.a_b", ["w.a_b"], ["w.axb", "w.a-b", "w.ab"]),
    ("w.*.a_b", ["w.x.a_b"], ["w.x.axb", "w.x.a-b"]),
    ("w.#", ["w", "w.a", "w.a.b.c.d"], ["ww", "a.w", "ww.a"]),
    ("w.a.#", ["w.a", "w.a.b", "w.a.b.c"], ["w", "w.b", "w.ab"]),
    ("w.*.#", ["w.a", "w.a.b", "w.a.b.c"], ["w"]),
    ("w.*.c.#", ["w.a.c", "w.a.c.d", "w.c.c"], ["w.a", "w.a.b.c", "w.a.b", "w.c"]),
]


@pytest.mark.promise("P35")
@pytest.mark.parametrize(("pattern", "good", "bad"), CASES)
def test_pattern_matches_only_its_topics(
    queue: CheckedQueue, word: str, pattern: str, good: list[str], bad: list[str]
) -> None:
    bind(queue, pattern.replace("w", word))
    for topic in good:
        assert names(publish(queue.connection, topic.replace("w", word))) == [queue.name], topic
    for topic in bad:
        other = topic.replace("W", word.upper()).replace("w", word)
        assert publish(queue.connection, other) == [], topic
    assert all(matches(pattern, topic) for topic in good)
    assert not any(matches(pattern, topic) for topic in bad)


@pytest.mark.promise("P35")
def test_words_of_any_length_are_compared(queue: CheckedQueue, word: str) -> None:
    rest = "x" * (200 - len(word) - 1)
    bind(queue, f"{word}.*", f"{word}.{rest}")
    assert len(publish(queue.connection, f"{word}.{rest}")) == 1
    words = ".".join([word, *"a" * ((200 - len(word)) // 2)])
    bind(queue, f"{word}.a.*.#")
    assert len(publish(queue.connection, words)) == 1
    assert publish(queue.connection, f"{word}.b.a") == []


@pytest.fixture
def bound(connection: Connection, queue_name: str) -> Iterator[dict[str, list[str]]]:
    """Bind queues to random patterns; return the patterns by queue."""
    draw = dice("patterns")
    patterns = {f"{queue_name[:80]} {number}": [first] for number, first in enumerate(FIRST)}
    for name, own in patterns.items():
        for _ in range(4):
            words = [draw.choice([*WORDS[:6], "*", "*"]) for _ in range(draw.randint(1, 5))]
            own.append(".".join([*words, *draw.choice([[], [], ["#"]])]))
        bind(new_queue(connection, name), *own)
    yield patterns
    for name in patterns:
        call(connection, "drop_queue", queue_name=name, force=True)


@pytest.mark.timeout(limit(120))
@pytest.mark.promise("P35")
def test_random_topics_match_as_the_model_does(
    connection: Connection, bound: dict[str, list[str]]
) -> None:
    """ROWQ_TEST_LENGTH=50 compares 100,000 topics."""
    dialect, draw = matching_dialect_of(connection), dice("topics")
    matched = 0
    for _ in range(times(1)):
        topics = {
            ".".join(draw.choice(WORDS) for _ in range(draw.randint(1, 6)))
            for _ in range(TOPICS_AT_ONCE)
        }
        found = {
            pair for pair in dialect.bound_queues(connection, sorted(topics)) if pair[1] in bound
        }
        wanted = {
            (topic, name)
            for topic in topics
            for name, patterns in bound.items()
            if any(matches(pattern, topic) for pattern in patterns)
        }
        assert found == wanted
        matched += len(wanted)
    assert matched > TOPICS_AT_ONCE


@pytest.mark.promise("P15", "P35")
def test_drop_queue_deletes_bindings(queue: CheckedQueue, word: str) -> None:
    other = queue.another()
    for each in (queue, other):
        bind(each, f"{word}.#", f"{word}.*", word)
    queue.enqueue("x")
    queue.refused("RQ704", "drop_queue")
    assert len(queue.call("list_topics")) == 3
    queue.call("drop_queue", force=True)
    assert names(publish(queue.connection, word)) == [other.name]
    assert len(other.call("list_topics")) == 3
    orphans = (
        "select count(*) from rowq.topic_binding b"
        " left join rowq.queue q on q.queue_id = b.queue_id where q.queue_id is null"
    )
    found = dialect_of(queue.connection).execute(queue.connection, orphans)
    assert found.fetchone() == (0,)
