"""A crash at any point changes nothing, and the next run succeeds."""

import signal
import subprocess
import sys
import threading
from typing import Any

import psycopg
import pytest

from rowq.tools import migrate
from rowq.tools.engines.postgres.install import Installer
from rowq.tools.migrate.release import Numbered, recorded, release_for
from tests.engines.base import Connection, Server, wait_until
from tests.helpers.releases import BACK, EVERY
from tests.migrations.catalog import snapshot

INSTALL = "import sys; from rowq.tools import migrate; migrate.migrate(sys.argv[1])"
STEPS = len(recorded(release_for("postgres").migrations[0].migration))


@pytest.fixture(scope="module")
def whole(server: Server) -> dict[str, list[tuple[Any, ...]]]:
    """Return the catalog of a complete installation."""
    url = server.fresh_database()
    migrate.migrate(url)
    with server.connect(url) as connection:
        parts = snapshot(connection)
    server.drop_database(url)
    return parts


def assert_repaired(url: str, session: Connection, whole: dict[str, list[tuple[Any, ...]]]) -> None:
    assert session.execute("select to_regnamespace('rowq')").fetchone() == (None,)
    assert migrate.migrate(url).applied == EVERY
    assert snapshot(session) == whole


@pytest.mark.chaos
@pytest.mark.parametrize("number", [0, 1, STEPS // 3, STEPS // 2, STEPS - 1])
def test_session_killed_between_steps_leaves_nothing(
    number: int,
    server: Server,
    empty_database: str,
    session: Connection,
    whole: dict[str, list[tuple[Any, ...]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    original = Installer.run_steps
    done: list[str] = []

    def killed(installer: Installer, numbered: Numbered, direction: str) -> None:
        connection = installer.connection
        execute = connection.execute

        def counted(text: str) -> None:
            if len(done) == number:
                server.kill_session(connection.info.backend_pid)
            done.append(text)
            execute(text)

        patched.setattr(connection, "execute", counted)
        original(installer, numbered, direction)

    with monkeypatch.context() as patched:
        patched.setattr(Installer, "run_steps", killed)
        with pytest.raises(psycopg.OperationalError):
            migrate.migrate(empty_database)
    assert len(done) == number + 1
    assert_repaired(empty_database, session, whole)


@pytest.mark.chaos
def test_session_killed_before_the_record_leaves_nothing(
    server: Server,
    empty_database: str,
    session: Connection,
    whole: dict[str, list[tuple[Any, ...]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    original = Installer.record

    def killed(installer: Installer, numbered: Numbered, operation: str) -> None:
        server.kill_session(installer.connection.info.backend_pid)
        original(installer, numbered, operation)

    with monkeypatch.context() as patched:
        patched.setattr(Installer, "record", killed)
        with pytest.raises(psycopg.OperationalError):
            migrate.migrate(empty_database)
    assert_repaired(empty_database, session, whole)


@pytest.mark.chaos
def test_client_killed_inside_a_step_leaves_nothing(
    server: Server,
    empty_database: str,
    session: Connection,
    whole: dict[str, list[tuple[Any, ...]]],
) -> None:
    with server.connect(empty_database, autocommit=False) as blocker:
        # Create the schema without committing: another creator has to wait.
        blocker.execute("create schema rowq")
        with subprocess.Popen([sys.executable, "-c", INSTALL, empty_database]) as client:
            wait_for_a_victim(server, server.session_id(blocker))
            client.send_signal(signal.SIGKILL)
        blocker.rollback()
    assert_repaired(empty_database, session, whole)


def wait_for_a_victim(server: Server, session: int) -> int:
    """Wait until a session waits for this one; return it."""
    victims: list[int] = []

    def blocked() -> bool:
        waiting = server.waiting_sessions().items()
        victims.extend(victim for victim, blockers in waiting if session in blockers)
        return bool(victims)

    wait_until(blocked, f"a session waits for {session}", seconds=30)
    return victims[0]


@pytest.mark.chaos
def test_killed_rollback_changes_nothing(
    server: Server,
    empty_database: str,
    session: Connection,
    whole: dict[str, list[tuple[Any, ...]]],
) -> None:
    migrate.migrate(empty_database)
    failed: list[BaseException] = []

    def roll_back() -> None:
        try:
            migrate.rollback(empty_database)
        except psycopg.OperationalError as error:
            failed.append(error)

    with server.connect(empty_database, autocommit=False) as reader:
        reader.execute("select count(*) from rowq.archive")
        thread = threading.Thread(target=roll_back)
        thread.start()
        server.kill_session(wait_for_a_victim(server, server.session_id(reader)))
        thread.join()
    assert len(failed) == 1
    assert snapshot(session) == whole
    assert migrate.rollback(empty_database, to=0).rolled_back == BACK
