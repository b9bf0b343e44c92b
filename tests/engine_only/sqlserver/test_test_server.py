"""The test server's functions: lock waits, killed sessions, the detection of Babelfish."""

import contextlib
import threading

import pytest

import rowq
from tests.engines.base import Connection, Server, wait_until_blocked
from tests.engines.sqlserver.server import babelfish_words, with_database
from tests.helpers.queues import Connect

BABELFISH = """Babelfish for PostgreSQL with SQL Server Compatibility - 12.0.2000.8
Nov 21 2026 10:51:54
Copyright (c) Amazon Web Services
PostgreSQL 16.4 on x86_64-pc-linux-gnu (Babelfish 4.3.0)"""
HELD = [
    ("update held set a = 1", "update held set a = 2"),
    (
        "exec sp_getapplock @Resource = N'held', @LockMode = N'Exclusive'",
        "begin transaction; exec sp_getapplock @Resource = N'held', @LockMode = N'Exclusive'",
    ),
    ("select * from held with (tablock, holdlock)", "alter table held add b int"),
]


def test_babelfish_is_not_called_sql_server() -> None:
    assert babelfish_words(BABELFISH) == "Babelfish 4.3 (PostgreSQL 16.4), not SQL Server"


def test_with_database_keeps_server_login_and_options() -> None:
    url = "sqlserver://sa:a%2Fb@host:14330/master?driver=FreeTDS"
    assert with_database(url, "other") == "sqlserver://sa:a%2Fb@host:14330/other?driver=FreeTDS"


@pytest.mark.requires("waits")
@pytest.mark.parametrize(("holds", "waits"), HELD, ids=["row", "named lock", "table"])
def test_lock_wait_is_reported_with_its_blocker(
    server: Server, connect: Connect, holds: str, waits: str
) -> None:
    admin, holder, waiter = connect(), connect(autocommit=False), connect()
    admin.execute("drop table if exists held")
    admin.execute("create table held (a int)")
    admin.execute("insert into held values (0)")
    holder.execute(holds)
    waiting = threading.Thread(target=waiter.execute, args=[waits])
    waiting.start()
    wait_until_blocked(server, server.session_id(waiter), by=server.session_id(holder))
    holder.rollback()
    waiting.join()
    assert server.session_id(waiter) not in server.waiting_sessions()


@pytest.mark.requires("genuine")
def test_killed_session_ends_at_once(server: Server, connect: Connect) -> None:
    victim = connect()
    server.kill_session(server.session_id(victim))
    with pytest.raises(Exception, match=r"\[(08S01|HY000|01000)\]"):
        victim.execute("select 1")


def test_empty_database_is_separate_and_has_no_rowq(
    server: Server, database_url: str, empty_database: str
) -> None:
    assert empty_database != database_url
    with contextlib.closing(server.connect(empty_database)) as connection:
        assert connection.execute("select schema_id(N'rowq')").fetchval() is None


@pytest.mark.requires("genuine")
def test_database_has_row_versions_and_is_case_sensitive(connection: Connection) -> None:
    query = """
        select d.is_read_committed_snapshot_on, d.snapshot_isolation_state, d.collation_name
        from sys.databases d where d.name = db_name()
        """
    assert tuple(connection.execute(query).fetchone()) == (True, 1, "Latin1_General_100_CS_AS")


@pytest.mark.chaos
@pytest.mark.requires("restart")
def test_crashed_server_restarts_at_the_same_url(server: Server, database_url: str) -> None:
    with contextlib.closing(server.connect(database_url)) as connection:
        connection.execute("select 42 as value into kept")
    server.crash()
    with pytest.raises(rowq.CannotConnect):
        server.connect(database_url)
    server.restart()
    with contextlib.closing(server.connect(database_url)) as connection:
        assert connection.execute("select value from kept").fetchval() == 42
