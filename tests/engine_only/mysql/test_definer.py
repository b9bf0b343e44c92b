"""The routines' definer: rowq_owner, with only the rights it needs.

If the installing account cannot create it, that account is the definer; tests drop both.
"""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext

import pymysql
import pytest

import rowq
from rowq.engines.mysql.url import connection_parameters
from rowq.tools import migrate
from rowq.tools.doctor import Status, examine
from rowq.tools.engines.mysql import install
from rowq.tools.engines.mysql.script import OWNER, statements
from rowq.tools.migrate.release import release_for
from tests.engine_only.mysql.breaking import breaking_off
from tests.engines.base import Connection, Server
from tests.engines.mysql.accounts import open_account
from tests.engines.mysql.server import Session, set_default_role
from tests.helpers.calls import call, enqueue
from tests.helpers.releases import EVERY

GONE = 1449
LOCKED = {4151, 1045, 3118}
PROBLEMS = {"orphaned", "missing"}
RELEASE = release_for("mysql")
BEFORE = sum(
    len(list(statements(RELEASE.text(name))))
    for name in ("preflight.sql", "bookkeeping.sql", "lock.sql")
)
"""Statements before the first routine is created again."""

Install = Callable[[str], str]


def read_release_texts() -> list[str]:
    """Return the routines' files."""
    files = RELEASE.files(RELEASE.newest)
    return [text for name, text in files.items() if name.startswith(("internal/", "routines/"))]


@pytest.fixture
def admin(server: Server, empty_database: str) -> Iterator[Connection]:
    """Return an administrator's session on the empty server."""
    with server.connect(empty_database) as connection:
        yield connection


@pytest.fixture
def installer(admin: Connection, empty_database: str) -> Install:
    """Return a function that creates an account with rights and returns its URL."""

    def make(rights: str) -> str:
        admin.execute("create user rowq_test_leaver@'%' identified by 'x'")
        admin.execute(f"grant {rights} to rowq_test_leaver@'%' with grant option")
        parts = connection_parameters(empty_database)
        return f"mysql://rowq_test_leaver:x@{parts['host']}:{parts['port']}/"

    return make


@contextmanager
def without_owner(admin: Connection) -> Iterator[None]:
    """Drop rowq_owner, as after restoring a dump on another server."""
    admin.execute("drop user 'rowq_owner'@'localhost'")
    yield


@pytest.mark.pitfall("mysql 22")
@pytest.mark.promise("P16")
def test_routines_run_as_an_account_with_rights_on_rowq_only(
    admin: Connection, empty_database: str
) -> None:
    assert migrate.migrate(empty_database).notices == ()
    assert migrate.status(empty_database).owner == OWNER
    rows = admin.execute("show grants for 'rowq_owner'@'localhost'").fetchall()
    everywhere, *others = sorted(text for (text,) in rows if "USAGE" not in text)
    assert (others, " ON `rowq`.* TO " in everywhere) == ([], True)
    for right in ("GRANT OPTION", "TRIGGER", "EVENT", "CREATE ROUTINE", "CREATE VIEW", "ALL"):
        assert right not in everywhere
    # The account stays locked even with a password.
    admin.execute("alter user 'rowq_owner'@'localhost' identified by 'Xx1-Xx1-'")
    ((socket,),) = admin.execute("select @@socket").fetchall()
    with pytest.raises(pymysql.Error) as met:
        Session(unix_socket=socket, user="rowq_owner", password="Xx1-Xx1-")
    assert met.value.args[0] in LOCKED


@pytest.mark.promise("P16")
def test_health_names_missing_rights_of_the_owner(admin: Connection, empty_database: str) -> None:
    def detail() -> str:
        rows = call(admin, "health")
        return next(str(row.detail) for row in rows if row.check_name == "purge_lag")

    migrate.migrate(empty_database)
    assert detail() == "unknown: grant process on *.* to rowq_owner@localhost"
    admin.execute("grant process on *.* to 'rowq_owner'@'localhost'")
    assert detail() == "transactions whose dead rows are not purged yet"
    migrate.migrate(empty_database)
    assert detail() == "transactions whose dead rows are not purged yet"


def test_account_with_rights_on_rowq_only_is_the_definer(
    admin: Connection, installer: Install
) -> None:
    url = installer("all on rowq.*")
    done = migrate.migrate(url)
    assert not [line for line in done.notices if "this account" in line]
    assert migrate.status(url).owner == "rowq_test_leaver@%"
    assert admin.execute("select 1 from mysql.user where user = 'rowq_owner'").fetchone() is None


