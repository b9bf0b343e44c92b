"""Restrictions of a handler's connection, tested without a server.

PostgreSQL and MariaDB show it themselves, in engine_only/*/test_worker_transaction.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import oracledb
import pytest

import rowq
from rowq.engines import engine_for_connection
from rowq.engines.sqlserver.engine import ENGINE as SQLSERVER
from rowq.worker.engines import work_transaction
from rowq.worker.engines.base import TransactionEnded, first_words
from tests.client import tds_listener as tds
from tests.client.tds_listener import DRIVERS, TdsListener

pytest.importorskip(
    "pyodbc",
    reason="no unixODBC; to run it: apt-get install unixodbc tdsodbc",
    exc_type=ImportError,
)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("Commit", ["commit"]),
        ("  -- a\n/* b */ROLLBACK to  savepoint a b", ["rollback", "to", "savepoint", "a"]),
        ("/* a /* b */ commit */ select", ["commit"]),
        ("/* never ends", []),
        ("(select 1)", []),
        ("", []),
        ("commit;begin", ["commit"]),
        ("commit_all", ["commit_all"]),
    ],
)
def test_first_words_skip_comments(statement: str, words: list[str]) -> None:
    assert first_words(statement) == words
    assert first_words("/* a /* b */ commit */ select", comments_nest=True) == ["select"]


# SQL Server

SAME, ANOTHER, DOOMED = 1, 0, -1
OPENED = 7


@pytest.fixture
def listener() -> Iterator[TdsListener]:
    started = TdsListener()
    started.replies["select current_transaction_id();"] = tds.row(OPENED) + tds.DONE
    yield started
    started.close()


@pytest.fixture(params=DRIVERS)
def connection(request: pytest.FixtureRequest, listener: TdsListener) -> Iterator[Any]:
    opened = SQLSERVER.connect(listener.url(request.param))
    yield opened
    SQLSERVER.close(opened)


def sent(listener: TdsListener) -> list[str]:
    """Return the texts sent so far."""
    return [request.decode("utf-16-le", "replace") for request in listener.requests]


@pytest.mark.parametrize(
    "way",
    [
        lambda own: own.commit(),
        lambda own: own.rollback(),
        lambda own: own.close(),
        lambda own: own.set_autocommit(True),
        lambda own: setattr(own, "autocommit", True),
        lambda own: own.__exit__(None, None, None),
        lambda own: own.execute("commit"),
        lambda own: own.execute("/* a /* b */ */ rollback tran"),
        lambda own: own.cursor().execute("begin transaction"),
        lambda own: own.cursor().execute("begin tran"),
        lambda own: own.cursor().executemany("commit work", [(1,)]),
        lambda own: own.cursor().execute("set implicit_transactions off"),
        lambda own: own.cursor().commit(),
        lambda own: own.cursor().rollback(),
    ],
)
def test_lent_sqlserver_connection_refuses_to_end(
    connection: Any, listener: TdsListener, way: Any
) -> None:
    work = work_transaction(SQLSERVER, connection)
    work.begin()
    asked = len(listener.requests)
    with work.lend(1) as own, pytest.raises(rowq.ForbiddenInHandler):
        way(own)
    assert len(listener.requests) == asked
    assert not connection.closed
    assert not connection.autocommit


def test_lent_sqlserver_connection_allows_other_calls(
    connection: Any, listener: TdsListener
) -> None:
    work = work_transaction(SQLSERVER, connection)
    work.begin()
    listener.replies["select 5"] = tds.row(5) + tds.DONE
    with work.lend(1) as own:
        with own.cursor() as cursor:
            cursor.arraysize = 3
            assert cursor.execute("select 5").fetchall()[0][0] == 5
            assert cursor.connection is own
            assert cursor.arraysize == 3
        assert [row[0] for row in own.execute("select 5")] == [5]
        own.execute("begin try select 5; end try begin catch end catch").fetchall()
        own.timeout = 0
        assert engine_for_connection(own) is SQLSERVER
        with pytest.raises(rowq.ForbiddenInHandler, match="complete"):
            rowq.Queue(own).complete("orders", 1)
        with pytest.raises(rowq.ForbiddenInHandler, match="complete_and_dequeue"):
            rowq.Queue(own).complete_and_dequeue("orders", 1)
        rowq.Queue(own).complete("orders", 2)
    assert not any("commit" in text.lower() and "5" in text for text in sent(listener))


def test_sqlserver_transaction_is_open_twice_in_a_handler(
    connection: Any, listener: TdsListener
) -> None:
    work = work_transaction(SQLSERVER, connection)
    work.begin()
    beginning = sent(listener)[-1]
    assert "read committed" in beginning
    assert beginning.index("save transaction rowq_handler") < beginning.rindex("begin transaction")
    listener.replies[f"{OPENED}, xact_state()"] = tds.row(SAME) + tds.DONE
    assert work.keep() is None
    work.undo()
    assert "rollback transaction rowq_handler" in sent(listener)[-1]
    work.commit()
    assert "while @@trancount > 1 commit" in "".join(sent(listener)[-3:])
    assert connection.autocommit


@pytest.mark.parametrize(("state", "who"), [(ANOTHER, "a handler"), (DOOMED, "the database")])
@pytest.mark.parametrize("end", ["keep", "undo"])
def test_ended_sqlserver_transaction_raises(
    connection: Any, listener: TdsListener, state: int, who: str, end: str
) -> None:
    work = work_transaction(SQLSERVER, connection)
    work.begin()
    listener.replies[f"{OPENED}, xact_state()"] = tds.row(state) + tds.DONE
    with pytest.raises(TransactionEnded, match=who) as answer:
        getattr(work, end)()
    assert (answer.value.committed, answer.value.kept) == (False, False)
    assert connection.autocommit


# Oracle


class Oracle:
    """A fake oracledb connection."""

    def __init__(self) -> None:
        self.autocommit = True
        self.transaction_in_progress = False
        self.number: str | None = "1.2.3"
        self.done: list[str] = []

    def cursor(self) -> Any:
        return OracleCursor(self)

    def commit(self) -> None:
        self.done.append("commit")

    def rollback(self) -> None:
        self.done.append("rollback")

    def begin(self) -> None:
        self.done.append("begin")

    def close(self) -> None:
        self.done.append("close")


class OracleCursor:
    """Its cursor when it is not lent."""

    def __init__(self, connection: Oracle) -> None:
        self._connection = connection

    def __enter__(self) -> OracleCursor:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def var(self, _kind: type) -> Any:
        return SimpleNamespace(getvalue=lambda: None)

    def execute(self, statement: str, binds: dict[str, Any] | None = None) -> None:
        own = self._connection
        own.done.append(" ".join(statement.split()))
        if "local_transaction_id(true)" in statement:
            own.transaction_in_progress = True
            assert binds
            binds["number"].getvalue = lambda: "1.2.3"
        elif binds:
            is_same = own.number == binds["number"]
            binds["same"].getvalue = lambda: int(is_same)


@pytest.fixture
def oracle(monkeypatch: pytest.MonkeyPatch) -> Oracle:
    """Return a connection whose cursors act by the comment of a statement."""
    own = Oracle()

    def execute(_cursor: Any, statement: str, *_: Any, **__: Any) -> None:
        own.done.append(statement)
        if "ends" in statement:
            own.transaction_in_progress = False
        if "another" in statement:
            own.number = "4.5.6"
        if "fails" in statement:
            raise oracledb.DatabaseError("as it says")

    def init(cursor: Any, connection: Oracle) -> None:
        cursor._connection = connection
        cursor._impl = None

    monkeypatch.setattr(oracledb.Cursor, "execute", execute)
    monkeypatch.setattr(oracledb.Cursor, "executemany", execute)
    monkeypatch.setattr(oracledb.Cursor, "callproc", execute)
    monkeypatch.setattr(oracledb.Cursor, "__init__", init)
    monkeypatch.setattr(oracledb.Cursor, "connection", property(lambda cursor: cursor._connection))
    return own


def oracles(own: Oracle) -> Any:
    from rowq.worker.engines.oracle import OracleWork

    work = OracleWork(own)
    work.begin()
    return work


@pytest.mark.parametrize(
    "way",
    [
        lambda own: own.commit(),
        lambda own: own.rollback(),
        lambda own: own.begin(),
        lambda own: own.close(),
        lambda own: own.cursor().execute("commit"),
        lambda own: own.cursor().execute("ROLLBACK work"),
        lambda own: own.cursor().execute("create table a (n number)"),
        lambda own: own.cursor().execute("truncate table a"),
        lambda own: own.cursor().execute("alter table a add b number"),
        lambda own: own.cursor().execute("grant select on a to b"),
        lambda own: own.cursor().executemany("drop table a", [()]),
    ],
)
def test_lent_oracle_connection_refuses_to_end(oracle: Oracle, way: Any) -> None:
    work = oracles(oracle)
    done = list(oracle.done)
    with work.lend(1) as own, pytest.raises(rowq.ForbiddenInHandler):
        way(own)
    assert oracle.done == done
    assert work.keep() is None
    assert "rowq_guard" not in vars(oracle)


def test_lent_oracle_connection_allows_other_calls(oracle: Oracle) -> None:
    work = oracles(oracle)
    assert oracle.done[0] == "set transaction isolation level read committed"
    assert not oracle.autocommit
    with work.lend(1) as own:
        cursor = own.cursor()
        cursor.execute("rollback to savepoint a")
        cursor.execute("alter session set nls_language = 'x'")
        cursor.execute("begin p; end;")
        cursor.callproc("commit_nothing")
    assert work.keep() is None
    work.undo()
    assert "rollback to savepoint rowq_handler" in oracle.done[-1]
    cursor.execute("after the handler's time")
    work.commit()
    assert oracle.done[-1] == "commit"
    assert oracle.autocommit


@pytest.mark.parametrize("end", ["keep", "undo"])
@pytest.mark.parametrize(
    ("statement", "committed"),
    [
        ("begin ends(); end;", True),
        ("begin ends(); fails(); end;", False),
        ("begin another(); end;", True),
    ],
)
def test_ended_oracle_transaction_raises(
    oracle: Oracle, statement: str, committed: bool, end: str
) -> None:
    work = oracles(oracle)
    with work.lend(1) as own:
        cursor = own.cursor()
        if "ends" in statement:
            oracle.number = None
            with suppress(oracledb.DatabaseError):
                cursor.execute(statement)
            with pytest.raises(rowq.ForbiddenInHandler):
                cursor.execute("insert")
        else:
            cursor.execute(statement)
    with pytest.raises(TransactionEnded) as answer:
        getattr(work, end)()
    assert answer.value.committed is committed
    assert answer.value.kept is (committed and end == "keep")
    assert oracle.autocommit
