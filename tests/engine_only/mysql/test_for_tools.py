"""The plain script and Alembic's revisions install the same as migrate."""

from collections.abc import Iterator
from pathlib import Path

import pymysql
import pytest
import sqlalchemy

import rowq
from rowq.engines.mysql.url import connection_parameters
from rowq.tools import migrate
from rowq.tools.engines.mysql.script import OWNER
from tests.engine_only.mysql.test_migrations import snapshot
from tests.engines.base import Connection, Server
from tests.helpers.alembic_project import Project
from tests.helpers.one_message import leave_message, works
from tests.helpers.releases import NEWEST

SEPARATOR = "\n-- [end of statement]\n"
SETTINGS = """
    select @@session.sql_mode, @@session.autocommit, @@session.lock_wait_timeout,
        @@session.innodb_lock_wait_timeout, @@session.character_set_client,
        @@session.character_set_results, @@session.collation_connection
"""


@pytest.fixture
def session(server: Server, empty_database: str) -> Iterator[Connection]:
    """Return a session of the installing account on the empty server."""
    with server.connect(empty_database) as connection:
        yield connection


@pytest.fixture
def driver(empty_database: str) -> Iterator["pymysql.Connection[pymysql.cursors.Cursor]"]:
    """Return a PyMySQL connection with its own settings, without autocommit."""
    parts = connection_parameters(empty_database)
    chosen = {name: parts[name] for name in ("host", "port", "user", "password")}
    connection = pymysql.connect(**chosen, charset="latin1")
    with connection.cursor() as cursor:
        cursor.execute("set session sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT'")
    yield connection
    connection.close()


@pytest.fixture
def project(session: Connection, empty_database: str, tmp_path: Path) -> Iterator[Project]:
    """Return a project in its own database beside rowq, on PyMySQL."""
    session.execute("drop database if exists rowq_test")
    session.execute("create database rowq_test")
    parts = connection_parameters(empty_database)
    url = sqlalchemy.URL.create(
        "mysql+pymysql",
        *(parts["user"], parts["password"], parts["host"], parts["port"], "rowq_test"),
    )
    project = Project(tmp_path, "mysql")
    project.engine = sqlalchemy.create_engine(url)
    yield project
    project.engine.dispose()
    session.execute("drop database rowq_test")


def run(connection: "pymysql.Connection[pymysql.cursors.Cursor]", script: str) -> None:
    """Run a plain script as its head describes."""
    with connection.cursor() as cursor:
        for statement in script.split(SEPARATOR):
            cursor.execute(statement)


def agrees(url: str) -> None:
    """Check that status and migrate accept the installation of another tool."""
    found = migrate.status(url)
    assert (found.installed, found.pending, found.drift) == (NEWEST, (), ())
    assert migrate.migrate(url).applied == ()
    works(url)


def test_pymysql_installs_the_plain_script(
    empty_database: str,
    session: Connection,
    driver: "pymysql.Connection[pymysql.cursors.Cursor]",
) -> None:
    migrate.migrate(empty_database)
    whole = snapshot(session)
    migrate.rollback(empty_database, to=0)
    with driver.cursor() as cursor:
        cursor.execute(SETTINGS)
        before = cursor.fetchall()
        for _ in range(2):
            run(driver, migrate.plain_script("mariadb"))
            assert snapshot(session) == whole
        cursor.execute(SETTINGS)
        assert cursor.fetchall() == before
    assert migrate.status(empty_database).owner == OWNER
    logged = session.execute("select operation, hostname from rowq.migration_log").fetchall()
    assert list(logged) == [("apply", "script")] * NEWEST
    agrees(empty_database)


def test_plain_script_without_owner_uses_the_installer(
    empty_database: str, driver: "pymysql.Connection[pymysql.cursors.Cursor]"
) -> None:
    run(driver, migrate.plain_script("mariadb", with_owner=False))
    assert migrate.status(empty_database).owner != OWNER
    works(empty_database)


def test_plain_script_refuses_a_newer_schema(
    empty_database: str,
    session: Connection,
    driver: "pymysql.Connection[pymysql.cursors.Cursor]",
) -> None:
    migrate.migrate(empty_database)
    session.execute("insert into rowq.migration values ('x', 'my-0002-second', now())")
    with pytest.raises(pymysql.Error, match="RQ804 schema_newer"):
        run(driver, migrate.plain_script("mariadb"))


def test_alembic_migrates_beside_the_applications_branch(
    project: Project, empty_database: str, session: Connection
) -> None:
    project.upgrade("shop@head")
    project.upgrade("rowq@head")
    assert project.current() == {"shop_0001", "rowq_0001"}
    agrees(empty_database)
    with rowq.connect(empty_database) as queue:
        queue.drop_queue("orders")
    project.downgrade("rowq@base")
    assert project.current() == {"shop_0001"}
    assert session.execute("show databases like 'rowq'").fetchone() is None
    owners = "select count(*) from mysql.user where user = 'rowq_owner'"
    assert session.execute(owners).fetchone() == (0,)
    project.upgrade("heads")
    agrees(empty_database)


def test_alembic_downgrade_refuses_to_delete_messages_or_tables(
    project: Project, empty_database: str, session: Connection
) -> None:
    project.upgrade("heads")
    session.execute("create table rowq.mine (id int)")
    with pytest.raises(sqlalchemy.exc.DBAPIError, match="RQ808 schema_in_use"):
        project.downgrade("rowq@base")
    session.execute("drop table rowq.mine")
    leave_message(empty_database, "leased")
    with pytest.raises(sqlalchemy.exc.DBAPIError, match="RQ805 messages_left"):
        project.downgrade("rowq@base")
    assert project.current() == {"shop_0001", "rowq_0001"}
    assert migrate.status(empty_database).drift == ()
