"""rowq's own connections to MariaDB and MySQL under settings and errors of the server."""

from collections.abc import Iterator

import pymysql
import pytest

import rowq
from rowq.engines.mysql.engine import ENGINE
from rowq.session import OwnedSession
from tests.engines.base import Connection, Server


@pytest.fixture
def queue(connection: Connection, queue_name: str) -> rowq.Queue:
    queue = rowq.Queue(connection)
    queue.create_queue(queue_name)
    return queue


@pytest.fixture
def read_only(connection: Connection) -> Iterator[str]:
    """Make new sessions read only; return the name of the setting."""
    is_mariadb = "mariadb" in connection.server_version.lower()
    setting = "tx_read_only" if is_mariadb else "transaction_read_only"
    connection.execute(f"set global {setting} = on")
    yield setting
    connection.execute(f"set global {setting} = off")


@pytest.mark.pitfall("mysql 20")
@pytest.mark.promise("P01")
def test_client_leaves_a_server_that_became_read_only(
    connection: Connection, queue: rowq.Queue, queue_name: str, database_url: str, read_only: str
) -> None:
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            connection.execute(f"set global {read_only} = off")

    with rowq.Queue(OwnedSession(database_url, sleep=pause)) as misled:
        assert misled.enqueue(queue_name, 1).outcome == "enqueued"
        assert len(pauses) == 3
    assert len(queue.peek(queue_name, max_messages=5)) == 1


@pytest.mark.pitfall("mysql 20")
def test_permanently_read_only_server_raises_connection_lost(
    queue: rowq.Queue, queue_name: str, database_url: str, request: pytest.FixtureRequest
) -> None:
    queue.enqueue(queue_name, 1)
    request.getfixturevalue("read_only")
    with rowq.connect(database_url, reconnect_seconds=0.5) as misled:
        for call in (misled.enqueue, misled.dequeue_fast, misled.dequeue_wait):
            with pytest.raises(rowq.ConnectionLost, match=r"within 0\.5 s: .*READ ONLY"):
                call(queue_name)
    assert len(queue.peek(queue_name, max_messages=5)) == 1


def test_connection_is_idle_outside_transactions_only(database_url: str) -> None:
    connection = ENGINE.connect(database_url)
    assert ENGINE.is_idle(connection)
    with ENGINE.transaction(connection):
        connection.cursor().execute("select * from rowq.meta")
        assert ENGINE.is_usable(connection)
        assert not ENGINE.is_idle(connection)
    assert ENGINE.is_idle(connection)
    ENGINE.break_off(connection)
    assert not ENGINE.is_idle(connection)


def test_callers_read_timeout_raises_the_drivers_error(
    connection: Connection, queue: rowq.Queue, queue_name: str
) -> None:
    """A socket timeout looks like an exception of a signal handler."""
    connection._read_timeout = 0.2
    with pytest.raises(pymysql.OperationalError) as met:
        queue.dequeue_wait(queue_name, wait_seconds=20)
    assert ENGINE.is_connection_lost(met.value)


@pytest.mark.pitfall("mysql 19")
def test_handled_exception_is_not_an_interruption(
    server: Server, connection: Connection, queue: rowq.Queue, database_url: str
) -> None:
    with rowq.connect(database_url) as own:
        session = server.session_id(own._session.connection())
        try:
            _time_out()
        except TimeoutError:
            server.kill_session(session)
            assert own.version().schema_version >= 1
            server.kill_session(server.session_id(connection))
            with pytest.raises(pymysql.Error) as met:
                queue.version()
    assert ENGINE.is_connection_lost(met.value)


def _time_out() -> None:
    raise TimeoutError("handled already")
