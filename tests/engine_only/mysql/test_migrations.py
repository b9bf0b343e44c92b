"""migrate, status, rollback and sql on MariaDB and MySQL, where each DDL statement commits."""

import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import rowq
from rowq.contract import sql_directory
from rowq.engines.mysql.url import connection_parameters
from rowq.tools import migrate
from rowq.tools.engines.mysql import install
from rowq.tools.engines.mysql.script import OWNER, statements
from rowq.tools.migrate.frozen import migration_files, script_of
from rowq.tools.migrate.release import Release, release_for
from rowq.tools.migrate.sources import read, sources_of
from sql.generate.release import release
from tests.engine_only.mysql.breaking import breaking_off
from tests.engines.base import Connection, Server
from tests.engines.mysql.server import set_default_role
from tests.helpers.one_message import leave_message, works
from tests.helpers.releases import (
    BACK,
    EVERY,
    NEWEST,
    change_everything,
    copied,
    copied_without_history,
    use_released,
)

VARIABLE = "ROWQ_EVERY_CRASH"
"""If set, interrupt migrate at every statement instead of every tenth."""

Snapshot = dict[str, Any]
Client = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def session(server: Server, empty_database: str) -> Iterator[Connection]:
    """Return the installing account's session on the empty server."""
    with server.connect(empty_database) as connection:
        yield connection


@pytest.fixture
def client(empty_database: str) -> Client:
    """Return a function that runs a script with the engine's client."""
    return partial(run_client, empty_database)


def run_client(url: str, text: str, *options: str) -> "subprocess.CompletedProcess[str]":
    """Run a script with the engine's client."""
    program = shutil.which("mariadb") or shutil.which("mysql")
    if program is None:
        pytest.skip("no mariadb and no mysql; to run it: apt-get install mariadb-client-core")
    parts = connection_parameters(url)
    words = [f"--{name}={parts[name]}" for name in ("host", "port", "user", "password")]
    return subprocess.run(
        [program, "--no-defaults", *words, *options],
        input=text,
        text=True,
        cwd=sql_directory() / "mysql",
        capture_output=True,
        check=False,
    )


def poor_url(session: Connection, empty_database: str, *rights: str) -> str:
    """Return the URL of a new account with these rights."""
    session.execute("create user rowq_test_poor@'%' identified by 'x'")
    for right in rights:
        session.execute(f"grant {right} to rowq_test_poor@'%'")
    parts = connection_parameters(empty_database)
    return f"mysql://rowq_test_poor:x@{parts['host']}:{parts['port']}/"


def snapshot(session: Connection) -> Snapshot:
    """Return all tables, columns, keys, routines and their rights."""
    queries = {
        "columns": "select table_name, ordinal_position, column_name, column_type, is_nullable,"
        " column_default, collation_name, extra from information_schema.columns"
        " where table_schema = 'rowq'",
        "keys": "select table_name, index_name, seq_in_index, column_name, non_unique"
        " from information_schema.statistics where table_schema = 'rowq'",
        "checks": "select table_name, constraint_type, constraint_name"
        " from information_schema.table_constraints where table_schema = 'rowq'",
        "partitions": "select table_name, partition_name from information_schema.partitions"
        " where table_schema = 'rowq' and partition_name is not null",
        # The client adds a blank after a comment within a line.
        "routines": "select routine_name, replace(routine_definition, ' */ ', ' */'),"
        " security_type, sql_mode,"
        " character_set_client from information_schema.routines where routine_schema = 'rowq'",
        "rights": "select user, routine_name, proc_priv from mysql.procs_priv where db = 'rowq'",
        "meta": "select name, value from rowq.meta",
    }
    return {
        name: sorted(map(str, session.execute(query).fetchall())) for name, query in queries.items()
    }


def test_rollback_to_0_and_migrate_restore_everything(
    empty_database: str, session: Connection
) -> None:
    before = migrate.status(empty_database)
    assert (before.installed, before.owner, before.drift) == (0, None, ())
    assert migrate.migrate(empty_database).applied == EVERY
    whole = snapshot(session)
    works(empty_database)
    assert migrate.rollback(empty_database, to=0).rolled_back == BACK
    assert session.execute("show databases like 'rowq'").fetchone() is None
    assert migrate.migrate(empty_database).applied == EVERY
    assert snapshot(session) == whole


@pytest.mark.pitfall("mysql 9")
def test_second_migrate_changes_nothing(empty_database: str, session: Connection) -> None:
    migrate.migrate(empty_database)
    whole = snapshot(session)
    works(empty_database)
    assert migrate.migrate(empty_database).applied == ()
    assert snapshot(session) == whole


