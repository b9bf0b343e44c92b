"""No other user's object runs, whether made before or after the installation."""

from collections.abc import Callable
from typing import Any

import pytest

from rowq.tools import migrate
from rowq.tools.engines.sqlserver import install
from tests.engines.base import Connection
from tests.helpers.releases import BACK, EVERY, NEWEST

pytestmark = pytest.mark.promise("P16")

Ran = Callable[[], list[tuple[Any, ...]]]

BOOKKEEPING = (
    """create table rowq.migration (
        migration_hash nvarchar(64) not null primary key, migration_id nvarchar(255) not null,
        applied_at_utc datetime2(6) not null
    )""",
    """create table rowq.migration_log (
        id nvarchar(36) not null primary key, migration_hash nvarchar(64) not null,
        migration_id nvarchar(255) not null, operation nvarchar(10) not null,
        username nvarchar(255) not null, hostname nvarchar(255) not null,
        created_at_utc datetime2(6) not null
    )""",
)
TRIGGER = "create trigger rowq.own on {} after insert as insert into dbo.ran values (suser_name())"


def script_of(session: Connection) -> Callable[[str], None]:
    """Return a function that runs the script as sqlcmd does."""

    def run(url: str) -> None:  # noqa: ARG001 - the session is in it
        lines = migrate.script("sqlserver").splitlines()
        plain = "\n".join(line for line in lines if not line.startswith(":"))
        install.Connection(session).execute(plain.replace("$(rowq_runs_in)", "sqlcmd"))

    return run


def refused_by_all(session: Connection, url: str, words: str) -> None:
    """Check that migrate, the script, status and doctor refuse with this reason."""
    for refused in (migrate.migrate, migrate.rollback, script_of(session)):
        with pytest.raises(Exception, match=f"RQ802(.|\n)*{words}"):
            refused(url)


def test_foreign_schema_runs_no_code_of_its_owner(
    session: Connection, empty_database: str, stranger: str, ran: Ran
) -> None:
    session.execute(f"create schema rowq authorization {stranger}")
    for statement in (*BOOKKEEPING, TRIGGER.format("rowq.migration")):
        session.execute(statement)
    refused_by_all(session, empty_database, f"belongs to {stranger}")
    with pytest.raises(migrate.ForeignSchema, match="RQ802"):
        migrate.status(empty_database)
    assert ran() == []


def test_empty_foreign_schema_is_refused(
    session: Connection, empty_database: str, stranger: str
) -> None:
    session.execute(f"create schema rowq authorization {stranger}")
    refused_by_all(session, empty_database, f"belongs to {stranger}")


@pytest.mark.parametrize(
    ("theirs", "words"),
    [
        (TRIGGER.format("rowq.meta"), "rowq.meta has trigger own"),
        (TRIGGER.format("rowq.migration_log"), "rowq.migration_log has trigger own"),
        ("alter table rowq.migration add own as len(migration_id)", "computed column own"),
        (
            "create table dbo.mine (hash nvarchar(64) not null constraint own"
            " references rowq.migration (migration_hash) on delete cascade)",
            "dbo.mine references rowq.migration by foreign key",
        ),
        pytest.param(
            "alter table rowq.meta add own nvarchar(9) not null default dbo.theirs()",
            "rowq.meta has a function in constraint",
            marks=pytest.mark.requires("genuine"),
        ),
        pytest.param(
            "create security policy dbo.own add filter predicate dbo.visible() on rowq.migration",
            "rowq.migration has a security policy",
            marks=pytest.mark.requires("genuine"),
        ),
    ],
    ids=["trigger on meta", "trigger on the log", "computed column", "key", "default", "policy"],
)
def test_code_on_a_rowq_table_stops_migrate(
    session: Connection, empty_database: str, ran: Ran, theirs: str, words: str
) -> None:
    migrate.migrate(empty_database)
    session.execute(
        "create function dbo.theirs() returns nvarchar(9) as begin return N'theirs'; end"
    )
    if "policy" in theirs:
        session.execute(
            "create function dbo.visible() returns table with schemabinding"
            " as return select 1 as is_visible"
        )
    session.execute(theirs)
    refused_by_all(session, empty_database, words)
    if words in {"computed column own", "rowq.migration has a security policy"}:
        with pytest.raises(migrate.ForeignSchema, match="RQ802"):
            migrate.status(empty_database)
    assert ran() == []


