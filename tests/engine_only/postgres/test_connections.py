"""rowq's own connections to PostgreSQL under settings, failovers and network errors."""

import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote, urlencode

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

import rowq
from rowq.engines.postgres.engine import ENGINE
from rowq.session import OwnedSession
from rowq.tools.console.exit_codes import ExitCode
from rowq.worker.engines.postgres import PostgresNotifications
from tests.cli.conftest import run_app
from tests.client.test_half_open import with_options
from tests.engines.base import Connection, Server, wait_until, wait_until_blocked
from tests.helpers.queues import Connect

RoleUrl = Callable[[str], str]


@pytest.fixture
def queue(connection: Connection, queue_name: str) -> rowq.Queue:
    queue = rowq.Queue(connection)
    queue.create_queue(queue_name, lease_seconds=60)
    return queue


@pytest.fixture
def role() -> str:
    return f"rowq_test_{uuid.uuid4().hex[:8]}"


@pytest.fixture
def role_url(connection: Connection, database_url: str, role: str) -> Iterator[RoleUrl]:
    """Return a function that sets a parameter of a login with rowq's roles, and returns its URL."""
    roles = "rowq_producer, rowq_consumer, rowq_admin"
    connection.execute(f"create role {role} login password 'x' in role {roles}")
    parameters = {**conninfo_to_dict(database_url), "user": role, "password": "x"}
    database = quote(str(parameters.pop("dbname")), safe="")

    def url(setting: str) -> str:
        connection.execute(f"alter role {role} set {setting}")
        return f"postgresql:///{database}?{urlencode(parameters)}"

    yield url
    connection.execute(f"drop role {role}")


@pytest.mark.pitfall("postgres 20")
@pytest.mark.promise("P01")
@pytest.mark.usefixtures("queue")
def test_client_leaves_a_server_that_became_read_only(
    connection: Connection, queue_name: str, role: str, role_url: RoleUrl
) -> None:
    """Connections still reach the former primary, as in a failover."""
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            connection.execute(f"alter role {role} set default_transaction_read_only = off")

    session = OwnedSession(role_url("default_transaction_read_only = on"), sleep=pause)
    with rowq.Queue(session) as misled:
        assert misled.enqueue(queue_name, 1).outcome == "enqueued"
        assert len(pauses) == 3
        assert [message.data for message in misled.dequeue_wait(queue_name, wait_seconds=1)] == [1]


@pytest.mark.slow("waits for time limits")
@pytest.mark.pitfall("postgres 20")
def test_permanently_read_only_database_raises_connection_lost(
    queue: rowq.Queue, queue_name: str, role_url: RoleUrl
) -> None:
    url = role_url("default_transaction_read_only = on")
    with rowq.connect(url, reconnect_seconds=0.5) as misled:
        for call in (misled.enqueue, misled.dequeue_fast, misled.dequeue_wait):
            with pytest.raises(rowq.ConnectionLost, match=r"within 0\.5 s: .* read-only"):
                call(queue_name)
        assert misled.queue_stats(queue_name)[0].ready == 0
    with psycopg.connect(url) as own, pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        rowq.Queue(own).enqueue(queue_name, 1)
    assert queue.peek(queue_name) == []


@pytest.mark.promise("P02")
def test_worker_waits_for_a_writable_server(
    connection: Connection, queue: rowq.Queue, queue_name: str, role: str, role_url: RoleUrl
) -> None:
    queue.enqueue(queue_name, 1)
    url = role_url("default_transaction_read_only = on")
    worker = rowq.Worker(url, queue_name, print, drain=True)
    thread = threading.Thread(target=worker.run)
    thread.start()
    thread.join(1)
    connection.execute(f"alter role {role} set default_transaction_read_only = off")
    thread.join(30)
    assert worker.stats.processed == 1


def test_command_on_read_only_server_names_standby_at_once(
    queue: rowq.Queue, queue_name: str, role_url: RoleUrl, caplog: pytest.LogCaptureFixture
) -> None:
    url = role_url("default_transaction_read_only = on")
    ran = run_app("enqueue", queue_name, url=url, given="1")
    assert ran.code == ExitCode.NO_CONNECTION
    words = "rowq: enqueue was not executed: the server is read-only:"
    assert ran.err.startswith(words)
    assert not caplog.records
    assert queue.peek(queue_name) == []