def test_status_shows_installation_and_modifications(
    empty_database: str, session: Connection
) -> None:
    migrate.migrate(empty_database)
    status = migrate.status(empty_database)
    assert re.match(r"(MariaDB|MySQL) \d+\.\d+", status.server)
    assert (status.installed, status.pending, status.drift, status.notices) == (NEWEST, (), (), ())
    assert set(status.roles.values()) == {True}
    session.execute("drop procedure rowq.peek")
    session.execute("drop procedure rowq.reap")
    session.execute("create procedure rowq.reap() begin end")
    session.execute("create procedure rowq.mine() begin end")
    assert migrate.status(empty_database).drift == (
        migrate.Drift("mine", "unknown"),
        migrate.Drift("peek", "missing"),
        migrate.Drift("reap", "changed"),
    )


@pytest.mark.pitfall("mysql 12")
@pytest.mark.parametrize("way", ["script", "script without comments", "sources"])
def test_stock_client_installs_the_same(
    empty_database: str, session: Connection, client: Client, way: str
) -> None:
    migrate.migrate(empty_database)
    whole = snapshot(session)
    migrate.rollback(empty_database, to=0)
    text = printed() if way == "sources" else migrate.script("mariadb")
    for _ in range(2):
        done = client(text, *([] if "without" in way else ["--comments"]))
        assert done.returncode == 0, done.stderr
    if way != "script without comments":
        assert snapshot(session) == whole
    logged = session.execute("select operation, hostname from rowq.migration_log").fetchall()
    assert list(logged) == [("apply", "script")] * NEWEST
    status = migrate.status(empty_database)
    assert (status.installed, status.pending, status.drift) == (NEWEST, (), ())
    assert status.owner == OWNER
    assert migrate.migrate(empty_database).applied == ()
    works(empty_database)


