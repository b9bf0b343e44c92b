"""Each role may call only its routines, and no role may use the tables.

The users have no login: the test's session impersonates them. Babelfish cannot do that.
"""

import json
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from rowq.arguments import plain_arguments
from rowq.contract import Routine, load_contract, sql_directory
from rowq.engines.sqlserver.calls import procedure_name
from rowq.tools.engines.sqlserver.script import batches
from rowq.tools.migrate import migrate
from tests.engines.base import Connection, Server
from tests.helpers.calls import call, call_one, dequeue_one, enqueue
from tests.helpers.dialects import dialect_of

pytestmark = [pytest.mark.promise("P16"), pytest.mark.requires("genuine")]

ROLES = load_contract().roles
ROUTINES = load_contract().of("sqlserver")
DENIED = "229"
"""The engine's error number for a missing right on an object."""

# Include rights on a schema or database, which cover all objects in it.
RIGHTS = """
    select u.name, coalesce(o.name, t.name, s.name, p.class_desc collate database_default),
        p.permission_name, p.state_desc
    from sys.database_permissions p
    join sys.database_principals u on u.principal_id = p.grantee_principal_id
    left join sys.all_objects o on p.class = 1 and o.object_id = p.major_id
    left join sys.schemas s on p.class = 3 and s.schema_id = p.major_id
    left join sys.types t on p.class = 6 and t.user_type_id = p.major_id
    where u.name in (N'rowq_producer', N'rowq_consumer', N'rowq_monitor', N'rowq_admin')
        or o.schema_id = schema_id(N'rowq')
        or t.schema_id = schema_id(N'rowq')
        or s.name = N'rowq'
    """
TABLES = "select t.name from sys.tables t where t.schema_id = schema_id(N'rowq')"
SEQUENCES = "select s.name from sys.sequences s where s.schema_id = schema_id(N'rowq')"
INTERNAL = """
    select o.name, p.name
    from sys.procedures o
    left join sys.parameters p on p.object_id = o.object_id and type_name(p.user_type_id)
        not in (select t.name from sys.table_types t)
    where o.schema_id = schema_id(N'rowq') and o.name like N'Internal%'
    """

DAYS = """
    select count(*)
    from sys.partition_range_values v
    join sys.partition_functions f on f.function_id = v.function_id
    where f.name = N'rowq_day'
    """

Rows = list[tuple[Any, ...]]


def rows(connection: Connection, query: str) -> Rows:
    found: Rows = dialect_of(connection).execute(connection, query).fetchall()
    return found


@pytest.fixture
def users(connection: Connection) -> Iterator[dict[str, str]]:
    """Return new users by rowq role, and one without a role."""
    names = {role: f"{role}_{uuid.uuid4().hex[:8]}" for role in (*ROLES, "stranger")}
    dialect = dialect_of(connection)
    for role, name in names.items():
        dialect.execute(connection, f"create user {name} without login")
        if role in ROLES:
            dialect.execute(connection, f"alter role rowq_{role} add member {name}")
    yield names
    for name in names.values():
        dialect.execute(connection, f"drop user {name}")


@contextmanager
def acting(connection: Connection, user: str) -> Iterator[None]:
    """Impersonate another user in the session."""
    dialect = dialect_of(connection)
    dialect.execute(connection, f"execute as user = N'{user}'")
    try:
        yield
    finally:
        dialect.rollback(connection)
        dialect.execute(connection, "revert")


def is_denied(connection: Connection, statement: str) -> bool:
    """Run a statement; an RQ error means that it was allowed."""
    dialect = dialect_of(connection)
    try:
        dialect.execute(connection, statement)
    except dialect.database_error as error:
        number = dialect.error(error)[0]
        if number != DENIED and not number.startswith("RQ7"):
            raise
        return number == DENIED
    return False


def plain_call(routine: Routine) -> str:
    """Return a call with the fewest arguments."""
    given = plain_arguments(routine, "q")
    if routine.name == "dequeue_wait":
        given["wait_seconds"] = 0
    spelled = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in given.items()
    }
    arguments = ", ".join(f"@{name} = N'{value}'" for name, value in spelled.items())
    return f"exec rowq.{procedure_name(routine.name)} {arguments}"


@pytest.mark.parametrize("role", [*ROLES, "stranger"])
def test_role_may_call_only_its_routines(
    connection: Connection, users: dict[str, str], queue: str, role: str
) -> None:
    enqueue(connection, queue, "1")
    with acting(connection, users[role]):
        allowed = {
            name for name, entry in ROUTINES.items() if not is_denied(connection, plain_call(entry))
        }
    assert allowed == {name for name, entry in ROUTINES.items() if role in entry.roles}


