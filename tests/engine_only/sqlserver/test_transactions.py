"""The transaction of a call on SQL Server, and its state afterwards."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.engines.base import Connection, Server, wait_until_blocked
from tests.helpers.calls import (
    Row,
    bodies,
    call,
    call_one,
    counts,
    dequeue,
    dequeue_one,
    enqueue,
    make_dead,
    refused,
    rolled_back,
    transaction,
)
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect

genuine = pytest.mark.requires("genuine")

FINISHING = {"complete", "complete_and_dequeue", "release", "retry_later", "fail_now"}
LAST_TABLES = {
    "enqueue": "ready",
    "enqueue_batch": "ready",
    "dequeue_fast": "claim",
    "complete": "message",
    "complete_and_dequeue": "ready",
    "release": "ready",
    "retry_later": "delayed",
    "fail_now": "dead",
    "reset": "ready",
    "cancel": "message",
    "promote": "ready",
    "reap": "ready",
}
"""A table that a routine uses only after it has written to others."""
ROWS = """
    select N'message', m.queue_id, m.message_id from rowq.message m
    union all select N'ready', r.queue_id, r.message_id from rowq.ready r
    union all select N'delayed', d.queue_id, d.message_id from rowq.delayed d
    union all select N'claim', c.queue_id, c.claim_id from rowq.claim c
    union all select N'leased', l.queue_id, l.message_id from rowq.leased l
    union all select N'dead', d.queue_id, d.message_id from rowq.dead d
    union all select N'dedup', k.queue_id, k.message_id from rowq.dedup k
    union all select N'group_waiting', g.queue_id, g.message_id from rowq.group_waiting g
    union all select N'group_slot', t.queue_id, t.slot_no from rowq.group_slot t
    union all select N'deferred', r.queue_id, r.deferred_id from rowq.deferred r
    union all select N'blocked', b.queue_id, b.message_id from rowq.blocked b
    union all select N'successor', s.queue_id, s.message_id from rowq.successor s
    """


def value(connection: Connection, query: str, *values: Any) -> Any:
    """Return the single value of a query."""
    with connection.cursor() as cursor:
        return cursor.execute(query, *values).fetchval()


def run(connection: Connection, *statements: str) -> None:
    """Run statements of the caller."""
    for statement in statements:
        dialect_of(connection).execute(connection, statement)


def stored_keys(connection: Connection) -> set[tuple[Any, ...]]:
    """Return the keys of all rows of messages and claims."""
    return set(map(tuple, dialect_of(connection).execute(connection, ROWS).fetchall()))


def queue_id_of(connection: Connection, queue: str) -> int:
    """Return the id of a queue."""
    return int(value(connection, "select queue_id from rowq.queue where queue_name = ?", queue))


@contextmanager
def at(connection: Connection, isolation: str) -> Iterator[None]:
    """Run a block in a transaction of this isolation level."""
    run(connection, f"set transaction isolation level {isolation}", "begin transaction")
    try:
        yield
        run(connection, "commit transaction")
    finally:
        run(
            connection,
            "if @@trancount > 0 rollback transaction",
            "set transaction isolation level read committed",
        )


@pytest.mark.pitfall("sqlserver 11")
@pytest.mark.promise("P15", "P17")
def test_refused_call_keeps_the_callers_transaction(connection: Connection, queue: str) -> None:
    with transaction(connection):
        enqueue(connection, queue, "before")
        refused(connection, "RQ711", "enqueue", queue_name=queue, priority=10)
        refused(connection, "RQ701", "enqueue", queue_name=f"{queue} ")
        refused(connection, "RQ711", "enqueue_batch", queue_name=queue, messages=[{"no": 1}])
        refused(connection, "RQ701", "dequeue_fast", queue_name=f"{queue} ")
        refused(
            connection, "RQ711", "complete_and_dequeue", queue_name=queue, claim_id=1, results=1
        )
        for routine in ("complete", "release", "fail_now"):
            refused(connection, "RQ721", routine, queue_name=queue, claim_id=-1)
        refused(connection, "RQ721", "extend_lease", queue_name=queue, claim_id=-1)
        refused(connection, "RQ711", "peek", queue_name=queue, max_messages=0)
        assert value(connection, "select xact_state()") == 1
        assert value(connection, "select @@trancount") == 1
        enqueue(connection, queue, "after")
    assert bodies(dequeue(connection, queue, 10)) == ["before", "after"]


@pytest.mark.promise("P17")
def test_implicit_transactions_open_the_callers_transaction(
    connection: Connection, queue: str
) -> None:
    run(connection, "set implicit_transactions on")
    try:
        enqueue(connection, queue, "gone")
        assert value(connection, "select @@trancount") == 1
        run(connection, "rollback transaction")
        refused(connection, "RQ713", "dequeue_wait", queue_name=queue, wait_seconds=0)
    finally:
        run(
            connection,
            "if @@trancount > 0 rollback transaction",
            "set implicit_transactions off",
        )
    assert counts(connection, queue)[0] == 0


@pytest.mark.pitfall("sqlserver 1")
@genuine
@pytest.mark.promise("P17")
@pytest.mark.parametrize("isolation", ["snapshot", "serializable", "repeatable read"])
def test_call_keeps_the_callers_isolation_level(
    connection: Connection, queue: str, isolation: str
) -> None:
    enqueue(connection, queue, "a")
    with at(connection, isolation):
        claim = dequeue_one(connection, queue).claim_id
        run(connection, "select count(*) from rowq.meta")
        call(connection, "complete", queue_name=queue, claim_id=claim)
        enqueue(connection, queue, "b")
        run(connection, "select count(*) from rowq.meta")
        assert (
            value(
                connection,
                "select s.transaction_isolation_level from sys.dm_exec_sessions s"
                " where s.session_id = @@spid",
            )
            == {"repeatable read": 3, "serializable": 4, "snapshot": 5}[isolation]
        )
    assert bodies(dequeue(connection, queue, 10)) == ["b"]


@pytest.mark.pitfall("sqlserver 1")
@genuine
@pytest.mark.promise("P06")
@pytest.mark.parametrize("isolation", ["snapshot", "serializable", "repeatable read"])
def test_dequeue_skips_locked_rows_at_every_level(
    connection: Connection, connect: Connect, queue: str, isolation: str
) -> None:
    other = connect()
    enqueue(connection, queue, *"abc")
    with rolled_back(other):
        assert bodies(dequeue(other, queue, 2)) == ["a", "b"]
        with at(connection, isolation):
            assert bodies(dequeue(connection, queue, 2)) == ["c"]
            enqueue(connection, queue, "d")
    assert bodies(dequeue(connection, queue, 9)) == ["a", "b", "d"]


@pytest.mark.pitfall("sqlserver 5")
@genuine
@pytest.mark.promise("P07")
def test_no_floor_passes_rows_of_an_open_dequeue(
    connection: Connection, connect: Connect, queue: str
) -> None:
    caller = connect()
    old = enqueue(connection, queue, "old")
    dialect_of(connection).pass_seconds(connection, queue, 60)
    enqueue(connection, queue, *(str(number) for number in range(150)))
    with rolled_back(caller):
        assert bodies(dequeue(caller, queue)) == ["old"]
        dialect_of(connection).pass_seconds(connection, queue, 60)
        for _ in range(100):
            dequeue_one(connection, queue)
        call_one(connection, "maintain", queue_name=queue)
    assert [row.message_id for row in dequeue(connection, queue)] == old


@pytest.mark.pitfall("sqlserver 11")
@genuine
@pytest.mark.promise("P17")
def test_call_with_a_client_timeout_leaves_no_transaction(
    connection: Connection, connect: Connect, queue: str
) -> None:
    second = connect()
    with rolled_back(connection):
        enqueue(connection, queue, "first", dedup_key="key")
        second.timeout = 1
        with pytest.raises(dialect_of(second).database_error):
            enqueue(second, queue, "second", dedup_key="key")
        second.timeout = 0
        assert value(second, "select @@trancount") == 0
    assert counts(connection, queue)[0] == 0
    enqueue(second, queue, "third", dedup_key="key")


@pytest.mark.pitfall("sqlserver 11")
@genuine
@pytest.mark.promise("P01", "P02", "P17")
@pytest.mark.parametrize("xact_abort", ["on", "off"])
@pytest.mark.parametrize(("routine", "table"), LAST_TABLES.items())
def test_client_timeout_in_a_transaction_leaves_nothing(
    connection: Connection, connect: Connect, queue: str, routine: str, table: str, xact_abort: str
) -> None:
    caller = connect()
    [dead] = make_dead(connection, queue, "dead")
    enqueue(connection, queue, "due", delay_seconds=30)
    enqueue(connection, queue, "late")
    dequeue_one(connection, queue, lease_seconds=10)
    dialect_of(connection).pass_seconds(connection, queue, 60)
    enqueue(connection, queue, "held", priority=0)
    claim = dequeue_one(connection, queue).claim_id
    enqueue(connection, queue, "ready")
    arguments: dict[str, dict[str, Any]] = {
        "enqueue": {"body": "new", "dedup_key": "key"},
        "enqueue_batch": {"messages": [{"body": "new", "dedup_key": "key"}]},
        "cancel": {"message_ids": [dead]},
    }
    own = {"claim_id": claim} if routine in FINISHING else arguments.get(routine, {})
    before = stored_keys(connection)
    run(caller, f"set xact_abort {xact_abort}", "begin transaction")
    with rolled_back(connection):
        run(connection, f"select count(*) from rowq.{table} with (tablockx)")
        caller.timeout = 1
        with pytest.raises(dialect_of(caller).database_error):
            call(caller, routine, queue_name=queue, **own)
        caller.timeout = 0
    assert value(caller, "select @@trancount") == 0
    run(caller, "if @@trancount > 0 commit transaction")
    assert stored_keys(connection) == before


@pytest.mark.pitfall("sqlserver 46")
@genuine
@pytest.mark.promise("P04", "P17")
@pytest.mark.parametrize(
    ("routine", "outcomes"), [("complete", ["completed"]), ("complete_and_dequeue", ["leased"])]
)
def test_deadlock_victim_is_retried(
    server: Server,
    connection: Connection,
    connect: Connect,
    queue: str,
    routine: str,
    outcomes: list[str],
) -> None:
    [message] = enqueue(connection, queue, "a", dedup_key="key")
    claim = dequeue_one(connection, queue).claim_id
    enqueue(connection, queue, "b")
    victim, answers = connect(), list[Row]()
    run(victim, "set deadlock_priority low")
    finish = threading.Thread(
        target=lambda: answers.extend(call(victim, routine, queue_name=queue, claim_id=claim))
    )
    with rolled_back(connection):
        run(
            connection,
            "update rowq.dedup with (rowlock) set message_id = message_id"
            f" where message_id = {message}",
        )
        finish.start()
        wait_until_blocked(server, server.session_id(victim), by=server.session_id(connection))
        # The other session holds the claim and waits for the dedup key.
        run(
            connection,
            f"select 1 from rowq.claim with (rowlock, updlock) where claim_id = {claim}",
        )
    finish.join()
    assert [row.outcome for row in answers] == outcomes


@genuine
@pytest.mark.promise("P07")
def test_insert_exec_runs_in_the_callers_transaction(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, *"ab")
    run(
        connection,
        "create table #taken (claim_id bigint, message_id bigint, attempt int,"
        " message_type nvarchar(400), headers nvarchar(max), body nvarchar(max),"
        " body_binary varbinary(max), enqueued_at datetime2(6), lease_until datetime2(6),"
        " last_error nvarchar(4000))",
    )
    with connection.cursor() as cursor:
        cursor.execute("insert into #taken exec rowq.DequeueFast ?, 10", queue)
    assert value(connection, "select count(*) from #taken") == 2
    assert counts(connection, queue)[2] == 2


@pytest.mark.pitfall("sqlserver 45")
@genuine
@pytest.mark.promise("P03")
def test_next_wait_releases_an_abandoned_poller_lock(connection: Connection, queue: str) -> None:
    lock = f"rowq.wait.{queue_id_of(connection, queue)}"
    for _ in range(2):
        run(connection, f"exec sys.sp_getapplock N'{lock}', N'Exclusive', N'Session', 0")
    assert call_one(connection, "dequeue_wait", queue_name=queue, wait_seconds=0.2).messages is None
    mode = value(connection, f"select applock_mode(N'public', N'{lock}', N'Session')")
    assert mode == "NoLock"


@genuine
@pytest.mark.promise("P03")
def test_waiters_get_messages_while_another_holds_their_lock(
    server: Server, connection: Connection, connect: Connect, queue: str
) -> None:
    waiter, answers = connect(), list[Row]()
    lock = f"rowq.wait.{queue_id_of(connection, queue)}"
    run(connection, f"exec sys.sp_getapplock N'{lock}', N'Exclusive', N'Session', 0")
    waiting = threading.Thread(
        target=lambda: answers.append(
            call_one(waiter, "dequeue_wait", queue_name=queue, wait_seconds=60.0)
        )
    )
    waiting.start()
    wait_until_blocked(server, server.session_id(waiter), by=server.session_id(connection))
    enqueue(connection, queue, "here")
    waiting.join(timeout=30)
    assert [message["body"] for row in answers for message in row.messages] == ["here"]
    run(connection, f"exec sys.sp_releaseapplock N'{lock}', N'Session'")