def printed(*options: str) -> str:
    """Return the output of install.sh."""
    script = sql_directory() / "mysql" / "install.sh"
    done = subprocess.run(["sh", script, *options], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_install_sh_prints_the_scripts_statements() -> None:
    for options, with_owner in (((), True), (("--without-owner",), False)):
        script = migrate.script("mysql", with_owner=with_owner)
        assert list(statements(printed(*options))) == list(statements(script))


def test_install_sh_of_incomplete_clone_prints_failing_script(
    empty_database: str, tmp_path: Path
) -> None:
    folder = sources_of(copied(tmp_path, "mysql"))
    (folder / "routines" / "peek.sql").unlink()
    done = subprocess.run(
        ["sh", folder / "install.sh"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    installed = run_client(empty_database, done.stdout, "--comments")
    assert installed.returncode == 1
    assert "routines/peek.sql is missing" in installed.stderr
    assert migrate.status(empty_database).installed == 0


def test_install_sh_script_refuses_a_newer_rowq(
    empty_database: str, session: Connection, client: Client
) -> None:
    migrate.migrate(empty_database)
    session.execute("insert into rowq.migration values ('x', 'my-0002-second', now())")
    session.execute("drop procedure rowq.version")
    done = client(printed(), "--comments")
    assert done.returncode == 1
    assert "RQ804 schema_newer" in done.stderr
    names = "select count(*) from information_schema.routines where routine_name = 'version'"
    assert session.execute(names).fetchone() == (0,)


@pytest.mark.parametrize("way", ["install.sql", "source install.sql"])
def test_install_sql_alone_installs_nothing(
    empty_database: str, session: Connection, client: Client, way: str
) -> None:
    migrate.status(empty_database)
    text = (sql_directory() / "mysql" / "install.sql").read_text(encoding="utf-8")
    done = client(text if way == "install.sql" else way)
    assert "rowq.migration" in done.stderr
    assert session.execute("show databases like 'rowq'").fetchone() is None


def test_install_sh_without_owner_needs_only_rights_in_rowq(
    empty_database: str, session: Connection
) -> None:
    poor = poor_url(session, empty_database, "all on rowq.*")
    done = run_client(poor, printed("--without-owner"), "--comments")
    assert done.returncode == 0, done.stderr
    status = migrate.status(empty_database)
    assert (status.installed, status.drift, status.owner) == (NEWEST, (), "rowq_test_poor@%")
    works(empty_database)


@pytest.mark.slow("kills a migration at many statements")
@pytest.mark.timeout(1200)
def test_crash_at_any_statement_is_repaired_by_next_migrate(
    empty_database: str, session: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate.migrate(empty_database)
    whole = snapshot(session)
    migrate.rollback(empty_database, to=0)
    number = len(list(statements(migrate.script("mysql"))))
    # Interrupt at each of the first statements: there only the database's name identifies rowq.
    first = len(list(statements(release_for("mysql").text("preflight.sql"))))
    chosen = (*range(first, first + 6), *range(0, number, 10))
    for last in range(number) if os.environ.get(VARIABLE) else chosen:
        with monkeypatch.context() as patched:
            patched.setattr(install, "statements", breaking_off(last))
            with pytest.raises(ConnectionAbortedError):
                migrate.migrate(empty_database)
        assert migrate.migrate(empty_database).installed == NEWEST
        assert snapshot(session) == whole
        with monkeypatch.context() as patched:
            patched.setattr(install, "statements", breaking_off(20 + last // 4))
            with pytest.raises(ConnectionAbortedError):
                migrate.rollback(empty_database, to=0)
        migrate.rollback(empty_database, to=0)
        assert session.execute("show databases like 'rowq'").fetchone() is None


def test_concurrent_migrations_install_once(empty_database: str, session: Connection) -> None:
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(migrate.migrate, [empty_database] * 4))
    assert sorted(result.applied for result in done) == [(), (), (), (1,)]
    assert migrate.status(empty_database).drift == ()
    assert session.execute("select count(*) from rowq.migration_log").fetchone() == (1,)


def test_replaced_routine_is_never_missing(
    server: Server, empty_database: str, session: Connection
) -> None:
    if "mariadb" not in session.server_version.lower():
        pytest.skip(
            "MySQL cannot replace a procedure: it is missing for a moment"
            "; to run it: --engine mariadb"
        )
    migrate.migrate(empty_database)
    poor = poor_url(session, empty_database, "rowq_monitor")
    set_default_role(session, "rowq_monitor", "rowq_test_poor@'%'")
    text = release_for("mysql").files(1)["routines/version.sql"]
    begun, ended = threading.Event(), threading.Event()

    def call() -> None:
        with rowq.connect(poor) as queue:
            while not ended.is_set():
                queue.version()
                begun.set()

    with ThreadPoolExecutor(1) as pool, server.connect(empty_database) as installing:
        calls = pool.submit(call)
        try:
            assert begun.wait(30)
            for _ in range(200):
                install.Connection(installing).execute(text)
        finally:
            ended.set()
        calls.result()
    assert migrate.status(empty_database).drift == ()


@pytest.mark.parametrize("state", ["ready", "delayed", "leased", "dead"])
def test_rollback_refuses_to_delete_messages(empty_database: str, state: str) -> None:
    migrate.migrate(empty_database)
    leave_message(empty_database, state)
    with pytest.raises(migrate.MessagesLeft, match="RQ805"):
        migrate.rollback(empty_database, to=0)
    assert migrate.status(empty_database).drift == ()
    assert migrate.rollback(empty_database, to=0, force=True).rolled_back == BACK


def test_rollback_keeps_other_objects(empty_database: str, session: Connection) -> None:
    migrate.migrate(empty_database)
    session.execute("create table rowq.mine (a int)")
    with pytest.raises(migrate.SchemaInUse, match=r"RQ808.*mine"):
        migrate.rollback(empty_database, to=0)
    assert migrate.status(empty_database).drift == ()
    session.execute("drop table rowq.mine")
    migrate.rollback(empty_database, to=0)


@pytest.mark.parametrize("name", ["theirs", "migration"])
def test_foreign_database_rowq_is_refused(
    empty_database: str, session: Connection, client: Client, name: str
) -> None:
    session.execute("create database rowq")
    session.execute(f"create table rowq.{name} as select 1 as a")
    for refused in (migrate.migrate, migrate.status, migrate.rollback):
        with pytest.raises(migrate.ForeignSchema, match="RQ802"):
            refused(empty_database)
    assert "RQ802 foreign_schema" in client(migrate.script("mysql")).stderr
    tables = session.execute(
        "select table_name from information_schema.tables where table_schema = 'rowq'"
    ).fetchall()
    assert tables == ((name,),)


def test_newer_installation_is_refused(
    empty_database: str, session: Connection, client: Client
) -> None:
    migrate.migrate(empty_database)
    session.execute("insert into rowq.migration values ('x', 'my-0002-second', now())")
    for refused in (migrate.migrate, migrate.rollback):
        with pytest.raises(migrate.SchemaNewer, match="RQ804"):
            refused(empty_database)
    assert "RQ804 schema_newer" in client(migrate.script("mysql")).stderr
    assert migrate.status(empty_database).newer == ("my-0002-second",)


def test_account_without_rights_gets_a_clear_error(
    empty_database: str, session: Connection
) -> None:
    with pytest.raises(migrate.MissingPrivilege, match="RQ803"):
        migrate.migrate(poor_url(session, empty_database))
    assert session.execute("show databases like 'rowq'").fetchone() is None


@pytest.mark.parametrize(
    ("rights", "lacks"),
    [
        ("create, create routine", "ALTER"),
        ("create, drop, alter, select, insert, update, delete, execute", "ALTER ROUTINE"),
        (
            "create, drop, alter, select, insert, update, execute, create routine, alter routine",
            "DELETE",
        ),
    ],
)
def test_missing_right_is_found_before_any_change(
    empty_database: str, session: Connection, client: Client, rights: str, lacks: str
) -> None:
    poor = poor_url(session, empty_database, f"{rights} on rowq.*", "select on mysql.*")
    with pytest.raises(
        migrate.MissingPrivilege, match=f"RQ803 missing_privilege: {lacks}\n.*grant"
    ):
        migrate.migrate(poor)
    done = client(migrate.script("mysql"), "--user=rowq_test_poor", "--password=x")
    assert f"RQ803 missing_privilege: {lacks}" in done.stderr
    assert session.execute("show databases like 'rowq'").fetchone() is None


def test_rights_by_a_pattern_are_enough(empty_database: str, session: Connection) -> None:
    poor = poor_url(session, empty_database, "all on `row_`.*")
    assert migrate.migrate(poor).applied == EVERY
    works(poor)


@pytest.mark.parametrize("row_format", ["compact", "redundant"])
def test_default_row_format_is_irrelevant(
    empty_database: str, session: Connection, row_format: str
) -> None:
    ((usual,),) = session.execute("select @@global.innodb_default_row_format").fetchall()
    session.execute(f"set global innodb_default_row_format = {row_format}")
    try:
        migrate.migrate(empty_database)
        works(empty_database)
    finally:
        session.execute(f"set global innodb_default_row_format = {usual}")


def test_default_sql_mode_causes_no_drift(empty_database: str, session: Connection) -> None:
    migrate.migrate(empty_database)
    usual = migrate.status(empty_database)
    ((mode,),) = session.execute("select @@global.sql_mode").fetchall()
    session.execute(f"set global sql_mode = '{mode},PAD_CHAR_TO_FULL_LENGTH,ANSI_QUOTES'")
    try:
        assert migrate.status(empty_database) == usual
        assert migrate.migrate(empty_database).notices == ()
    finally:
        session.execute(f"set global sql_mode = '{mode}'")


def test_server_without_innodb_is_refused(
    empty_database: str, session: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = Release.text
    monkeypatch.setattr(
        Release, "text", lambda own, name: text(own, name).replace("'InnoDB'", "'Other'")
    )
    with pytest.raises(migrate.ServerTooOld, match="RQ801 server_too_old: InnoDB is missing"):
        migrate.migrate(empty_database)
    assert session.execute("show databases like 'rowq'").fetchone() is None


@pytest.mark.pitfall("mysql 1")
@pytest.mark.parametrize(
    ("version", "is_refused"),
    [
        ("10.5.29-MariaDB", True),
        ("10.6.0-MariaDB-log", False),
        ("11.8.3-MariaDB-ubu2404", False),
        ("5.7.44", True),
        ("8.0.20", True),
        ("8.0.21-cluster", False),
        ("8.4.6", False),
        ("9.1.0-commercial", False),
    ],
)
def test_old_server_is_refused(
    empty_database: str,
    session: Connection,
    monkeypatch: pytest.MonkeyPatch,
    version: str,
    is_refused: bool,
) -> None:
    text = Release.text
    monkeypatch.setattr(
        Release, "text", lambda own, name: text(own, name).replace("version()", f"'{version}'")
    )
    if is_refused:
        with pytest.raises(migrate.ServerTooOld, match=r"RQ801(.|\n)*MariaDB 10\.6 or MySQL 8"):
            migrate.migrate(empty_database)
        assert session.execute("show databases like 'rowq'").fetchone() is None
    else:
        with monkeypatch.context() as patched:
            patched.setattr(install, "statements", breaking_off(13))
            with pytest.raises(ConnectionAbortedError):
                migrate.migrate(empty_database)


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Make two releases, the second with a column, a helper and a changed routine."""
    releases = use_released(copied_without_history(tmp_path, "mysql"), monkeypatch)
    change_everything(releases)
    release(releases)
    return [script_of(migration) for migration in migration_files(releases)]


def made(session: Connection) -> tuple[int, ...]:
    """Return whether the second release's column, helper and changed routine exist."""
    queries = (
        "select count(*) from information_schema.columns"
        " where table_schema = 'rowq' and table_name = 'queue' and column_name = 'note'",
        "select count(*) from information_schema.routines"
        " where routine_schema = 'rowq' and routine_name = 'internal_second'",
        "select count(*) from information_schema.routines where routine_schema = 'rowq'"
        " and routine_name = 'version' and routine_definition like '%-- version   2%'",
    )
    return tuple(session.execute(query).fetchone()[0] for query in queries)


@pytest.mark.usefixtures("scripts")
def test_upgrade_repairs_orphaned_routines(empty_database: str, session: Connection) -> None:
    migrate.migrate(empty_database, to=1)
    session.execute("drop user 'rowq_owner'@'localhost'")
    assert migrate.migrate(empty_database).applied == (2,)
    assert migrate.status(empty_database).drift == ()
    with rowq.connect(empty_database) as queue:
        queue.create_queue("orders")
    rights = "select count(*) from mysql.procs_priv where db = 'rowq' and user like 'rowq\\_%%er'"
    assert session.execute(rights).fetchone()[0] > 10


@pytest.mark.usefixtures("scripts")
def test_migrate_upgrades_a_release_and_rolls_it_back(
    empty_database: str, session: Connection
) -> None:
    assert migrate.migrate(empty_database, to=1).applied == (1,)
    first = snapshot(session)
    with rowq.connect(empty_database) as queue:
        queue.create_queue("orders")
        queue.enqueue("orders", "hello")
        assert migrate.migrate(empty_database).applied == (2,)
        assert made(session) == (1, 1, 1)
        assert migrate.status(empty_database).drift == ()
        assert migrate.status(empty_database).owner == OWNER
        assert migrate.rollback(empty_database).rolled_back == (2,)
        assert migrate.status(empty_database).owner == OWNER, "no routine runs as who rolled back"
        assert made(session) == (0, 0, 0)
        assert snapshot(session) == first
        assert migrate.status(empty_database).drift == ()
        assert [message.body for message in queue.peek("orders")] == ['"hello"']


def test_stock_client_upgrades_with_the_release_scripts(
    scripts: list[Path], empty_database: str, session: Connection, client: Client
) -> None:
    migrate.migrate(empty_database)
    second = snapshot(session)
    migrate.rollback(empty_database)
    first = snapshot(session)
    migrate.rollback(empty_database)

    for script, whole in zip(scripts, (first, second), strict=True):
        for _ in range(2):
            done = client(read(script), "--comments")
            assert done.returncode == 0, done.stderr
            assert snapshot(session) == whole
    assert migrate.migrate(empty_database).applied == ()
    assert migrate.status(empty_database).drift == ()
    assert "RQ804 schema_newer" in client(read(scripts[0])).stderr
    assert snapshot(session) == second

    assert migrate.rollback(empty_database).rolled_back == (2,)
    assert snapshot(session) == first
    assert migrate.script("mariadb", 1) == read(scripts[1])
    assert client(migrate.script("mariadb", 1), "--comments").returncode == 0
    assert snapshot(session) == second


@pytest.mark.parametrize("with_owner", [True, False])
def test_printed_script_is_the_scripts_in_order(
    scripts: list[Path], session: Connection, client: Client, with_owner: bool
) -> None:
    text = migrate.script("mariadb", with_owner=with_owner)
    if with_owner:
        assert text == "".join(map(read, scripts))
    done = client(text, "--comments")
    assert done.returncode == 0, done.stderr
    assert made(session) == (1, 1, 1)
    definers = session.execute(
        "select distinct definer from information_schema.routines where routine_schema = 'rowq'"
    ).fetchall()
    account = session.execute("select current_user()").fetchone()[0]
    assert [definer for (definer,) in definers] == [OWNER if with_owner else account]


def test_later_script_requires_the_previous_one(
    scripts: list[Path], empty_database: str, session: Connection, client: Client
) -> None:
    assert "RQ807 unknown_migration" in client(read(scripts[1])).stderr
    assert session.execute("show tables from rowq like 'queue'").fetchone() is None
    assert client(read(scripts[0])).returncode == 0
    assert client(read(scripts[1])).returncode == 0
    assert migrate.status(empty_database).drift == ()
