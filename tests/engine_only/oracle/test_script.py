"""The script for SQL*Plus and SQLcl and the sources install the same as migrate."""

from collections.abc import Iterator
from contextlib import closing

import oracledb
import pytest

from rowq.contract import sql_directory
from rowq.tools import migrate
from rowq.tools.engines.oracle.script import units
from rowq.tools.migrate.sources import sources as todays_sources
from tests.engine_only.oracle.installed import rows, snapshot, sqlplus
from tests.engines.base import Connection
from tests.engines.oracle.server import OracleServer
from tests.helpers.one_message import works
from tests.helpers.releases import EVERY, NEWEST
from tests.static.plsql.gate import is_client


@pytest.fixture
def session(server: OracleServer, empty_database: str) -> Iterator[Connection]:
    """Return the session of an empty schema's owner."""
    with closing(server.connect(empty_database)) as connection:
        yield connection


def run_as_sqlplus_would(session: Connection, text: str) -> None:
    """Run a script's units to the first error, without the lines for SQL*Plus."""
    plain = "\n".join(line for line in text.splitlines() if not is_client(line))
    with closing(session.cursor()) as cursor:
        for unit in units(plain):
            cursor.execute(unit)


def sources() -> str:
    """Return the text of all files that install.sql names."""
    texts = todays_sources(sql_directory() / "oracle")
    assert len(texts) > 20
    return "\n".join(texts.values())


def test_script_can_be_rerun(empty_database: str, session: Connection) -> None:
    migrate.migrate(empty_database)
    whole = snapshot(session)
    migrate.rollback(empty_database)
    for _ in range(2):
        run_as_sqlplus_would(session, migrate.script("oracle"))
        assert snapshot(session) == whole
    logged = rows(session, "select g.operation, g.hostname from rowq_migration_log g")
    assert logged == [("apply", "script")] * NEWEST
    assert migrate.migrate(empty_database).applied == ()
    assert migrate.status(empty_database).drift == ()
    works(empty_database)


def test_interrupted_script_can_be_rerun(empty_database: str, session: Connection) -> None:
    migrate.migrate(empty_database)
    whole = snapshot(session)
    migrate.rollback(empty_database)
    text = migrate.script("oracle")
    for part in (3, 2):
        broken = "\n".join(text.splitlines()[: len(text.splitlines()) // part])
        complete = broken[: broken.rindex("\n/\n") + 3]
        run_as_sqlplus_would(session, complete)
    run_as_sqlplus_would(session, text)
    assert snapshot(session) == whole


def test_sources_install_the_same_except_bookkeeping(
    empty_database: str, session: Connection
) -> None:
    run_as_sqlplus_would(session, sources())
    works(empty_database)
    ours = snapshot(session)["sources"]
    migrate.migrate(empty_database)
    assert snapshot(session)["sources"] == ours
    assert migrate.status(empty_database).drift == ()
    works(empty_database)


@pytest.mark.pitfall("oracle 12")
def test_script_with_compile_error_fails(session: Connection) -> None:
    head = "create or replace package body rowq_look as\n"
    text = migrate.script("oracle")
    assert head in text
    with pytest.raises(oracledb.DatabaseError, match="ORA-20700: rowq did not compile"):
        run_as_sqlplus_would(session, text.replace(head, head + "nonsense;\n"))


@pytest.mark.parametrize("way", ["script", "sources"])
def test_sqlplus_installs_the_same(empty_database: str, session: Connection, way: str) -> None:
    migrate.migrate(empty_database)
    whole = snapshot(session)
    migrate.rollback(empty_database)
    settings = "set define off\nset sqlblanklines on\n"
    text = f"{settings}{sources()}" if way == "sources" else migrate.script("oracle")
    done = sqlplus(empty_database, text)
    assert done.returncode == 0, done.stdout + done.stderr
    assert migrate.migrate(empty_database).applied == (EVERY if way == "sources" else ())
    assert snapshot(session) == whole
    works(empty_database)


def test_sqlplus_refuses_install_sql(empty_database: str, session: Connection) -> None:
    done = sqlplus(empty_database, "@install.sql")
    assert done.returncode != 0
    assert "rowq sql --engine oracle" in done.stdout
    assert rows(session, "select count(*) from user_objects") == [(0,)]


@pytest.mark.pitfall("oracle 12")
def test_sqlplus_stops_at_first_error(empty_database: str, session: Connection) -> None:
    head = "create or replace package body rowq_look as\n"
    done = sqlplus(empty_database, migrate.script("oracle").replace(head, head + "nonsense;\n"))
    assert done.returncode != 0
    assert "ORA-20700" in done.stdout + done.stderr
    assert rows(session, "select count(*) from rowq_migration") == [(0,)]
