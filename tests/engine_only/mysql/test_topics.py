"""publish reads rows of one index among 1000 patterns."""

import pytest

from tests.engine_only.mysql.costs import rows
from tests.engines.base import Connection
from tests.helpers.calls import call, refused
from tests.helpers.queues import Connect, new_queue
from tests.helpers.topics import (
    MANY,
    MOST_ROWS,
    PATTERNS,
    bind,
    bind_to_1000,
    bind_to_many,
    many_topics,
    names,
    publish,
    word,
)

__all__ = ["word"]


@pytest.mark.promise("P13", "P35")
def test_patterns_with_the_prefix_are_read_once(
    connection: Connection, connect: Connect, queue_name: str, word: str
) -> None:
    queue = new_queue(connection, queue_name)
    bind(queue, f"{word}.*.paid")
    session = connect()

    def rows_read() -> int:
        return min(rows(session, lambda: publish(session, f"{word}.7.paid")) for _ in range(3))

    few = rows_read()
    bind_to_1000(connection, queue_name, f"{word}.@.#")
    bind_to_1000(connection, queue_name, f"{word}_@.*")
    assert rows_read() <= few + 10
    bind_to_1000(connection, queue_name, f"{word}.*.n@")
    # MariaDB counts a row 3 times if it checks a condition of the index first.
    assert rows_read() <= few + 3 * PATTERNS + 10
    assert names(publish(session, f"{word}.7.paid")) == [queue_name]


@pytest.mark.promise("P13", "P35")
def test_publish_batch_does_not_compare_every_pair(
    connection: Connection, connect: Connect, queue_name: str, word: str
) -> None:
    bind_to_many(new_queue(connection, queue_name), word)
    session = connect()
    messages = many_topics(word)

    def send() -> None:
        sent = call(session, "publish_batch", messages=messages)
        assert [(row.position, row.queue_name) for row in sent] == [(MANY, queue_name)]

    assert rows(session, send) < MOST_ROWS


@pytest.mark.promise("P17", "P35")
def test_publish_batch_works_with_any_group_concat_max_len(
    connection: Connection, connect: Connect, queue_name: str, word: str
) -> None:
    """The session keeps its value, also after a failed call."""
    bind(new_queue(connection, queue_name, max_body_length=1), f"*.{word}.paid")
    topics = [{"topic": f"a.{word}.paid"}, {"topic": f"b.{word}.paid"}]
    session = connect()
    session.execute("set session group_concat_max_len = 4")
    assert len(call(session, "publish_batch", messages=topics)) == 2
    too_long = [topics[0], topics[1] | {"body": "xx"}]
    refused(session, "RQ711", "publish_batch", messages=too_long)
    assert session.execute("select @@group_concat_max_len").fetchone() == (4,)
