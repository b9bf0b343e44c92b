"""Locks of calls on SQL Server block no other session."""

import threading
from typing import Any

import pytest

from tests.engine_only.sqlserver.sessions import impatient
from tests.engines.base import Connection, Server, wait_until, wait_until_blocked
from tests.helpers.calls import (
    Row,
    bodies,
    call,
    call_one,
    counts,
    dequeue,
    dequeue_one,
    enqueue,
    refused,
    rolled_back,
)
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect

pytestmark = pytest.mark.requires("genuine")


MANY = 7000
"""More than the 5,000 locks at which the engine escalates to a table lock."""

MINE = """
    select l.resource_type, l.request_mode,
        case when l.resource_type = 'OBJECT'
            then object_name(try_cast(l.resource_associated_entity_id as int)) end
    from sys.dm_tran_locks l
    where l.request_session_id = @@spid
        and l.resource_database_id = db_id()
        and l.resource_type in ('KEY', 'RID', 'PAGE', 'HOBT', 'OBJECT', 'APPLICATION')
        and (l.resource_type <> 'OBJECT'
            or object_schema_name(try_cast(l.resource_associated_entity_id as int)) = N'rowq')
    """
HOT = """
    select t.name, t.lock_escalation_desc, i.type_desc, i.allow_row_locks, i.allow_page_locks,
        s.no_recompute, count(*) over (partition by t.object_id)
    from sys.tables t
    join sys.indexes i on i.object_id = t.object_id
    join sys.stats s on s.object_id = i.object_id and s.stats_id = i.index_id
    where t.schema_id = schema_id(N'rowq')
        and t.name in (N'ready', N'delayed', N'claim', N'leased', N'finished', N'dedup', N'lane',
            N'queue_lock', N'group_slot', N'group_waiting', N'deferred', N'limit_lock', N'started',
            N'blocked', N'successor')
    """
HEAPS = """
    select object_name(i.object_id)
    from sys.indexes i
    join sys.tables t on t.object_id = i.object_id
    where t.schema_id = schema_id(N'rowq') and (i.type = 0 or t.is_memory_optimized = 1)
    """
LAST_PAGES = """
    select object_name(i.object_id), i.optimize_for_sequential_key
    from sys.indexes i
    where i.index_id = 1 and i.object_id in (object_id(N'rowq.message'), object_id(N'rowq.ready'),
        object_id(N'rowq.claim'), object_id(N'rowq.leased'))
    """
SETTINGS = """
    select @@options, @@textsize, @@lock_timeout, s.transaction_isolation_level, s.language,
        s.date_format, s.deadlock_priority, s.quoted_identifier, s.ansi_nulls, @@trancount
    from sys.dm_exec_sessions s
    where s.session_id = @@spid
    """


