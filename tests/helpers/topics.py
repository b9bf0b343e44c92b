"""Topics and patterns of one test."""

import uuid
from collections.abc import Sequence
from typing import Any

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import Row, call
from tests.helpers.queues import CheckedQueue

PATTERNS = 1000


@pytest.fixture
def word() -> str:
    """Return a unique word for the topics of one test."""
    return f"w{uuid.uuid4().hex[:12]}"


def bind(queue: CheckedQueue, *patterns: str) -> list[str]:
    """Bind a queue to patterns, and return the outcomes."""
    return [queue.call_one("bind_topic", topic_pattern=each).outcome for each in patterns]


def bind_to_1000(connection: Connection, queue: str, pattern: str) -> None:
    """Bind a queue to 1000 patterns, each with its number instead of `@`."""
    for number in range(PATTERNS):
        found = pattern.replace("@", str(number))
        call(connection, "bind_topic", queue_name=queue, topic_pattern=found)


MANY = 10_000
"""The maximum number of topics in a batch."""

MOST_ROWS = 100 * 2 * MANY
"""A few rows per topic and pattern; all pairs would be 100,000,000."""

COPIES = """
    insert into rowq.topic_binding (
        queue_id, topic_pattern, word_count, matches_rest, literal_prefix, like_pattern, shape
    )
    with recursive numbers (n) as (
        select 0 union all select m.n + 1 from numbers m where m.n < 99
    )
    select b.queue_id, replace(b.topic_pattern, '.n0.', concat('.n', h.n * 100 + u.n, '.')),
           b.word_count, b.matches_rest, b.literal_prefix,
           replace(b.like_pattern, '.n0.', concat('.n', h.n * 100 + u.n, '.')), b.shape
    from rowq.topic_binding b
    cross join numbers h
    cross join numbers u
    where b.topic_pattern = %s
      and h.n * 100 + u.n > 0
"""


def bind_to_many(queue: CheckedQueue, last: str) -> None:
    """Bind a queue to 10,000 patterns that begin with a wildcard and end with a word and `#`."""
    bind(queue, f"*.n0.{last}.#")
    queue.connection.execute(COPIES, [f"*.n0.{last}.#"])


def many_topics(last: str) -> list[dict[str, str]]:
    """Return MANY messages, of which only the last one's topic matches a pattern."""
    topics = [f"of{number}.{number}.{last}" for number in range(MANY - 1)]
    return [{"topic": topic} for topic in (*topics, f"orders.n77.{last}.now")]


def publish(
    connection: Connection, topic: str, body: str | None = "x", **arguments: Any
) -> list[Row]:
    """Publish one message, and return the rows."""
    return call(connection, "publish", topic=topic, body=body, **arguments)


def names(rows: Sequence[Row]) -> list[str]:
    """Return the queues of published messages, in order."""
    return [row.queue_name for row in rows]


def matches(pattern: str, topic: str) -> bool:
    """Return whether a pattern matches a topic: the reference for the routines."""
    words, found = pattern.split("."), topic.split(".")
    matches_rest = words[-1] == "#"
    if matches_rest:
        del words[-1]
    if len(found) < len(words) or (len(found) > len(words) and not matches_rest):
        return False
    return all(word in ("*", each) for word, each in zip(words, found, strict=False))
