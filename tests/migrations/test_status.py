"""status reports what is installed in a database."""

import pytest

from rowq.tools import migrate
from tests.engines.base import Connection, Server
from tests.helpers.releases import EVERY, NEWEST


def test_status_of_empty_database_lists_all_as_pending(empty_database: str) -> None:
    status = migrate.status(empty_database)
    assert (status.installed, status.available, status.pending) == (0, EVERY, EVERY)
    assert (status.owner, status.drift, status.newer, status.notices) == (None, (), (), ())


def test_status_of_installed_database_is_complete(server: Server, database_url: str) -> None:
    status = migrate.status(database_url)
    assert (status.installed, status.pending, status.drift, status.newer) == (NEWEST, (), (), ())
    assert status.server.startswith(f"PostgreSQL {server.name.removeprefix('postgres')}.")


def test_status_names_modified_routines(empty_database: str, session: Connection) -> None:
    migrate.migrate(empty_database)
    session.execute("drop function rowq.peek")
    session.execute("create function rowq.theirs() returns void language sql as 'select'")
    session.execute(
        "create or replace function rowq.internal_check_range("
        " p_name text, p_value double precision, p_low double precision, p_high double precision)"
        " returns void language plpgsql as 'begin return; end'"
    )
    assert migrate.status(empty_database).drift == (
        migrate.Drift("internal_check_range", "changed"),
        migrate.Drift("peek", "missing"),
        migrate.Drift("theirs", "unknown"),
    )


@pytest.mark.usefixtures("second_release")
def test_drift_is_relative_to_the_installed_release(
    empty_database: str, session: Connection
) -> None:
    migrate.migrate(empty_database, to=1)
    status = migrate.status(empty_database)
    assert (status.installed, status.pending, status.drift) == (1, (2,), ())
    session.execute("drop function rowq.peek")
    migrate.migrate(empty_database)
    assert migrate.status(empty_database).drift == (migrate.Drift("peek", "missing"),)


@pytest.mark.parametrize(
    "setting", ["default_table_access_method = other", "quote_all_identifiers = on"]
)
def test_database_settings_cause_no_drift(
    empty_database: str, session: Connection, setting: str
) -> None:
    session.execute("create access method other type table handler heap_tableam_handler")
    session.execute(f"alter database {session.info.dbname} set {setting}")
    assert migrate.migrate(empty_database).applied == EVERY
    assert migrate.status(empty_database).drift == ()
