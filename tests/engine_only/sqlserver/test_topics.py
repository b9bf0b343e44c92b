"""What only a server can show of topics: plans, locks, and a caller's transaction."""

import json

import pytest

from tests.engine_only.sqlserver.sessions import impatient, value
from tests.engine_only.sqlserver.showplan import Plan, run, tables
from tests.engines.base import Connection
from tests.helpers.calls import bodies, call, dequeue, refused, rolled_back, transaction
from tests.helpers.dialects import matching_dialect_of
from tests.helpers.queues import Connect, new_queue
from tests.helpers.topics import PATTERNS, bind, bind_to_a_thousand, names, publish, word

__all__ = ["word"]

pytestmark = pytest.mark.requires("genuine")


def looks(plans: list[Plan]) -> list[Plan]:
    """Return the plans that look for patterns."""
    return [plan for plan in plans if "topic_binding" in tables([plan])]


@pytest.mark.pitfall("sqlserver 31")
@pytest.mark.promise("P13", "P35")
@pytest.mark.parametrize("is_planned_while_empty", [True, False])
def test_patterns_are_found_by_their_heads_in_one_index_and_nothing_is_scanned(
    connection: Connection, queue: str, word: str, is_planned_while_empty: bool
) -> None:
    if is_planned_while_empty:
        publish(connection, f"{word}.7.paid")
    bind_to_a_thousand(connection, queue, f"{word}.*.n@")
    bind_to_a_thousand(connection, queue, f"{word}_@.*")
    bind(new_queue(connection, f"{queue} 2"), f"{word}.*.paid", f"{word}.7.paid")
    rows, plans = run(connection, "exec rowq.Publish @topic = ?, @body = N'x'", f"{word}.7.paid")
    assert [row[0] for row in rows] == [f"{queue} 2"]
    [look] = looks(plans)
    [access] = [one for one in look.accesses if one.table == "topic_binding"]
    assert "Seek" in access.operator
    assert access.seek[0] == "literal_prefix"
    assert "Key Lookup" not in look.operators
    assert not look.conversions
    assert not look.is_parallel
    assert access.rows_read is not None
    assert access.rows_read <= 1010


@pytest.mark.promise("P13", "P35")
def test_patterns_that_begin_alike_are_read_once_for_all_topics_of_a_batch(
    connection: Connection, queue: str, word: str
) -> None:
    bind_to_a_thousand(connection, queue, f"{word}.*.n@")
    bind(new_queue(connection, f"{queue} 2"), f"{word}.*.paid")
    topics = [{"topic": f"{word}.{number}.paid"} for number in range(PATTERNS)]
    rows, plans = run(connection, "exec rowq.PublishBatch @messages = ?", json.dumps(topics))
    assert len(rows) == PATTERNS
    by_head, by_pattern = looks(plans)
    for look, column in ((by_head, "literal_prefix"), (by_pattern, "topic_pattern")):
        [access] = [one for one in look.accesses if one.table == "topic_binding"]
        assert "Seek" in access.operator
        assert access.seek[0] == column
        assert "Key Lookup" not in look.operators
        assert not look.conversions
        assert not look.is_parallel
        assert access.rows_read is not None
        assert access.rows_read <= PATTERNS + 10


@pytest.mark.pitfall("sqlserver 44")
@pytest.mark.promise("P35")
def test_a_call_returns_its_rows_also_into_a_table(
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
def test_a_refused_call_leaves_its_caller_s_transaction_as_it_was(
    connection: Connection, queue: str, word: str, setting: str
) -> None:
    """The second queue does not take the body, and the first has got nothing."""
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
    assert [bodies(dequeue(connection, one.name, 9)) for one in (first, second)] == [["abc"]] * 2


@pytest.mark.pitfall("sqlserver 32")
@pytest.mark.promise("P35")
def test_an_open_bind_unbind_or_publish_holds_up_nobody_else_s(
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
def test_a_topic_has_as_many_heads_as_words_and_one_more(
    connection: Connection, queue: str, word: str
) -> None:
    """Openjson cuts a topic into words, and a sum over them says how long its heads are."""
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
