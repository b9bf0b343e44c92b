"""A migration names and refuses foreign objects and unsupported servers, and changes nothing."""

from pathlib import Path

import pytest
from yoyo import get_backend, read_migrations

from rowq.tools import migrate
from rowq.tools.migrate.release import Release
from tests.engines.base import Connection, Server
from tests.helpers.releases import BACK, EVERY, NEWEST, begin_next
from tests.migrations.catalog import snapshot
from tests.migrations.conftest import Psql

THEIRS = {
    "a table": "create table rowq.message (id integer)",
    "nothing": "select 1",
    "tables of some of our names": "create table rowq.meta (id integer);"
    " create table rowq.queue (queue_name text)",
    "a comment": "comment on schema rowq is 'rows of quilts'",
}


@pytest.mark.parametrize("theirs", THEIRS)
def test_foreign_schema_rowq_is_refused(
    theirs: str, empty_database: str, session: Connection
) -> None:
    session.execute("create schema rowq")
    session.execute(THEIRS[theirs])
    before = snapshot(session)
    with pytest.raises(migrate.ForeignSchema, match="RQ802 foreign_schema") as refusal:
        migrate.migrate(empty_database)
    assert "comment on schema rowq is 'rowq message queue'" in str(refusal.value.remedy)
    with pytest.raises(migrate.ForeignSchema):
        migrate.rollback(empty_database, to=0, force=True)
    with pytest.raises(migrate.ForeignSchema):
        migrate.status(empty_database)
    assert snapshot(session) == before


def test_script_refuses_a_foreign_schema(
    empty_database: str, session: Connection, psql: Psql
) -> None:
    session.execute("create schema rowq")
    done = psql(empty_database, text=migrate.script("postgres"))
    assert done.returncode == 3
    assert "RQ802 foreign_schema" in done.stderr
    assert session.execute("select obj_description('rowq'::regnamespace)").fetchone() == (None,)


def test_schema_created_for_rowq_is_used(empty_database: str, session: Connection) -> None:
    session.execute("create schema rowq")
    session.execute("comment on schema rowq is 'rowq message queue'")
    assert migrate.migrate(empty_database).applied == EVERY


def test_schema_without_its_comment_is_recognized(empty_database: str, session: Connection) -> None:
    migrate.migrate(empty_database)
    session.execute("comment on schema rowq is null")
    assert migrate.migrate(empty_database).applied == ()
    assert migrate.rollback(empty_database, to=0).rolled_back == BACK


def test_citus_node_is_left_to_its_add_on(
    empty_database: str, session: Connection, psql: Psql
) -> None:
    migrate.migrate(empty_database)
    (owner,) = session.execute("select nspowner::regrole from pg_namespace where nspname = 'rowq'")
    session.execute("create role rowq_test_other")
    session.execute("create schema rowq_node authorization rowq_test_other")
    try:
        assert migrate.status(empty_database).drift == ()
        session.execute(f"alter schema rowq_node owner to {owner[0]}")
    finally:
        session.execute("drop owned by rowq_test_other; drop role rowq_test_other")
    before = snapshot(session)
    for refused in (migrate.migrate, migrate.rollback, migrate.status):
        with pytest.raises(migrate.RoutedDatabase, match="RQ809 routed_database") as refusal:
            refused(empty_database)
        assert "sql/postgres/addons/citus" in str(refusal.value.remedy)
    done = psql(empty_database, text=migrate.script("postgres"))
    assert (done.returncode, "RQ809 routed_database" in done.stderr) == (3, True)
    assert snapshot(session) == before


