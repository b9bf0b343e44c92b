"""rowq works with any settings of a PyMySQL connection."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pymysql
import pytest

import rowq
from rowq.engines.mysql import calls
from rowq.engines.mysql.engine import ENGINE
from rowq.engines.mysql.url import connection_parameters
from tests.engines.base import Connection, Server, wait_until_blocked
from tests.engines.mysql.server import Session

AWKWARD = "a ' \" \\ \\' % %s \n \u00e9 \U0001f4a5 \\"


@pytest.fixture
def own(connection: Connection, queue_name: str) -> Connection:
    rowq.Queue(connection).create_queue(queue_name)
    return connection


@pytest.fixture
def other_way(database_url: str) -> Iterator[Any]:
    """Return a function that opens a session with further arguments of PyMySQL."""
    opened: list[Session] = []

    def open_session(**arguments: Any) -> Session:
        opened.append(Session(**{**connection_parameters(database_url), **arguments}))
        return opened[-1]

    yield open_session
    for session in opened:
        ENGINE.close(session)


def check_round_trip(queue: rowq.Queue, queue_name: str) -> None:
    """Enqueue and dequeue a text and a binary message."""
    queue.enqueue(queue_name, text=AWKWARD, headers={"x": AWKWARD}, message_type="\\")
    queue.enqueue(queue_name, bytes(range(256)))
    text, binary = queue.dequeue_fast(queue_name, 2)
    assert (text.body, text.headers, text.message_type) == (AWKWARD, {"x": AWKWARD}, "\\")
    assert binary.data == bytes(range(256))
    assert (text.enqueued_at.tzinfo, text.body_binary) == (binary.enqueued_at.tzinfo, None)


def test_session_is_encrypted_by_default_if_the_server_can(
    own: Connection, database_url: str, queue_name: str
) -> None:
    url = database_url.replace("ssl_mode=disabled", "")
    with closing(Session(**connection_parameters(url), autocommit=True)) as session:
        ((_, cipher),) = session.execute("show session status like 'ssl_cipher'").fetchall()
        # MySQL has removed this variable.
        found = (
            own.execute("show variables like 'have_ssl'").fetchone()
            or own.execute(
                "select property, value from performance_schema.tls_channel_status"
                " where channel = 'mysql_main' and property = 'Enabled'"
            ).fetchone()
        )
        assert found is not None
        assert bool(cipher) == (found[1].upper() == "YES")
        check_round_trip(rowq.Queue(session), queue_name)


@pytest.mark.promise("P20")
@pytest.mark.usefixtures("own")
def test_calls_work_with_any_cursor_class(other_way: Any, queue_name: str) -> None:
    for kind in (pymysql.cursors.DictCursor, pymysql.cursors.SSCursor):
        session = other_way(autocommit=True, cursorclass=kind)
        check_round_trip(rowq.Queue(session), queue_name)


@pytest.mark.pitfall("mysql 10")
@pytest.mark.promise("P20")
@pytest.mark.parametrize(
    "setting",
    [
        "sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES'",
        "sql_mode = ''",
        "sql_mode = 'ORACLE'",
        "sql_mode = 'PIPES_AS_CONCAT,PAD_CHAR_TO_FULL_LENGTH,HIGH_NOT_PRECEDENCE'",
        "time_zone = '-09:30'",
        "collation_connection = 'utf8mb4_unicode_ci'",
        "sql_select_limit = 1",
        "lc_time_names = 'de_DE'",
        "optimizer_switch = 'derived_merge=off,materialization=off'",
    ],
)
def test_calls_work_with_any_session_setting_and_keep_it(
    own: Connection, queue_name: str, setting: str
) -> None:
    if "ORACLE" in setting and "mariadb" not in own.server_version.lower():
        pytest.skip("MySQL has no such sql_mode; to run it: --engine mariadb")
    name = setting.partition(" ")[0]
    own.execute(f"set session {setting}")
    before = own.execute(f"select @@session.{name}").fetchall()
    check_round_trip(rowq.Queue(own), queue_name)
    assert own.execute(f"select @@session.{name}").fetchall() == before


@pytest.mark.promise("P20")
def test_calls_work_with_a_tiny_group_concat_max_len(own: Connection, queue_name: str) -> None:
    own.execute("set session group_concat_max_len = 4")
    check_round_trip(rowq.Queue(own), queue_name)
    rowq.Queue(own).enqueue_batch(queue_name, [rowq.NewMessage(data="x")] * 1000)
    assert len(rowq.Queue(own).dequeue_wait(queue_name, 1000, wait_seconds=0)) == 1000


@pytest.mark.promise("P15")
@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), float("-inf")])
def test_nan_and_infinity_are_refused_by_name(
    own: Connection, queue_name: str, seconds: float
) -> None:
    with pytest.raises(rowq.InvalidArgument, match="delay_seconds must be a finite number"):
        rowq.Queue(own).enqueue(queue_name, 1, delay_seconds=seconds)


@pytest.mark.promise("P20")
def test_nul_in_a_text_is_returned_unchanged(own: Connection, queue_name: str) -> None:
    queue = rowq.Queue(own)
    queue.enqueue(queue_name, text="a\0b", headers={"\0": "\0"}, message_type="\0")
    [message] = queue.dequeue_fast(queue_name)
    assert (message.body, message.headers, message.message_type) == ("a\0b", {"\0": "\0"}, "\0")


@pytest.mark.promise("P17")
@pytest.mark.parametrize("level", ["READ-UNCOMMITTED", "REPEATABLE-READ", "SERIALIZABLE"])
def test_calls_keep_the_isolation_level_of_the_session(
    own: Connection, queue_name: str, level: str
) -> None:
    variable = (
        "tx_isolation" if "mariadb" in own.server_version.lower() else "transaction_isolation"
    )
    own.execute(f"set session {variable} = '{level}'")
    check_round_trip(rowq.Queue(own), queue_name)
    assert own.execute(f"select @@session.{variable}, @@autocommit").fetchone() == (level, 1)


def test_character_set_latin1_is_refused(other_way: Any, queue_name: str) -> None:
    with pytest.raises(rowq.InvalidArgument, match="character set must be utf8mb4, got latin1"):
        rowq.Queue(other_way(charset="latin1")).peek(queue_name)


@pytest.mark.pitfall("mysql 4")
@pytest.mark.promise("P15", "P17")
def test_refused_call_keeps_the_callers_savepoint(own: Connection, queue_name: str) -> None:
    queue = rowq.Queue(own)
    own.begin()
    queue.enqueue(queue_name, "kept")
    own.execute("savepoint mine")
    queue.enqueue(queue_name, "undone")
    with pytest.raises(rowq.QueueNotFound):
        queue.enqueue(queue_name + "?", "refused")
    own.execute("rollback to savepoint mine")
    assert ENGINE.in_transaction(own)
    own.commit()
    assert [message.data for message in queue.peek(queue_name, max_messages=10)] == ["kept"]


def test_url_may_name_a_unix_socket(own: Connection, database_url: str, queue_name: str) -> None:
    parts = connection_parameters(database_url)
    ((socket,),) = own.execute("select @@socket").fetchall()
    url = f"mysql://{parts['user']}:{parts['password']}@localhost/?unix_socket={socket}"
    with rowq.connect(url) as queue:
        assert queue.enqueue(queue_name).outcome == "enqueued"


def test_own_connection_uses_read_committed(database_url: str) -> None:
    with rowq.connect(database_url) as queue:
        cursor = queue._session.connection().cursor()
        cursor.execute(
            "show session variables where variable_name in"
            " ('tx_isolation', 'transaction_isolation')"
        )
        assert {value for _, value in cursor.fetchall()} == {"READ-COMMITTED"}


@pytest.mark.pitfall("mysql 13")
@pytest.mark.promise("P15", "P20")
def test_body_beyond_max_allowed_packet_is_refused(
    own: Connection, other_way: Any, queue_name: str
) -> None:
    ((usual,),) = own.execute("select @@max_allowed_packet").fetchall()
    limit = 1 << 20
    own.execute(f"set global max_allowed_packet = {limit}")
    try:
        queue = rowq.Queue(other_way(autocommit=True))
    finally:
        own.execute(f"set global max_allowed_packet = {usual}")
    text, data = "x" * (limit - 10_000), bytes(limit // 2 - 10_000)
    queue.enqueue(queue_name, text=text)
    queue.enqueue(queue_name, data)
    assert [message.body or message.data for message in queue.dequeue_fast(queue_name, 2)] == [
        text,
        data,
    ]
    for too_long in (
        {"text": "x" * limit},
        {"data": bytes(limit)},
        {"text": "\u00e9" * (limit // 2)},
    ):
        with pytest.raises(rowq.InvalidArgument, match="max_allowed_packet"):
            queue.enqueue(queue_name, **too_long)
    assert rowq.Queue(own).peek(queue_name) == []


@pytest.mark.pitfall("mysql 18")
def test_deadlock_in_a_nested_transaction_ends_all_of_it(
    server: Server, own: Connection, connect: Any, queue_name: str
) -> None:
    table = f"deadlock_{queue_name[-8:]}"
    own.execute(f"create table {table} (id int primary key, n int)")
    rows = ", ".join(f"({number}, 0)" for number in range(1, 51))
    own.execute(f"insert into {table} values {rows}")
    other = connect(autocommit=False)
    # Change many rows: the server rolls back the transaction that has changed fewer.
    other.execute(f"update {table} set n = 1 where id > 1")
    waiting: list[threading.Thread] = []

    def deadlock() -> None:
        with ENGINE.transaction(own):
            own.execute(f"update {table} set n = 2 where id = 1")
            waiting.append(_in_thread(lambda: other.execute(f"delete from {table} where id = 1")))
            wait_until_blocked(server, server.session_id(other), server.session_id(own))
            own.execute(f"update {table} set n = 2 where id = 2")

    def handle() -> None:
        with ENGINE.transaction(own):
            with pytest.raises(pymysql.OperationalError, match="Deadlock") as met:
                deadlock()
            assert ENGINE.is_transient(met.value)
            assert not ENGINE.in_transaction(own)
            raise ValueError("as a handler would")

    with pytest.raises(ValueError, match="as a handler would"):
        handle()
    waiting[0].join()
    other.rollback()
    assert own.execute(f"select max(n) from {table}").fetchone() == (0,)
    own.execute(f"drop table {table}")


@pytest.mark.promise("P15", "P17")
def test_call_that_runs_out_of_memory_leaves_no_transaction(
    own: Connection, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No handler catches the error of a sort without memory, so the procedure cannot roll back.
    own.execute("create table numbers as select 1 as a union all select 2 union all select 3")
    sort = (
        "select x.a, y.a, repeat('x', 5000) as text from numbers x, numbers y"
        " order by repeat(x.a, 500), text"
    )
    if "mariadb" not in own.server_version.lower():
        # MySQL takes JSON values into the sort, which exceed its memory.
        sort = (
            "select j.text from json_table(concat('[\"', repeat('x', 100000), '\"]'),"
            " '$[*]' columns (place for ordinality, text json path '$')) j order by j.place"
        )
    own.execute(
        "create procedure runs_out() begin start transaction; insert into numbers values (4);"
        f" {sort}; commit; end"
    )
    own.execute("set session sort_buffer_size = 1024")
    own.autocommit(True)
    try:
        monkeypatch.setattr(calls.Call, "text", lambda *_: "call runs_out()")
        monkeypatch.setattr(calls.Call, "values", lambda *_: [])
        with pytest.raises(pymysql.Error, match="sort memory"):
            rowq.Queue(own).peek(queue_name)
        assert not ENGINE.in_transaction(own)
        assert own.execute("select count(*) from numbers").fetchone() == (3,)
    finally:
        own.execute("drop procedure runs_out")
        own.execute("drop table numbers")


def _in_thread(call: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=call)
    thread.start()
    return thread
