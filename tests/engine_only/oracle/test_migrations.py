"""migrate, status and rollback on Oracle, where each DDL statement commits."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import oracledb
import pytest

from rowq.tools import migrate
from rowq.tools.engines.oracle import install
from rowq.tools.engines.oracle.script import units
from rowq.tools.migrate.release import Release, release_for
from tests.engine_only.oracle.installed import breaking_off, objects, rows, snapshot
from tests.engines.base import Connection
from tests.engines.oracle.server import RIGHTS, OracleServer
from tests.engines.oracle.session import owner_in
from tests.helpers.dialects import dialect_of
from tests.helpers.one_message import leave_message, works
from tests.helpers.releases import BACK, EVERY, NEWEST

VARIABLE = "ROWQ_EVERY_CRASH"
"""If set, interrupt migrate at every unit instead of every tenth."""


@pytest.fixture
def session(server: OracleServer, empty_database: str) -> Iterator[Connection]:
    """Return the session of an empty schema's owner."""
    with closing(server.connect(empty_database)) as connection:
        yield connection


@pytest.mark.pitfall("oracle 3", "oracle 4")
def test_rollback_to_0_and_migrate_restore_everything(
    empty_database: str, session: Connection
) -> None:
    before = migrate.status(empty_database)
    assert (before.installed, before.owner, before.drift) == (0, None, ())
    assert migrate.migrate(empty_database).applied == EVERY
    whole = snapshot(session)
    works(empty_database)
    assert migrate.rollback(empty_database, to=0).rolled_back == BACK
    assert objects(session) == []
    assert migrate.migrate(empty_database).applied == EVERY
    assert snapshot(session) == whole


def test_second_migrate_changes_nothing(empty_database: str, session: Connection) -> None:
    migrate.migrate(empty_database)
    whole = snapshot(session)
    works(empty_database)
    assert migrate.migrate(empty_database).applied == ()
    assert snapshot(session) == whole


def test_all_installed_objects_are_valid(empty_database: str, session: Connection) -> None:
    migrate.migrate(empty_database)
    query = "select o.object_type, o.object_name from user_objects o where o.status <> 'VALID'"
    assert rows(session, query) == []
    assert rows(session, "select e.name, e.line, e.text from user_errors e") == []


def test_status_shows_installation_and_modifications(
    empty_database: str, session: Connection
) -> None:
    migrate.migrate(empty_database)
    status = migrate.status(empty_database)
    assert status.server.startswith("Oracle ")
    assert (status.installed, status.pending, status.drift, status.notices) == (NEWEST, (), (), ())
    assert status.owner == owner_in(empty_database)
    assert set(status.roles.values()) == {True}
    dialect = dialect_of(session)
    dialect.execute(session, "drop package rowq_look")
    dialect.execute(
        session, "create package rowq_mine as c_one constant number := 1; end rowq_mine;"
    )
    dialect.execute(session, "create or replace package body rowq_produce as end rowq_produce;")
    assert migrate.status(empty_database).drift == (
        migrate.Drift("rowq_look package", "missing"),
        migrate.Drift("rowq_look package body", "missing"),
        migrate.Drift("rowq_mine package", "unknown"),
        migrate.Drift("rowq_produce package body", "changed"),
    )