def test_applications_own_yoyo_migrations_are_unaffected(
    empty_database: str, session: Connection, tmp_path: Path
) -> None:
    for number in (1, 2):
        text = f"create table public.app{number} (id integer)"
        (tmp_path / f"000{number}-app.sql").write_text(text, encoding="utf-8")
    url = empty_database.replace("postgresql://", "postgresql+psycopg://")
    theirs = "select migration_id from public._yoyo_migration order by 1"

    def app_migrates(count: int) -> None:
        with get_backend(url) as backend, backend.lock():
            backend.apply_migrations(backend.to_apply(read_migrations(str(tmp_path))[:count]))

    app_migrates(1)
    tables = "select relname, oid from pg_class where relnamespace = 'public'::regnamespace"
    before = session.execute(tables).fetchall()
    assert migrate.migrate(empty_database).applied == EVERY
    assert session.execute(tables).fetchall() == before
    assert session.execute(theirs).fetchall() == [("0001-app",)]

    app_migrates(2)
    assert session.execute(theirs).fetchall() == [("0001-app",), ("0002-app",)]
    assert migrate.rollback(empty_database, to=0).rolled_back == BACK
    assert session.execute(theirs).fetchall() == [("0001-app",), ("0002-app",)]


def with_text(monkeypatch: pytest.MonkeyPatch, changed: str, old: str, new: str) -> None:
    """Change a script in the migrations' folder."""
    original = Release.text

    def text(release: Release, name: str) -> str:
        found = original(release, name)
        assert name != changed or old in found
        return found.replace(old, new) if name == changed else found

    monkeypatch.setattr(Release, "text", text)


def with_preflight(monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> None:
    """Change the preflight checks."""
    with_text(monkeypatch, "preflight.sql", old, new)


def test_old_server_is_refused(
    empty_database: str, session: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_preflight(monkeypatch, "150000", "990000")
    with pytest.raises(migrate.ServerTooOld, match=r"needs PostgreSQL 15 or newer; this is 1\d"):
        migrate.migrate(empty_database)
    assert session.execute("select to_regnamespace('rowq')").fetchone() == (None,)


def test_migrate_waits_with_a_timeout_for_another_migration(
    server: Server, empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_preflight(monkeypatch, "'60s'", "'50ms'")
    migrate.migrate(empty_database)
    with server.connect(empty_database, autocommit=False) as other:
        other.execute("lock table rowq.migration in share row exclusive mode")
        with pytest.raises(migrate.MigrationBusy, match="RQ806") as refusal:
            migrate.migrate(empty_database)
        assert refusal.value.retryable
    assert migrate.migrate(empty_database).applied == ()


def test_first_migration_waits_with_a_timeout_for_another(
    server: Server, empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_text(monkeypatch, "bookkeeping.sql", "'60s'", "'50ms'")
    with server.connect(empty_database, autocommit=False) as other:
        other.execute("create schema rowq")
        with pytest.raises(migrate.MigrationBusy, match="RQ806"):
            migrate.migrate(empty_database)
        other.rollback()
    assert migrate.migrate(empty_database).applied == EVERY


def test_rollback_waits_with_a_timeout_for_transactions(
    server: Server, empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate.migrate(empty_database)
    with_text(monkeypatch, "lock.sql", "'10s'", "'50ms'")
    with server.connect(empty_database, autocommit=False) as other:
        other.execute("select count(*) from rowq.queue")
        with pytest.raises(migrate.MigrationBusy):
            migrate.rollback(empty_database)
    assert migrate.status(empty_database).installed == NEWEST


@pytest.mark.parametrize(
    "change",
    [
        "alter table rowq.queue alter column lease_seconds type bigint",
        "alter table rowq.queue drop column lease_seconds",
    ],
)
def test_view_that_blocks_an_upgrade_is_named(
    releases: Path, empty_database: str, session: Connection, change: str
) -> None:
    begin_next(releases, "change", "0.2.0", (change, "select 1"))
    migrate.migrate(empty_database, to=1)
    session.execute("create temporary view blocking as select lease_seconds from rowq.queue")
    with pytest.raises(migrate.SchemaInUse, match="RQ808") as refusal:
        migrate.migrate(empty_database)
    assert "blocking depends on column" in str(refusal.value.remedy)
    with pytest.raises(migrate.SchemaInUse, match="blocking depends on"):
        migrate.rollback(empty_database, force=True)
    session.execute("drop view blocking")
    assert migrate.migrate(empty_database).applied == (2,)
