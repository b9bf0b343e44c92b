"""No planted object in the database rowq runs with the rights of migrate, status or doctor."""

from collections.abc import Callable, Iterator

import pytest

from rowq.engines.mysql.url import connection_parameters
from rowq.tools import migrate
from rowq.tools.doctor import examine
from rowq.tools.engines.mysql import install
from tests.engines.base import Connection, Server
from tests.engines.mysql.server import Session, set_default_role
from tests.helpers.releases import BACK

pytestmark = pytest.mark.pitfall("mysql 22")

MIGRATION = """
    create table rowq.migration (
        migration_hash varchar(64) not null primary key, migration_id varchar(255) not null,
        applied_at_utc datetime(6) not null
    )
"""
LOG = """
    create table rowq.migration_log (
        id varchar(36) not null primary key, migration_hash varchar(64) not null,
        migration_id varchar(255) not null, operation varchar(10) not null,
        username varchar(255) not null, hostname varchar(255) not null,
        created_at_utc datetime(6) not null
    )
"""
BAIT = """
    create function rowq.own() returns int deterministic modifies sql data
    sql security invoker
    begin insert into bait.sprung values (current_user()); return 1; end
"""
TRIGGER = "create trigger rowq.own before insert on rowq.{} for each row set new.{} = ''"
VIEW = """
    create sql security invoker view rowq.migration as
    select 'x' as migration_hash, cast(rowq.own() as char) as migration_id,
           utc_timestamp() as applied_at_utc
"""
LOOKS = (migrate.status, migrate.plan_rollback, examine)
CHANGES = (migrate.migrate, migrate.rollback)


@pytest.fixture
def admin(server: Server, empty_database: str) -> Iterator[Connection]:
    """Return an administrator's session on the empty server."""
    with server.connect(empty_database) as connection:
        connection.execute("create database bait")
        connection.execute("create table bait.sprung (who varchar(200) not null)")
        # Allow this: with a binary log a tenant lacks the rights to create functions and triggers.
        connection.execute("set global log_bin_trust_function_creators = 1")
        yield connection
        connection.execute("set global log_bin_trust_function_creators = 0")
        connection.execute("drop database bait")


@pytest.fixture
def tenant(admin: Connection, empty_database: str) -> Iterator[tuple[str, Session]]:
    """Return URL and session of an account with all rights in rowq; drop its objects later."""
    admin.execute("create user rowq_test_tenant@'%' identified by 'x'")
    admin.execute("grant all on rowq.* to rowq_test_tenant@'%'")
    parts = {**connection_parameters(empty_database), "user": "rowq_test_tenant", "password": "x"}
    parts.pop("database", None)
    session = Session(**parts, autocommit=True)
    session.execute("create database if not exists rowq")
    yield f"mysql://rowq_test_tenant:x@{parts['host']}:{parts['port']}/", session
    session.close()
    admin.execute("drop user rowq_test_tenant@'%'")
    admin.execute("drop database if exists rowq")


def script_of(admin: Connection) -> Callable[[str], None]:
    """Return a function that runs the script as the engine's client does."""
    return lambda _: install.Connection(admin).execute(migrate.script("mysql"))


def sprung(admin: Connection) -> list[object]:
    return list(admin.execute("select who from bait.sprung").fetchall())


@pytest.mark.promise("P16")
@pytest.mark.parametrize(
    "made",
    [
        [BAIT],
        [BAIT, VIEW],
        [BAIT, MIGRATION, LOG, TRIGGER.format("migration", "migration_id")],
        [BAIT, LOG, VIEW],
    ],
    ids=["routine", "view", "trigger", "view beside a table"],
)
def test_objects_planted_before_installation_are_refused(
    admin: Connection, empty_database: str, tenant: tuple[str, Session], made: list[str]
) -> None:
    for statement in made:
        tenant[1].execute(statement)
    for look in LOOKS[:2]:
        with pytest.raises(migrate.ForeignSchema, match="RQ802"):
            look(empty_database)
    for change in (*CHANGES, script_of(admin)):
        with pytest.raises(Exception, match="RQ802"):
            change(empty_database)
    list(examine(empty_database))
    assert sprung(admin) == []


@pytest.mark.promise("P16")
@pytest.mark.parametrize("made", [[], [MIGRATION, LOG]], ids=["empty", "bookkeeping"])
def test_admin_refuses_a_database_others_may_change(
    admin: Connection, empty_database: str, tenant: tuple[str, Session], made: list[str]
) -> None:
    for statement in made:
        tenant[1].execute(statement)
    for change in (*CHANGES, script_of(admin)):
        with pytest.raises(Exception, match=r"RQ802(.|\n)*rowq_test_tenant"):
            change(empty_database)
    assert migrate.migrate(tenant[0]).applied


