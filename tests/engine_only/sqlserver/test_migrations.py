"""migrate, status, rollback and sql on SQL Server, where a migration is one transaction."""

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import pytest

from rowq.contract import sql_directory
from rowq.engines.sqlserver.driver import value_of
from rowq.engines.sqlserver.engine import ENGINE
from rowq.engines.sqlserver.url import parse_url
from rowq.tools import migrate
from rowq.tools.engines.sqlserver.script import batches
from rowq.tools.migrate.release import release_for
from tests.engines.base import Connection, Server
from tests.helpers.one_message import leave_message, works
from tests.helpers.releases import BACK, EVERY, NEWEST

pyodbc = pytest.importorskip(
    "pyodbc",
    reason="pyodbc does not load"
    "; to run it: apt-get install unixodbc, pip install 'rowq[sqlserver]'",
    exc_type=ImportError,
)
install = pytest.importorskip("rowq.tools.engines.sqlserver.install")
look = pytest.importorskip("rowq.tools.engines.sqlserver.status")

Snapshot = dict[str, Any]

QUERIES = {
    "columns": """
        select t.name, c.column_id, c.name, type_name(c.user_type_id), c.max_length, c.scale,
            c.is_nullable, c.collation_name, c.is_computed, d.definition
        from sys.tables t
        join sys.columns c on c.object_id = t.object_id
        left join sys.default_constraints d on d.object_id = c.default_object_id
        where t.schema_id = schema_id(N'rowq')
        """,
    "indexes": """
        select t.name, i.name, i.type_desc, i.is_unique, i.allow_page_locks, i.filter_definition,
            c.key_ordinal, c.is_descending_key, col_name(t.object_id, c.column_id)
        from sys.tables t
        join sys.indexes i on i.object_id = t.object_id
        join sys.index_columns c on c.object_id = i.object_id and c.index_id = i.index_id
        where t.schema_id = schema_id(N'rowq')
        """,
    "tables": """
        select t.name, t.lock_escalation_desc, count(p.partition_id)
        from sys.tables t
        join sys.partitions p on p.object_id = t.object_id and p.index_id < 2
        where t.schema_id = schema_id(N'rowq')
        group by t.name, t.lock_escalation_desc
        """,
    "checks": """
        select object_name(c.parent_object_id), c.name, c.definition
        from sys.check_constraints c
        where c.schema_id = schema_id(N'rowq')
        """,
    "objects": """
        select o.name, o.type, m.uses_quoted_identifier, m.uses_ansi_nulls,
            m.execute_as_principal_id
        from sys.objects o
        left join sys.sql_modules m on m.object_id = o.object_id
        where o.schema_id = schema_id(N'rowq')
          and o.parent_object_id = 0
          and o.type <> 'TT'
        """,
    "types": """
        select t.name, c.column_id, c.name, type_name(c.user_type_id), c.max_length, c.is_nullable
        from sys.table_types t
        join sys.columns c on c.object_id = t.type_table_object_id
        where t.schema_id = schema_id(N'rowq')
        """,
    "rights": """
        select p.class_desc, object_name(p.major_id), user_name(p.grantee_principal_id),
            p.permission_name, p.state_desc
        from sys.database_permissions p
        where user_name(p.grantee_principal_id) like N'rowq[_]%'
        """,
    "meta": "select name, value from rowq.meta",
    "schema": "select user_name(principal_id) from sys.schemas where name = N'rowq'",
}


@pytest.fixture
def session(server: Server, empty_database: str) -> Iterator[Connection]:
    """Return the installing user's session in the empty database."""
    connection = server.connect(empty_database)
    yield connection
    ENGINE.close(connection)


@pytest.fixture
def sqlcmd(empty_database: str) -> Callable[[str], tuple[bool, str]]:
    """Return a function that runs a text with sqlcmd; it returns success and output."""
    program = shutil.which("sqlcmd") or shutil.which("/opt/mssql-tools18/bin/sqlcmd")
    if program is None:
        pytest.skip("no sqlcmd; to run it: install mssql-tools18, or go-sqlcmd")
    target = parse_url(empty_database)
    words = ["-S", f"{target.host},{target.port}", "-U", target.user, "-d", target.database, "-C"]

    def run(text: str) -> tuple[bool, str]:
        done = subprocess.run(
            [program, *words, "-b"],
            input=text,
            text=True,
            env={"SQLCMDPASSWORD": target.password},
            cwd=sql_directory() / "sqlserver",
            capture_output=True,
            check=False,
        )
        return done.returncode == 0, done.stdout + done.stderr

    return run


