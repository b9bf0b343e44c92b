"""Upgrades and rollbacks between two releases; the second is the test's own."""

from pathlib import Path

import pytest

from rowq.tools import migrate
from tests.engines.base import Connection
from tests.migrations.catalog import snapshot
from tests.migrations.conftest import Psql

pytestmark = pytest.mark.usefixtures("second_release")


def version_of(session: Connection) -> tuple[str, int]:
    row = session.execute("select rowq_version, schema_version from rowq.version()").fetchone()
    return row[0], row[1]


def test_upgrade_and_rollback_keep_messages(empty_database: str, session: Connection) -> None:
    assert migrate.migrate(empty_database).applied == (1, 2)
    new = snapshot(session)
    migrate.rollback(empty_database, to=0)

    assert migrate.migrate(empty_database, to=1).applied == (1,)
    first = snapshot(session)
    session.execute("select rowq.create_queue('orders')")
    session.execute("select rowq.enqueue('orders', 'hello')")
    assert version_of(session) == ("0.1.0", 1)

    assert migrate.migrate(empty_database).applied == (2,)
    assert version_of(session) == ("0.2.0", 2)
    assert snapshot(session) == new

    done = migrate.rollback(empty_database)
    assert (done.rolled_back, done.installed) == ((2,), 1)
    assert snapshot(session) == first
    assert version_of(session) == ("0.1.0", 1)
    assert session.execute("select body from rowq.dequeue_fast('orders')").fetchall() == [
        ("hello",)
    ]
    logged = session.execute(
        "select migration_id, operation from rowq.migration_log order by created_at_utc"
    ).fetchall()
    assert logged == [
        ("pg-0001-first-release", "apply"),
        ("pg-0002-second", "apply"),
        ("pg-0002-second", "rollback"),
    ]


def test_refused_rollback_to_0_changes_nothing(empty_database: str, session: Connection) -> None:
    migrate.migrate(empty_database)
    session.execute("select rowq.create_queue('orders')")
    session.execute("select rowq.enqueue('orders', 'hello')")
    before = snapshot(session)
    with pytest.raises(migrate.MessagesLeft):
        migrate.rollback(empty_database, to=0)
    assert snapshot(session) == before
    assert migrate.status(empty_database).installed == 2
    assert migrate.rollback(empty_database, to=0, force=True).rolled_back == (2, 1)


def test_rollback_to_a_number_stops_there(empty_database: str) -> None:
    migrate.migrate(empty_database)
    assert migrate.rollback(empty_database, to=2).rolled_back == ()
    assert migrate.rollback(empty_database, to=1).rolled_back == (2,)
    assert migrate.rollback(empty_database, to=0).rolled_back == (1,)
    assert migrate.status(empty_database).installed == 0


@pytest.mark.parametrize("number", [0, 3, -1, 99])
def test_unknown_migration_number_is_refused(
    number: int, empty_database: str, session: Connection
) -> None:
    with pytest.raises(migrate.UnknownMigration, match="must be between 1 and 2"):
        migrate.migrate(empty_database, to=number)
    assert session.execute("select to_regnamespace('rowq')").fetchone() == (None,)


def test_migrate_refuses_to_downgrade(empty_database: str) -> None:
    migrate.migrate(empty_database)
    with pytest.raises(migrate.UnknownMigration, match="rowq rollback --to 1"):
        migrate.migrate(empty_database, to=1)
    assert migrate.status(empty_database).installed == 2


def test_script_from_a_number_upgrades_like_migrate(
    empty_database: str, session: Connection, psql: Psql
) -> None:
    migrate.migrate(empty_database)
    upgraded = snapshot(session)
    migrate.rollback(empty_database)

    text = migrate.script("postgres", 1)
    assert "rowq.message (" not in text
    done = psql(empty_database, text=text)
    assert (done.returncode, done.stderr) == (0, "")
    assert snapshot(session) == upgraded
    assert version_of(session) == ("0.2.0", 2)
    assert migrate.migrate(empty_database).applied == ()


def test_script_from_a_number_requires_that_migration(
    empty_database: str, session: Connection, psql: Psql
) -> None:
    done = psql(empty_database, text=migrate.script("postgres", 1))
    assert done.returncode == 3
    assert "RQ807 unknown_migration" in done.stderr
    assert session.execute("select to_regnamespace('rowq')").fetchone() == (None,)


@pytest.mark.parametrize("number", [-1, 2, 3])
def test_no_script_follows_the_newest_migration(number: int) -> None:
    with pytest.raises(migrate.UnknownMigration):
        migrate.script("postgres", number)


def test_older_rowq_refuses_a_newer_schema(
    empty_database: str, session: Connection, second_release: Path, psql: Psql
) -> None:
    migrate.migrate(empty_database)
    (second_release / "pg-0002-second.py").unlink()
    before = snapshot(session)

    with pytest.raises(migrate.SchemaNewer, match="pg-0002-second"):
        migrate.migrate(empty_database)
    with pytest.raises(migrate.SchemaNewer, match="pg-0002-second"):
        migrate.rollback(empty_database, to=0, force=True)
    assert "RQ804 schema_newer" in psql(empty_database, text=migrate.script("postgres")).stderr
    assert snapshot(session) == before
    assert migrate.status(empty_database).newer == ("pg-0002-second",)
