"""Upgrade and roll back a release with rowq migrate and with scripts in psql."""

from pathlib import Path

import pytest

from rowq.tools import migrate
from rowq.tools.migrate.frozen import migration_files, script_of
from rowq.tools.migrate.sources import read
from sql.generate.release import release
from tests.engines.base import Connection
from tests.helpers.releases import change_everything
from tests.migrations.catalog import snapshot
from tests.migrations.conftest import Psql

REMEMBERED = "select migration_id from rowq.migration order by migration_id"
IDS = [("pg-0001-first-release",), ("pg-0002-second",)]


@pytest.fixture
def scripts(releases: Path) -> list[Path]:
    """Make a second release with a column, a helper and a changed routine; return both scripts."""
    change_everything(releases)
    release(releases)
    return [script_of(migration) for migration in migration_files(releases)]


def made(session: Connection) -> tuple[bool, bool, bool]:
    """Return whether the second release's column, helper and changed routine exist."""
    row = session.execute(
        """
        select
            exists (
                select from information_schema.columns
                where table_schema = 'rowq' and table_name = 'queue' and column_name = 'note'
            ),
            to_regproc('rowq.internal_second') is not null,
            pg_get_functiondef('rowq.version'::regproc) like '%-- version   2%'
        """
    ).fetchone()
    return row[0], row[1], row[2]


def test_psql_upgrades_with_the_release_scripts(
    scripts: list[Path], empty_database: str, session: Connection, psql: Psql
) -> None:
    migrate.migrate(empty_database)
    second = snapshot(session)
    migrate.rollback(empty_database)
    first = snapshot(session)
    migrate.rollback(empty_database)

    for script, whole in zip(scripts, (first, second), strict=True):
        done = psql(empty_database, "-f", str(script))
        assert (done.returncode, done.stderr) == (0, "")
        assert snapshot(session) == whole
    assert session.execute(REMEMBERED).fetchall() == IDS
    assert migrate.migrate(empty_database).applied == ()
    assert migrate.status(empty_database).drift == ()

    assert migrate.rollback(empty_database).rolled_back == (2,)
    assert snapshot(session) == first
    assert migrate.status(empty_database).drift == ()
    done = psql(empty_database, text=migrate.script("postgres", 1))
    assert (done.returncode, done.stderr) == (0, "")
    assert snapshot(session) == second


def test_printed_script_is_the_release_scripts_in_order(
    scripts: list[Path], empty_database: str, session: Connection, psql: Psql
) -> None:
    assert migrate.script("postgres") == "".join(map(read, scripts))
    assert migrate.script("postgres", 1) == read(scripts[1])
    done = psql(empty_database, text=migrate.script("postgres"))
    assert (done.returncode, done.stderr) == (0, "")
    assert made(session) == (True, True, True)
    assert session.execute(REMEMBERED).fetchall() == IDS


def test_script_of_an_earlier_release_is_refused(
    scripts: list[Path], empty_database: str, session: Connection, psql: Psql
) -> None:
    migrate.migrate(empty_database)
    before = snapshot(session)
    done = psql(empty_database, "-f", str(scripts[0]))
    assert done.returncode == 3
    assert "RQ804 schema_newer" in done.stderr
    assert snapshot(session) == before
