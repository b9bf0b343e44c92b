"""The test server's own functions: waits are seen, sessions end, a crashed server comes back."""

import re
import threading

import pymysql
import pytest

from tests.engines.base import Connection, Server, wait_until_blocked
from tests.engines.logs import LOGS
from tests.helpers.queues import Connect

HELD = [
    ("update held set a = 1", "update held set a = 2"),
    ("select get_lock('held', 9)", "select get_lock('held', 9)"),
    ("select * from held", "alter table held comment 'x'"),
]


@pytest.mark.parametrize(("holds", "waits"), HELD, ids=["row", "named lock", "table"])
def test_a_lock_wait_is_seen_with_the_session_that_is_waited_for(
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
    holder.execute("do release_lock('held')")
    holder.rollback()
    waiting.join()
    assert server.session_id(waiter) not in server.waiting_sessions()


def test_a_killed_session_is_gone_at_once(server: Server, connect: Connect) -> None:
    victim = connect()
    server.kill_session(server.session_id(victim))
    with pytest.raises(pymysql.OperationalError):
        victim.execute("select 1")


def test_an_empty_database_is_another_server_and_has_no_rowq(
    server: Server, database_url: str, empty_database: str
) -> None:
    assert empty_database != database_url
    with server.connect(empty_database) as connection:
        assert connection.execute("show databases like 'rowq'").fetchone() is None


def test_callers_have_the_engines_own_isolation_and_a_strange_time_zone(
    connection: Connection,
) -> None:
    shown = connection.execute("show variables where variable_name like '%%isolation'").fetchall()
    assert "REPEATABLE-READ" in {value for _, value in shown}
    assert connection.execute("select @@time_zone").fetchone() == ("+05:45",)


@pytest.mark.chaos
@pytest.mark.requires("restart")
def test_a_crashed_server_comes_back_under_the_same_url(server: Server, database_url: str) -> None:
    with server.connect(database_url) as connection:
        connection.execute("create table kept as select 42 as value")
    server.crash()
    with pytest.raises(pymysql.OperationalError):
        server.connect(database_url)
    server.restart()
    with server.connect(database_url) as connection:
        assert connection.execute("select value from kept").fetchone() == (42,)


@pytest.mark.chaos
@pytest.mark.requires("restart", "log")
def test_what_a_private_server_writes_is_shown_when_the_test_fails(server: Server) -> None:
    server.crash()
    server.restart()
    # A server whose log ended at a checkpoint recovers nothing; each says that it starts.
    words = re.compile("[Ss]tarting .*as process")
    assert any(words.search(text) for _, text in LOGS.sections())
