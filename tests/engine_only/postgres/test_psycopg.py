"""rowq works with any settings of a psycopg connection."""

import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

import rowq


@pytest.fixture
def own(database_url: str, queue_name: str) -> Any:
    with psycopg.connect(database_url, autocommit=True) as connection:
        rowq.Queue(connection).create_queue(queue_name)
        yield connection


def prepared(connection: "psycopg.Connection[Any]") -> list[str]:
    rows = connection.execute("select statement from pg_prepared_statements", prepare=False)
    return [statement for (statement,) in rows]


def test_one_statement_is_prepared_per_routine(
    own: "psycopg.Connection[Any]", queue_name: str
) -> None:
    queue = rowq.Queue(own)
    options: list[dict[str, Any]] = [
        {},
        {"headers": {"a": 1}},
        {"delay_seconds": 5},
        {"dedup_key": "k", "priority": 0},
        {"message_type": "t", "max_attempts": 3},
    ]
    for arguments in options * 3:
        queue.enqueue(queue_name, 1, **arguments)
    assert [text for text in prepared(own) if "rowq.enqueue(" in text] == prepared(own)
    assert len(prepared(own)) == 1


@pytest.mark.pitfall("postgres 11")
def test_no_statement_is_prepared_without_prepare_threshold(
    own: "psycopg.Connection[Any]", queue_name: str
) -> None:
    own.prepare_threshold = None
    queue = rowq.Queue(own)
    for number in range(10):
        queue.enqueue(queue_name, number)
    assert prepared(own) == []


def test_calls_work_with_any_row_and_cursor_factory(
    own: "psycopg.Connection[Any]", queue_name: str
) -> None:
    own.row_factory = psycopg.rows.dict_row
    own.cursor_factory = psycopg.ClientCursor
    queue = rowq.Queue(own)
    queue.enqueue(queue_name, b"\0", headers={"a": 1})
    message = queue.dequeue_fast(queue_name)[0]
    assert (message.data, message.headers) == (b"\0", {"a": 1})


@pytest.mark.pitfall("postgres 17")
def test_calls_work_with_any_time_zone_and_date_style(
    own: "psycopg.Connection[Any]", queue_name: str
) -> None:
    queue = rowq.Queue(own)
    before = queue.enqueue(queue_name, 1)
    details = queue.get_message(queue_name, before.message_id)
    own.execute("set timezone = 'America/St_Johns'")
    own.execute("set datestyle = 'SQL, DMY'")
    assert queue.get_message(queue_name, before.message_id) == details


def test_calls_work_in_a_pipeline(own: "psycopg.Connection[Any]", queue_name: str) -> None:
    queue = rowq.Queue(own)
    with own.pipeline():
        for number in range(3):
            queue.enqueue(queue_name, number)
    assert [message.data for message in queue.peek(queue_name, max_messages=10)] == [0, 1, 2]


@pytest.mark.pitfall("postgres 16")
def test_callers_savepoint_survives_a_refused_call(
    own: "psycopg.Connection[Any]", queue_name: str
) -> None:
    queue = rowq.Queue(own)
    with own.transaction():
        queue.enqueue(queue_name, "kept")
        with pytest.raises(rowq.QueueNotFound), own.transaction():
            queue.enqueue(queue_name + "?", "refused")
    assert [message.data for message in queue.peek(queue_name, max_messages=10)] == ["kept"]


@pytest.mark.pitfall("postgres 16")
@pytest.mark.promise("P15")
@pytest.mark.parametrize(
    "arguments",
    [
        {"text": "a\0b"},
        {"data": 1, "headers": {"a": "\0"}},
        {"data": 1, "headers": {"\\\0": 1}},
        {"data": 1, "message_type": "\0"},
    ],
    ids=str,
)
def test_nul_is_refused_before_the_transaction_is_aborted(
    own: "psycopg.Connection[Any]", queue_name: str, arguments: dict[str, Any]
) -> None:
    queue = rowq.Queue(own)
    with own.transaction():
        with pytest.raises(rowq.InvalidArgument, match="NUL characters; send such a body as bytes"):
            queue.enqueue(queue_name, **arguments)
        queue.enqueue(queue_name, "kept")
    assert [message.data for message in queue.peek(queue_name, max_messages=10)] == ["kept"]


@pytest.fixture
def consumer_url(own: "psycopg.Connection[Any]", database_url: str) -> Iterator[str]:
    """Return the URL of a login that has only the consumer role."""
    role = f"rowq_test_{uuid.uuid4().hex[:8]}"
    own.execute(f"create role {role} login password 'x' in role rowq_consumer")
    parameters = {**conninfo_to_dict(database_url), "user": role, "password": "x"}
    database = quote(str(parameters.pop("dbname")), safe="")
    yield f"postgresql:///{database}?{urlencode(parameters)}"
    own.execute(f"drop role {role}")


def test_worker_with_the_consumer_role_drains(
    own: "psycopg.Connection[Any]", consumer_url: str, queue_name: str
) -> None:
    queue = rowq.Queue(own)
    for number in range(3):
        queue.enqueue(queue_name, number)
    stats = rowq.Worker(consumer_url, queue_name, lambda _message: None, drain=True).run()
    assert stats.processed == 3
