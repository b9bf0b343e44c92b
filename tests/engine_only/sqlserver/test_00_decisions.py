"""Questions that only a server can answer, one per test; they run first.

If one fails, the comment of the routine that it calls is wrong.
Not tested on SQL Server and Oracle.
"""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any

import pytest

import rowq
from tests.engine_only.sqlserver.sessions import value
from tests.engine_only.sqlserver.showplan import Plan, called, faults, run
from tests.engines.base import Connection, Server, wait_until_blocked
from tests.helpers.calls import bodies, call, call_one, dequeue, enqueue, rolled_back
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect

pytestmark = [pytest.mark.requires("genuine"), pytest.mark.pitfall("sqlserver 19")]

CONFLICTS = ("451", "468")
"""Errors: two collations meet in an expression."""

STEP = 16_000_000
"""Nanoseconds: the longest clock step that the routines allow."""

RIGHTS = """
    select concat(user_name(p.grantee_principal_id), N' has ', {permission}, N' on ', u.name)
    from sys.database_permissions p
    join sys.database_principals u on u.principal_id = p.major_id
    where 1 = 0
    """
LISTED = """
    declare @m table (name nvarchar(10) collate Latin1_General_100_BIN2);
    select 1 from @m m join (values (N'a')) v (name) on v.name {collate} = m.name;
    """
SHALLOW = """
    with xmlnamespaces (default 'http://schemas.microsoft.com/sqlserver/2004/07/showplan')
    select object_name(p.object_id), s.n.value('(Object/@Table)[1]', 'sysname')
    from sys.dm_exec_procedure_stats p
    cross apply sys.dm_exec_query_plan(p.plan_handle) q
    cross apply q.query_plan.nodes('//IndexScan[Object/@Schema="[rowq]"]') s (n)
    where p.database_id = db_id()
      and object_name(p.object_id) <> N'InternalDeleteQueue'
      and s.n.value('(Object/@Table)[1]', 'sysname') in (N'[message]', N'[successor]', N'[dedup]')
      and s.n.value(
          'count(SeekPredicates//SeekKeys[1]/Prefix/RangeColumns/ColumnReference)', 'int'
      ) < 2
    """
COMPILED = """
    select max(q.plan_generation_num)
    from sys.dm_exec_procedure_stats p
    join sys.dm_exec_query_stats q on q.plan_handle = p.plan_handle
    where p.database_id = db_id() and p.object_id = object_id(?)
    """
CALLS = """
    select coalesce(sum(p.execution_count), 0)
    from sys.dm_exec_procedure_stats p
    where p.database_id = db_id() and p.object_id = object_id(?)
    """
LOCKS = """
    select count(*)
    from sys.dm_tran_locks l
    join sys.partitions p on p.hobt_id = l.resource_associated_entity_id
    where l.request_session_id = @@spid
      and l.resource_type = 'KEY'
      and p.object_id = object_id(?)
    """
TICK = """
    declare @a datetime2(7) = sysutcdatetime(), @b datetime2(7);
    set @b = @a;
    while @b = @a set @b = sysutcdatetime();
    select datediff(nanosecond, @a, @b);
    """
LOCK_WITHOUT_PRINCIPAL = """
    set nocount on;
    declare @r int;
    exec @r = sys.sp_getapplock @Resource = N'x', @LockMode = N'Exclusive',
        @LockOwner = N'Session', @LockTimeout = 5000, @DbPrincipal = N'no such principal';
    select @r;
    """


def execute(connection: Connection, statement: str, *values: Any) -> None:
    dialect_of(connection).execute(connection, statement, values)


def queue_id_of(connection: Connection, queue: str) -> int:
    query = f"select queue_id from rowq.queue where queue_name = N'{queue}'"
    return int(value(connection, query))


@contextmanager
def database_of(server: Server, url: str) -> Iterator[tuple[Connection, Connection]]:
    """Yield two sessions of a database."""
    with closing(server.connect(url)) as one, closing(server.connect(url)) as other:
        yield one, other


def test_catalog_collation_requires_collate(
    connection: Connection,
) -> None:
    """The second statement fails unless the database has the same collation."""
    with_collate = "p.permission_name collate database_default"
    execute(connection, RIGHTS.format(permission=with_collate))
    with pytest.raises(dialect_of(connection).database_error) as caught:
        execute(connection, RIGHTS.format(permission="p.permission_name"))
    assert dialect_of(connection).error(caught.value)[0] in CONFLICTS


