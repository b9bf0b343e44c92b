"""LOBs, texts and lists of Oracle: inline, long, empty, in bytes and characters."""

from collections.abc import Callable
from contextlib import closing

import oracledb
import pytest

import rowq
from rowq.engines.oracle.engine import ENGINE
from tests.engines.base import Connection
from tests.helpers.calls import bodies, call, call_one, dequeue, dequeue_one, enqueue
from tests.helpers.dialects import dialect_of

LENGTHS = (1, 1999, 2000, 2001, 3999, 4000, 4001, 8000, 32_766, 32_767, 32_768, 200_000)
"""Around the limits of varchar2 in SQL, of inline LOBs and of binds."""

SECUREFILES = """
    select l.table_name, l.column_name, l.securefile, l.in_row, l.cache
    from user_lobs l
    where l.table_name in ('ROWQ_MESSAGE', 'ROWQ_ARCHIVE')
    """


@pytest.mark.pitfall("oracle 6")
@pytest.mark.promise("P20")
@pytest.mark.parametrize("character", ["x", "é", "🐘"])
def test_texts_of_any_length_are_returned_unchanged(
    connection: Connection, queue: str, character: str
) -> None:
    texts = [character * (length // len(character.encode())) or character for length in LENGTHS]
    client = rowq.Queue(connection)
    for text in texts:
        client.enqueue(queue, text=text, headers={"h": text})
    rows = dequeue(connection, queue, len(texts))
    assert bodies(rows) == texts
    assert [row.headers for row in rows] == [{"h": text} for text in texts]
    call(connection, "release", queue_name=queue, claim_id=rows[0].claim_id)
    assert [message.body for message in client.dequeue_fast(queue, len(texts))] == texts


@pytest.mark.pitfall("oracle 14")
@pytest.mark.promise("P20")
@pytest.mark.parametrize("length", LENGTHS)
def test_bytes_of_any_length_are_returned_unchanged(
    connection: Connection, queue: str, length: int
) -> None:
    client = rowq.Queue(connection)
    client.enqueue(queue, bytes(length))
    (message,) = client.dequeue_fast(queue)
    assert message.body_binary == bytes(length)


@pytest.mark.pitfall("oracle 14")
@pytest.mark.promise("P20")
def test_empty_body_is_an_empty_lob_and_none_is_null(connection: Connection, queue: str) -> None:
    for arguments in ({"body": ""}, {"body_binary": b""}, {}):
        call_one(connection, "enqueue", queue_name=queue, **arguments)
    rows = dequeue(connection, queue, 3)
    assert [(row.body, row.body_binary) for row in rows] == [("", None), (None, b""), (None, None)]


@pytest.mark.promise("P20")
def test_plsql_caller_may_pass_empty_clob(connection: Connection, queue: str) -> None:
    sends = """
        declare
            v_rows sys_refcursor;
        begin
            rowq.enqueue(p_queue_name => :queue, p_body => empty_clob(), p_rows => v_rows);
            rowq.enqueue(p_queue_name => :queue, p_body_binary => empty_blob(), p_rows => v_rows);
        end;
        """
    fails = """
        declare
            v_rows sys_refcursor;
        begin
            rowq.fail_now(
                p_queue_name => :queue,
                p_claim_id   => :claim,
                p_error      => empty_clob(),
                p_rows       => v_rows
            );
        end;
        """
    with closing(connection.cursor()) as cursor:
        cursor.execute(sends, {"queue": queue})
        rows = dequeue(connection, queue, 2)
        assert [(row.body, row.body_binary) for row in rows] == [("", None), (None, b"")]
        cursor.execute(fails, {"queue": queue, "claim": rows[0].claim_id})
    dead = call(connection, "list_dead", queue_name=queue)
    assert [row.last_error for row in dead] == [""] * 2


@pytest.mark.pitfall("oracle 14")
@pytest.mark.promise("P20")
def test_names_are_counted_in_characters(connection: Connection, queue_name: str) -> None:
    name = "é" * 80 + queue_name[-20:]
    assert call_one(connection, "create_queue", queue_name=name).outcome == "created"
    key = "🐘" * 200
    call_one(connection, "enqueue", queue_name=name, dedup_key=key, message_type=key)
    row = dequeue_one(connection, name, worker_name=key)
    assert row.message_type == key


@pytest.mark.pitfall("oracle 6")
def test_bodies_are_inline_securefiles(connection: Connection) -> None:
    rows = dialect_of(connection).execute(connection, SECUREFILES).fetchall()
    assert len(rows) == 7
    assert {(securefile, in_row) for _, _, securefile, in_row, _ in rows} == {("YES", "YES")}
    assert {cache for table, *_, cache in rows if table == "ROWQ_MESSAGE"} == {"YES"}


def test_plsql_caller_passes_a_list_of_ids(connection: Connection, queue: str) -> None:
    ids = enqueue(connection, queue, *"abc")
    claim = dequeue(connection, queue, 3)[0].claim_id
    block = """
        declare
            v_rows sys_refcursor;
            v_id   number;
            v_word varchar2(20 char);
        begin
            rowq.complete(
                p_queue_name  => :queue,
                p_claim_id    => :claim,
                p_message_ids => rowq.ids(rowq_ids(:first, :second)),
                p_rows        => v_rows
            );
            loop
                fetch v_rows into v_id, v_word;
                exit when v_rows%notfound;
                :words := :words || v_word || ' ';
            end loop;
            close v_rows;
        end;
        """
    with closing(connection.cursor()) as cursor:
        words = cursor.var(str)
        values = {"queue": queue, "claim": claim, "first": ids[0], "second": ids[1]}
        cursor.execute(block, {**values, "words": words})
    assert words.getvalue() == "completed completed "
    (row,) = call(connection, "complete", queue_name=queue, claim_id=claim)
    assert (row.message_id, row.outcome) == (ids[2], "completed")


@pytest.mark.promise("P01", "P12")
def test_plsql_caller_puts_a_message_without_a_cursor(connection: Connection, queue: str) -> None:
    block = """
        begin
            :id := rowq.put(
                p_queue_name => :queue, p_body => :body, p_priority => 1, p_dedup_key => 'k'
            );
        end;
        """
    found = []
    for body in ("first", "second"):
        with closing(connection.cursor()) as cursor:
            number = cursor.var(int)
            cursor.execute(block, {"id": number, "queue": queue, "body": body})
            found.append(number.getvalue())
    (row,) = dequeue(connection, queue, 10)
    assert (found, row.body) == ([row.message_id] * 2, "first")


@pytest.mark.pitfall("oracle 11")
@pytest.mark.promise("P15")
def test_errors_have_ora_numbers_and_the_contract_text(connection: Connection, queue: str) -> None:
    calls: dict[int, Callable[[], object]] = {
        20701: lambda: dequeue(connection, f"{queue} "),
        20711: lambda: dequeue(connection, queue, 0),
        20721: lambda: call(connection, "complete", queue_name=queue, claim_id=-1),
    }
    for number, fail in calls.items():
        with pytest.raises(oracledb.DatabaseError) as caught:
            fail()
        assert caught.value.args[0].code == number
        assert str(caught.value).startswith(f"ORA-{number}: RQ{number - 20000} ")
        refusal = ENGINE.refusal(caught.value)
        assert refusal is not None
        assert "ORA-" not in str(refusal)
    enqueue(connection, queue, "x")
    with pytest.raises(oracledb.DatabaseError, match="ORA-20704: RQ704 "):
        call(connection, "drop_queue", queue_name=queue)