def run_as_sqlcmd_would(connection: Connection, text: str) -> None:
    """Run the script's batches to the first error, without the lines for sqlcmd."""
    plain = "\n".join(line for line in text.splitlines() if not line.startswith(":"))
    install.Connection(connection).execute(plain.replace("$(rowq_runs_in)", "sqlcmd"))


def snapshot(session: Connection) -> Snapshot:
    """Return all installed objects."""
    return {
        name: sorted(str(tuple(row)) for row in session.execute(query).fetchall())
        for name, query in QUERIES.items()
    }


@pytest.fixture
def intact(server: Server, empty_database: str) -> Callable[[], bool]:
    """Return a function that returns whether everything is installed unchanged.

    Babelfish keeps no source text and lower-case names, so it can compare less.
    """

    def is_intact() -> bool:
        found = migrate.status(empty_database)
        kept = found.drift == () or "genuine" not in server.capabilities
        return found.installed == NEWEST and found.notices == () and kept

    return is_intact


def is_there(session: Connection) -> bool:
    return session.execute("select schema_id(N'rowq')").fetchone()[0] is not None


def test_rollback_to_0_and_migrate_restore_everything(
    empty_database: str, session: Connection
) -> None:
    before = migrate.status(empty_database)
    assert (before.installed, before.owner, before.drift) == (0, None, ())
    assert migrate.migrate(empty_database).applied == EVERY
    whole = snapshot(session)
    works(empty_database)
    assert migrate.rollback(empty_database, to=0).rolled_back == BACK
    assert not is_there(session)
    left = "select count(*) from sys.partition_schemes where name like N'rowq[_]%'"
    assert session.execute(left).fetchone()[0] == 0
    assert migrate.migrate(empty_database).applied == EVERY
    assert snapshot(session) == whole


def test_second_migrate_changes_nothing(empty_database: str, session: Connection) -> None:
    migrate.migrate(empty_database)
    whole = snapshot(session)
    works(empty_database)
    assert migrate.migrate(empty_database).applied == ()
    assert snapshot(session) == whole


def test_procedures_keep_options_for_indexed_expressions(
    empty_database: str, session: Connection
) -> None:
    migrate.migrate(empty_database)
    wrong = session.execute(
        "select object_name(m.object_id) from sys.sql_modules m"
        " where object_schema_name(m.object_id) = N'rowq'"
        " and (m.uses_quoted_identifier = 0 or m.uses_ansi_nulls = 0)"
    ).fetchall()
    assert wrong == []


@pytest.mark.requires("genuine")
def test_status_shows_installation_and_modifications(
    empty_database: str, session: Connection
) -> None:
    migrate.migrate(empty_database)
    status = migrate.status(empty_database)
    assert re.match(r"(SQL Server \d+\.|Azure SQL )", status.server)
    assert (status.installed, status.pending, status.drift, status.notices) == (NEWEST, (), (), ())
    assert (status.owner, set(status.roles.values())) == (look.OWNER, {True})
    session.execute("drop procedure rowq.Peek")
    session.execute("drop procedure rowq.Reap")
    session.execute("create procedure rowq.Reap as select 1")
    session.execute("create procedure rowq.Mine as select 1")
    assert migrate.status(empty_database).drift == (
        migrate.Drift("Mine", "unknown"),
        migrate.Drift("Peek", "missing"),
        migrate.Drift("Reap", "changed"),
    )


def test_script_installs_the_same(
    server: Server, empty_database: str, session: Connection, intact: Callable[[], bool]
) -> None:
    migrate.migrate(empty_database)
    whole = snapshot(session)
    migrate.rollback(empty_database)
    # Run it twice, except on Babelfish: it renames indexes, so a second run does not find them.
    for _ in range(2 if "genuine" in server.capabilities else 1):
        run_as_sqlcmd_would(session, migrate.script("sqlserver"))
        assert snapshot(session) == whole
    assert session.execute("select @@trancount").fetchone()[0] == 0
    logged = session.execute("select operation, hostname from rowq.migration_log").fetchall()
    assert [tuple(row) for row in logged] == [("apply", "script")] * NEWEST
    assert migrate.migrate(empty_database).applied == ()
    assert intact()
    works(empty_database)


