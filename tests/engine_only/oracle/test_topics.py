"""Topics on Oracle: session settings, costs of publish, triggers and locks."""

import uuid
from collections.abc import Iterator

import oracledb
import pytest

from tests.engine_only.oracle.plans import Plan, plans, reads
from tests.engine_only.oracle.test_settings import STRANGE
from tests.engines.base import Connection
from tests.engines.oracle.server import OracleServer
from tests.engines.oracle.session import Session, number_of
from tests.helpers.calls import (
    bodies,
    call,
    call_one,
    counts,
    dequeue,
    refused,
    rolled_back,
    transaction,
)
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect, new_queue
from tests.helpers.topics import PATTERNS, bind, bind_to_1000, names, publish, word

__all__ = ["word"]

CANNOT_SERIALIZE = 8177
PATIENCE_MS = 5000
"""A call that takes longer waits for a lock."""
INDEXES = {"ROWQ_TOPIC_BINDING_PREFIX_IX", "ROWQ_TOPIC_BINDING_KEY_IX"}


@pytest.mark.pitfall("oracle 34")
@pytest.mark.promise("P15", "P35")
@pytest.mark.parametrize("setting", STRANGE)
def test_topics_are_compared_as_bytes_with_any_nls_setting(
    connection: Connection, connect: Connect, queue_name: str, word: str, setting: str
) -> None:
    queue = new_queue(connection, queue_name)
    bind(queue, f"{word}.a_b", f"{word}.*.ii-I", f"{word}.x.*.#")
    strange = connect()
    for change in STRANGE[setting]:
        dialect_of(strange).execute(strange, f"alter session set {change}")
    for rest in ("a_b", "z.ii-I", "x.y", "x.y.z"):
        assert names(publish(strange, f"{word}.{rest}")) == [queue_name], rest
    for rest in ("A_B", "axb", "a-b", "ab", "z.II-i", "z.iiI", "X.y", "x", "xy.z"):
        assert publish(strange, f"{word}.{rest}") == [], rest
    bound = f"{word}.K"
    for pattern in (bound, bound.lower(), f"{word}.k-", f"{word}.k_", f"{word}.-k"):
        arguments = {"queue_name": queue_name, "topic_pattern": pattern}
        assert call_one(strange, "bind_topic", **arguments).outcome == "bound", pattern
    for pattern in ("\N{KELVIN SIGN}", "\N{LATIN SMALL LETTER DOTLESS I}", "é", "a..b", "a,b"):
        refused(strange, "RQ711", "bind_topic", queue_name=queue_name, topic_pattern=pattern)
    patterns = [
        row.topic_pattern for row in call(strange, "list_topics", queue_name=queue_name)
    ]  # fmt: skip
    assert patterns == sorted(patterns)
    arguments = {"queue_name": queue_name, "topic_pattern": bound}
    assert call_one(strange, "unbind_topic", **arguments).outcome == "unbound"
    batch = [{"topic": bound}, {"topic": bound.lower()}, {"topic": bound.lower()}]
    sent = call(strange, "publish_batch", messages=batch)
    assert [(row.position, row.queue_name) for row in sent] == [(2, queue_name), (3, queue_name)]


def matching(server: OracleServer, connection: Connection) -> list[Plan]:
    """Return the plans of the two statements that find the queues bound to a topic."""
    words = ("from table(:", "rowq_topic_binding b")
    return [plan for plan in plans(server, connection) if all(word in plan.text for word in words)]


@pytest.mark.pitfall("oracle 34")
@pytest.mark.promise("P13", "P35")
@pytest.mark.parametrize("is_planned_while_empty", [True, False])
def test_publish_finds_queues_by_two_indexes(
    server: OracleServer,
    connection: Connection,
    queue_name: str,
    word: str,
    *,
    is_planned_while_empty: bool,
) -> None:
    queue = new_queue(connection, queue_name)
    if is_planned_while_empty:
        publish(connection, f"{word}.7.paid")
    bind_to_1000(connection, queue_name, f"{word}.*.n@")
    bind(queue, f"{word}.*.paid", f"{word}.7.paid", f"{word}.#")
    assert names(publish(connection, f"{word}.7.paid")) == [queue_name]
    found = matching(server, connection)
    assert len(found) >= 2
    for plan in found:
        steps = [step for step in plan.steps if step.table.startswith("ROWQ_")]
        scans = [step for step in steps if step.operation == "INDEX"]
        assert {step.options for step in scans} <= {"RANGE SCAN", "UNIQUE SCAN"}, plan.shown
        assert {step.table for step in scans} & INDEXES, plan.shown
        assert ("TABLE ACCESS", "FULL") not in {(step.operation, step.options) for step in steps}, (
            plan.shown
        )


