"""Each role may call only its routines, and no role may use the tables."""

import re
from collections.abc import Iterator

import pymysql
import pytest

from rowq.arguments import plain_arguments
from rowq.contract import load_contract, sql_directory
from tests.engines.base import Connection
from tests.engines.mysql.accounts import NO_ROLE, ROLES, Accounts, accounts
from tests.engines.mysql.server import Session
from tests.helpers.calls import call, enqueue

ROUTINES = load_contract().of("mysql")
NOT_ALLOWED = (1044, 1142, 1143, 1227, 1370)


@pytest.fixture
def users(connection: Connection, database_url: str) -> Iterator[Accounts]:
    """Return sessions of new accounts by rowq role, and one without a role."""
    with accounts(connection, database_url) as sessions:
        yield sessions


def may_call(session: Session, routine: str) -> bool:
    """Call a routine with plain arguments; an RQ error means that it was allowed."""
    given = plain_arguments(ROUTINES[routine], "q")
    if routine == "dequeue_wait":
        given["wait_seconds"] = 0
    try:
        call(session, routine, **given)
    except pymysql.MySQLError as error:
        if error.args[0] in NOT_ALLOWED:
            return False
        if "RQ7" not in str(error.args[1]):
            raise
    return True


@pytest.mark.promise("P16")
@pytest.mark.parametrize("role", [*ROLES, NO_ROLE])
def test_role_may_call_only_its_routines(
    connection: Connection, queue_name: str, users: Accounts, role: str
) -> None:
    call(connection, "create_queue", queue_name=queue_name)
    enqueue(connection, queue_name, "1")
    allowed = {name for name in ROUTINES if may_call(users[role], name)}
    assert allowed == {name for name, entry in ROUTINES.items() if role in entry.roles}


@pytest.mark.promise("P16")
@pytest.mark.parametrize("role", [*ROLES, NO_ROLE])
def test_no_role_reads_a_table_or_calls_a_helper(
    connection: Connection, users: Accounts, role: str
) -> None:
    tables = connection.execute(
        "select table_name from information_schema.tables where table_schema = 'rowq'"
    ).fetchall()
    assert len(tables) > 10
    for (table,) in tables:
        with pytest.raises(pymysql.MySQLError) as caught:
            users[role].execute(f"select * from rowq.{table}")
        assert caught.value.args[0] in NOT_ALLOWED
    internal = connection.execute(
        "select r.routine_name, count(p.parameter_name) from information_schema.routines r"
        " left join information_schema.parameters p on p.specific_schema = 'rowq'"
        " and p.specific_name = r.routine_name"
        " where r.routine_schema = 'rowq' and r.routine_name like 'internal%' group by 1"
    ).fetchall()
    assert internal
    for name, parameters in internal:
        with pytest.raises(pymysql.MySQLError) as caught:
            users[role].execute(f"call rowq.{name}({', '.join(['null'] * parameters)})")
        assert caught.value.args[0] in NOT_ALLOWED, name


def given(connection: Connection) -> set[tuple[str, str, str]]:
    """Return account, procedure and rights of rowq's procedure grants."""
    return set(
        connection.execute(
            "select user, routine_name, cast(proc_priv as char) from mysql.procs_priv"
            " where db = 'rowq' and user like 'rowq%%'"
        ).fetchall()
    )


def grant_again(connection: Connection) -> None:
    """Run grants.sql as the engine's client does."""
    text = (sql_directory() / "mysql" / "grants.sql").read_text(encoding="utf-8")
    text = re.sub(r"^--.*\n", "", text, flags=re.MULTILINE)
    first, body, last = re.split(r"^delimiter .*\n", text, flags=re.MULTILINE)
    for statement in (*first.split(";"), body.strip().removesuffix("//"), *last.split(";")):
        if statement.strip():
            connection.execute(statement.replace("%", "%%"))


@pytest.mark.pitfall("mysql 9")
@pytest.mark.promise("P16")
def test_grants_script_revokes_other_rights(connection: Connection) -> None:
    before = given(connection)
    assert before == {
        (f"rowq_{role}", name, "Execute")
        for name, entry in ROUTINES.items()
        for role in entry.roles
    }
    connection.execute("grant execute on procedure rowq.drop_queue to rowq_producer")
    connection.execute("revoke execute on procedure rowq.enqueue from rowq_producer")
    connection.execute("grant select on rowq.* to rowq_monitor")
    grant_again(connection)
    assert given(connection) == before
    rights = connection.execute(
        "select user from mysql.db"
        " where db = 'rowq' and user like 'rowq_%%' and user <> 'rowq_owner'"
    )
    assert rights.fetchall() in ((), [])
