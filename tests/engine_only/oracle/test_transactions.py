"""Calls on Oracle never commit, and a refused call keeps the caller's work."""

import threading
import uuid
from collections.abc import Iterator
from contextlib import closing

import oracledb
import pytest

from rowq.engines.oracle.engine import ENGINE
from tests.engines.base import Connection, wait_until_blocked
from tests.engines.oracle.server import OracleServer
from tests.engines.oracle.session import Session
from tests.helpers.calls import (
    bodies,
    call,
    call_one,
    counts,
    dequeue,
    dequeue_one,
    enqueue,
    refused,
    rolled_back,
    transaction,
)
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect

RECOMPILE = "alter package rowq compile body"


def local_transaction(connection: Connection) -> str | None:
    """Return the id of a session's transaction, or None."""
    with closing(connection.cursor()) as cursor:
        cursor.execute("select dbms_transaction.local_transaction_id from dual")
        found: str | None = cursor.fetchone()[0]
    return found


@pytest.mark.promise("P15", "P17")
def test_refused_call_keeps_the_callers_transaction(connection: Connection, queue: str) -> None:
    with transaction(connection):
        enqueue(connection, queue, "before")
        mine = local_transaction(connection)
        refused(connection, "RQ711", "enqueue", queue_name=queue, priority=10)
        refused(connection, "RQ711", "enqueue_batch", queue_name=queue, messages=[{"no": 1}])
        refused(connection, "RQ721", "complete", queue_name=queue, claim_id=-1)
        refused(connection, "RQ701", "dequeue_fast", queue_name=f"{queue} ")
        claim = dequeue_one(connection, queue).claim_id
        late = {"queue_name": queue, "claim_id": claim, "batch_size": 0}
        refused(connection, "RQ711", "complete_and_dequeue", **late)
        call(connection, "release", queue_name=queue, claim_id=claim)
        assert local_transaction(connection) == mine
        enqueue(connection, queue, "after")
    assert bodies(dequeue(connection, queue, 10)) == ["before", "after"]


@pytest.mark.pitfall("oracle 15")
@pytest.mark.promise("P17")
def test_no_routine_commits_or_opens_a_transaction_for_nothing(
    connection: Connection, connect: Connect, queue: str
) -> None:
    session = connect(autocommit=False)
    assert dequeue(session, queue) == []
    call(session, "peek", queue_name=queue)
    call(session, "queue_stats", queue_name=queue)
    assert local_transaction(session) is None
    enqueue(session, queue, *"abcd")
    claim = dequeue(session, queue)[0].claim_id
    [row] = call(session, "complete_and_dequeue", queue_name=queue, claim_id=claim)
    call(session, "complete", queue_name=queue, claim_id=row.claim_id)
    for routine in ("reap", "promote", "archive", "purge_archive", "maintain"):
        call(session, routine, queue_name=queue)
    call(session, "pause_queue", queue_name=queue)
    assert counts(connection, queue) == (0, 0, 0, 0)
    assert not call_one(connection, "queue_stats", queue_name=queue).is_paused
    session.rollback()
    assert counts(session, queue) == (0, 0, 0, 0)


@pytest.mark.promise("P17")
def test_dequeue_wait_refuses_an_open_transaction(
    connection: Connection, connect: Connect, queue: str
) -> None:
    with rolled_back(connection):
        enqueue(connection, queue, "mine")
        refused(connection, "RQ713", "dequeue_wait", queue_name=queue)
    assert counts(connect(), queue) == (0, 0, 0, 0)


@pytest.mark.promise("P07")
def test_serializable_dequeue_returns_no_completed_message(
    connection: Connection, connect: Connect, queue: str
) -> None:
    strict, dialect = connect(), dialect_of(connection)
    sent = enqueue(connection, queue, *"ab")
    dialect.begin(strict, "serializable")
    dialect.execute(strict, "select count(*) from rowq_meta")
    claim = dequeue_one(connection, queue).claim_id
    call(connection, "complete", queue_name=queue, claim_id=claim)
    seen, errors = list[int](), list[Exception]()
    try:
        seen += [row.message_id for row in dequeue(strict, queue, 2)]
    except oracledb.DatabaseError as error:
        errors.append(error)
    dialect.rollback(strict)
    assert sent[0] not in seen
    assert all(ENGINE.is_transient(error) for error in errors), errors
    assert [row.message_id for row in dequeue(connection, queue, 2)] == sent[1:]