@pytest.mark.parametrize("way", ["script", "sources"])
def test_sqlcmd_installs_the_same(
    empty_database: str,
    session: Connection,
    sqlcmd: Callable[[str], tuple[bool, str]],
    way: str,
    intact: Callable[[], bool],
) -> None:
    migrate.migrate(empty_database)
    whole = snapshot(session)
    migrate.rollback(empty_database)
    text = ":r install.sql\n" if way == "sources" else migrate.script("sqlserver")
    for _ in range(2):
        went_well, said = sqlcmd(text)
        assert went_well, said
    assert snapshot(session) == whole
    assert migrate.migrate(empty_database).applied == ()
    assert intact()
    works(empty_database)


def test_sqlcmd_stops_at_first_error_and_leaves_nothing(
    session: Connection, sqlcmd: Callable[[str], tuple[bool, str]]
) -> None:
    text = migrate.script("sqlserver").replace("commit transaction;", "select 1 / 0;\ngo\ncommit;")
    went_well, said = sqlcmd(text)
    assert not went_well
    assert "Divide by zero" in said
    assert not is_there(session)


def test_crash_at_any_batch_leaves_nothing(
    empty_database: str, session: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate.migrate(empty_database)
    whole = snapshot(session)
    number = len(list(batches(migrate.script("sqlserver"))))
    for last in range(2, number - 2, 20):
        with monkeypatch.context() as patched:
            # A removal has fewer batches.
            patched.setattr(install, "batches", breaking_off(last // 3))
            with pytest.raises(ConnectionAbortedError):
                migrate.rollback(empty_database)
        assert snapshot(session) == whole
        migrate.rollback(empty_database, to=0)
        with monkeypatch.context() as patched:
            patched.setattr(install, "batches", breaking_off(last))
            with pytest.raises(ConnectionAbortedError):
                migrate.migrate(empty_database)
        assert not is_there(session)
        assert migrate.migrate(empty_database).installed == NEWEST
        assert snapshot(session) == whole


def breaking_off(after: int) -> Callable[[str], Iterator[str]]:
    """Return a splitter of scripts that fails after a number of batches."""
    cut: Callable[[str], Iterator[str]] = vars(install)["batches"]
    left = [after]

    def some(text: str) -> Iterator[str]:
        for batch in cut(text):
            if left[0] <= 0 and "sp_releaseapplock" not in batch:
                raise ConnectionAbortedError
            left[0] -= 1
            yield batch

    return some


def test_session_killed_in_a_migration_leaves_nothing(
    server: Server, empty_database: str, session: Connection
) -> None:
    with install.Installer(empty_database, release_for("sqlserver")) as opened:
        with pytest.raises(pyodbc.Error):
            killed_inside(server, opened)
        with pytest.raises(pyodbc.Error):
            opened.connection.execute("select 1;")
    assert not is_there(session)
    assert migrate.migrate(empty_database).applied == EVERY


def killed_inside(server: Server, migrating: Any) -> None:
    """Begin a migration and kill its session."""
    own = migrating.connection.driver_connection
    with migrating.alone(installing=True):
        server.kill_session(value_of(own, "select @@spid"))
        migrating.connection.execute("select 1;")


def test_concurrent_migrations_install_once(
    empty_database: str, session: Connection, intact: Callable[[], bool]
) -> None:
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(migrate.migrate, [empty_database] * 4))
    assert sorted(result.applied for result in done) == [(), (), (), (1,)]
    assert intact()
    assert session.execute("select count(*) from rowq.migration_log").fetchone()[0] == 1


@pytest.mark.parametrize("state", ["ready", "delayed", "leased", "dead"])
def test_rollback_refuses_to_delete_messages(
    empty_database: str, state: str, intact: Callable[[], bool]
) -> None:
    migrate.migrate(empty_database)
    leave_message(empty_database, state)
    with pytest.raises(migrate.MessagesLeft, match="RQ805"):
        migrate.rollback(empty_database)
    assert intact()
    assert migrate.rollback(empty_database, to=0, force=True).rolled_back == BACK


@pytest.mark.requires("genuine")
@pytest.mark.parametrize(
    "theirs",
    [
        "create table rowq.mine (a int)",
        "create procedure rowq.Mine as select 1",
        "create table dbo.mine (name nvarchar(100) references rowq.meta (name))",
    ],
)
def test_rollback_keeps_other_objects(
    empty_database: str, session: Connection, theirs: str
) -> None:
    migrate.migrate(empty_database)
    whole = snapshot(session)
    if "references" in theirs:
        theirs = theirs.replace("nvarchar(100)", _type_of_name(session))
    session.execute(theirs)
    with pytest.raises(migrate.SchemaInUse, match="RQ808"):
        migrate.rollback(empty_database)
    session.execute("drop table if exists rowq.mine, dbo.mine; drop procedure if exists rowq.Mine;")
    assert snapshot(session) == whole
    assert migrate.rollback(empty_database, to=0).rolled_back == BACK


def _type_of_name(session: Connection) -> str:
    """Return the key type of rowq.meta for a foreign key."""
    row = session.execute(
        "select type_name(c.user_type_id), c.max_length, c.collation_name from sys.columns c"
        " where c.object_id = object_id(N'rowq.meta') and c.name = N'name'"
    ).fetchone()
    length = row[1] // 2 if row[0].startswith("n") else row[1]
    return f"{row[0]}({length}) collate {row[2]}"


@pytest.mark.parametrize("name", ["theirs", "migration"])
def test_foreign_schema_is_refused(empty_database: str, session: Connection, name: str) -> None:
    session.execute("create schema rowq")
    session.execute(f"create table rowq.{name} (a int)")
    for refused in (migrate.migrate, migrate.status, migrate.rollback):
        with pytest.raises(migrate.ForeignSchema, match="RQ802"):
            refused(empty_database)
    with pytest.raises(Exception, match="RQ802 foreign_schema"):
        run_as_sqlcmd_would(session, migrate.script("sqlserver"))
    tables = session.execute(
        "select name from sys.tables where schema_id = schema_id(N'rowq')"
    ).fetchall()
    assert [tuple(row) for row in tables] == [(name,)]


def test_newer_installation_is_refused(empty_database: str, session: Connection) -> None:
    migrate.migrate(empty_database)
    session.execute("insert into rowq.migration values (N'x', N'ms-0002-second', sysutcdatetime())")
    for refused in (migrate.migrate, migrate.rollback):
        with pytest.raises(migrate.SchemaNewer, match="RQ804"):
            refused(empty_database)
    with pytest.raises(Exception, match="RQ804 schema_newer"):
        run_as_sqlcmd_would(session, migrate.script("sqlserver"))
    assert migrate.status(empty_database).newer == ("ms-0002-second",)


@pytest.mark.requires("genuine")
def test_user_without_rights_gets_the_dbas_statements(
    empty_database: str, session: Connection
) -> None:
    password = "Poor-1; password"
    session.execute(
        f"create login rowq_test_poor with password = N'{password}', check_policy = off"
    )
    try:
        session.execute("create user rowq_test_poor for login rowq_test_poor")
        parts = urlsplit(empty_database)
        host = parts.netloc.rpartition("@")[2]
        poor = urlunsplit(
            parts._replace(netloc=f"rowq_test_poor:{quote(password, safe='')}@{host}")
        )
        with pytest.raises(migrate.MissingPrivilege, match=r"RQ803(.|\n)*alter role db_owner add"):
            migrate.migrate(poor)
        assert not is_there(session)
        session.execute("alter role db_owner add member rowq_test_poor")
        assert migrate.migrate(poor).applied == EVERY
        assert migrate.status(empty_database).owner == "rowq_owner"
    finally:
        session.execute("drop user if exists rowq_test_poor")
        session.execute("drop login rowq_test_poor")


@pytest.mark.requires("genuine")
def test_old_compatibility_level_is_refused_with_remedy(
    empty_database: str, session: Connection
) -> None:
    name = session.execute("select db_name()").fetchone()[0]
    session.execute(f"alter database [{name}] set compatibility_level = 120")
    with pytest.raises(migrate.ServerTooOld, match="set compatibility_level = 140"):
        migrate.migrate(empty_database)
    session.execute(f"alter database [{name}] set compatibility_level = 140")
    assert migrate.migrate(empty_database).applied == EVERY
