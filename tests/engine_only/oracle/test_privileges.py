"""Rights on Oracle: the owner has the listed ones, each role its packages and no table."""

from collections.abc import Callable, Iterator
from contextlib import closing

import oracledb
import pytest

import rowq
from rowq.contract import load_contract
from rowq.tools import migrate
from rowq.tools.engines.oracle.status import Inspection
from rowq.tools.rights import may_call
from tests.engine_only.oracle.installed import rows
from tests.engines.base import Connection
from tests.engines.oracle.server import RIGHTS, OracleServer
from tests.engines.oracle.session import owner_in
from tests.helpers.calls import call, call_one, dequeue, dequeue_one, enqueue
from tests.helpers.dialects import dialect_of

pytestmark = [pytest.mark.promise("P16"), pytest.mark.pitfall("oracle 10")]

PACKAGES = {
    "producer": "rowq_produce",
    "consumer": "rowq_consume",
    "monitor": "rowq_look",
    "admin": "rowq",
}
HELD_ROLES = "select r.granted_role from user_role_privs r"
Enter = Callable[[str | None], Connection]


@pytest.fixture
def enter(server: OracleServer, database_url: str) -> Iterator[Enter]:
    """Return a function that opens a session of a new account with or without a rowq role."""
    owner, accounts = owner_in(database_url), list[tuple[Connection, str]]()

    def open_session(role: str | None) -> Connection:
        url = server.make_account(*([f"rowq_{role}"] if role else []))
        package = PACKAGES[role or "admin"]
        server.execute(f"create synonym {owner_in(url)}.rowq for {owner}.{package}")
        session = server.connect(url)
        accounts.append((session, url))
        return session

    yield open_session
    for session, url in accounts:
        session.close()
        server.drop_database(url)


def test_owner_has_only_the_listed_rights(connection: Connection) -> None:
    held = {
        right.lower() for (right,) in rows(connection, "select p.privilege from session_privs p")
    }
    assert held == set(RIGHTS)
    assert rows(connection, "select p.table_name from user_tab_privs_recd p") == []
    held = {role.lower() for (role,) in rows(connection, HELD_ROLES)}
    assert held == set(Inspection.ROLES)


@pytest.mark.parametrize("role", [*PACKAGES, None])
def test_role_may_call_only_its_routines(enter: Enter, role: str | None) -> None:
    session = enter(role)
    for name, routine in load_contract().of("oracle").items():
        assert may_call(session, routine) is (role in routine.roles), name


@pytest.mark.parametrize("role", [*PACKAGES, None])
def test_no_role_may_use_tables_sequences_or_other_packages(
    server: OracleServer, connection: Connection, enter: Enter, role: str | None
) -> None:
    owner, session = connection.username.upper(), enter(role)
    query = "select t.table_name from dba_tables t where t.owner = :owner"
    for (table,) in server.query(query, owner=owner):
        with pytest.raises(oracledb.DatabaseError, match="ORA-"):
            dialect_of(session).execute(session, f"select 1 from {owner}.{table}")
        with pytest.raises(oracledb.DatabaseError, match="ORA-"):
            dialect_of(session).execute(session, f"delete from {owner}.{table}")
    with pytest.raises(oracledb.DatabaseError, match="ORA-"):
        dialect_of(session).execute(session, f"select {owner}.rowq_message_seq.nextval from dual")
    for package in set(PACKAGES.values()) - {PACKAGES.get(role or "", "")}:
        with pytest.raises(oracledb.DatabaseError, match=r"PLS-00201|PLS-00904"):
            dialect_of(session).execute(
                session,
                f"declare v_rows sys_refcursor; begin {owner}.{package}.version(p_rows => v_rows);"
                " end;",
            )


def test_public_has_no_right(server: OracleServer, connection: Connection) -> None:
    query = (
        "select p.table_name, p.privilege from dba_tab_privs p"
        " where p.owner = :owner and p.grantee = 'PUBLIC'"
    )
    assert server.query(query, owner=connection.username.upper()) == []


def test_producer_and_consumer_need_only_their_rights(
    connection: Connection, queue: str, enter: Enter
) -> None:
    producer, consumer = enter("producer"), enter("consumer")
    [sent] = enqueue(producer, queue, "x")
    row = dequeue_one(consumer, queue)
    assert row.message_id == sent
    call(consumer, "complete", queue_name=queue, claim_id=row.claim_id)
    call_one(consumer, "maintain", queue_name=queue)
    assert dequeue(connection, queue) == []


def test_admin_names_the_owner_in_the_url(
    server: OracleServer, database_url: str, queue: str
) -> None:
    url = server.make_account("rowq_admin")
    separator = "&" if "?" in url else "?"
    try:
        with rowq.connect(f"{url}{separator}owner={owner_in(database_url)}") as client:
            client.enqueue(queue, 1)
            assert [message.data for message in client.dequeue_fast(queue)] == [1]
    finally:
        server.drop_database(url)


def test_grants_script_revokes_other_rights(server: OracleServer, empty_database: str) -> None:
    migrate.migrate(empty_database)
    made = "select p.grantee, p.table_name, p.privilege from user_tab_privs_made p order by 1, 2, 3"
    with closing(server.connect(empty_database)) as session:
        right = rows(session, made)
        for grant in (
            "grant select on rowq_message to rowq_monitor",
            "grant execute on rowq to rowq_producer",
            "grant execute on rowq_produce to public",
            "revoke execute on rowq_look from rowq_monitor",
        ):
            dialect_of(session).execute(session, grant)
        assert rows(session, made) != right
        migrate.migrate(empty_database)
        assert rows(session, made) == right


def test_health_reports_missing_rights(server: OracleServer, empty_database: str) -> None:
    migrate.migrate(empty_database)
    owner = owner_in(empty_database)
    with closing(server.connect(empty_database)) as session:

        def horizon() -> str:
            (row,) = (
                row for row in call(session, "health") if row.check_name == "clean_up_horizon"
            )
            return str(row.detail)

        assert horizon().startswith("unknown: ")
        try:
            for view in ("v_$transaction", "v_$session"):
                server.execute(f"grant select on sys.{view} to {owner}")
        except oracledb.DatabaseError as error:
            pytest.skip(
                f"the account may not pass on SYS's views: {error}; to run it: give one that may"
            )
        assert not horizon().startswith("unknown: ")