@pytest.mark.promise("P17")
def test_deadlock_in_callers_transactions_is_transient(
    server: OracleServer, connection: Connection, connect: Connect, queue: str
) -> None:
    other, answers = connect(), list[Exception | None]()

    def wait_for_mine() -> None:
        try:
            enqueue(other, queue, "x", dedup_key="mine")
            answers.append(None)
        except oracledb.DatabaseError as error:
            answers.append(error)
            dialect.rollback(other)

    dialect = dialect_of(connection)
    for session in (connection, other):
        dialect.begin(session)
    enqueue(connection, queue, "mine", dedup_key="mine")
    enqueue(other, queue, "theirs", dedup_key="theirs")
    waiting = threading.Thread(target=wait_for_mine)
    waiting.start()
    wait_until_blocked(server, server.session_id(other), by=server.session_id(connection))
    try:
        enqueue(connection, queue, "x", dedup_key="theirs")
    except oracledb.DatabaseError as error:
        answers.append(error)
    dialect.rollback(connection)
    waiting.join(30)
    assert not waiting.is_alive()
    dialect.rollback(other)
    errors = [answer for answer in answers if answer is not None]
    assert errors
    assert all(ENGINE.is_transient(error) for error in errors), errors
    assert counts(connection, queue) == (0, 0, 0, 0)


@pytest.mark.pitfall("oracle 9")
def test_recompiled_package_works_in_open_sessions(
    connection: Connection, connect: Connect, queue: str
) -> None:
    sessions = [connect() for _ in range(3)]
    for session in sessions:
        enqueue(session, queue, "before")
    dialect_of(connection).execute(connection, RECOMPILE)
    for session in sessions:
        enqueue(session, queue, "after")
        assert len(dequeue(session, queue, 2)) == 2


def test_killed_session_is_a_lost_connection(
    server: OracleServer, connect: Connect, queue: str
) -> None:
    victim = connect()
    enqueue(victim, queue, "x")
    server.kill_session(server.session_id(victim))
    with pytest.raises(oracledb.Error) as caught:
        enqueue(victim, queue, "y")
    assert ENGINE.is_connection_lost(caught.value)


@pytest.mark.pitfall("oracle 7")
@pytest.mark.promise("P17", "P19")
def test_fetched_bodies_survive_a_complete_by_another_session(
    connection: Connection, connect: Connect, queue: str
) -> None:
    texts = [f"{number} " + "x" * 9000 for number in range(20)]
    enqueue(connection, queue, *texts)
    rows = dequeue(connection, queue, 20)
    call(connect(), "complete", queue_name=queue, claim_id=rows[0].claim_id)
    assert bodies(rows) == texts


@pytest.fixture
def orders(server: OracleServer, connection: Session) -> Iterator[str]:
    """Return a table with a trigger that enqueues each row's number to the row's queue."""
    dialect, table = dialect_of(connection), f"orders_{uuid.uuid4().hex[:8]}"
    owner = connection.username
    server.execute(f"grant create trigger to {owner}")
    dialect.execute(connection, f"create table {table} (number_ number, queue_ varchar2(100 char))")
    dialect.execute(
        connection,
        f"""
        create trigger {table}_t after insert on {table} for each row
        declare
            v_rows sys_refcursor;
        begin
            rowq.enqueue(
                p_queue_name => :new.queue_,
                p_body       => to_clob(to_char(:new.number_)),
                p_dedup_key  => to_char(:new.number_),
                p_group_key  => :new.queue_,
                p_rows       => v_rows
            );
            close v_rows;
        end;
        """,
    )
    yield table
    dialect.execute(connection, f"drop table {table} purge")
    server.execute(f"revoke create trigger from {owner}")


@pytest.mark.promise("P01", "P17")
def test_trigger_enqueues_in_its_statements_transaction(
    connection: Connection, connect: Connect, queue: str, orders: str
) -> None:
    dialect = dialect_of(connection)
    with rolled_back(connection):
        dialect.execute(connection, f"insert into {orders} values (1, '{queue}')")
    with transaction(connection):
        dialect.execute(connection, f"insert into {orders} values (2, '{queue}')")
        dialect.execute(connection, f"insert into {orders} values (3, '{queue}')")
        assert counts(connect(), queue) == (0, 0, 0, 0)
    for number in ("2", "3"):
        (row,) = dequeue(connection, queue, 10)
        assert row.body == number, "both are in one group"
        call(connection, "complete", queue_name=queue, claim_id=row.claim_id)


@pytest.mark.promise("P15")
def test_refused_call_in_a_trigger_fails_its_statement(
    connection: Connection, queue: str, orders: str
) -> None:
    dialect = dialect_of(connection)
    with transaction(connection):
        with pytest.raises(oracledb.DatabaseError) as failed:
            dialect.execute(
                connection,
                f"insert into {orders} select level, decode(level, 1, '{queue}', 'nowhere')"
                " from dual connect by level <= 2",
            )
        assert dialect.error(failed.value)[0] == "RQ701"
    assert counts(connection, queue) == (0, 0, 0, 0)
