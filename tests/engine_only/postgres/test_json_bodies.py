"""enqueue accepts a jsonb or json body, and no other call becomes ambiguous."""

import json
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Json, Jsonb

from tests.engines.base import Connection

BODY = '{"id": 1, "total": 11.77}'


def stored(connection: Connection, queue: str) -> list[Any]:
    """Dequeue all messages of a queue; return their bodies in order."""
    rows = connection.execute("select body from rowq.dequeue_fast(%s, 1000)", [queue])
    return [body for (body,) in rows]


def outcome(connection: Connection, call: str, values: tuple[Any, ...] | None = None) -> str:
    """Run a call of enqueue and return its outcome."""
    row = connection.execute(f"select outcome from {call}".encode(), values).fetchone()
    assert row
    return str(row[0])


@pytest.mark.promise("P20")
@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("jsonb_build_object('id', 1, 'total', 11.77)", BODY),
        ('\'{"total": 11.77,  "id":1}\'::jsonb', BODY),
        ('\'{"total": 11.77,  "id":1}\'::json', '{"total": 11.77,  "id":1}'),
        ("json_build_object('id', 1)", '{"id" : 1}'),
        ("to_jsonb(o)", BODY),
        ("row_to_json(o)", '{"id":1,"total":11.77}'),
        ('\'{"total": 11.77,  "id":1}\'', '{"total": 11.77,  "id":1}'),
        ("'plain'::varchar", "plain"),
        ("'null'::jsonb", "null"),
        ("null::jsonb", None),
        ("null::json", None),
        ("null", None),
    ],
)
def test_json_body_is_stored_as_its_text(
    connection: Connection, queue: str, body: str, text: str | None
) -> None:
    query = f"select e.outcome from (select 1 as id, 11.77 as total) o, rowq.enqueue(%s, {body}) e"
    assert connection.execute(query.encode(), [queue]).fetchall() == [("enqueued",)]
    assert stored(connection, queue) == [text]


@pytest.mark.parametrize(
    "call",
    [
        "{q}",
        "{q}, '{{}}'",
        "{q}, null",
        "{q}, null, '\\x00'",
        "{q}, '{{}}', null, 'label', '{{\"a\": 1}}', 3, 0, null, null, 5",
        "{q}, '{{}}'::jsonb, null, 'label', '{{\"a\": 1}}', 3, 0, null, null, 5",
        "{q}, '{{}}'::json, null, 'label', '{{\"a\": 1}}', 3, 0, null, null, 5",
        "p_queue_name => {q}",
        "p_body => '{{}}', p_queue_name => {q}",
        "{q}, p_body => '{{}}'::jsonb",
        "{q}, p_body => '{{}}'::json, p_headers => '{{\"a\": 1}}', p_message_type => 'label'",
        "{q}, p_body_binary => '\\x00'",
        "{q}, p_headers => '{{\"a\": 1}}'",
        "{q}, p_body => null, p_body_binary => null",
        "{q}, p_dedup_key => 'k', p_body => '{{}}'::jsonb, p_run_at => clock_timestamp()",
    ],
)
def test_enqueue_calls_are_not_ambiguous(connection: Connection, queue: str, call: str) -> None:
    text = call.format(q=psycopg.sql.Literal(queue).as_string())
    assert outcome(connection, f"rowq.enqueue({text})") == "enqueued"


@pytest.mark.parametrize(
    ("marks", "types"),
    [
        ("$1", ["text"]),
        ("$1, $2", ["text", "text"]),
        ("$1, $2, $3", ["text", "text", "bytea"]),
        ("$1, $2, $3, $4", ["text", "text", "bytea", "text"]),
        ("$1, $2::jsonb, $3, $4", ["text", "jsonb", "bytea", "text"]),
        ("$1, p_body => $2, p_headers => $3", ["text", "text", "jsonb"]),
        ("$1, p_body => $2::json, p_headers => $3", ["text", "json", "jsonb"]),
        ("$1, p_body_binary => $2", ["text", "bytea"]),
        (
            "$1, $2, $3, $4, $5, $6, $7, $8, $9, $10",
            [
                *("text", "text", "bytea", "text", "jsonb", "integer", "double precision"),
                *("timestamp with time zone", "text", "integer"),
            ],
        ),
    ],
)
def test_untyped_parameters_are_text_in_a_prepared_statement(
    connection: Connection, marks: str, types: list[str]
) -> None:
    connection.execute(f"prepare rowq_call as select rowq.enqueue({marks})".encode())
    try:
        found = connection.execute(
            "select parameter_types::text[] from pg_prepared_statements where name = 'rowq_call'"
        ).fetchone()
    finally:
        connection.execute("deallocate rowq_call")
    assert found == (types,)


