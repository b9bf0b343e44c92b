"""No planted object in the owner's schema or the DBA's current schema runs."""

from collections.abc import Iterator
from contextlib import closing

import oracledb
import pytest

import rowq
from rowq.tools import migrate
from rowq.tools.doctor import examine
from tests.engine_only.oracle.installed import grant, rows
from tests.engines.base import Connection
from tests.engines.oracle.server import OracleServer
from tests.engines.oracle.session import owner_in
from tests.helpers.dialects import dialect_of

pytestmark = pytest.mark.promise("P16")


@pytest.fixture
def session(server: OracleServer, empty_database: str) -> Iterator[Connection]:
    """Return the session of an empty schema's owner."""
    with closing(server.connect(empty_database)) as connection:
        yield connection


def in_its_schema(url: str, owner: str) -> str:
    """Return the URL of another account whose current schema is the owner's."""
    return f"{url}{'&' if '?' in url else '?'}owner={owner}"


@pytest.mark.parametrize(
    ("right", "theirs", "words"),
    [
        ("create view", "create view rowq_meta as select 1 as name from dual", "ROWQ_META is a v"),
        ("create synonym", "create synonym rowq_queue for dual", "ROWQ_QUEUE is a synonym"),
        ("create synonym", "create synonym rowq for dual", "ROWQ is a synonym"),
        ("create table", "create global temporary table rowq_ready (queue_id number)", "RQ802"),
    ],
)
def test_object_named_like_a_table_is_refused(
    server: OracleServer,
    empty_database: str,
    session: Connection,
    right: str,
    theirs: str,
    words: str,
) -> None:
    grant(server, empty_database, right)
    dialect_of(session).execute(session, theirs)
    with pytest.raises(migrate.ForeignSchema, match=words):
        migrate.migrate(empty_database)
    assert rows(session, "select t.table_name from user_tables t where t.temporary = 'N'") == []


@pytest.mark.parametrize(
    ("right", "theirs", "words"),
    [
        (
            "create trigger",
            "create trigger theirs before insert on rowq_meta for each row begin null; end;",
            "ROWQ_META has trigger .*THEIRS",
        ),
        (
            "create table",
            "alter table rowq_meta add theirs generated always as (length(name)) virtual",
            "ROWQ_META has virtual column THEIRS",
        ),
        (
            "create table",
            "alter table rowq_meta add theirs invisible generated always as (length(name)) virtual",
            "ROWQ_META has virtual column THEIRS",
        ),
        (
            "create table",
            "create index theirs on rowq_meta (length(name))",
            "ROWQ_META has a function-based index, .*THEIRS",
        ),
    ],
)
def test_trigger_or_policy_on_a_table_stops_migrate(
    server: OracleServer,
    empty_database: str,
    session: Connection,
    right: str,
    theirs: str,
    words: str,
) -> None:
    migrate.migrate(empty_database)
    grant(server, empty_database, right)
    dialect_of(session).execute(session, theirs)
    for refused in (migrate.migrate, migrate.rollback):
        with pytest.raises(migrate.ForeignSchema, match=f"RQ802(.|\n)*{words}"):
            refused(empty_database)


def test_migrate_and_status_refuse_another_accounts_schema(
    server: OracleServer, empty_database: str, session: Connection
) -> None:
    migrate.migrate(empty_database)
    # A routine that reads DUAL instead of SYS.DUAL would run the owner's replacement.
    grant(server, empty_database, "create view")
    dialect_of(session).execute(session, "create view dual as select 'theirs' as dummy from rowq_x")
    other = server.make_account("rowq_admin")
    try:
        url = in_its_schema(other, owner_in(empty_database))
        for refused in (migrate.migrate, migrate.status, migrate.rollback):
            with pytest.raises(migrate.MissingPrivilege, match="in the schema of"):
                refused(url)
    finally:
        server.drop_database(other)


def test_doctor_as_dba_calls_no_code_of_the_owner(
    server: OracleServer, empty_database: str
) -> None:
    migrate.migrate(empty_database)
    other = server.make_account("rowq_admin")
    try:
        url = in_its_schema(other, owner_in(empty_database))
        assert {check.check_name for check in examine(url)} >= {"installed", "rights"}
        grant(server, other, "select any table")
        with pytest.raises(rowq.RowqError, match="connect as the owner"):
            list(examine(url))
    finally:
        server.drop_database(other)


def test_owner_with_database_wide_rights_gets_a_notice(
    server: OracleServer, empty_database: str
) -> None:
    assert migrate.migrate(empty_database).notices == ()
    grant(server, empty_database, "select any table")
    (notice,) = migrate.migrate(empty_database).notices
    assert "SELECT ANY TABLE" in notice
    found = {check.check_name: check for check in examine(empty_database)}
    assert found["rights of the owner"].status == "warning"


def test_duplicate_queue_id_is_an_error(empty_database: str, session: Connection) -> None:
    """The sequences can lag the data, for example after a restore."""
    migrate.migrate(empty_database)
    with rowq.connect(empty_database) as queue:
        queue.create_queue("first")
    ((taken,),) = rows(session, "select q.queue_id from rowq_queue q")
    dialect_of(session).execute(session, "drop sequence rowq_queue_seq")
    create = f"create sequence rowq_queue_seq start with {taken}"
    dialect_of(session).execute(session, create)
    with rowq.connect(empty_database) as queue, pytest.raises(oracledb.IntegrityError):
        queue.create_queue("second")
    ((number,),) = rows(session, "select count(*) from rowq_queue q")
    assert number == 1
