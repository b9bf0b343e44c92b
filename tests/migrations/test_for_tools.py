"""The plain script and Alembic's revisions install the same as migrate, with any driver."""

import asyncio
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncpg
import psycopg
import pytest
import sqlalchemy
from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy.ext.asyncio import create_async_engine

import rowq
from rowq.tools import migrate
from tests.engines.base import Connection, Server
from tests.helpers.alembic_project import Project
from tests.helpers.npm import package
from tests.helpers.one_message import leave_message, works
from tests.helpers.releases import NEWEST, change_everything
from tests.migrations.catalog import snapshot

SETTINGS = "select name, setting from pg_settings where name not like '%.%' order by name"
NODE = """
const { Client } = require("pg");
const chunks = [];
process.stdin.on("data", (chunk) => chunks.push(chunk)).on("end", async () => {
  const client = new Client({ connectionString: process.env.ROWQ_URL });
  await client.connect();
  await client.query(Buffer.concat(chunks).toString("utf8"));
  const { rows } = await client.query("select * from rowq.version()");
  console.log(JSON.stringify(rows));
  await client.end();
});
"""


@pytest.fixture
def whole(server: Server, database_url: str) -> dict[str, list[tuple[object, ...]]]:
    """Return the catalog of a migrated database."""
    with server.connect(database_url) as migrated:
        return snapshot(migrated)


@pytest.fixture
def project(empty_database: str, tmp_path: Path) -> Iterator[Project]:
    """Return an Alembic project in an empty database, with psycopg."""
    url = empty_database.replace("postgresql://", "postgresql+psycopg://", 1)
    engine = sqlalchemy.create_engine(url)
    project = Project(tmp_path, "postgres")
    project.engine = engine
    yield project
    engine.dispose()


def agrees(url: str) -> None:
    """Check that status and migrate recognize another tool's installation."""
    found = migrate.status(url)
    assert found.installed
    assert (found.pending, found.drift) == ((), ())
    assert migrate.migrate(url).applied == ()
    works(url)


@pytest.mark.parametrize("autocommit", [True, False])
def test_psycopg_installs_plain_script_in_one_call(
    empty_database: str, session: Connection, autocommit: bool
) -> None:
    migrate.migrate(empty_database)
    expected = snapshot(session)
    migrate.rollback(empty_database, to=0)
    with psycopg.connect(empty_database, autocommit=autocommit) as connection:
        connection.execute(migrate.plain_script("postgres"))
    assert snapshot(session) == expected
    logged = session.execute("select operation, hostname from rowq.migration_log").fetchall()
    assert logged == [("apply", "script")] * NEWEST
    agrees(empty_database)


def test_async_psycopg_installs_plain_script(empty_database: str) -> None:
    async def install() -> None:
        connection = await psycopg.AsyncConnection.connect(empty_database)
        async with connection:
            await connection.execute(migrate.plain_script("postgres"))

    asyncio.run(install())
    agrees(empty_database)


def test_asyncpg_installs_plain_script(empty_database: str) -> None:
    async def install() -> None:
        connection = await asyncpg.connect(empty_database)
        await connection.execute(migrate.plain_script("postgres"))
        await connection.close()

    asyncio.run(install())
    agrees(empty_database)


