"""The routines run as the account that installed them; here it is dropped."""

from __future__ import annotations

import pymysql
import pytest

import rowq
from rowq import migrate
from rowq.engines.mysql_url import connection_parameters
from rowq.migrate.engines import release_for
from rowq.migrate.mysql import backend
from rowq.migrate.mysql.sql import statements
from tests.engine_only.mysql.breaking import breaking_off
from tests.engines.base import Connection, Server

GONE = 1449
PROBLEMS = {"orphaned", "missing"}
RELEASE = release_for("mysql")
PREFLIGHT = len(list(statements(RELEASE.text("preflight.sql"))))


def read_release_texts() -> list[str]:
    """Return the files of the routines."""
    copies = RELEASE.copies(RELEASE.newest)
    return [text for name, text in copies.items() if name.startswith(("internal/", "routines/"))]


@pytest.fixture
def installer(server: Server, empty_database: str) -> str:
    """Return the URL of an account that may do everything and can be dropped."""
    with server.connect(empty_database) as admin:
        admin.execute("create user rowq_test_leaver@'%' identified by 'x'")
        admin.execute("grant all on *.* to rowq_test_leaver@'%' with grant option")
    parts = connection_parameters(empty_database)
    return f"mysql://rowq_test_leaver:x@{parts['host']}:{parts['port']}/"


def orphan(server: Server, url: str) -> Connection:
    """Drop the account, and return a session of one that stays."""
    admin = server.connect(url)
    admin.execute("drop user rowq_test_leaver@'%'")
    return admin


@pytest.mark.promise("P16")
def test_an_orphaned_definer_is_told_and_mended_without_losing_messages(
    server: Server, empty_database: str, installer: str
) -> None:
    migrate.migrate(installer)
    with rowq.connect(installer) as queue:
        queue.create_queue("orders")
        queue.enqueue("orders", "kept")
    assert migrate.status(empty_database).drift == ()
    admin = orphan(server, empty_database)
    with (
        rowq.connect(empty_database) as queue,
        pytest.raises(pymysql.MySQLError) as met,
    ):
        queue.peek("orders")
    assert met.value.args[0] == GONE

    found = migrate.status(empty_database)
    assert {one.problem for one in found.drift} == {"orphaned"}
    assert {"peek", "internal_begin"} <= {one.routine for one in found.drift}
    done = migrate.migrate(empty_database)
    assert done.applied == ()
    assert "ran as rowq_test_leaver@%, which is gone" in done.notices[0]

    assert migrate.status(empty_database).drift == ()
    with rowq.connect(empty_database) as queue:
        [message] = queue.dequeue_fast("orders")
        assert message.data == "kept"
    rights = "select count(*) from mysql.procs_priv where db = 'rowq' and user like 'rowq\\_%%er'"
    assert admin.execute(rights).fetchone()[0] > 10
    assert migrate.migrate(empty_database).notices == ()
    admin.close()


def test_mending_that_breaks_off_anywhere_is_mended_by_the_next_migrate(
    server: Server, empty_database: str, installer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate.migrate(installer)
    number = sum(len(list(statements(text))) for text in read_release_texts())
    with orphan(server, empty_database):
        for last in (PREFLIGHT + 1, PREFLIGHT + number // 2, PREFLIGHT + number - 1):
            with monkeypatch.context() as patched:
                patched.setattr(backend, "statements", breaking_off(last))
                with pytest.raises(ConnectionAbortedError):
                    migrate.migrate(empty_database)
            assert {one.problem for one in migrate.status(empty_database).drift} & PROBLEMS
        migrate.migrate(empty_database)
        assert migrate.status(empty_database).drift == ()


def test_one_orphan_among_others_is_found(
    server: Server, empty_database: str, installer: str
) -> None:
    migrate.migrate(empty_database)
    with server.connect(installer) as leaver:
        leaver.execute("drop procedure rowq.peek")
        leaver.execute("create procedure rowq.peek() begin end")
    with orphan(server, empty_database):
        problems = {(one.routine, one.problem) for one in migrate.status(empty_database).drift}
        assert problems == {("peek", "changed"), ("peek", "orphaned")}
        migrate.migrate(empty_database)
        assert migrate.status(empty_database).drift == ()
