"""Groups on SQL Server: plans, cost and the caller's transaction."""

import pytest

from tests.engine_only.sqlserver.sessions import impatient
from tests.engine_only.sqlserver.showplan import STEPS, Plan, called, faults, tables
from tests.engines.base import Connection
from tests.helpers.calls import bodies, call, dequeue, enqueue, rolled_back, transaction
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect
from tests.stored_times import pass_seconds, tick

TABLES = {"group_waiting", "group_slot", "deferred"}
MODES = """
    select distinct l.request_mode from sys.dm_tran_locks l
    where l.request_session_id = @@spid and l.resource_type = 'KEY'
    """
genuine = pytest.mark.requires("genuine")


def stored(connection: Connection, queue: str) -> dict[str, int]:
    """Return the number of rows in each table of groups."""
    found = dialect_of(connection).stored(connection, queue)
    return {table: found[table] for table in TABLES}


def cycle(connection: Connection, other: Connection, queue: str) -> list[Plan]:
    """Run every statement about groups and return the plans."""
    name = {"queue_name": queue}
    plans = called(connection, "Enqueue", **name, body="1", priority=1, group_key="one")
    plans += called(connection, "Enqueue", **name, body="2", priority=1, group_key="one")
    enqueue(connection, queue, "late", group_key="one", delay_seconds=1)
    pass_seconds(other, queue, 2)
    plans += called(connection, "Promote", **name)
    for routine in ("Complete", "FailNow", "Complete"):
        [row] = dequeue(connection, queue)
        plans += called(connection, routine, **name, claim_id=row.claim_id)
    plans += called(connection, "Reset", **name)
    [row] = dequeue(connection, queue)
    plans += called(connection, "Complete", **name, claim_id=row.claim_id)
    ids = enqueue(connection, queue, "a", "b", "c", group_key="cancelled")
    plans += called(connection, "Cancel", **name, message_ids=str(ids[1:]))
    plans += called(connection, "GetMessage", **name, message_id=ids[0])
    enqueue(connection, queue, "held", group_key="open", priority=0)
    [row] = dequeue(connection, queue)
    with transaction(other):
        enqueue(other, queue, "coming", group_key="open")
        plans += called(connection, "Complete", **name, claim_id=row.claim_id)
    tick(other, queue)
    plans += called(connection, "Maintain", **name)
    call(connection, "alter_queue", queue_name=queue, group_limit=2)
    plans += called(connection, "Maintain", **name)
    call(connection, "alter_queue", queue_name=queue, group_limit=1)
    return plans


@pytest.mark.pitfall("sqlserver 23")
@genuine
@pytest.mark.promise("P13")
def test_groups_seek_with_plans_of_empty_tables(
    connection: Connection, connect: Connect, queue: str
) -> None:
    session, other = connect(), connect()
    plans = cycle(session, other, queue)
    messages = [{"body": "x", "group_key": f"group {number % 500}"} for number in range(4000)]
    call(connection, "enqueue_batch", queue_name=queue, messages=messages)
    plans += cycle(session, other, queue)
    assert tables(plans) >= TABLES
    about = [plan for plan in plans if TABLES & {access.table for access in plan.accesses}]
    assert not [fault for fault in faults(about, small=STEPS) if " on " in fault]


def statements(connection: Connection, queue: str, *, group: bool) -> int:
    """Return the number of statements on tables when a message ends and another one waits."""
    key = {"group_key": "g"} if group else {"dedup_key": "k"}
    enqueue(connection, queue, "ends", "waits", **key)
    claim = dequeue(connection, queue)[0].claim_id
    plans = called(connection, "Complete", queue_name=queue, claim_id=claim)
    for row in dequeue(connection, queue, 10):
        call(connection, "complete", queue_name=queue, claim_id=row.claim_id)
    return sum(bool(plan.accesses) for plan in plans)


@genuine
def test_passing_a_slot_on_takes_at_most_6_statements(connection: Connection, queue: str) -> None:
    keyed = statements(connection, queue, group=False)
    assert 0 < statements(connection, queue, group=True) - keyed <= 6


@pytest.mark.pitfall("sqlserver 21")
@genuine
@pytest.mark.promise("P21")
def test_open_group_locks_no_neighbour_and_no_range(
    connection: Connection, connect: Connect, queue: str
) -> None:
    other = impatient(connect())
    for key in ("b", "y"):
        enqueue(connection, queue, key, group_key=key)
    with rolled_back(connection):
        enqueue(connection, queue, "1", "2", group_key="m")
        enqueue(connection, queue, "2", group_key="b")
        modes = dialect_of(connection).execute(connection, MODES).fetchall()
        assert not [mode for (mode,) in modes if mode.startswith("Range")]
        for key in ("a", "b", "c", "l", "n", "y", "z"):
            enqueue(other, queue, key, group_key=key)
            enqueue(other, queue, key, group_key=key)


@genuine
@pytest.mark.promise("P01", "P02", "P22")
@pytest.mark.parametrize("routine", ["complete", "fail_now", "enqueue", "cancel"])
@pytest.mark.parametrize("table", ["group_slot", "group_waiting"])
def test_aborted_call_about_a_group_leaves_nothing_to_commit(
    connection: Connection, connect: Connect, queue: str, routine: str, table: str
) -> None:
    caller = connect()
    dialect = dialect_of(connection)
    ids = enqueue(connection, queue, "1", "2", "3", group_key="a")
    claim = dequeue(connection, queue)[0].claim_id
    arguments: dict[str, dict[str, object]] = {
        "enqueue": {"body": "4", "group_key": "a"},
        "cancel": {"message_ids": ids[1:]},
    }
    options = arguments.get(routine, {"claim_id": claim})
    before = dialect.stored(connection, queue)
    dialect.begin(caller)
    with rolled_back(connection):
        dialect.execute(connection, f"select count(*) from rowq.{table} with (tablockx)")
        caller.timeout = 1
        with pytest.raises(dialect.database_error):
            call(caller, routine, queue_name=queue, **options)
        caller.timeout = 0
    assert dialect.execute(caller, "select @@trancount").fetchone() == (0,)
    assert dialect.stored(connection, queue) == before


@pytest.mark.pitfall("sqlserver 22")
@pytest.mark.promise("P24")
def test_call_in_a_callers_transaction_deletes_no_slot(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, "1", "2", group_key="a")
    for body in ("1", "2"):
        with transaction(connection):
            [row] = dequeue(connection, queue)
            assert row.body == body
            call(connection, "complete", queue_name=queue, claim_id=row.claim_id)
    assert stored(connection, queue) == {"group_slot": 1, "group_waiting": 0, "deferred": 1}
    enqueue(connection, queue, "3", group_key="a")
    with transaction(connection):
        call(connection, "maintain", queue_name=queue)
    assert bodies(dequeue(connection, queue)) == ["3"]
    call(connection, "complete", queue_name=queue, claim_id=claim_of(connection))
    assert stored(connection, queue) == dict.fromkeys(TABLES, 0)


def claim_of(connection: Connection) -> int:
    """Return the newest claim."""
    query = "select max(claim_id) from rowq.claim"
    return int(dialect_of(connection).execute(connection, query).fetchone()[0])