def test_columns_of_a_list_compare_with_collate(connection: Connection) -> None:
    """If it also runs without collate, the static rule is stricter than the server."""
    execute(connection, LISTED.format(collate="collate Latin1_General_100_BIN2"))


@pytest.mark.parametrize("level", [140, 150, 160, 170])
def test_health_compiles_at_every_compatibility_level(
    connection: Connection, queue: str, level: int
) -> None:
    """Error 8622: an apply that has become a join cannot seek."""
    major = int(value(connection, "select serverproperty('ProductMajorVersion')"))
    if level > major * 10:
        pytest.skip(f"this server has no level {level}; to run it: --engine sqlserver2025")
    database = value(connection, "select quotename(db_name())")
    before = value(
        connection, "select compatibility_level from sys.databases where database_id = db_id()"
    )
    enqueue(connection, queue, "a")
    execute(connection, f"alter database {database} set compatibility_level = {level}")
    try:
        assert call(connection, "health")
    finally:
        execute(connection, f"alter database {database} set compatibility_level = {before}")


@pytest.mark.promise("P16", "P24")
def test_concat_null_yields_null_does_not_change_results(
    connection: Connection, connect: Connect, queue_name: str
) -> None:
    session = connect()
    execute(session, "set concat_null_yields_null off")
    call(session, "create_queue", queue_name=queue_name)
    call(session, "enqueue_batch", queue_name=queue_name, messages=[{"body": "a"}] * 3)
    row = call_one(connection, "queue_stats", queue_name=queue_name)
    assert (row.ready, row.blocked) == (3, 0)


@pytest.mark.promise("P05")
def test_messages_of_one_producer_are_delivered_in_order(
    connection: Connection, queue: str
) -> None:
    """The clock may stand still during a call."""
    for _ in range(100):
        call(connection, "enqueue_batch", queue_name=queue, messages=[{"body": "a"}] * 3)
        enqueue(connection, queue, "b")
    ids = [row.message_id for row in dequeue(connection, queue, 1000)]
    assert len(ids) == 400
    assert ids == sorted(ids)


def test_clock_steps_are_at_most_16_milliseconds(connection: Connection) -> None:
    """InternalRescanFloors and InternalPushReady rely on this."""
    assert max(int(value(connection, TICK)) for _ in range(20)) <= STEP


@pytest.mark.promise("P06")
@pytest.mark.parametrize("routine", ["pause_queue", "resume_queue", "drop_queue"])
def test_open_create_queue_blocks_no_other_queue(
    connection: Connection, connect: Connect, queue: str, queue_name: str, routine: str
) -> None:
    """A scan of the small table queue would wait for the new row."""
    other = connect()
    execute(other, "set lock_timeout 2000")
    with rolled_back(connection):
        call(connection, "create_queue", queue_name=f"{queue_name} open")
        call(other, routine, queue_name=queue)


@pytest.mark.promise("P06", "P19")
def test_open_create_queue_without_versions_blocks_no_maintain(
    server: Server, unversioned: str
) -> None:
    with database_of(server, unversioned) as (one, other):
        rowq.Queue(one).create_queue("q", history_days=1, result_seconds=60)
        claim = None
        enqueue(one, "q", "a", group_key="g")
        claim = dequeue(one, "q")[0].claim_id
        execute(other, "set lock_timeout 2000")
        with rolled_back(one):
            call(one, "create_queue", queue_name="open one")
            call(other, "maintain", queue_name="q")
            call(other, "maintain")
            call(other, "enqueue", queue_name="q", body="b", group_key="g")
            call(other, "fail_now", queue_name="q", claim_id=claim)


def test_queue_is_found_by_a_seek_on_its_id(connection: Connection, queue: str) -> None:
    plans: list[Plan] = []
    for routine in ("PauseQueue", "ResumeQueue", "Maintain"):
        plans += called(connection, routine, queue_name=queue)
    small = frozenset({"meta", "queue_lock", "lane"})
    about = [fault for fault in faults(plans, small=small) if "Scan on queue" in fault]
    assert not about


@pytest.mark.promise("P13")
def test_no_message_is_found_by_queue_id_alone(connection: Connection, queue: str) -> None:
    """A seek by queue_id alone satisfies forceseek but locks every message of the queue."""
    ids = enqueue(connection, queue, *"abc", dedup_key=None)
    enqueue(connection, queue, "d", dedup_key="d", predecessor_ids=ids[:1])
    claim = dequeue(connection, queue, 2)[0].claim_id
    call(connection, "retry_later", queue_name=queue, claim_id=claim, delay_seconds=0)
    claim = dequeue(connection, queue, 3)[0].claim_id
    call(connection, "complete", queue_name=queue, claim_id=claim)
    call(connection, "cancel", queue_name=queue, message_ids=ids)
    call(connection, "maintain", queue_name=queue)
    found = dialect_of(connection).execute(connection, SHALLOW).fetchall()
    assert not found


