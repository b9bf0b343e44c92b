"""rowq works with any settings of a pyodbc connection."""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

import rowq
from rowq.engines.sqlserver.driver import drain
from rowq.engines.sqlserver.engine import ENGINE
from tests.engines.base import Connection, Server, wait_until_blocked
from tests.helpers.queues import Connect

AWKWARD = "a ' \" \\ ; -- /* {call x} ? $(x) [b] %s \n go\r\n \u00e9 \U0001f4a5 "


@pytest.fixture
def own(connection: Connection, queue_name: str) -> Connection:
    rowq.Queue(connection).create_queue(queue_name)
    return connection


def check_round_trip(queue: rowq.Queue, queue_name: str) -> None:
    """Enqueue and dequeue a text and a binary message."""
    queue.enqueue(queue_name, text=AWKWARD, headers={"x": AWKWARD}, message_type="\\")
    queue.enqueue(queue_name, bytes(range(256)))
    text, binary = queue.dequeue_fast(queue_name, 2)
    assert (text.body, text.headers, text.message_type) == (AWKWARD, {"x": AWKWARD}, "\\")
    assert binary.data == bytes(range(256))
    # Missing keys and blank keys do not equal each other.
    blanks = [rowq.NewMessage(data=1), rowq.NewMessage(data=2), rowq.NewMessage(dedup_key=" ")]
    sent = queue.enqueue_batch(queue_name, [*blanks, rowq.NewMessage(dedup_key="  ")])
    assert [result.outcome for result in sent] == ["enqueued"] * 4
    assert [message.message_type for message in queue.dequeue_fast(queue_name, 4)] == [None] * 4
    assert (text.enqueued_at.utcoffset(), binary.enqueued_at.fold) == (
        binary.lease_until.utcoffset(),
        0,
    )


@pytest.mark.promise("P20")
@pytest.mark.parametrize(
    "setting",
    [
        "rowcount 1",
        "textsize 10",
        "language Deutsch",
        "dateformat dmy",
        "datefirst 3",
        "ansi_nulls off",
        "ansi_padding off",
        "ansi_warnings off",
        "arithabort off",
        "concat_null_yields_null off",
        "numeric_roundabort on",
        "quoted_identifier off",
        "nocount off",
        "xact_abort on",
        "implicit_transactions on",
        "lock_timeout 5000",
        "deadlock_priority low",
    ],
)
def test_calls_work_with_any_session_setting(
    own: Connection, queue_name: str, setting: str
) -> None:
    own.execute(f"set {setting}")
    check_round_trip(rowq.Queue(own), queue_name)
    with suppress(Exception):
        own.execute("if @@trancount > 0 rollback transaction")


@pytest.mark.promise("P20")
def test_calls_work_with_output_converters_and_keep_them(own: Connection, queue_name: str) -> None:
    import pyodbc

    kinds = (pyodbc.SQL_WVARCHAR, pyodbc.SQL_TYPE_TIMESTAMP, pyodbc.SQL_BIGINT, pyodbc.SQL_BIT)
    for kind in kinds:
        own.add_output_converter(kind, lambda _: "converted")
    check_round_trip(rowq.Queue(own), queue_name)
    assert own.execute("select cast(N'x' as nvarchar(10))").fetchone()[0] == "converted"
    own.clear_output_converters()


@pytest.mark.promise("P15")
@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), float("-inf")])
def test_nan_and_infinity_are_refused_by_name(
    own: Connection, queue_name: str, seconds: float
) -> None:
    with pytest.raises(rowq.InvalidArgument, match="delay_seconds must be a finite number"):
        rowq.Queue(own).enqueue(queue_name, 1, delay_seconds=seconds)


@pytest.mark.promise("P20")
@pytest.mark.requires("genuine")
def test_nul_in_a_text_is_returned_unchanged(own: Connection, queue_name: str) -> None:
    queue = rowq.Queue(own)
    queue.enqueue(queue_name, text="a\0b", headers={"\0": "\0"}, message_type="\0")
    [message] = queue.dequeue_fast(queue_name)
    assert (message.body, message.headers, message.message_type) == ("a\0b", {"\0": "\0"}, "\0")


LENGTHS = [0, 1, 3999, 4000, 4001, 7999, 8000, 8001, 65536, 3_000_000]