@pytest.mark.promise("P16")
def test_code_in_a_tenants_installation_runs_for_no_other(
    admin: Connection, empty_database: str, tenant: tuple[str, Session]
) -> None:
    url, session = tenant
    migrate.migrate(url)
    assert migrate.status(empty_database).owner == "rowq_test_tenant@%"
    session.execute("rename table rowq.migration to rowq.migration_was")
    session.execute(BAIT)
    session.execute(VIEW)
    for look in LOOKS[:2]:
        with pytest.raises(migrate.ForeignSchema, match=r"RQ802.*migration, own"):
            look(empty_database)
    list(examine(empty_database))
    assert sprung(admin) == []


@pytest.mark.promise("P16")
def test_right_on_one_table_is_enough_to_be_refused(admin: Connection, empty_database: str) -> None:
    migrate.migrate(empty_database)
    admin.execute("create user rowq_test_tenant@'%' identified by 'x'")
    try:
        admin.execute("grant trigger on rowq.meta to rowq_test_tenant@'%'")
        with pytest.raises(migrate.ForeignSchema, match="rowq_test_tenant"):
            migrate.migrate(empty_database)
    finally:
        admin.execute("drop user rowq_test_tenant@'%'")
    assert migrate.migrate(empty_database).notices == ()


@pytest.mark.promise("P16")
def test_rollback_counts_no_replaceable_table(
    empty_database: str, tenant: tuple[str, Session]
) -> None:
    migrate.migrate(tenant[0])
    for look in (migrate.plan_rollback, migrate.rollback):
        with pytest.raises(migrate.ForeignSchema, match=r"RQ802.*rowq_test_tenant"):
            look(empty_database)
    assert migrate.plan_rollback(tenant[0], 0).removed == BACK


@pytest.fixture
def other(admin: Connection) -> Iterator[Callable[[str], None]]:
    """Return a function that creates an account with rights, if asked by a role."""

    def make(rights: str) -> None:
        rights, _, by_role = rights.partition(" by ")
        who = "rowq_test_role" if by_role else "rowq_test_other@'%'"
        admin.execute("create user rowq_test_other@'%' identified by 'x'")
        if by_role:
            admin.execute("create role rowq_test_role")
        admin.execute(f"grant {rights} to {who}")

    yield make
    admin.execute("drop user if exists rowq_test_other@'%'")
    admin.execute("drop role if exists rowq_test_role")


@pytest.mark.promise("P16")
@pytest.mark.parametrize(
    "rights",
    [
        "create view on *.*",
        "create, drop on *.*",
        "create routine, alter routine, process on *.*",
        "create view on *.* by role",
    ],
)
def test_account_with_rights_on_all_databases_is_refused(
    admin: Connection, empty_database: str, other: Callable[[str], None], rights: str
) -> None:
    migrate.migrate(empty_database)
    other(rights)
    for change in (migrate.plan_rollback, *CHANGES, script_of(admin)):
        with pytest.raises(Exception, match=r"RQ802(.|\n)*open to rowq_test_"):
            change(empty_database)
    migrate.status(empty_database)


@pytest.mark.slow("installs for each right", ci="mariadb")
@pytest.mark.promise("P16")
@pytest.mark.parametrize(
    "rights",
    [
        "all on *.*",
        "create user, create view on *.*",
        "select, show view, trigger, event, lock tables, process on *.*",
        "all on *.* by role",
        "select, execute on *.* by role",
        "all on rowq_test.*",
    ],
)
def test_admin_and_backup_accounts_are_not_refused(
    admin: Connection, empty_database: str, other: Callable[[str], None], rights: str
) -> None:
    other(rights)
    if "create user" in rights and "mariadb" not in admin.server_version.lower():
        # On MySQL, an account without SYSTEM_USER may not change those that have it.
        with pytest.raises(migrate.ForeignSchema, match="open to rowq_test_other"):
            migrate.migrate(empty_database)
        return
    script_of(admin)(empty_database)
    migrate.migrate(empty_database)
    assert migrate.plan_rollback(empty_database, 0).removed == BACK
    migrate.rollback(empty_database, to=0)


