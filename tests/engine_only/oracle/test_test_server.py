"""The test server's functions: lock waits, killed sessions, separate schemas."""

import contextlib
import threading

import oracledb
import pytest

import rowq
from rowq.tools import migrate
from tests.engine_only.oracle.installed import objects
from tests.engines.base import Connection, wait_until, wait_until_blocked
from tests.engines.oracle.server import OracleServer
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect

HELD = [
    ("update held set a = 1", "update held set a = 2"),
    ("insert into held (a) values (7)", "insert into held (a) values (7)"),
    ("update held set a = 1", "lock table held in exclusive mode"),
]


@pytest.mark.parametrize(("holds", "waits"), HELD, ids=["row", "key", "table"])
def test_lock_wait_is_reported_with_its_blocker(
    server: OracleServer, connect: Connect, holds: str, waits: str
) -> None:
    admin, holder, waiter = connect(), connect(autocommit=False), connect()
    admin.execute("create table held (a number primary key)")
    try:
        admin.execute("insert into held values (0)")
        holder.execute(holds)
        waiting = threading.Thread(target=waiter.execute, args=[waits])
        waiting.start()
        wait_until_blocked(server, server.session_id(waiter), by=server.session_id(holder))
        holder.rollback()
        waiting.join()
        assert server.session_id(waiter) not in server.waiting_sessions()
    finally:
        holder.close()
        waiter.close()
        admin.execute("drop table held purge")


def test_killed_session_releases_its_locks(server: OracleServer, connect: Connect) -> None:
    victim, other = connect(autocommit=False), connect()
    other.execute("create table held (a number)")
    other.execute("insert into held values (0)")
    victim.execute("update held set a = 1")
    server.kill_session(server.session_id(victim))
    other.call_timeout = 10_000
    other.execute("update held set a = 2")
    other.execute("drop table held purge")
    with pytest.raises(oracledb.Error):
        victim.execute("select 1")


def test_closed_session_is_not_counted(
    server: OracleServer, database_url: str, connection: Connection
) -> None:
    before = dialect_of(connection).other_sessions(connection)
    other = server.connect(database_url)
    assert dialect_of(connection).other_sessions(connection) == before + 1
    other.close()
    other.close()
    wait_until(
        lambda: dialect_of(connection).other_sessions(connection) == before, "the session is gone"
    )


def test_empty_database_is_a_separate_empty_schema(
    server: OracleServer, database_url: str, empty_database: str
) -> None:
    assert empty_database != database_url
    with contextlib.closing(server.connect(empty_database)) as connection:
        assert objects(connection) == []
        with pytest.raises(oracledb.DatabaseError, match="PLS-00201"):
            connection.execute("declare r sys_refcursor; begin rowq.version(p_rows => r); end;")


def test_begin_opens_a_transaction_on_the_server(connection: Connection) -> None:
    dialect = dialect_of(connection)
    query = "select count(*) from dual where dbms_transaction.local_transaction_id is not null"
    for isolation in ("read committed", "repeatable read", "serializable"):
        dialect.begin(connection, isolation)
        assert dialect.execute(connection, query).fetchone() == (1,)
        dialect.rollback(connection)
        assert dialect.execute(connection, query).fetchone() == (0,)


def test_pass_seconds_skips_locked_rows(
    connection: Connection, connect: Connect, queue: str
) -> None:
    other = connect()
    other.call_timeout = 5000
    rowq.Queue(connection).enqueue(queue, 1)
    dialect = dialect_of(connection)
    dialect.begin(connection)
    rowq.Queue(connection).dequeue_fast(queue)
    dialect.pass_seconds(other, queue, 60)
    dialect.rollback(connection)
    dialect.pass_seconds(other, queue, 60)
    age = rowq.Queue(other).queue_stats(queue)[0].oldest_ready_seconds
    assert age is not None
    assert 60 <= age < 100


@pytest.mark.chaos
@pytest.mark.requires("restart")
def test_crashed_server_restarts_at_the_same_url(server: OracleServer, empty_database: str) -> None:
    migrate.migrate(empty_database)
    server.crash()
    with pytest.raises(rowq.CannotConnect):
        server.connect(empty_database)
    server.restart()
    assert migrate.status(empty_database).drift == ()