def test_account_that_cannot_create_owner_gets_a_notice(installer: Install) -> None:
    done = migrate.migrate(
        installer(
            "select, insert, update, delete, create, drop, alter, execute,"
            " create routine, alter routine on *.*"
        )
    )
    assert [line for line in done.notices if "run as this account, with all its privileges" in line]


@pytest.mark.parametrize("owned", [True, False], ids=["rowq's own", "an admin"])
def test_read_only_server_accepts_messages_by_its_definer(
    admin: Connection, empty_database: str, owned: bool
) -> None:
    install.Connection(admin).execute(migrate.script("mysql", with_owner=owned))
    call(admin, "create_queue", queue_name="orders")
    role = "rowq_producer"
    with (
        open_account(admin, empty_database, role) as opened,
        closing(opened()) as producer,
        pytest.raises(pymysql.Error, match="read-only") if owned else nullcontext(),
    ):
        admin.execute("set global read_only = on")
        try:
            enqueue(producer, "orders", "1")
        finally:
            admin.execute("set global read_only = off")


def by_a_role(admin: Connection, rights: str) -> None:
    """Give the installing account all its rights by its default role."""
    leaver = "rowq_test_leaver@'%'"
    admin.execute(f"revoke all privileges, grant option from {leaver}")
    admin.execute("create role rowq_test_rich")
    admin.execute(f"grant {rights} to rowq_test_rich with grant option")
    admin.execute(f"grant rowq_test_rich to {leaver}")
    set_default_role(admin, "rowq_test_rich", leaver)


def test_account_with_rights_by_role_creates_owner(admin: Connection, installer: Install) -> None:
    url = installer("select on *.*")
    by_a_role(admin, "all on *.*")
    assert migrate.migrate(url).notices == ()
    assert migrate.status(url).owner == OWNER
    with rowq.connect(url) as queue:
        queue.create_queue("orders")
        assert queue.enqueue("orders", 1).outcome == "enqueued"


@pytest.mark.promise("P15")
def test_rights_in_rowq_by_role_are_refused(admin: Connection, installer: Install) -> None:
    url = installer("select on *.*")
    by_a_role(admin, "all on rowq.*")
    if "mariadb" not in admin.server_version.lower():
        # On MySQL, procedures have the rights of their definer's default roles.
        assert migrate.migrate(url).applied == EVERY
        return
    why = r"RQ803 missing_privilege: ALTER other than by a role"
    with pytest.raises(migrate.MissingPrivilege, match=rf"{why}\n.*grant"):
        migrate.migrate(url)
    parts = {**connection_parameters(url), "database": None}
    with (
        closing(Session(**parts, autocommit=True)) as session,
        pytest.raises(pymysql.Error, match=why),
    ):
        install.Connection(session).execute(migrate.script("mysql", with_owner=False))
    made = "select 1 from information_schema.routines where routine_schema = 'rowq'"
    assert admin.execute(made).fetchone() is None
    admin.execute("grant all on rowq.* to rowq_test_leaver@'%'")
    assert migrate.migrate(url).applied == EVERY


@pytest.mark.promise("P16")
def test_next_migrate_changes_definer_to_rowq_owner(
    admin: Connection, empty_database: str, installer: Install
) -> None:
    url = installer("all on rowq.*")
    migrate.migrate(url)
    admin.execute("revoke all privileges on rowq.* from rowq_test_leaver@'%'")
    done = migrate.migrate(empty_database)
    assert done.notices == (
        f"all routines were recreated, to run as {OWNER}: they ran as rowq_test_leaver@%",
    )
    assert migrate.status(empty_database).owner == OWNER
    assert migrate.migrate(empty_database).notices == ()