@pytest.mark.timeout(3600)
def test_crash_at_any_unit_is_repaired_by_next_migrate(
    empty_database: str, session: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate.migrate(empty_database)
    whole = snapshot(session)
    migrate.rollback(empty_database)
    texts = release_for("oracle").files(1).values()
    number = sum(len(list(units(text))) for text in texts)
    for last in range(number) if os.environ.get(VARIABLE) else (*range(6), *range(6, number, 10)):
        with monkeypatch.context() as patched:
            patched.setattr(install, "units", breaking_off(last))
            with pytest.raises(ConnectionAbortedError):
                migrate.migrate(empty_database)
        assert migrate.migrate(empty_database).installed == NEWEST
        assert snapshot(session) == whole
        with monkeypatch.context() as patched:
            patched.setattr(install, "units", breaking_off(4 + last // 2))
            with pytest.raises(ConnectionAbortedError):
                migrate.rollback(empty_database)
        migrate.rollback(empty_database, to=0)
        assert objects(session) == []


@pytest.mark.pitfall("oracle 12")
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("create or replace package body rowq_look as\n", "nonsense;\n"),
        ("create or replace package rowq_look authid definer as\n", "nonsense\n"),
        ("create or replace type rowq_line force as object (\n", "a nothing,\n"),
    ],
    ids=["package body", "package", "type"],
)
def test_compile_error_fails_migration_and_is_repaired(
    empty_database: str, monkeypatch: pytest.MonkeyPatch, right: str, wrong: str
) -> None:
    sent: list[str] = []

    def spoiled(text: str) -> Iterator[str]:
        for unit in units(text):
            sent.append(unit)
            yield unit.replace(right, right + wrong)

    with monkeypatch.context() as patched:
        patched.setattr(install, "units", spoiled)
        with pytest.raises(oracledb.DatabaseError, match="ORA-20700: rowq did not compile"):
            migrate.migrate(empty_database)
    assert any(right in unit for unit in sent)
    assert migrate.status(empty_database).installed == 0
    assert migrate.migrate(empty_database).applied == EVERY
    assert migrate.status(empty_database).drift == ()
    works(empty_database)


def test_concurrent_migrations_install_once(empty_database: str, session: Connection) -> None:
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(migrate.migrate, [empty_database] * 4))
    assert sorted(result.applied for result in done) == [(), (), (), (1,)]
    assert migrate.status(empty_database).drift == ()
    assert rows(session, "select count(*) from rowq_migration_log") == [(1,)]


@pytest.mark.parametrize("state", ["ready", "delayed", "leased", "dead"])
def test_rollback_refuses_to_delete_messages(empty_database: str, state: str) -> None:
    migrate.migrate(empty_database)
    leave_message(empty_database, state)
    with pytest.raises(migrate.MessagesLeft, match="RQ805"):
        migrate.rollback(empty_database)
    assert migrate.status(empty_database).drift == ()
    assert migrate.rollback(empty_database, to=0, force=True).rolled_back == BACK


def test_rollback_keeps_other_objects(empty_database: str, session: Connection) -> None:
    migrate.migrate(empty_database)
    dialect_of(session).execute(session, "create table mine (a number)")
    migrate.rollback(empty_database)
    assert objects(session) == ["MINE"]


@pytest.mark.parametrize("name", ["rowq_theirs", "rowq_queue"])
def test_foreign_tables_are_refused(empty_database: str, session: Connection, name: str) -> None:
    dialect_of(session).execute(session, f"create table {name} (a number)")
    for refused in (migrate.migrate, migrate.status, migrate.rollback):
        with pytest.raises(migrate.ForeignSchema, match="RQ802"):
            refused(empty_database)
    assert objects(session) == [name.upper()]


def test_newer_installation_is_refused(empty_database: str, session: Connection) -> None:
    migrate.migrate(empty_database)
    insert = "insert into rowq_migration values ('x', 'ora-0002-second', systimestamp)"
    dialect_of(session).execute(session, insert)
    for refused in (migrate.migrate, migrate.rollback):
        with pytest.raises(migrate.SchemaNewer, match="RQ804"):
            refused(empty_database)
    assert migrate.status(empty_database).newer == ("ora-0002-second",)


@pytest.mark.parametrize("right", RIGHTS[1:])
def test_owner_without_a_right_gets_the_list(
    server: OracleServer, empty_database: str, right: str
) -> None:
    server.execute(f"revoke {right} from {owner_in(empty_database)}")
    with pytest.raises(migrate.MissingPrivilege, match="RQ803 missing_privilege"):
        migrate.migrate(empty_database)
    server.execute(f"grant {right} to {owner_in(empty_database)}")
    assert migrate.migrate(empty_database).applied == EVERY
    works(empty_database)


def test_owner_without_a_quota_gets_a_clear_error(
    server: OracleServer, empty_database: str
) -> None:
    owner = owner_in(empty_database)
    ((space,),) = server.query(
        "select u.default_tablespace from dba_users u where u.username = :owner", owner=owner
    )
    server.execute(f'alter user {owner} quota 0 on "{space}"')
    with pytest.raises(migrate.MissingPrivilege, match="RQ803 missing_privilege: ORA-01950"):
        migrate.migrate(empty_database)


def test_old_server_is_refused(
    empty_database: str, session: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = Release.text
    monkeypatch.setattr(
        Release, "text", lambda own, name: text(own, name).replace("dbms_db_version.version", "18")
    )
    with pytest.raises(migrate.ServerTooOld, match=r"RQ801(.|\n)*19c or newer"):
        migrate.migrate(empty_database)
    assert objects(session) == []