@pytest.mark.promise("P16")
def test_account_with_the_same_rights_is_not_refused(
    admin: Connection, other: Callable[[str], None], tenant: tuple[str, Session]
) -> None:
    rights = (
        "select, insert, update, delete, create, drop, alter, execute, create routine,"
        " alter routine on *.*"
    )
    admin.execute("revoke all on rowq.* from rowq_test_tenant@'%'")
    admin.execute(f"grant {rights} to rowq_test_tenant@'%' with grant option")
    other(rights)
    assert migrate.migrate(tenant[0]).applied
    admin.execute("revoke select on *.* from rowq_test_other@'%'")
    with pytest.raises(migrate.ForeignSchema, match="open to rowq_test_other"):
        migrate.migrate(tenant[0])


@pytest.mark.promise("P16")
def test_rights_by_a_role_refuse_a_changeable_database(
    admin: Connection, tenant: tuple[str, Session], other: Callable[[str], None]
) -> None:
    other("usage on *.*")
    admin.execute("create role rowq_test_rich")
    admin.execute("grant all on *.* to rowq_test_rich with grant option")
    admin.execute("grant rowq_test_rich to rowq_test_other@'%'")
    set_default_role(admin, "rowq_test_rich", "rowq_test_other@'%'")
    mighty = tenant[0].replace("rowq_test_tenant", "rowq_test_other")
    with pytest.raises(migrate.ForeignSchema, match="open to rowq_test_tenant"):
        migrate.migrate(mighty)
    admin.execute("revoke all on rowq.* from rowq_test_tenant@'%'")
    admin.execute("create role rowq_test_poor")
    admin.execute("grant create view on rowq.* to rowq_test_poor")
    with pytest.raises(migrate.ForeignSchema, match="open to rowq_test_poor"):
        migrate.migrate(mighty)
    admin.execute("drop role rowq_test_poor")
    assert migrate.migrate(mighty).applied


def test_rights_in_a_database_with_capitals_are_ignored(
    admin: Connection, empty_database: str
) -> None:
    if admin.execute("select @@lower_case_table_names").fetchall() != ((0,),):
        pytest.skip(
            "this server takes ROWQ and rowq for the same database"
            "; to run it: Linux, or lower_case_table_names=0"
        )
    admin.execute("create database ROWQ")
    try:
        admin.execute("create user rowq_test_tenant@'%' identified by 'x'")
        admin.execute("grant all on ROWQ.* to rowq_test_tenant@'%'")
        for statement in ("create table ROWQ.own (i int)", "create view ROWQ.queue as select 1"):
            admin.execute(statement)
        assert migrate.migrate(empty_database).applied
        assert migrate.status(empty_database).drift == ()
        assert migrate.rollback(empty_database, to=0).rolled_back
    finally:
        admin.execute("drop database ROWQ")
        admin.execute("drop user if exists rowq_test_tenant@'%'")


@pytest.mark.promise("P16")
@pytest.mark.parametrize(
    ("made", "why"),
    [
        ("", "may log in"),
        ("account lock; grant select on *.* to {}", "has more rights"),
        ("account lock; grant select on rowq_test.* to {}", "has more rights"),
    ],
    ids=["login", "everywhere", "elsewhere"],
)
def test_planted_account_named_rowq_owner_is_refused(
    admin: Connection, empty_database: str, made: str, why: str
) -> None:
    owner = "'rowq_owner'@'localhost'"
    admin.execute(f"drop user if exists {owner}")
    for statement in f"create user {owner} identified by 'x' {made}".format(owner).split(";"):
        admin.execute(statement)
    for change in (*CHANGES, script_of(admin)):
        with pytest.raises(Exception, match=f"RQ802(.|\n)*rowq_owner {why}"):
            change(empty_database)
    admin.execute(f"drop user {owner}")
    assert migrate.migrate(empty_database).notices == ()


@pytest.mark.promise("P16")
def test_routine_with_a_quote_in_its_name_is_shown(admin: Connection, empty_database: str) -> None:
    migrate.migrate(empty_database)
    name = "x` from rowq_admin#"
    quoted = name.replace("`", "``")
    admin.execute(f"create procedure rowq.`{quoted}`() sql security definer select 1")
    try:
        admin.execute(f"grant execute on procedure rowq.`{quoted}` to rowq_monitor")
        assert {entry.routine for entry in migrate.status(empty_database).drift} == {name}
        migrate.migrate(empty_database)
        rights = "select user, routine_name from mysql.procs_priv where db = 'rowq'"
        rows = set(admin.execute(rights).fetchall())
        assert ("rowq_monitor", name) not in rows
        assert ("rowq_admin", "enqueue") in rows
    finally:
        admin.execute(f"drop procedure rowq.`{quoted}`")
