"""What publish reads among a thousand patterns: rows of one index, by its key."""

import pytest

from tests.engine_only.mysql.costs import rows
from tests.engines.base import Connection
from tests.helpers.calls import call
from tests.helpers.queues import Connect, new_queue
from tests.helpers.topics import bind, names, publish, word

__all__ = ["word"]

PATTERNS = 1000


def bind_to_a_thousand(connection: Connection, queue: str, pattern: str) -> None:
    """Bind a queue to as many patterns, each with its number in the place of `@`."""
    for number in range(PATTERNS):
        found = pattern.replace("@", str(number))
        call(connection, "bind_topic", queue_name=queue, topic_pattern=found)


@pytest.mark.promise("P13", "P35")
def test_patterns_with_other_beginnings_are_not_read_and_others_once(
    connection: Connection, connect: Connect, queue_name: str, word: str
) -> None:
    queue = new_queue(connection, queue_name)
    bind(queue, f"{word}.*.paid")
    session = connect()

    def touched() -> int:
        return min(rows(session, lambda: publish(session, f"{word}.7.paid")) for _ in range(3))

    few = touched()
    bind_to_a_thousand(connection, queue_name, f"{word}.@.#")
    bind_to_a_thousand(connection, queue_name, f"{word}_@.*")
    assert touched() <= few + 10
    bind_to_a_thousand(connection, queue_name, f"{word}.*.n@")
    # MariaDB counts a row thrice where it looks at a condition of the index first.
    assert touched() <= few + 3 * PATTERNS + 10
    assert names(publish(session, f"{word}.7.paid")) == [queue_name]