@pytest.mark.pitfall("postgres 21")
def test_own_connection_uses_read_committed(role_url: RoleUrl) -> None:
    for level in ("serializable", "repeatable read"):
        url = role_url(f"default_transaction_isolation = '{level}'")
        connection = ENGINE.connect(url)
        with ENGINE.transaction(connection):
            row = connection.execute("show transaction_isolation").fetchone()
        assert row == ("read committed",)
        # The client changes no setting: behind a pooler, other clients share the session.
        assert connection.execute("show default_transaction_isolation").fetchone() == (level,)
        ENGINE.close(connection)


@pytest.mark.pitfall("postgres 21")
@pytest.mark.promise("P04", "P08")
def test_call_is_retried_after_a_serialization_failure(
    server: Server, connect: Connect, queue: rowq.Queue, queue_name: str, role_url: RoleUrl
) -> None:
    """Two sessions finish one claim; at this role's default level the second fails."""
    queue.enqueue_batch(queue_name, [rowq.NewMessage(data=n) for n in range(2)])
    mine, others = queue.dequeue_fast(queue_name, 2)
    with rowq.connect(role_url("default_transaction_isolation = 'serializable'")) as strict:
        blocker = connect(autocommit=False)
        rowq.Queue(blocker).complete(queue_name, mine.claim_id, [others.message_id])
        session = server.session_id(strict._session.connection())
        outcomes: list[rowq.Outcome] = []

        def complete() -> None:
            outcomes.extend(strict.complete(queue_name, mine.claim_id, [mine.message_id]))

        thread = threading.Thread(target=complete)
        thread.start()
        wait_until_blocked(server, session)
        blocker.commit()
        thread.join(30)
        assert [outcome.outcome for outcome in outcomes] == ["completed"]
        assert server.session_id(strict._session.connection()) == session