@pytest.mark.pitfall("mysql 11")
@pytest.mark.promise("P16")
def test_orphaned_definer_is_reported_and_repaired(admin: Connection, empty_database: str) -> None:
    migrate.migrate(empty_database)
    with rowq.connect(empty_database) as queue:
        queue.create_queue("orders")
        queue.enqueue("orders", "kept")
    assert migrate.status(empty_database).drift == ()
    with without_owner(admin):
        with rowq.connect(empty_database) as queue, pytest.raises(pymysql.MySQLError) as met:
            queue.peek("orders")
        assert met.value.args[0] == GONE
        found = migrate.status(empty_database)
        assert {drift.problem for drift in found.drift} == {"orphaned"}
        assert {"peek", "internal_begin_work"} <= {drift.routine for drift in found.drift}
        assert migrate.migrate(empty_database).applied == ()

    assert migrate.status(empty_database).drift == ()
    with rowq.connect(empty_database) as queue:
        [message] = queue.dequeue_fast("orders")
        assert message.data == "kept"
    rights = "select count(*) from mysql.procs_priv where db = 'rowq' and user like 'rowq\\_%%er'"
    assert admin.execute(rights).fetchone()[0] > 10
    assert migrate.migrate(empty_database).notices == ()


@pytest.mark.promise("P16")
def test_doctor_fails_on_routine_with_another_definer(
    admin: Connection, empty_database: str
) -> None:
    def found() -> tuple[Status, str]:
        checks = {check.check_name: check for check in examine(empty_database)}
        return checks["definers"].status, checks["definers"].detail

    migrate.migrate(empty_database)
    assert found() == (Status.OK, OWNER)
    install.Connection(admin).execute(RELEASE.files(1)["routines/peek.sql"])
    account = migrate.status(empty_database).owner
    assert account != OWNER
    status, detail = found()
    assert status is Status.FAILED
    assert "rowq migrate" in detail
    migrate.migrate(empty_database)
    assert found() == (Status.OK, OWNER)


def test_doctor_accepts_account_with_rights_on_rowq_only(
    empty_database: str, installer: Install
) -> None:
    migrate.migrate(installer("all on rowq.*"))
    checks = {check.check_name: check for check in examine(empty_database)}
    assert checks["definers"].status is Status.OK


def test_interrupted_repair_is_completed_by_next_migrate(
    admin: Connection, empty_database: str, installer: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate.migrate(installer("all on rowq.*"))
    admin.execute("drop user rowq_test_leaver@'%'")
    number = sum(len(list(statements(text))) for text in read_release_texts())
    for last in (BEFORE + 1, BEFORE + number // 2, BEFORE + number - 1):
        with monkeypatch.context() as patched:
            patched.setattr(install, "statements", breaking_off(last))
            with pytest.raises(ConnectionAbortedError):
                migrate.migrate(empty_database)
        assert {drift.problem for drift in migrate.status(empty_database).drift} & PROBLEMS
    migrate.migrate(empty_database)
    assert migrate.status(empty_database).drift == ()


def test_single_orphaned_routine_is_found(
    server: Server, admin: Connection, empty_database: str, installer: Install
) -> None:
    migrate.migrate(empty_database)
    with server.connect(installer("all on *.*")) as leaver:
        leaver.execute("drop procedure rowq.peek")
        leaver.execute("create procedure rowq.peek() begin end")
    admin.execute("drop user rowq_test_leaver@'%'")
    problems = {(drift.routine, drift.problem) for drift in migrate.status(empty_database).drift}
    assert problems == {("peek", "changed"), ("peek", "orphaned")}
    migrate.migrate(empty_database)
    assert migrate.status(empty_database).drift == ()


def test_routines_of_an_older_server_are_replaced(admin: Connection, empty_database: str) -> None:
    migrate.migrate(empty_database)
    # A server upgrade leaves such procedures, without the parts for newer versions.
    text = RELEASE.files(1)["internal/begin_work"].replace("/*M!", "/*M!9")
    install.Connection(admin).execute(text)
    if migrate.status(empty_database).drift == ():
        pytest.skip("this server keeps nothing apart; to run it: --engine mariadb")
    assert migrate.migrate(empty_database).notices
    assert migrate.status(empty_database).drift == ()


def test_rollback_to_0_drops_the_account(
    admin: Connection, empty_database: str, installer: Install
) -> None:
    migrate.migrate(empty_database)
    migrate.rollback(empty_database, to=0)
    account = "select 1 from mysql.user where user = 'rowq_owner'"
    assert admin.execute(account).fetchone() is None
    migrate.migrate(empty_database)
    # An account with rights on the database alone can drop it, but no account.
    done = migrate.rollback(installer("all on rowq.*"), to=0)
    assert f"the account {OWNER}, if it exists, was not dropped" in done.notices[0]
    assert admin.execute(account).fetchone() == (1,)
