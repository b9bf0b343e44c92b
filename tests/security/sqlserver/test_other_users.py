"""A user without a rowq role blocks no call and reads no data."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress

import pytest

import rowq
from rowq.tools import migrate
from tests.engines.base import Connection, Server
from tests.helpers.calls import call, call_one, dequeue_one, enqueue
from tests.helpers.releases import EVERY

pytestmark = [pytest.mark.promise("P16"), pytest.mark.requires("genuine")]

NAMES = ("rowq.migrate", "rowq.maintain.1", "rowq.maintain.2", "rowq.wait.1", "rowq.wait.2")


@pytest.fixture
def theirs(server: Server, strangers_url: str) -> Iterator[Connection]:
    """Return the other user's session."""
    with closing(server.connect(strangers_url)) as connection:
        yield connection


@pytest.fixture
def hold(theirs: Connection) -> Callable[[str], int]:
    """Return a function that tries for a named lock as the other user, member of a principal."""

    def try_for(name: str, principal: str = "public") -> int:
        row = theirs.execute(
            "declare @turn int; exec @turn = sys.sp_getapplock @Resource = ?,"
            " @LockMode = N'Exclusive', @LockOwner = N'Session', @LockTimeout = 0,"
            " @DbPrincipal = ?; select @turn",
            name,
            principal,
        ).fetchone()
        return int(row[0])

    return try_for


@pytest.mark.promise("P19")
def test_public_application_locks_block_nothing(
    session: Connection, empty_database: str, hold: Callable[[str], int]
) -> None:
    assert [hold(name) for name in NAMES] == [0] * len(NAMES)
    assert migrate.migrate(empty_database).applied == EVERY
    call(session, "create_queue", queue_name="q")
    enqueue(session, "q", "late", delay_seconds=0.1)
    time.sleep(0.2)
    kept = call_one(session, "maintain", queue_name="q")
    assert (kept.elected, kept.promoted) == (True, 1)


def test_foreign_lock_delays_a_waiter_by_at_most_1_second(
    session: Connection, empty_database: str, hold: Callable[[str], int]
) -> None:
    migrate.migrate(empty_database)
    call(session, "create_queue", queue_name="q")
    for name in NAMES:
        hold(name)
    with ThreadPoolExecutor(1) as pool, rowq.connect(empty_database) as waiter:
        wait = pool.submit(waiter.dequeue_wait, "q", wait_seconds=30)
        time.sleep(0.3)
        enqueue(session, "q", "1")
        sent_at = time.monotonic()
        assert len(wait.result()) == 1
    assert time.monotonic() - sent_at < 3


def test_migration_lock_cannot_be_taken(
    session: Connection, hold: Callable[[str, str], int]
) -> None:
    with suppress(Exception):
        hold("rowq.migrate", "dbo")
    free = "select applock_test(N'dbo', N'rowq.migrate', N'Exclusive', N'Session')"
    assert session.execute(free).fetchone()[0] == 1


def test_dbos_procedure_does_not_reach_the_tables(
    session: Connection, empty_database: str, stranger: str, theirs: Connection
) -> None:
    migrate.migrate(empty_database)
    call(session, "create_queue", queue_name="q")
    enqueue(session, "q", "a secret")
    session.execute(f"grant create procedure to {stranger}")
    session.execute(f"grant alter, execute on schema::dbo to {stranger}")
    theirs.execute("create procedure dbo.Peep as select m.body from rowq.message m")
    with pytest.raises(Exception, match="SELECT permission was denied"):
        theirs.execute("exec dbo.Peep")
    theirs.execute("create procedure dbo.Take as exec rowq.DequeueFast @queue_name = N'q'")
    with pytest.raises(Exception, match="EXECUTE permission was denied"):
        theirs.execute("exec dbo.Take")
    assert dequeue_one(session, "q").body == "a secret"


def test_schema_owner_can_only_change_partitions(session: Connection, empty_database: str) -> None:
    migrate.migrate(empty_database)
    rights = session.execute(
        "select p.permission_name from sys.database_permissions p"
        " where p.grantee_principal_id = user_id(N'rowq_owner')"
    ).fetchall()
    assert {right for (right,) in rights} == {"CONNECT", "ALTER ANY DATASPACE"}
    roles = session.execute(
        "select r.role_principal_id from sys.database_role_members r"
        " where r.member_principal_id = user_id(N'rowq_owner')"
    ).fetchall()
    assert roles == []