def test_view_named_like_a_table_is_refused(session: Connection, empty_database: str) -> None:
    migrate.migrate(empty_database)
    session.execute("drop table rowq.finished")
    session.execute("create view rowq.finished as select 1 as queue_id")
    refused_by_all(session, empty_database, "rowq.finished is not a table")


def test_user_named_like_a_role_gets_no_right(
    session: Connection, empty_database: str, login: str
) -> None:
    session.execute(f"create user rowq_consumer for login {login}")
    refused_by_all(session, empty_database, "rowq_consumer")


@pytest.mark.requires("genuine")
@pytest.mark.parametrize(
    "theirs",
    [
        "create role rowq_producer authorization {}",
        "create user rowq_owner for login {}",
        "create user rowq_owner without login; grant impersonate on user::rowq_owner to {}",
        "create role rowq_admin authorization dbo; grant control on role::rowq_admin to {}",
    ],
)
def test_impersonable_rowq_principals_are_refused(
    session: Connection, empty_database: str, stranger: str, theirs: str
) -> None:
    if "for login" in theirs:
        session.execute(f"drop user {stranger}")
    session.execute(theirs.format(stranger))
    refused_by_all(session, empty_database, "rowq_(owner|producer|admin)")


@pytest.mark.requires("genuine")
def test_disabled_trigger_is_ignored(session: Connection, empty_database: str) -> None:
    session.execute("create table dbo.ran (who nvarchar(128))")
    migrate.migrate(empty_database)
    session.execute(TRIGGER.format("rowq.ready"))
    session.execute("disable trigger rowq.own on rowq.ready")
    assert migrate.migrate(empty_database).applied == ()


@pytest.mark.requires("genuine")
def test_ddl_trigger_runs_without_server_rights(
    session: Connection, empty_database: str, ran: Ran
) -> None:
    """The database's owner may have one; a member of sysadmin migrates with dbo's rights only."""
    session.execute(
        "create trigger own on database for ddl_database_level_events as"
        " insert into dbo.ran select concat("
        "is_srvrolemember(N'sysadmin'), has_perms_by_name(null, null, N'CONTROL SERVER'))"
    )
    assert migrate.migrate(empty_database).applied == EVERY
    assert set(ran()) == {("00",)}
    assert migrate.status(empty_database).installed == NEWEST
    assert migrate.rollback(empty_database, to=0).rolled_back == BACK
    assert set(ran()) == {("00",)}


@pytest.mark.requires("genuine")
def test_ddl_trigger_with_server_rights_stops_migrate(
    session: Connection, empty_database: str, ran: Ran
) -> None:
    """In a trustworthy database of a sysadmin member, dbo is one too."""
    session.execute("alter database current set trustworthy on")
    session.execute(
        "create trigger own on database for ddl_database_level_events as"
        " insert into dbo.ran select suser_name()"
    )
    refused_by_all(session, empty_database, "trigger own would run with all rights on the server")
    assert ran() == []
    session.execute("disable trigger own on database")
    assert migrate.migrate(empty_database).applied == EVERY


@pytest.mark.requires("genuine")
def test_permission_to_view_a_role_is_ignored(
    session: Connection, empty_database: str, stranger: str
) -> None:
    migrate.migrate(empty_database)
    session.execute(f"grant view definition on role::rowq_admin to {stranger}")
    assert migrate.migrate(empty_database).applied == ()