@pytest.mark.promise("P19")
def test_maintain_continues_after_a_lock_timeout(server: Server, unversioned: str) -> None:
    with database_of(server, unversioned) as (one, other):
        names = [f"q{number}" for number in range(5)]
        for name in names:
            rowq.Queue(one).create_queue(name)
            enqueue(one, name, "a", delay_seconds=1)
            dialect_of(one).pass_seconds(one, name, 5)
        with rolled_back(one):
            held = queue_id_of(one, names[2])
            execute(one, f"update rowq.queue set lease_seconds = 31 where queue_id = {held}")
            with pytest.raises(dialect_of(other).database_error) as caught:
                call(other, "maintain")
            assert dialect_of(other).error(caught.value)[0] == "1222"
        ready = {row.queue_name: row.ready for row in call(one, "queue_stats")}
        assert ready == {name: int(name != names[2]) for name in names}


@pytest.mark.promise("P19")
def test_maintain_skips_a_queue_that_is_being_dropped(
    connection: Connection, connect: Connect, queue: str
) -> None:
    other = connect()
    with rolled_back(connection):
        lock = "select count(*) from rowq.queue_lock with (rowlock, xlock) where queue_id = "
        assert value(connection, f"{lock}{queue_id_of(connection, queue)}") == 1
        rows = call(other, "maintain")
    assert queue not in {row.queue_name for row in rows}


@pytest.mark.promise("P15", "P22")
def test_cancel_locks_messages_before_their_group(
    server: Server, connection: Connection, connect: Connect, queue: str
) -> None:
    """The reverse order deadlocks with a producer that names a message and joins its group."""
    other = connect()
    _, second, third = enqueue(connection, queue, *"123", group_key="g")
    cancel = {"queue_name": queue, "message_ids": [second, third]}
    with ThreadPoolExecutor(1) as pool:
        with rolled_back(connection):
            enqueue(connection, queue, "4", predecessor_ids=[second])
            running = pool.submit(lambda: call(other, "cancel", **cancel))
            wait_until_blocked(server, server.session_id(other), server.session_id(connection))
            enqueue(connection, queue, "5", group_key="g")
        assert {row.outcome for row in running.result(20)} == {"cancelled"}


def test_purge_archive_locks_only_deleted_rows(connection: Connection, queue: str) -> None:
    """If partitions are not read in order, a sort reads all old rows."""
    call(connection, "alter_queue", queue_name=queue, archive_days=10)
    for _ in range(3):
        enqueue(connection, queue, *["a"] * 40)
        claim = dequeue(connection, queue, 40)[0].claim_id
        call(connection, "complete", queue_name=queue, claim_id=claim)
        call(connection, "maintain", queue_name=queue)
        dialect_of(connection).pass_seconds(connection, queue, 86400)
    with rolled_back(connection):
        queue_id = queue_id_of(connection, queue)
        purge = (
            "set nocount on; declare @before datetime2(6) = sysutcdatetime(), @purged int;"
            f" exec rowq.InternalPurgeArchive {queue_id}, @before, 10, @purged output;"
            " select @purged"
        )
        assert value(connection, purge) == 10
        # Each row has a key in two indexes.
        locks = dialect_of(connection).execute(connection, LOCKS, ["rowq.archived"]).fetchall()
        assert locks[0][0] <= 30


@pytest.mark.promise("P13")
@pytest.mark.parametrize("procedure", ["Complete", "InternalFinish", "InternalPopReady"])
def test_statements_are_not_recompiled_as_tables_change(
    connection: Connection, queue: str, procedure: str
) -> None:
    """The server creates and updates statistics of single columns automatically."""
    for _ in range(600):
        enqueue(connection, queue, "a", dedup_key="a")
        claim = dequeue(connection, queue)[0].claim_id
        call(connection, "complete", queue_name=queue, claim_id=claim)
    found = dialect_of(connection).execute(connection, COMPILED, [f"rowq.{procedure}"]).fetchall()
    assert found[0][0] is not None
    assert found[0][0] <= 3