@pytest.mark.promise("P13", "P35")
def test_patterns_with_other_prefixes_are_not_read(
    server: OracleServer, connection: Connection, connect: Connect, queue_name: str, word: str
) -> None:
    queue = new_queue(connection, queue_name)
    bind(queue, f"{word}.*.paid")
    session = connect()

    def blocks_read() -> int:
        costs = []
        for _ in range(5):
            before = reads(server, session)
            publish(session, f"{word}.7.paid")
            costs.append(reads(server, session) - before)
        return min(costs)

    few = blocks_read()
    bind_to_1000(connection, queue_name, f"{word}.@.#")
    bind_to_1000(connection, queue_name, f"{word}_@.*")
    assert blocks_read() <= few + 20
    bind_to_1000(connection, queue_name, f"{word}.*.n@")
    assert blocks_read() <= few + PATTERNS // 10


@pytest.mark.promise("P13", "P35")
def test_patterns_with_a_prefix_are_read_once_per_batch(
    server: OracleServer, connection: Connection, connect: Connect, queue_name: str, word: str
) -> None:
    queue = new_queue(connection, queue_name)
    bind(queue, f"{word}.*.paid")
    session = connect()
    topics = [{"topic": f"{word}.{number}.x"} for number in range(PATTERNS)]

    def blocks_read() -> int:
        costs = []
        for _ in range(5):
            before = reads(server, session)
            call(session, "publish_batch", messages=topics)
            costs.append(reads(server, session) - before)
        return min(costs)

    few = blocks_read()
    bind_to_1000(connection, queue_name, f"{word}.*.n@")
    assert blocks_read() <= few + PATTERNS


@pytest.mark.pitfall("oracle 35")
@pytest.mark.promise("P15", "P35")
@pytest.mark.parametrize("routine", ["publish", "publish_batch"])
def test_serializable_publish_fails_after_a_drop_queue(
    connection: Connection, connect: Connect, queue_name: str, word: str, routine: str
) -> None:
    message = {"topic": word, "dedup_key": "key"}
    arguments = message if routine == "publish" else {"messages": [message]}
    gone = f"{queue_name[:80]} gone"
    for name in (queue_name, gone):
        bind(new_queue(connection, name), word)
    producer = connect()
    dialect = dialect_of(producer)
    dialect.begin(producer, "serializable")
    call(producer, "list_topics")
    call(connection, "drop_queue", queue_name=gone)
    with pytest.raises(oracledb.DatabaseError) as failed:
        call(producer, routine, **arguments)
    assert number_of(failed.value) == CANNOT_SERIALIZE
    dialect.commit(producer)
    assert counts(connection, queue_name) == (0, 0, 0, 0)
    assert names(publish(producer, word, dedup_key="key")) == [queue_name]


@pytest.fixture
def events(server: OracleServer, connection: Session) -> Iterator[str]:
    """Return a table with a trigger that publishes each row's number under the row's topic."""
    dialect, table = dialect_of(connection), f"events_{uuid.uuid4().hex[:8]}"
    owner = connection.username
    server.execute(f"grant create trigger to {owner}")
    dialect.execute(connection, f"create table {table} (number_ number, topic_ varchar2(200 char))")
    dialect.execute(
        connection,
        f"""
        create trigger {table}_t after insert on {table} for each row
        declare
            v_rows sys_refcursor;
        begin
            rowq.publish(
                p_topic => :new.topic_,
                p_body  => to_clob(to_char(:new.number_)),
                p_rows  => v_rows
            );
            close v_rows;
        end;
        """,
    )
    yield table
    dialect.execute(connection, f"drop table {table} purge")
    server.execute(f"revoke create trigger from {owner}")


@pytest.mark.promise("P01", "P15", "P17", "P35")
def test_trigger_publishes_in_its_statements_transaction(
    connection: Connection, queue_name: str, word: str, events: str
) -> None:
    dialect = dialect_of(connection)
    short = f"{queue_name[:80]} short"
    for name, length in ((queue_name, 1000), (short, 1)):
        bind(new_queue(connection, name, max_body_length=length), f"{word}.#")
    with rolled_back(connection):
        dialect.execute(connection, f"insert into {events} values (1, '{word}.a')")
    with transaction(connection):
        dialect.execute(connection, f"insert into {events} values (2, '{word}.a')")
        for bad in (f"33, '{word}.a'", f"3, '{word}.'"):
            with pytest.raises(oracledb.DatabaseError) as failed:
                dialect.execute(connection, f"insert into {events} values ({bad})")
            assert dialect.error(failed.value)[0] == "RQ711"
    for name in (queue_name, short):
        assert bodies(dequeue(connection, name, 10)) == ["2"]