def bodies(length: int) -> tuple[str, bytes]:
    """Return a text and some bytes of a length."""
    text = ("\u00e9xyz " * (length // 5 + 1))[:length]
    return text[:-1] + "\U0001f4a5"[:length], (bytes(range(256)) * (length // 256 + 1))[:length]


@pytest.mark.promise("P20")
@pytest.mark.parametrize("length", LENGTHS)
def test_bodies_of_every_length_are_returned_unchanged(
    own: Connection, queue_name: str, length: int
) -> None:
    queue, (text, data) = rowq.Queue(own), bodies(length)
    queue.enqueue(queue_name, text=text)
    queue.enqueue(queue_name, data)
    found = queue.dequeue_fast(queue_name, 2)
    assert [message.body for message in found] == [text, None]
    assert [message.body_binary for message in found] == [None, data]


@pytest.mark.promise("P20")
@pytest.mark.requires("genuine")
@pytest.mark.parametrize("length", LENGTHS)
def test_bodies_of_a_batch_are_returned_unchanged(
    own: Connection, queue_name: str, length: int
) -> None:
    queue, (text, data) = rowq.Queue(own), bodies(length)
    queue.enqueue_batch(queue_name, [rowq.NewMessage(text=text), rowq.NewMessage(data=data)])
    found = queue.dequeue_fast(queue_name, 2)
    assert [message.body for message in found] == [text, None]
    assert [message.body_binary for message in found] == [None, data]


@pytest.mark.promise("P17")
@pytest.mark.requires("genuine")
@pytest.mark.parametrize(
    ("level", "number"), [("read uncommitted", 1), ("repeatable read", 3), ("serializable", 4)]
)
def test_calls_keep_the_isolation_level_of_the_session(
    own: Connection, queue_name: str, level: str, number: int
) -> None:
    own.execute(f"set transaction isolation level {level}")
    check_round_trip(rowq.Queue(own), queue_name)
    found = own.execute(
        "select transaction_isolation_level from sys.dm_exec_sessions where session_id = @@spid"
    ).fetchone()[0]
    assert found == number


@pytest.mark.promise("P15", "P17")
@pytest.mark.parametrize("xact_abort", ["on", "off"])
def test_refused_call_keeps_the_callers_savepoint(
    own: Connection, queue_name: str, xact_abort: str
) -> None:
    queue = rowq.Queue(own)
    own.execute(f"set xact_abort {xact_abort}")
    own.execute("begin transaction")
    queue.enqueue(queue_name, "kept")
    own.execute("save transaction mine")
    queue.enqueue(queue_name, "undone")
    with pytest.raises(rowq.QueueNotFound):
        queue.enqueue(queue_name + "?", "refused")
    assert own.execute("select xact_state()").fetchone()[0] == 1
    own.execute("rollback transaction mine")
    assert ENGINE.in_transaction(own)
    own.execute("commit transaction")
    assert not ENGINE.in_transaction(own)
    assert [message.data for message in queue.peek(queue_name, max_messages=10)] == ["kept"]


@pytest.mark.pitfall("sqlserver 18")
@pytest.mark.promise("P15")
def test_error_after_rows_is_raised(own: Connection) -> None:
    cursor = own.execute("select 1 as one; throw 52701, N'RQ701 queue_not_found: x', 1;")
    with pytest.raises(Exception, match="RQ701") as met:
        drain(cursor)
    assert isinstance(ENGINE.refusal(met.value), rowq.QueueNotFound)


@pytest.mark.pitfall("sqlserver 18")
def test_count_before_rows_is_skipped(own: Connection) -> None:
    cursor = own.execute(
        "set nocount off; declare @t table (a int); insert into @t values (1), (2);"
        " print N'said'; select a from @t order by a;"
    )
    assert drain(cursor) == [(1,), (2,)]


@pytest.mark.promise("P17")
def test_dequeue_wait_is_refused_in_any_transaction(
    own: Connection, connect: Connect, queue_name: str
) -> None:
    for session, opening in ((own, "begin transaction"), (connect(autocommit=False), "")):
        if opening:
            session.execute(opening)
        with pytest.raises(rowq.WrongTransactionState):
            rowq.Queue(session).dequeue_wait(queue_name, wait_seconds=0)
    own.execute("rollback transaction")


def undone(own: Connection, queue_name: str) -> None:
    """Enqueue in a transaction of the engine, and raise."""
    with ENGINE.transaction(own):
        rowq.Queue(own).enqueue(queue_name, "undone")
        raise ValueError("undo")


def test_nested_transaction_is_a_savepoint(own: Connection, queue_name: str) -> None:
    queue = rowq.Queue(own)
    with ENGINE.transaction(own):
        queue.enqueue(queue_name, "kept")
        with pytest.raises(ValueError, match="undo"):
            undone(own, queue_name)
        assert ENGINE.in_transaction(own)
        assert not own.autocommit
    assert own.autocommit
    assert not ENGINE.in_transaction(own)
    with pytest.raises(ValueError, match="undo"):
        undone(own, queue_name)
    assert own.autocommit
    assert [message.data for message in queue.peek(queue_name, max_messages=5)] == ["kept"]


def ended_inside(own: Connection, queue_name: str, how: str) -> None:
    """End two nested transactions of the engine by the driver, and enqueue again."""
    queue = rowq.Queue(own)
    with ENGINE.transaction(own), ENGINE.transaction(own):
        queue.enqueue(queue_name, "before")
        getattr(own, how)()
        queue.enqueue(queue_name, "after")


@pytest.mark.parametrize("how", ["rollback", "commit"])
def test_transaction_ended_inside_raises(own: Connection, queue_name: str, how: str) -> None:
    with pytest.raises(rowq.RowqError, match="must not end its transaction"):
        ended_inside(own, queue_name, how)
    assert own.autocommit
    assert not ENGINE.in_transaction(own)
    left = ["before"] if how == "commit" else []
    assert [message.data for message in rowq.Queue(own).peek(queue_name, max_messages=5)] == left


@pytest.mark.requires("waits")
def test_deadlock_in_a_nested_transaction_ends_all_of_it(
    server: Server, own: Connection, connect: Any, queue_name: str
) -> None:
    table = f"deadlock_{queue_name[-8:]}"
    own.execute(f"create table {table} (id int primary key, n int)")
    own.execute(f"insert into {table} values (1, 0), (2, 0)")
    other = connect(autocommit=False)
    own.execute("set deadlock_priority low")
    other.execute(f"update {table} set n = 1 where id = 2")
    waiting: list[threading.Thread] = []

    def deadlock() -> None:
        with ENGINE.transaction(own):
            own.execute(f"update {table} set n = 2 where id = 1")
            statement = f"update {table} set n = 1 where id = 1"
            waiting.append(_in_thread(lambda: other.execute(statement)))
            wait_until_blocked(server, server.session_id(other), server.session_id(own))
            own.execute(f"update {table} set n = 2 where id = 2")

    def handle() -> None:
        with ENGINE.transaction(own):
            with pytest.raises(Exception, match="deadlock") as met:
                deadlock()
            assert ENGINE.is_transient(met.value)
            assert not ENGINE.in_transaction(own)
            raise ValueError("as a handler would")

    with pytest.raises(ValueError, match="as a handler would"):
        handle()
    waiting[0].join()
    other.rollback()
    assert own.execute(f"select max(n) from {table}").fetchone()[0] == 0
    own.execute(f"drop table {table}")


def test_handler_that_ends_the_transaction_affects_no_other(
    own: Connection, database_url: str, queue_name: str
) -> None:
    queue = rowq.Queue(own)
    queue.alter_queue(queue_name, max_attempts=2, backoff_base_seconds=0)
    queue.enqueue_batch(queue_name, [rowq.NewMessage(data=number) for number in range(4)])
    table = f"effect_{queue_name[-8:]}"
    own.execute(f"create table {table} (number int)")

    def handler(message: rowq.Message, connection: Any) -> None:
        connection.cursor().execute(f"insert into {table} values (?)", (message.data,))
        if message.data == 2:
            connection.rollback()

    worker = rowq.Worker(database_url, queue_name, handler, transactional=True, drain=True)
    stats = worker.run()
    assert (stats.processed, stats.retried, stats.failed) == (3, 1, 1)
    rows = own.execute(f"select number from {table} order by number").fetchall()
    assert [number for (number,) in rows] == [0, 1, 3]
    own.execute(f"drop table {table}")


def _in_thread(call: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=call)
    thread.start()
    return thread
