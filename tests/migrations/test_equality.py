"""install.sql, migrate and the printed script install the same schema."""

from pathlib import Path
from typing import Any

import pytest

from rowq.contract import sql_directory
from rowq.tools import migrate
from rowq.tools.migrate.sources import sources_of
from sql.generate.install import parts_of_bookkeeping
from sql.generate.markers import fresh
from tests.engines.base import Connection, Server
from tests.helpers.one_message import works
from tests.helpers.releases import BACK, NEWEST, change_everything
from tests.migrations.catalog import snapshot
from tests.migrations.conftest import Psql

INSTALL = sql_directory() / "postgres" / "install.sql"
REMEMBERED = "select migration_hash, migration_id from rowq.migration order by migration_id"


@pytest.fixture
def migrated(server: Server, database_url: str) -> Connection:
    """Return a session in a migrated database."""
    connection = server.connect(database_url)
    yield connection
    connection.close()


def without_partitions(parts: dict[str, list[tuple[object, ...]]]) -> dict[str, list[Any]]:
    """Leave out the archive partitions of other tests."""
    return {
        name: [row for row in rows if not str(row[0]).startswith("archive_2")]
        for name, rows in parts.items()
    }


def without_comments(parts: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Leave out the comments of comments.sql, which psql does not install."""
    described = {"relations", "columns", "routines"}
    return {
        name: [row[:-1] for row in rows] if name in described else rows
        for name, rows in parts.items()
    }


def test_install_sql_equals_migrate(
    empty_database: str, session: Connection, migrated: Connection, psql: Psql
) -> None:
    for _ in range(2):
        done = psql(empty_database, "-f", str(INSTALL))
        assert (done.returncode, done.stderr) == (0, "")
    installed = snapshot(session)
    assert installed["routines"]
    wanted = without_partitions(snapshot(migrated))
    assert without_comments(installed) == without_comments(wanted)
    assert session.execute(REMEMBERED).fetchall() == migrated.execute(REMEMBERED).fetchall()
    logged = session.execute("select operation, hostname from rowq.migration_log").fetchall()
    assert logged == [("apply", "script")] * NEWEST
    status = migrate.status(empty_database)
    assert (status.installed, status.pending, status.drift) == (NEWEST, (), ())
    assert installed != wanted
    assert migrate.migrate(empty_database).applied == ()
    assert snapshot(session) == wanted
    works(empty_database)


def test_install_sql_refuses_a_newer_rowq(
    empty_database: str, session: Connection, psql: Psql
) -> None:
    migrate.migrate(empty_database)
    session.execute("insert into rowq.migration values ('x', 'pg-0002-second', now())")
    session.execute("drop function rowq.version()")
    done = psql(empty_database, "-f", str(INSTALL))
    assert (done.returncode, "RQ804 schema_newer" in done.stderr) == (3, True)
    assert session.execute("select to_regproc('rowq.version')").fetchone() == (None,)


def test_install_sql_installs_two_releases_but_upgrades_none(
    releases: Path, empty_database: str, session: Connection, psql: Psql
) -> None:
    migrate.migrate(empty_database)
    change_everything(releases)
    install = sources_of(releases) / "install.sql"
    # Add the column to the sources too; the test's own lack it.
    table = install.parent / "tables.sql"
    column = "alter table rowq.queue add column if not exists note text;\n"
    table.write_text(table.read_text(encoding="utf-8") + column, encoding="utf-8")
    install.write_text(fresh(install, parts_of_bookkeeping(install.parent)), encoding="utf-8")

    done = psql(empty_database, "-f", str(install))
    assert (done.returncode, "RQ807 unknown_migration" in done.stderr) == (3, True)
    assert migrate.status(empty_database).installed == 1

    migrate.rollback(empty_database, to=0)
    done = psql(empty_database, "-f", str(install))
    assert (done.returncode, done.stderr) == (0, "")
    assert len(session.execute(REMEMBERED).fetchall()) == 2
    status = migrate.status(empty_database)
    assert (status.installed, status.pending, status.drift) == (2, (), ())
    for _ in range(2):
        assert psql(empty_database, "-f", str(install)).returncode == 0
    assert migrate.rollback(empty_database, to=1).rolled_back == (2,)


@pytest.mark.parametrize("way", ["file", "pipe"])
def test_script_equals_migrate(
    way: str,
    empty_database: str,
    session: Connection,
    migrated: Connection,
    psql: Psql,
    tmp_path: Path,
) -> None:
    text = migrate.script("postgres")
    if way == "file":
        (tmp_path / "install.sql").write_text(text, encoding="utf-8")
        done = psql(empty_database, "-f", str(tmp_path / "install.sql"))
    else:
        done = psql(empty_database, text=text)
    assert (done.returncode, done.stderr) == (0, "")
    assert snapshot(session) == without_partitions(snapshot(migrated))
    assert session.execute(REMEMBERED).fetchall() == migrated.execute(REMEMBERED).fetchall()
    version = "select rowq_version, schema_version from rowq.version()"
    assert session.execute(version).fetchall() == migrated.execute(version).fetchall()


def test_migrate_changes_nothing_after_the_script(
    empty_database: str, session: Connection, psql: Psql
) -> None:
    assert psql(empty_database, text=migrate.script("postgres")).returncode == 0
    before = snapshot(session)
    assert migrate.migrate(empty_database).applied == ()
    assert snapshot(session) == before
    logged = session.execute("select operation, hostname from rowq.migration_log").fetchall()
    assert logged == [("apply", "script")] * NEWEST


@pytest.mark.usefixtures("releases")
def test_script_can_be_rerun_after_migrate(
    empty_database: str, session: Connection, psql: Psql
) -> None:
    migrate.migrate(empty_database)
    before = snapshot(session)
    for _ in range(2):
        done = psql(empty_database, text=migrate.script("postgres"))
        assert (done.returncode, done.stderr) == (0, "")
    assert snapshot(session) == before
    assert session.execute("select count(*) from rowq.migration_log").fetchone() == (1,)


def test_script_stops_at_first_error_and_leaves_nothing(
    empty_database: str, session: Connection, psql: Psql
) -> None:
    broken = migrate.script("postgres").replace("commit;", "select 1 / 0;\ncommit;")
    done = psql(empty_database, text=broken)
    assert done.returncode == 3
    assert "division by zero" in done.stderr
    assert session.execute("select to_regnamespace('rowq')").fetchone() == (None,)


HOSTILE = {
    "search_path": "theirs, public, pg_catalog",
    "default_transaction_isolation": "serializable",
    "standard_conforming_strings": "off",
    "client_min_messages": "error",
    "check_function_bodies": "off",
    "DateStyle": "German",
    "quote_all_identifiers": "on",
}


@pytest.mark.parametrize("way", ["migrate", "script"])
def test_database_settings_do_not_change_the_installation(
    way: str,
    server: Server,
    empty_database: str,
    session: Connection,
    migrated: Connection,
    psql: Psql,
) -> None:
    session.execute("create schema theirs")
    session.execute(
        "create function theirs.format(text, text) returns text language sql as 'select 1'"
    )
    session.execute("create table theirs.pg_roles (rolname text)")
    for name, value in HOSTILE.items():
        alter = f"alter database {session.info.dbname} set {name} = {value}"
        session.execute(alter)
    if way == "migrate":
        migrate.migrate(empty_database)
    else:
        assert psql(empty_database, text=migrate.script("postgres")).returncode == 0
    for name in HOSTILE:
        session.execute(f"alter database {session.info.dbname} reset {name}")
    with server.connect(empty_database) as calm:
        assert snapshot(calm) == without_partitions(snapshot(migrated))
    assert migrate.rollback(empty_database, to=0).rolled_back == BACK