@pytest.mark.parametrize("role", [*ROLES, "stranger"])
def test_no_role_uses_a_table_or_sequence(
    connection: Connection, users: dict[str, str], role: str
) -> None:
    tables = [name for (name,) in rows(connection, TABLES)]
    sequences = [name for (name,) in rows(connection, SEQUENCES)]
    assert len(tables) > 10
    assert sequences
    with acting(connection, users[role]):
        for name in tables:
            for statement in ("select count(*) from rowq.{}", "delete from rowq.{}"):
                assert is_denied(connection, statement.format(name)), name
        for name in sequences:
            assert is_denied(connection, f"select next value for rowq.{name}"), name


@pytest.mark.parametrize("role", [*ROLES, "stranger"])
def test_no_role_calls_a_helper(connection: Connection, users: dict[str, str], role: str) -> None:
    internal: dict[str, list[str]] = {}
    for name, parameter in rows(connection, INTERNAL):
        internal.setdefault(name, [])
        if parameter is not None:
            internal[name].append(f"{parameter} = null")
    assert internal
    with acting(connection, users[role]):
        for name, given in internal.items():
            assert is_denied(connection, f"exec rowq.{name} {', '.join(given)}"), name


def test_roles_have_contract_rights_and_public_none(connection: Connection) -> None:
    types = [name for (name,) in rows(connection, "select t.name from sys.table_types t")]
    routines = {
        (f"rowq_{role}", procedure_name(name), "EXECUTE", "GRANT")
        for name, entry in ROUTINES.items()
        for role in entry.roles
    }
    to_declare = {(f"rowq_{role}", name, "EXECUTE", "GRANT") for role in ROLES for name in types}
    assert set(rows(connection, RIGHTS)) == routines | to_declare


@pytest.fixture
def owner(server: Server, empty_database: str) -> Iterator[Connection]:
    """Return a session in a rowq database of this test only."""
    migrate(empty_database)
    with closing(server.connect(empty_database)) as session:
        yield session


def test_grants_script_revokes_other_rights(owner: Connection) -> None:
    before = set(rows(owner, RIGHTS))
    dialect = dialect_of(owner)
    for statement in (
        "grant execute on rowq.DropQueue to rowq_producer with grant option",
        "revoke execute on rowq.Enqueue from rowq_producer",
        "deny execute on rowq.Version to rowq_consumer",
        "grant select on rowq.message to rowq_monitor",
        "grant select on rowq.queue (queue_name) to rowq_monitor",
        "grant control on schema::rowq to rowq_consumer",
    ):
        dialect.execute(owner, statement)
    assert set(rows(owner, RIGHTS)) != before
    grants = (sql_directory() / "sqlserver" / "grants.sql").read_text(encoding="utf-8")
    for batch in batches(grants):
        dialect.execute(owner, batch)
    assert set(rows(owner, RIGHTS)) == before


def test_all_objects_have_one_owner(connection: Connection) -> None:
    owner = "select user_name(s.principal_id) from sys.schemas s where s.name = N'rowq'"
    assert rows(connection, owner) == [("rowq_owner",)]
    others = (
        "select o.name from sys.objects o"
        " where o.schema_id = schema_id(N'rowq') and o.principal_id is not null"
    )
    assert rows(connection, others) == []


def test_only_partition_ddl_runs_as_owner(connection: Connection) -> None:
    query = (
        "select o.name, m.execute_as_principal_id from sys.sql_modules m"
        " join sys.objects o on o.object_id = m.object_id"
        " where o.schema_id = schema_id(N'rowq') and m.execute_as_principal_id is not null"
    )
    shapers = {"RebuildIndexes", "InternalDropDays", "InternalOpenDays"}
    assert set(rows(connection, query)) == {(name, -2) for name in shapers}


@pytest.mark.pitfall("sqlserver 47")
def test_consumer_opens_archive_days_without_a_right(owner: Connection) -> None:
    dialect = dialect_of(owner)
    dialect.execute(owner, "create user consumer without login")
    dialect.execute(owner, "alter role rowq_consumer add member consumer")
    call(owner, "create_queue", queue_name="q", archive_days=1)
    enqueue(owner, "q", "1")
    assert rows(owner, DAYS) == [(0,)]
    with acting(owner, "consumer"):
        call(owner, "complete", queue_name="q", claim_id=dequeue_one(owner, "q").claim_id)
        assert call_one(owner, "archive", queue_name="q").archived == 1
    assert rows(owner, DAYS) == [(3,)]
