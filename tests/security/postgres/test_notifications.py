"""Another user can neither block producers by the notification queue nor reach listeners."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from rowq.tools.local_postgres.server import LocalPostgres, LocalPostgresError
from rowq.tools.migrate import migrate
from rowq.worker.engines.postgres import PostgresNotifications
from tests.engines.base import Server, wait_until
from tests.helpers.calls import call, call_one, enqueue
from tests.security.postgres.conftest import Session

SOON = 10.0
LISTENER_LOCK = 1919907698
FIRST_WITH_A_SIZE = 17
"""The first PostgreSQL version with a configurable notification queue."""


class Sessions:
    """Sessions of the superuser or another user, on a server without prepared transactions."""

    def __init__(self, url: str, opened: ExitStack) -> None:
        self._url = url
        self._opened = opened

    def open(self, user: str = "postgres") -> Session:
        """Open an account's session."""
        url = self._url.replace("postgres@", f"{user}@", 1)
        return self._opened.enter_context(psycopg.connect(url, autocommit=True))


@pytest.fixture(scope="module")
def small_server(server: Server) -> Iterator[str]:
    """Return the URL of a server with the smallest notification queue."""
    major = int(server.name.removeprefix("postgres"))
    settings = {"fsync": "off"}
    if major >= FIRST_WITH_A_SIZE:
        settings["max_notify_queue_pages"] = "64"
    with tempfile.TemporaryDirectory(prefix="rowq-test-") as room:
        local = LocalPostgres(Path(room), major, settings)
        try:
            local.__enter__()
        except LocalPostgresError as error:
            pytest.skip(f"no private server of that version: {error}; to run it: make install")
        try:
            migrate(local.url)
            with psycopg.connect(local.url, autocommit=True) as session:
                session.execute("create role stranger login")
                call(session, "create_queue", queue_name="q")
            yield local.url
        finally:
            local.__exit__(None, None, None)


@pytest.fixture
def sessions(small_server: str) -> Iterator[Sessions]:
    with ExitStack() as opened:
        yield Sessions(small_server, opened)


def queue_id_of(session: Session) -> int:
    """Return the queue's id, which another user can guess."""
    row = session.execute("select queue_id from rowq.queue where queue_name = 'q'").fetchone()
    assert row is not None
    return int(str(row[0]))


def check(session: Session, name: str) -> tuple[str, float]:
    """Return the status and value of one health check."""
    (row,) = [row for row in call(session, "health") if row.check_name == name]
    return row.status, row.value


def fill_notifications(session: Session) -> None:
    """Notify until the server refuses."""
    while True:
        session.execute(
            "select count(pg_notify('x', repeat('a', 7900) || g)) from generate_series(1, 8) g"
        )


def test_full_notification_queue_stops_no_producer(sessions: Sessions) -> None:
    admin, stranger, another = sessions.open(), sessions.open("stranger"), sessions.open("stranger")
    if admin.info.server_version < FIRST_WITH_A_SIZE * 10_000:
        pytest.skip("the queue takes 8 GB to be filled; to run it: --engine postgres18")
    assert check(admin, "notification_queue") == ("ok", 0)
    stranger.execute("listen x")
    stranger.execute("begin")
    stranger.execute("select 1")
    another.execute("select pg_advisory_lock_shared(%s, %s)", [LISTENER_LOCK, queue_id_of(admin)])
    with pytest.raises(psycopg.OperationalError, match="too many notifications"):
        fill_notifications(another)
    for place in range(5):
        enqueue(admin, "q", f"honest {place}")
    status, value = check(admin, "notification_queue")
    assert status == "critical"
    assert value > 50
    stranger.execute("rollback")
    wait_until(lambda: check(admin, "notification_queue")[0] == "ok", "the queue is emptied")


def test_notifications_require_the_listen_routine(sessions: Sessions) -> None:
    admin, worker, stranger = sessions.open(), sessions.open(), sessions.open("stranger")
    heard, overheard = PostgresNotifications(worker), PostgresNotifications(stranger)
    channel = call_one(worker, "listen", queue_name="q").channel
    for name in ("rowq", f"rowq_{queue_id_of(admin)}", "q"):
        stranger.execute(f'listen "{name}"')
        stranger.execute("select pg_notify(%s, repeat('a', 7000))", [name])
        admin.execute("select pg_notify(%s, 'q')", [name])
    enqueue(admin, "q", "secret")
    assert heard.wait(SOON) == ["q"]
    assert len(channel) > len("rowq_") + 32
    stranger.execute("notify rowq, 'the end'")
    received: list[str] = []
    while "the end" not in received:
        received += overheard.wait(SOON)
    assert received.count("q") == 3, "what the test itself has notified, and no more"
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        stranger.execute("select rowq.internal_channel(1)")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        stranger.execute("select * from rowq.meta")


def test_session_after_unlisten_receives_nothing(sessions: Sessions) -> None:
    worker = sessions.open()
    call(worker, "listen", queue_name="q")
    call(worker, "listen", queue_name="q")
    channels = "select pg_listening_channels()"
    assert len(worker.execute(channels).fetchall()) == 1
    assert call_one(worker, "unlisten", queue_name="q").outcome == "stopped"
    assert len(worker.execute(channels).fetchall()) == 1, "it had called listen twice"
    assert call_one(worker, "unlisten", queue_name="q").outcome == "stopped"
    assert worker.execute(channels).fetchall() == []


def test_every_installation_has_its_own_channels(sessions: Sessions) -> None:
    admin = sessions.open()
    call(admin, "create_queue", queue_name="another")
    first = call_one(admin, "listen", queue_name="q").channel
    assert first != call_one(admin, "listen", queue_name="another").channel
    assert first == call_one(sessions.open(), "listen", queue_name="q").channel
    (row,) = admin.execute("select value from rowq.meta where name = 'channel'").fetchall()
    assert len(str(row[0])) == len("rowq_") + 32
