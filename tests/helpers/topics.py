"""Topics of one test's own, what is published under them, and which patterns match them."""

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
    """Return a word for the topics of one test: others are bound in the same database."""
    return f"w{uuid.uuid4().hex[:12]}"


def bind(queue: CheckedQueue, *patterns: str) -> list[str]:
    """Bind a queue to patterns, and return the outcomes."""
    return [queue.call_one("bind_topic", topic_pattern=each).outcome for each in patterns]


def bind_to_a_thousand(connection: Connection, queue: str, pattern: str) -> None:
    """Bind a queue to as many patterns, each with its number in the place of `@`."""
    for number in range(PATTERNS):
        found = pattern.replace("@", str(number))
        call(connection, "bind_topic", queue_name=queue, topic_pattern=found)


def publish(
    connection: Connection, topic: str, body: str | None = "x", **arguments: Any
) -> list[Row]:
    """Publish one message, and return the rows."""
    return call(connection, "publish", topic=topic, body=body, **arguments)


def names(rows: Sequence[Row]) -> list[str]:
    """Return the queues that got something, in the order of the rows."""
    return [row.queue_name for row in rows]


def matches(pattern: str, topic: str) -> bool:
    """Whether a pattern matches a topic, word by word: what the routines are compared with."""
    words, given = pattern.split("."), topic.split(".")
    has_rest = words[-1] == "#"
    if has_rest:
        del words[-1]
    if len(given) < len(words) or (len(given) > len(words) and not has_rest):
        return False
    return all(word in ("*", found) for word, found in zip(words, given, strict=False))
