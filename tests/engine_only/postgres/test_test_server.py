"""The test server's own functions: waits are seen, sessions end, a crashed server comes back."""

import threading

import psycopg
import pytest

from tests.engines.base import Connection, Server, wait_until_blocked
from tests.engines.logs import LOGS
from tests.helpers.queues import Connect


def test_a_lock_wait_is_seen_with_the_session_that_is_waited_for(
    server: Server, connect: Connect, queue_name: str
) -> None:
    holder, waiter = connect(autocommit=False), connect()
    lock = "select pg_advisory_xact_lock(hashtext(%s))"
    holder.execute(lock, [queue_name])
    waiting = threading.Thread(target=waiter.execute, args=[lock, [queue_name]])
    waiting.start()
    wait_until_blocked(server, server.session_id(waiter), by=server.session_id(holder))
    holder.rollback()
    waiting.join()
    assert server.session_id(waiter) not in server.waiting_sessions()


def test_a_killed_session_is_gone_at_once(server: Server, connect: Connect) -> None:
    victim = connect()
    server.kill_session(server.session_id(victim))
    with pytest.raises(psycopg.OperationalError):
        victim.execute("select 1")


def test_each_database_is_its_own(server: Server, empty_database: str) -> None:
    with server.connect(empty_database) as connection:
        found = connection.execute("select to_regnamespace('rowq'), current_database()").fetchone()
    assert found is not None
    assert found[0] is None
    assert found[1] in empty_database


def test_the_shared_database_has_rowq_in_it(connection: Connection) -> None:
    assert connection.execute("select count(*) from rowq.version()").fetchone() == (1,)


@pytest.mark.chaos
@pytest.mark.requires("restart")
def test_a_crashed_server_comes_back_under_the_same_url(
    server: Server, empty_database: str
) -> None:
    with server.connect(empty_database) as connection:
        connection.execute("create table kept as select 42 as value")
    server.crash()
    with pytest.raises(psycopg.OperationalError):
        server.connect(empty_database)
    server.restart()
    with server.connect(empty_database) as connection:
        assert connection.execute("select value from kept").fetchone() == (42,)


@pytest.mark.chaos
@pytest.mark.requires("restart", "log")
def test_what_a_private_server_writes_is_shown_when_the_test_fails(server: Server) -> None:
    server.crash()
    server.restart()
    assert any("was not properly shut down" in text for _, text in LOGS.sections())