def test_large_batch_does_not_spill_messages_to_tempdb(connection: Connection, queue: str) -> None:
    message = {"body": "x", "message_type": "h" * 200, "priority": 5}
    statement = "exec rowq.EnqueueBatch @queue_name = ?, @messages = ?"
    _, plans = run(connection, statement, queue, json.dumps([message] * 10_000))
    spilt = [plan.text[:100] for plan in plans if plan.is_spilt and "@parsed" in plan.text]
    assert not spilt


def test_dequeue_compiled_with_many_rows_has_no_sort(connection: Connection, queue: str) -> None:
    for _ in range(2):
        call(connection, "enqueue_batch", queue_name=queue, messages=[{"body": "x"}] * 5000)
    execute(connection, "exec sys.sp_recompile N'rowq.InternalPopReady'")
    plans = called(connection, "DequeueFast", queue_name=queue, batch_size=1000)
    assert not faults(plans, small=frozenset({"meta", "queue", "queue_lock", "lane"}))


@pytest.mark.promise("P19")
def test_maintain_checks_archive_days_once_a_minute(connection: Connection, queue: str) -> None:
    call(connection, "alter_queue", queue_name=queue, archive_days=1)
    counts = []
    for _ in range(3):
        call(connection, "maintain", queue_name=queue)
        found = dialect_of(connection).execute(connection, CALLS, ["rowq.InternalOpenDays"])
        counts.append(found.fetchall()[0][0])
    assert len(set(counts)) == 1


@pytest.mark.promise("P12")
def test_batches_with_opposite_key_orders_do_not_deadlock(connect: Connect, queue: str) -> None:
    orders = ([f"k{number}" for number in range(50)], [f"k{number}" for number in range(50)][::-1])

    def send(session: Connection, keys: list[str]) -> None:
        for _ in range(100):
            messages = [{"body": "x", "dedup_key": key} for key in keys]
            call(session, "enqueue_batch", queue_name=queue, messages=messages)
            call(session, "purge_queue", queue_name=queue)

    sessions = [connect(), connect()]
    with ThreadPoolExecutor(2) as pool:
        running = [
            pool.submit(send, session, keys) for session, keys in zip(sessions, orders, strict=True)
        ]
        for call_of_session in running:
            call_of_session.result(300)


def test_view_server_performance_state_suffices_for_health(connection: Connection) -> None:
    if int(value(connection, "select serverproperty('ProductMajorVersion')")) < 16:
        pytest.skip("the right came with 2022; to run it: --engine sqlserver2022")
    execute(connection, "create login rowq_test_watch with password = N'Aa1-rowq-watch'")
    try:
        execute(connection, "create user rowq_test_watch for login rowq_test_watch")
        execute(connection, "alter role rowq_monitor add member rowq_test_watch")
        grant = "grant view server performance state to rowq_test_watch"
        execute(
            connection, f"declare @s nvarchar(200) = N'{grant}'; exec master.sys.sp_executesql @s"
        )
        execute(connection, "execute as login = N'rowq_test_watch'")
        rows = call(connection, "health")
        execute(connection, "revert")
    finally:
        execute(connection, "drop user if exists rowq_test_watch")
        execute(connection, "drop login rowq_test_watch")
    [horizon] = [row for row in rows if row.check_name == "clean_up_horizon"]
    assert "unknown" not in horizon.detail


def test_refused_application_lock_returns_at_once(connection: Connection) -> None:
    """dequeue_wait must pause then, not spin."""
    assert value(connection, LOCK_WITHOUT_PRINCIPAL) < -1


def test_update_statistics_enables_automatic_statistics(connection: Connection) -> None:
    """INDEXES.md asks DBAs to exclude the schema from such jobs."""
    query = "select no_recompute from sys.stats where object_id = object_id(N'rowq.ready')"
    query += " and stats_id = 1"
    assert value(connection, query) == 1
    execute(connection, "update statistics rowq.ready")
    try:
        assert value(connection, query) == 0
    finally:
        execute(connection, "update statistics rowq.ready with norecompute")
    assert value(connection, query) == 1


@pytest.mark.promise("P05")
def test_promote_keeps_the_order_of_due_times(connection: Connection, queue: str) -> None:
    """Ids and due times differ in order, and the clock may stand still."""
    for body, delay in (("late", 30), ("early", 10), ("middle", 20)):
        enqueue(connection, queue, body, delay_seconds=delay)
    dialect_of(connection).pass_seconds(connection, queue, 60)
    call(connection, "promote", queue_name=queue)
    assert bodies(dequeue(connection, queue, 3)) == ["early", "middle", "late"]