@pytest.mark.parametrize("prepare", [False, True])
@pytest.mark.parametrize("binary", [False, True])
def test_psycopg_sends_json_jsonb_and_text(
    connection: Connection, queue: str, prepare: bool, binary: bool
) -> None:
    mark = "%b" if binary else "%t"
    for body in (Jsonb({"a": [1]}), Json({"a": [1]}), '{"a": [1]}', None):
        call = f"select outcome from rowq.enqueue(%s, {mark})"
        row = connection.execute(call.encode(), [queue, body], prepare=prepare).fetchone()
        assert row == ("enqueued",)
    assert stored(connection, queue) == ['{"a": [1]}', '{"a": [1]}', '{"a": [1]}', None]


def test_trigger_enqueues_a_row_in_its_transaction(connection: Connection, queue: str) -> None:
    connection.execute(
        f"""
        create temporary table orders (id integer, total numeric);
        create function pg_temp.announce() returns trigger language plpgsql as $$
        begin
            perform rowq.enqueue('{queue}', row_to_json(new), p_headers => '{{"op": "insert"}}');
            perform rowq.enqueue('{queue}', to_jsonb(new), p_dedup_key => new.id::text);
            return new;
        end;
        $$;
        create trigger announce after insert on orders
        for each row execute function pg_temp.announce();
    """.encode()
    )
    try:
        connection.execute("begin")
        connection.execute("insert into orders values (1, 11.77)")
        connection.execute("rollback")
        assert stored(connection, queue) == []
        connection.execute("begin")
        connection.execute("insert into orders values (2, 7.5)")
        connection.execute("commit")
    finally:
        connection.execute("drop table orders cascade; drop function pg_temp.announce()")
    row = {"id": 2, "total": 7.5}
    assert list(map(json.loads, stored(connection, queue))) == [row, row]


def test_json_overloads_pass_every_other_argument(connection: Connection, queue: str) -> None:
    call = (
        "rowq.enqueue(%s, '{}'::jsonb, p_message_type => 'label', p_headers => '{\"a\": 1}',"
        " p_priority => 2, p_dedup_key => 'k', p_max_attempts => 7)"
    )
    assert outcome(connection, call, (queue,)) == "enqueued"
    assert outcome(connection, call.replace("jsonb", "json"), (queue,)) == "duplicate"
    row = connection.execute(
        "select message_type, headers, priority, dedup_key, max_attempts from rowq.get_message("
        "%s, (select max(message_id) from rowq.peek(%s)))",
        [queue, queue],
    ).fetchone()
    assert row == ("label", {"a": 1}, 2, "k", 7)


def test_json_overloads_raise_the_errors_of_enqueue(connection: Connection, queue: str) -> None:
    with pytest.raises(psycopg.Error, match="RQ701 queue_not_found") as unknown:
        connection.execute("select rowq.enqueue('nosuch', '{}'::jsonb)")
    assert unknown.value.sqlstate == "RQ701"
    with pytest.raises(psycopg.Error, match="RQ711 invalid_argument") as both:
        connection.execute("select rowq.enqueue(%s, '{}'::json, '\\x00')", [queue])
    assert both.value.sqlstate == "RQ711"


@pytest.mark.parametrize("role", ["producer", "admin", "consumer", "monitor"])
def test_json_overloads_have_the_grants_of_enqueue(connection: Connection, role: str) -> None:
    found = connection.execute(
        "select array_agg(has_function_privilege(%s, oid, 'execute')) from pg_proc"
        " where pronamespace = 'rowq'::regnamespace and proname = 'enqueue'",
        [f"rowq_{role}"],
    ).fetchone()
    assert found == ([role in ("producer", "admin")] * 3,)


def test_producer_role_enqueues_json(connection: Connection, queue: str) -> None:
    connection.execute("set role rowq_producer")
    try:
        assert outcome(connection, "rowq.enqueue(%s, '{}'::jsonb)", (queue,)) == "enqueued"
        assert outcome(connection, "rowq.enqueue(%s, '{}'::json)", (queue,)) == "enqueued"
    finally:
        connection.execute("reset role")


@pytest.mark.promise("P20")
@pytest.mark.parametrize("body", ["", "é", 'a"b\n', 123456789012, 1.5, True, {"a": 1}, [1]])
@pytest.mark.parametrize("extra", [{}, {"": None}, {"priority": 4}, {"body_base64": None}])
def test_batch_of_any_bodies(owner: Connection, body: Any, extra: dict[str, Any]) -> None:
    """A batch of bodies alone takes another path, chosen by the size of its jsonb."""
    owner.execute("select rowq.create_queue('q')")
    batch = Jsonb([{"body": body}, {"body": body, **extra}])
    if "" in extra:
        with pytest.raises(psycopg.DatabaseError, match=r"unknown key \"\" \(message 2\)"):
            owner.execute("select rowq.enqueue_batch('q', %s)", [batch])
        return
    owner.execute("select rowq.enqueue_batch('q', %s)", [batch])
    text = body if isinstance(body, str) else json.dumps(body)
    assert stored(owner, "q") == [text, text]
