"""What somebody else has made in the database rowq: none of it runs as who migrates or looks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from rowq import migrate
from rowq.doctor import examine
from rowq.engines.mysql_url import connection_parameters
from rowq.migrate.mysql import backend
from tests.engines.base import Connection, Server
from tests.engines.mysql import Session

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
    """Return a session of an account that may do everything, on the empty server."""
    with server.connect(empty_database) as connection:
        connection.execute("create database bait")
        connection.execute("create table bait.sprung (who varchar(200) not null)")
        # With a binary log it takes more than a tenant's rights to make functions and triggers.
        connection.execute("set global log_bin_trust_function_creators = 1")
        yield connection
        connection.execute("set global log_bin_trust_function_creators = 0")
        connection.execute("drop database bait")


@pytest.fixture
def tenant(admin: Connection, empty_database: str) -> Iterator[tuple[str, Session]]:
    """Return URL and session of an account with everything in rowq; what it makes goes with it."""
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
    """Return what runs the script as the stock client would."""
    return lambda _: backend.Connection(admin).execute(migrate.script("mysql"))


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
def test_what_a_tenant_made_beforehand_is_refused_and_does_not_run(
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
    list(examine(empty_database, deep=True))
    assert sprung(admin) == []


@pytest.mark.promise("P16")
@pytest.mark.parametrize("made", [[], [MIGRATION, LOG]], ids=["empty", "bookkeeping"])
def test_a_database_that_another_account_may_change_is_not_migrated_by_one_with_more_rights(
    admin: Connection, empty_database: str, tenant: tuple[str, Session], made: list[str]
) -> None:
    for statement in made:
        tenant[1].execute(statement)
    for change in (*CHANGES, script_of(admin)):
        with pytest.raises(Exception, match=r"RQ802(.|\n)*rowq_test_tenant"):
            change(empty_database)
    assert migrate.migrate(tenant[0]).applied


@pytest.mark.promise("P16")
def test_what_a_tenant_puts_into_his_own_installation_runs_for_nobody_else(
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
    list(examine(empty_database, deep=True))
    assert sprung(admin) == []


@pytest.mark.promise("P16")
def test_a_right_on_one_table_is_enough_to_be_refused(
    admin: Connection, empty_database: str
) -> None:
    migrate.migrate(empty_database)
    admin.execute("create user rowq_test_tenant@'%' identified by 'x'")
    try:
        admin.execute("grant trigger on rowq.meta to rowq_test_tenant@'%'")
        with pytest.raises(migrate.ForeignSchema, match="rowq_test_tenant"):
            migrate.migrate(empty_database)
    finally:
        admin.execute("drop user rowq_test_tenant@'%'")
    assert migrate.migrate(empty_database).notices == ()