def rows(connection: Connection, query: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query."""
    found: list[tuple[Any, ...]] = dialect_of(connection).execute(connection, query).fetchall()
    return found


def kinds(connection: Connection) -> set[tuple[str, str]]:
    """Return the resources and modes of a session's locks."""
    return {(resource, mode) for resource, mode, _ in rows(connection, MINE)}


def fill(connection: Connection, queue: str, count: int) -> None:
    """Enqueue many messages."""
    for start in range(0, count, 1000):
        messages = [{"body": str(start + place)} for place in range(1000)]
        call(connection, "enqueue_batch", queue_name=queue, messages=messages)


@pytest.mark.pitfall("sqlserver 2")
@pytest.mark.promise("P06")
def test_hot_tables_use_row_locks_and_one_index(connection: Connection) -> None:
    found = rows(connection, HOT)
    assert len(found) == 13
    for name, *settings in found:
        assert settings == ["DISABLE", "CLUSTERED", True, False, True, 1], name


@pytest.mark.pitfall("sqlserver 7", "sqlserver 15")
def test_no_table_is_a_heap_or_memory_optimized(connection: Connection) -> None:
    assert rows(connection, HEAPS) == []


@pytest.mark.pitfall("sqlserver 6")
def test_hot_indexes_are_optimized_for_sequential_keys(
    connection: Connection,
) -> None:
    query = "select serverproperty('ProductMajorVersion'), serverproperty('EngineEdition')"
    ((major, edition),) = rows(connection, query)
    if int(major) < 15 and int(edition) not in {5, 8}:
        pytest.skip(
            "optimize_for_sequential_key came with SQL Server 2019"
            "; to run it: --engine sqlserver2022"
        )
    assert [bool(is_on) for _, is_on in rows(connection, LAST_PAGES)] == [True] * 4


@pytest.mark.promise("P06")
def test_dequeue_skips_a_message_locked_by_a_reader(
    connection: Connection, connect: Connect, queue: str
) -> None:
    reader, consumer = connect(), impatient(connect())
    enqueue(connection, queue, *"abc")
    with rolled_back(reader):
        query = "select top (1) message_id from rowq.ready with (rowlock, holdlock)"
        part = f"where queue_id = (select queue_id from rowq.queue where queue_name = N'{queue}')"
        rows(reader, f"{query} {part} order by lane, seq")
        assert bodies(dequeue(consumer, queue, 3))[-1:] == ["c"]
    assert len(dequeue(consumer, queue, 3)) > 0


@pytest.mark.pitfall("sqlserver 2")
@pytest.mark.promise("P06")
def test_thousands_of_row_locks_do_not_escalate(
    connection: Connection, connect: Connect, queue: str
) -> None:
    holder, other = connect(), impatient(connect())
    fill(connection, queue, MANY + 1000)
    with rolled_back(holder):
        claims = [dequeue(holder, queue, 1000)[0].claim_id for _ in range(MANY // 1000)]
        locks = rows(holder, MINE)
        assert sum(resource == "KEY" for resource, *_ in locks) > MANY
        assert {mode for resource, mode, _ in locks if resource != "KEY"} <= {"IS", "IU", "IX"}
        for claim in claims:
            call(holder, "complete", queue_name=queue, claim_id=claim)
        assert len(dequeue(other, queue, 1000)) == 1000
        enqueue(other, queue, "new", dedup_key="new")
        assert dequeue_one(other, queue).body == "new"
        call_one(other, "maintain", queue_name=queue)
    assert counts(connection, queue)[0] == MANY


@pytest.mark.pitfall("sqlserver 20")
@pytest.mark.promise("P12")
def test_locked_key_blocks_no_adjacent_key(
    connection: Connection, connect: Connect, queue: str
) -> None:
    other = impatient(connect())
    for key in ("b", "y"):
        enqueue(connection, queue, key, dedup_key=key)
    with rolled_back(connection):
        enqueue(connection, queue, "m", dedup_key="m")
        call(
            connection,
            "enqueue_batch",
            queue_name=queue,
            messages=[{"dedup_key": "k"}, {"dedup_key": "o"}],
        )
        assert not {mode for _, mode in kinds(connection) if mode.startswith("Range")}
        for key in ("j", "kk", "l", "n", "p", "z"):
            enqueue(other, queue, key, dedup_key=key)
    assert counts(other, queue)[0] == 8


@pytest.mark.promise("P06")
def test_open_dequeue_locks_no_row_of_another_queue(
    connection: Connection, connect: Connect, queue: str
) -> None:
    other, second = impatient(connect()), f"{queue}_2"
    call(connection, "create_queue", queue_name=second)
    enqueue(connection, queue, *"abc")
    with rolled_back(connection):
        claim = dequeue(connection, queue, 3)[0].claim_id
        call(connection, "complete", queue_name=queue, claim_id=claim)
        enqueue(other, second, "x", dedup_key="x")
        call(other, "complete", queue_name=second, claim_id=dequeue_one(other, second).claim_id)
        call(other, "purge_queue", queue_name=second)
        call(other, "drop_queue", queue_name=second, force=True)


@pytest.mark.pitfall("sqlserver 11")
@pytest.mark.promise("P17")
def test_calls_leave_no_lock_or_setting(connection: Connection, queue: str) -> None:
    dialect_of(connection).execute(
        connection,
        "set lock_timeout 4321; set textsize 12345; set xact_abort on;"
        " set transaction isolation level serializable",
    )
    before = rows(connection, SETTINGS)

    def look(routine: str, **arguments: Any) -> None:
        call(connection, routine, **arguments)
        assert rows(connection, SETTINGS) == before, routine
        assert rows(connection, MINE) == [], routine

    look("create_queue", queue_name=queue)
    look("alter_queue", queue_name=queue, archive_days=1)
    look("enqueue", queue_name=queue, body="a", dedup_key="a")
    look("enqueue", queue_name=queue, body="a", dedup_key="a")
    look("enqueue_batch", queue_name=queue, messages=[{"dedup_key": "b"}, {"delay_seconds": 9}])
    for _ in range(2):
        look("enqueue", queue_name=queue, body="a", group_key="a")
    look("peek", queue_name=queue)
    for _ in range(3):
        look("dequeue_wait", queue_name=queue, wait_seconds=0.2)
    for routine in ("reap", "promote", "maintain", "archive", "purge_archive", "queue_stats"):
        look(routine, queue_name=queue)
    look("health")
    refused(connection, "RQ721", "complete", queue_name=queue, claim_id=-1)
    refused(connection, "RQ704", "drop_queue", queue_name=queue)
    assert rows(connection, SETTINGS) == before
    assert rows(connection, MINE) == []
    look("drop_queue", queue_name=queue, force=True)


@pytest.mark.pitfall("sqlserver 45")
@pytest.mark.promise("P17")
def test_waiter_of_a_dropped_queue_leaves_no_lock(
    server: Server, connection: Connection, connect: Connect, queue: str
) -> None:
    leader, follower = connect(), connect()
    texts: list[str] = []

    def wait(session: Connection) -> None:
        texts.append(refused(session, "RQ701", "dequeue_wait", queue_name=queue, wait_seconds=60.0))

    threads = [threading.Thread(target=wait, args=[session]) for session in (leader, follower)]
    numbers = {server.session_id(session) for session in (leader, follower)}
    for thread in threads:
        thread.start()
    wait_until(
        lambda: bool(numbers & server.waiting_sessions().keys()), "one waits for the other's lock"
    )
    call(connection, "drop_queue", queue_name=queue, force=True)
    for thread in threads:
        thread.join(timeout=30)
    assert len(texts) == len(threads)
    assert rows(leader, MINE) == rows(follower, MINE) == []


@pytest.mark.pitfall("sqlserver 46")
@pytest.mark.promise("P02")
def test_crossed_dedup_keys_deadlock_one_transaction(
    server: Server, connection: Connection, connect: Connect, queue: str
) -> None:
    other, answers = connect(), list[Row]()
    dialect = dialect_of(connection)
    dialect.execute(connection, "set deadlock_priority low")
    dialect.begin(connection)
    dialect.begin(other)
    enqueue(connection, queue, "a", dedup_key="a")
    enqueue(other, queue, "b", dedup_key="b")
    second = threading.Thread(
        target=lambda: answers.append(
            call_one(other, "enqueue", queue_name=queue, body="a", dedup_key="a")
        )
    )
    second.start()
    wait_until_blocked(server, server.session_id(other), by=server.session_id(connection))
    with pytest.raises(dialect.database_error, match="1205"):
        enqueue(connection, queue, "b", dedup_key="b")
    second.join()
    dialect.rollback(connection)
    dialect.commit(other)
    assert [row.outcome for row in answers] == ["enqueued"]
    assert counts(connection, queue)[0] == 2


@pytest.mark.promise("P06")
def test_waiting_drop_blocks_no_other_call(
    connection: Connection, connect: Connect, queue: str
) -> None:
    dropping, other, texts = connect(), connect(), list[str]()
    dialect_of(other).execute(other, "set lock_timeout 500")

    def drop() -> None:
        texts.append(refused(dropping, "RQ705", "drop_queue", queue_name=queue, force=True))

    thread = threading.Thread(target=drop)
    with rolled_back(connection):
        enqueue(connection, queue, "uncommitted")
        thread.start()
        while thread.is_alive():
            enqueue(other, queue, "a")
        thread.join()
    assert len(texts) == 1


@pytest.mark.promise("P13")
def test_callers_transaction_does_not_wait_for_maintain(
    server: Server, connection: Connection, connect: Connect, queue: str
) -> None:
    maintainer, caller = connect(), impatient(connect())
    enqueue(connection, queue, "due", delay_seconds=30)
    dialect_of(connection).pass_seconds(connection, queue, 60)
    part = f"(select queue_id from rowq.queue where queue_name = N'{queue}')"
    maintain = threading.Thread(target=lambda: call(maintainer, "maintain", queue_name=queue))
    with rolled_back(connection):
        # Readers share this lock, and promoting waits for it; the floors have moved by then.
        rows(connection, "select count(*) from rowq.ready with (tablock, holdlock)")
        maintain.start()
        wait_until_blocked(server, server.session_id(maintainer), by=server.session_id(connection))
        query = f"select 1 from rowq.lane with (rowlock, holdlock) where queue_id = {part}"
        assert rows(caller, f"{query} and lane = -22") == [(1,)]
    maintain.join()


@pytest.mark.pitfall("sqlserver 4")
@pytest.mark.promise("P02")
@pytest.mark.parametrize("table", ["ready", "message", "claim"])
def test_foreign_trigger_does_not_stop_rowq(connection: Connection, queue: str, table: str) -> None:
    dialect = dialect_of(connection)
    dialect.execute(
        connection,
        f"create trigger rowq.{table}_watched on rowq.{table} after insert, update, delete"
        " as set nocount on",
    )
    try:
        enqueue(connection, queue, "a", dedup_key="a")
        claim = dequeue_one(connection, queue).claim_id
        call(connection, "retry_later", queue_name=queue, claim_id=claim, delay_seconds=0)
        claim = dequeue_one(connection, queue).claim_id
        call(connection, "complete", queue_name=queue, claim_id=claim)
    finally:
        dialect.execute(connection, f"drop trigger rowq.{table}_watched")
    assert counts(connection, queue) == (0, 0, 0, 0)