def test_node_pg_installs_plain_script_in_one_call(empty_database: str) -> None:
    folder = package("pg").parent
    done = subprocess.run(
        ["node", "-e", NODE],
        input=migrate.plain_script("postgres"),
        text=True,
        capture_output=True,
        cwd=folder,
        env=os.environ | {"ROWQ_URL": empty_database},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (version,) = json.loads(done.stdout)
    assert version["schema_version"] == NEWEST
    agrees(empty_database)


def test_plain_script_restores_callers_settings(server: Server, empty_database: str) -> None:
    with server.connect(empty_database) as connection, connection.transaction():
        connection.execute("create schema shop")
        connection.execute("set local search_path = shop, public")
        connection.execute("create table later (id int)")
        before = connection.execute(SETTINGS).fetchall()
        connection.execute(migrate.plain_script("postgres"))
        assert connection.execute(SETTINGS).fetchall() == before
        assert connection.execute("select current_user = session_user").fetchone() == (True,)
        connection.execute("insert into later values (1)")
    agrees(empty_database)


def test_plain_script_is_part_of_callers_transaction(
    session: Connection, empty_database: str
) -> None:
    with psycopg.connect(empty_database) as connection:
        connection.execute(migrate.plain_script("postgres"))
        connection.rollback()
    assert session.execute("select to_regnamespace('rowq')").fetchone() == (None,)


def test_plain_script_outside_a_transaction_is_refused(session: Connection) -> None:
    script = migrate.plain_script("postgres")
    first, second = (part + "$$;\n" for part in script.split("$$;\n")[:2])
    session.execute(first)
    with pytest.raises(psycopg.errors.NoActiveSqlTransaction, match="in one transaction"):
        session.execute(second)
    assert session.execute("select to_regnamespace('rowq')").fetchone() == (None,)


@pytest.mark.usefixtures("releases")
def test_alembic_migrates_beside_the_applications_branch(
    project: Project, empty_database: str, whole: dict[str, list[tuple[object, ...]]]
) -> None:
    assert project.branches() == {"rowq_0001": {"rowq"}, "shop_0001": {"shop"}}
    project.upgrade("shop@head")
    project.upgrade("rowq@head")
    assert project.current() == {"shop_0001", "rowq_0001"}
    with psycopg.connect(empty_database) as connection:
        installed = snapshot(connection)
    assert installed["routines"] == whole["routines"]
    agrees(empty_database)
    project.downgrade("rowq@base")
    assert project.current() == {"shop_0001"}
    assert migrate.status(empty_database).installed == 0
    project.upgrade("heads")
    agrees(empty_database)
    project.downgrade("shop@base")
    assert project.current() == {"rowq_0001"}


@pytest.mark.usefixtures("releases")
def test_alembic_downgrade_refuses_to_delete_messages(
    project: Project, empty_database: str
) -> None:
    project.upgrade("heads")
    leave_message(empty_database, "ready")
    with pytest.raises(sqlalchemy.exc.DBAPIError, match="RQ805 messages_left"):
        project.downgrade("rowq@base")
    assert project.current() == {"shop_0001", "rowq_0001"}
    assert migrate.status(empty_database).drift == ()


@pytest.mark.usefixtures("releases")
def test_alembic_and_migrate_can_alternate(project: Project, empty_database: str) -> None:
    migrate.migrate(empty_database)
    project.upgrade("heads")
    assert migrate.rollback(empty_database, to=0).rolled_back == (1,)
    with pytest.raises(sqlalchemy.exc.DBAPIError):
        project.downgrade("rowq@base")
    migrate.migrate(empty_database)
    project.downgrade("rowq@base")
    assert migrate.status(empty_database).installed == 0


def test_alembic_migrates_over_asyncpg(empty_database: str, tmp_path: Path) -> None:
    url = empty_database.replace("postgresql://", "postgresql+asyncpg://", 1)
    project = Project(tmp_path, "postgres")

    async def run(change: Callable[[Config, str], None], target: str) -> None:
        engine = create_async_engine(url)
        async with engine.connect() as connection:
            await connection.run_sync(lambda sync: change(project.config(sync), target))
        await engine.dispose()

    asyncio.run(run(command.upgrade, "heads"))
    agrees(empty_database)
    with psycopg.connect(empty_database) as connection:
        connection.execute("select rowq.drop_queue('orders')")
    asyncio.run(run(command.downgrade, "rowq@base"))
    assert migrate.status(empty_database).installed == 0


def test_alembic_without_connection_gets_a_clear_error(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    with (
        project.engine.connect() as connection,
        pytest.raises(CommandError, match="rowq requires a connection"),
    ):
        command.upgrade(project.config(connection), "rowq@head", sql=True)
    capsys.readouterr()


def test_alembic_upgrades_and_downgrades_two_releases(
    releases: Path, empty_database: str, tmp_path: Path
) -> None:
    first = migrate.alembic_files("postgres")
    change_everything(releases)
    url = empty_database.replace("postgresql://", "postgresql+psycopg://", 1)
    engine = sqlalchemy.create_engine(url)
    folder = tmp_path / "project"
    folder.mkdir()
    project = Project(folder, "postgres")
    project.engine = engine
    project.upgrade("rowq@rowq_0001")
    assert migrate.status(empty_database).installed == 1
    project.upgrade("rowq@head")
    assert migrate.status(empty_database).installed == 2
    assert migrate.status(empty_database).drift == ()
    leave_message(empty_database, "ready")
    project.downgrade("rowq@rowq_0001")
    assert migrate.status(empty_database).installed == 1
    assert migrate.status(empty_database).drift == ()
    assert migrate.migrate(empty_database).applied == (2,)
    assert project.current() == {"rowq_0001"}
    later = migrate.alembic_files("postgres")
    assert {name: later[name] for name in first} == first
    engine.dispose()
    with rowq.connect(empty_database) as queue:
        assert queue.version().schema_version == 2
