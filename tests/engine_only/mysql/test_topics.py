"""What publish reads among a thousand patterns: rows of one index, by its key."""

import pytest

from tests.engine_only.mysql.costs import rows
from tests.engines.base import Connection
from tests.helpers.queues import Connect, new_queue
from tests.helpers.topics import PATTERNS, bind, bind_to_a_thousand, names, publish, word

__all__ = ["word"]


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
