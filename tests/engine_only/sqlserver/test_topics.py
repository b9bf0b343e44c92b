"""Topics on SQL Server: plans, locks and the caller's transaction."""

import json

import pytest

from tests.engine_only.sqlserver.sessions import impatient, value
from tests.engine_only.sqlserver.showplan import Plan, run, tables
from tests.engines.base import Connection
from tests.helpers.calls import bodies, call, dequeue, refused, rolled_back, transaction
from tests.helpers.dialects import matching_dialect_of
from tests.helpers.queues import Connect, new_queue
from tests.helpers.topics import PATTERNS, bind, bind_to_1000, names, publish, word

__all__ = ["word"]

pytestmark = pytest.mark.requires("genuine")


def pattern_plans(plans: list[Plan]) -> list[Plan]:
    """Return the plans that read patterns."""
    return [plan for plan in plans if "topic_binding" in tables([plan])]


def check_seek(plan: Plan, column: str, most_rows: int) -> None:
    """Check that a plan seeks patterns by a column, and reads few rows."""
    [access] = [access for access in plan.accesses if access.table == "topic_binding"]
    assert "Seek" in access.operator
    assert access.seek[0] == column
    assert "Key Lookup" not in plan.operators
    assert not plan.conversions
    assert not plan.is_parallel
    assert access.rows_read is not None
    assert access.rows_read <= most_rows


@pytest.mark.pitfall("sqlserver 31")
@pytest.mark.promise("P13", "P35")
@pytest.mark.parametrize("is_planned_while_empty", [True, False])
def test_patterns_are_found_by_a_seek_of_their_prefix(
    connection: Connection, queue: str, word: str, is_planned_while_empty: bool
) -> None:
    if is_planned_while_empty:
        publish(connection, f"{word}.7.paid")
    bind_to_1000(connection, queue, f"{word}.*.n@")
    bind_to_1000(connection, queue, f"{word}_@.*")
    bind(new_queue(connection, f"{queue} 2"), f"{word}.*.paid", f"{word}.7.paid")
    rows, plans = run(connection, "exec rowq.Publish @topic = ?, @body = N'x'", f"{word}.7.paid")
    assert [row[0] for row in rows] == [f"{queue} 2"]
    [plan] = pattern_plans(plans)
    check_seek(plan, "literal_prefix", 1010)


@pytest.mark.promise("P13", "P35")
def test_patterns_with_a_prefix_are_read_once_per_batch(
    connection: Connection, queue: str, word: str
) -> None:
    bind_to_1000(connection, queue, f"{word}.*.n@")
    bind(new_queue(connection, f"{queue} 2"), f"{word}.*.paid")
    topics = [{"topic": f"{word}.{number}.paid"} for number in range(PATTERNS)]
    rows, plans = run(connection, "exec rowq.PublishBatch @messages = ?", json.dumps(topics))
    assert len(rows) == PATTERNS
    by_prefix, by_pattern = pattern_plans(plans)
    check_seek(by_prefix, "literal_prefix", PATTERNS + 10)
    check_seek(by_pattern, "topic_pattern", PATTERNS + 10)


@pytest.mark.pitfall("sqlserver 44")
@pytest.mark.promise("P35")
def test_insert_exec_receives_the_rows_of_publish(
    connection: Connection, queue: str, word: str
) -> None:
    bind(new_queue(connection, f"{queue} 2"), word)
    into = (
        "set nocount on; declare @rows table (queue_name nvarchar(200), id bigint,"
        " outcome nvarchar(20)); insert into @rows exec rowq.Publish @topic = ?;"
        " select queue_name from @rows"
    )
    assert [row[0] for row in connection.execute(into, word).fetchall()] == [f"{queue} 2"]
    into = (
        "set nocount on; declare @rows table (position int, queue_name nvarchar(200), id bigint,"
        " outcome nvarchar(20)); insert into @rows exec rowq.PublishBatch @messages = ?;"
        " select queue_name from @rows"
    )
    messages = f'[{{"topic": "{word}"}}]'
    assert [row[0] for row in connection.execute(into, messages).fetchall()] == [f"{queue} 2"]


@pytest.mark.pitfall("sqlserver 32")
@pytest.mark.promise("P15", "P35")
@pytest.mark.parametrize("setting", ["on", "off"])
def test_refused_publish_keeps_the_callers_transaction(
    connection: Connection, queue: str, word: str, setting: str
) -> None:
    """The body is too long for the second queue; the first receives nothing."""
    first, second = (new_queue(connection, f"{queue} {number}") for number in (2, 3))
    for each in (first, second):
        bind(each, word)
    call(connection, "alter_queue", queue_name=second.name, max_body_length=3)
    connection.execute(f"set xact_abort {setting}")
    with transaction(connection):
        publish(connection, word, "abc")
        refused(connection, "RQ711", "publish", topic=word, body="abcd")
        batch = [{"topic": word, "body": "abcd"}]
        assert second.name in refused(connection, "RQ711", "publish_batch", messages=batch)
        refused(connection, "RQ711", "bind_topic", queue_name=queue, topic_pattern="a..b")
        assert value(connection, "select xact_state()") == 1
    connection.execute("set xact_abort off")
    for each in (first, second):
        assert bodies(dequeue(connection, each.name, 9)) == ["abc"]


@pytest.mark.pitfall("sqlserver 32")
@pytest.mark.promise("P35")
def test_open_bind_unbind_or_publish_blocks_no_other(
    connection: Connection, connect: Connect, queue: str, word: str
) -> None:
    other = impatient(connect())
    bind(new_queue(connection, f"{queue} 2"), f"{word}.a", f"{word}.*")
    bind(new_queue(connection, f"{queue} 3"), f"{word}.#")
    with rolled_back(connection):
        arguments = {"queue_name": f"{queue} 2", "topic_pattern": f"{word}.a"}
        call(connection, "unbind_topic", **arguments)
        call(connection, "bind_topic", **arguments | {"topic_pattern": f"{word}.#"})
        publish(connection, f"{word}.a")
        assert names(publish(other, f"{word}.a")) == [f"{queue} 2", f"{queue} 3"]
        call(other, "bind_topic", queue_name=f"{queue} 2", topic_pattern=f"{word}.b")
        call(other, "bind_topic", queue_name=f"{queue} 3", topic_pattern=f"{word}.a")
        call(other, "unbind_topic", queue_name=f"{queue} 3", topic_pattern=f"{word}.a")


@pytest.mark.promise("P35")
def test_topic_has_a_prefix_per_word_and_an_empty_one(
    connection: Connection, queue: str, word: str
) -> None:
    """Words come from openjson, lengths of prefixes from a running sum."""
    words = [word, *"abcde" * 15]
    long_name, short_name = (new_queue(connection, f"{queue} {number}") for number in (2, 3))
    bind(long_name, ".".join(words), ".".join([*words[:-1], "*"]))
    bind(short_name, f"{word}.a.#", f"{word}.*.b.#")
    topics = [".".join(words[:count]) for count in range(1, len(words) + 1)]
    found = matching_dialect_of(connection).bound_queues(connection, topics)
    assert found == {
        (topics[-1], long_name.name),
        *((topic, short_name.name) for topic in topics[1:]),
    }