def test_retries_end_in_the_servers_error(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise psycopg.errors.SerializationFailure("could not serialize access")

    with rowq.connect(database_url, reconnect_seconds=0.3) as queue:
        monkeypatch.setattr(ENGINE, "call", refuse)
        with pytest.raises(psycopg.errors.SerializationFailure):
            queue.version()


@pytest.mark.pitfall("postgres 22")
def test_connection_is_idle_between_calls_only(database_url: str) -> None:
    connection = ENGINE.connect(database_url)
    assert ENGINE.is_idle(connection)
    with connection.transaction():
        connection.execute("select 1")
        assert ENGINE.is_usable(connection)
        assert not ENGINE.is_idle(connection)
        with pytest.raises(psycopg.errors.DivisionByZero), connection.transaction():
            connection.execute("select 1/0")
    assert ENGINE.is_idle(connection)
    connection.pgconn.send_query(b"select pg_sleep(60)")
    assert connection.pgconn.transaction_status == TransactionStatus.ACTIVE
    assert not ENGINE.is_usable(connection)
    assert not ENGINE.is_idle(connection)
    ENGINE.break_off(connection)
    assert connection.closed
    assert not ENGINE.is_usable(connection)


def test_break_off_cancels_the_running_query(
    server: Server, database_url: str, connection: Connection
) -> None:
    mine = ENGINE.connect(database_url)
    session = server.session_id(mine)
    mine.pgconn.send_query(b"select pg_sleep(60)")
    # Wait until the query runs: the server ignores an earlier cancel.
    asleep = "select from pg_stat_activity where pid = %s and wait_event = 'PgSleep'"
    wait_until(lambda: connection.execute(asleep, [session]).fetchone() is not None, "it sleeps")
    ENGINE.break_off(mine)
    there = "select from pg_stat_activity where pid = %s"
    wait_until(lambda: connection.execute(there, [session]).fetchone() is None, "the session ends")


def test_call_during_another_call_was_not_sent(database_url: str) -> None:
    connection = ENGINE.connect(database_url)
    connection.pgconn.send_query(b"select pg_sleep(60)")
    with pytest.raises(psycopg.OperationalError) as met:
        ENGINE.call(connection, "version", {})
    assert ENGINE.is_connection_lost(met.value)
    assert not ENGINE.was_sent(met.value)
    ENGINE.break_off(connection)


def test_call_briefly_restores_lock_timeout_and_ends(
    server: Server, database_url: str, queue: rowq.Queue, queue_name: str
) -> None:
    queue.enqueue(queue_name, 1)
    (message,) = queue.dequeue_fast(queue_name)
    own = ENGINE.connect(database_url)
    arguments = {"queue_name": queue_name, "lease_seconds": 60, "progress": None}

    def extend(claim_id: int) -> list[Any]:
        return ENGINE.call_briefly(own, "extend_lease", {**arguments, "claim_id": claim_id})

    ((claim_id, lease_until, _),) = extend(message.claim_id)
    assert (claim_id, lease_until > message.lease_until) == (message.claim_id, True)
    with pytest.raises(rowq.StaleClaim):
        extend(message.claim_id + 1)
    assert ENGINE.is_idle(own)
    assert own.execute("show lock_timeout").fetchone() == ("0",)
    server.kill_session(server.session_id(own))
    with pytest.raises(psycopg.OperationalError) as met:
        extend(message.claim_id)
    assert ENGINE.is_connection_lost(met.value)


WAITS = """
import sys, rowq
with rowq.connect(sys.argv[1]) as queue:
    print(queue._session.connection().info.backend_pid, flush=True)
    queue.dequeue_wait(sys.argv[2], wait_seconds=60)
"""


@pytest.mark.pitfall("postgres 19")
def test_url_options_end_the_call_of_a_dead_client(
    connection: Connection, database_url: str, queue: rowq.Queue, queue_name: str
) -> None:
    options = "options=-c%20client_connection_check_interval%3D300"
    url = with_options(database_url, options)
    command = [sys.executable, "-c", WAITS, url, queue_name]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as client:
        assert client.stdout is not None
        session = int(client.stdout.readline())
        asleep = "select from pg_stat_activity where pid = %s and wait_event = 'PgSleep'"
        wait_until(lambda: connection.execute(asleep, [session]).fetchone() is not None, "it waits")
        client.kill()
    there = "select from pg_stat_activity where pid = %s"
    wait_until(lambda: connection.execute(there, [session]).fetchone() is None, "it ends", 2)
    queue.enqueue(queue_name, 1)
    assert len(queue.peek(queue_name)) == 1


@pytest.mark.promise("P20")
@pytest.mark.usefixtures("queue")
def test_calls_ignore_the_callers_search_path(connect: Connect, queue_name: str) -> None:
    schema = f"hostile_{uuid.uuid4().hex[:8]}"
    own = connect()
    own.execute(f"create schema {schema}")
    for name in ("text", "bytea", "jsonb", "int4", "int8", "float8", "bool", "timestamptz"):
        own.execute(f"create domain {schema}.{name} as pg_catalog.varchar check (false)")
    own.execute(
        f"create function {schema}.pg_notify(pg_catalog.text, pg_catalog.text) returns void"
        " language plpgsql as 'begin raise exception ''hostile''; end'"
    )
    own.execute(f"set search_path = {schema}, pg_catalog")
    try:
        hostile = rowq.Queue(own)
        sent: dict[str, Any] = {"headers": {"a": 1}, "priority": 1, "delay_seconds": 0.0}
        for data in ("text", b"bytes"):
            hostile.enqueue(queue_name, data, dedup_key=str(data), **sent)
        claim = hostile.dequeue_wait(queue_name, 2, wait_seconds=0.1)
        assert [message.data for message in claim] == ["text", b"bytes"]
        hostile.complete(queue_name, claim[0].claim_id, [message.message_id for message in claim])
        other = connect()
        other.execute(f"set search_path = {schema}, pg_catalog")
        assert not PostgresNotifications(own).is_deaf(other, 5)
    finally:
        own.execute(f"drop schema {schema} cascade")


def test_invalid_host_name_raises_cannot_connect() -> None:
    for host in ("a" * 70, "a..b"):
        with pytest.raises(rowq.CannotConnect):
            rowq.connect(f"postgresql://{host}/db?connect_timeout=2")
