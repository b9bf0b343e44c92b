"""A call runs in the caller's transaction if there is one, else in its own."""

import re

import pymysql
import pytest

from tests.engines.base import Connection, wait_until
from tests.helpers.calls import (
    call,
    call_one,
    counts,
    dequeue,
    dequeue_one,
    enqueue,
    refused,
    transaction,
)
from tests.helpers.queues import Connect
from tests.interleavings.conftest import Open, sessions
from tests.static.sources import sql_units

__all__ = ["sessions"]

LEVELS = ["read committed", "repeatable read"]


@pytest.fixture
def impatient(connect: Connect) -> Connection:
    """Return a session in which a lock wait fails after 1 second."""
    session = connect()
    session.execute("set session innodb_lock_wait_timeout = 1")
    return session


def begin(session: Connection, level: str) -> None:
    session.execute(f"set transaction isolation level {level}")
    session.execute("begin")


def test_tests_use_repeatable_read_and_an_odd_time_zone(
    connection: Connection,
) -> None:
    shown = connection.execute("show variables where variable_name like '%%isolation'").fetchall()
    assert "REPEATABLE-READ" in {value for _, value in shown}
    assert connection.execute("select @@time_zone").fetchone() == ("+05:45",)


@pytest.mark.parametrize("level", LEVELS)
def test_partial_dequeue_blocks_no_other_session(
    connect: Connect, impatient: Connection, queue: str, level: str
) -> None:
    enqueue(impatient, queue, "1", "2")
    begin(session := connect(), level)
    assert len(dequeue(session, queue, 10)) == 2
    enqueue(impatient, queue, "3")
    assert [row.body for row in dequeue(impatient, queue, 10)] == ["3"]
    session.rollback()


@pytest.mark.pitfall("mysql 2")
@pytest.mark.parametrize("level", LEVELS)
def test_empty_dequeue_blocks_no_producer(
    connect: Connect, impatient: Connection, queue: str, level: str
) -> None:
    begin(session := connect(), level)
    assert dequeue(session, queue, 10) == []
    enqueue(impatient, queue, "1", "2", delay_seconds=0)
    enqueue(impatient, queue, "3", delay_seconds=60)
    session.rollback()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("routine", ["complete", "retry_later", "fail_now", "release"])
def test_open_finish_blocks_no_other_session(
    connect: Connect, impatient: Connection, queue: str, level: str, routine: str
) -> None:
    enqueue(impatient, queue, "1", "2")
    claim = dequeue(impatient, queue, 2)[0].claim_id
    begin(session := connect(), level)
    call(session, routine, queue_name=queue, claim_id=claim)
    enqueue(impatient, queue, "3")
    mine = dequeue_one(impatient, queue)
    call(impatient, "complete", queue_name=queue, claim_id=mine.claim_id)
    session.commit()


@pytest.mark.promise("P08")
@pytest.mark.parametrize("writes", [False, True], ids=["reads only", "has written"])
@pytest.mark.parametrize("known", [False, True], ids=["gone before it", "gone since"])
@pytest.mark.parametrize(
    ("routine", "is_refused"),
    [
        *((name, True) for name in ("complete", "extend_lease")),
        *((name, False) for name in ("complete", "retry_later", "fail_now", "release")),
    ],
)
def test_stale_claim_locks_no_gap(
    connection: Connection,
    connect: Connect,
    impatient: Connection,
    queue: str,
    writes: bool,
    known: bool,
    routine: str,
    is_refused: bool,
) -> None:
    enqueue(connection, queue, "1", "2")
    session = connect()
    row = dequeue_one(connection, queue)
    if known:
        begin(session, "repeatable read")
        session.execute("select count(*) from rowq.claim")
    call(connection, "release", queue_name=queue, claim_id=row.claim_id)
    if not known:
        # Wait for the purge: without a row in the index a call could lock a gap.
        wait_until(lambda: _is_purged(connection), "the server has cleaned up")
        begin(session, "repeatable read")
    if writes:
        enqueue(session, queue, "mine")
    if is_refused:
        refused(session, "RQ721", routine, queue_name=queue, claim_id=row.claim_id)
    else:
        ids = [row.message_id]
        done = call_one(session, routine, queue_name=queue, claim_id=row.claim_id, message_ids=ids)
        assert done.outcome == "stale"
    mine = dequeue_one(impatient, queue)
    call(impatient, "complete", queue_name=queue, claim_id=mine.claim_id)
    session.rollback()


@pytest.mark.promise("P06")
@pytest.mark.parametrize(
    ("routine", "arguments"),
    [
        *((name, {}) for name in ("complete", "extend_lease", "retry_later", "fail_now")),
        *((name, {"message_ids": [1]}) for name in ("complete", "retry_later", "release")),
    ],
)
def test_future_claim_id_locks_no_gap(
    connect: Connect,
    impatient: Connection,
    queue: str,
    routine: str,
    arguments: dict[str, list[int]],
) -> None:
    enqueue(impatient, queue, "1", "2")
    last = dequeue_one(impatient, queue).claim_id
    begin(session := connect(), "repeatable read")
    for number in (last + 2, 2**40, 2**63 - 1):
        if arguments:
            done = call_one(session, routine, queue_name=queue, claim_id=number, **arguments)
            assert done.outcome == "stale"
        else:
            refused(session, "RQ721", routine, queue_name=queue, claim_id=number)
    mine = dequeue_one(impatient, queue)
    call(impatient, "complete", queue_name=queue, claim_id=mine.claim_id)
    session.rollback()


def test_old_read_view_returns_every_message_it_leases(
    connection: Connection, connect: Connect, queue: str
) -> None:
    enqueue(connection, queue, "old")
    begin(session := connect(), "repeatable read")
    session.execute("select count(*) from rowq.queue")
    enqueue(connection, queue, "new")
    held = dequeue(session, queue, 10)
    done = call(session, "complete", queue_name=queue, claim_id=held[0].claim_id)
    session.commit()
    assert [row.message_id for row in done] == [row.message_id for row in held]
    assert len(held) + len(dequeue(connection, queue, 10)) == 2


def test_old_read_view_finishes_newer_claims(
    connection: Connection, connect: Connect, queue: str
) -> None:
    begin(session := connect(), "repeatable read")
    session.execute("select count(*) from rowq.queue")
    enqueue(connection, queue, "new", max_attempts=1)
    row = dequeue_one(connection, queue)
    done = call_one(session, "retry_later", queue_name=queue, claim_id=row.claim_id)
    session.commit()
    assert (done.message_id, done.outcome) == (row.message_id, "dead")


@pytest.mark.promise("P12")
@pytest.mark.parametrize("archive_days", [0, 1])
def test_complete_does_not_wait_for_a_producer_of_a_duplicate(
    sessions: Open, connection: Connection, queue: str, archive_days: int
) -> None:
    call(connection, "alter_queue", queue_name=queue, archive_days=archive_days)
    worker, producer = sessions(2)
    for key in ("z", "a"):
        worker.queue.enqueue(queue, 0, dedup_key=key)
    claim = worker.queue.dequeue_fast(queue, 2)[0].claim_id
    producer.begin().queue.enqueue(queue, 0, dedup_key="a")
    completed = worker.start(lambda own: own.complete(queue, claim)).result()
    assert [outcome.outcome for outcome in completed] == ["completed"] * 2
    assert producer.queue.enqueue(queue, 0, dedup_key="z").outcome == "enqueued"
    assert producer.queue.enqueue(queue, 0, dedup_key="a").outcome == "enqueued"
    producer.commit()


@pytest.mark.pitfall("mysql 4")
@pytest.mark.promise("P15", "P17")
def test_refused_call_keeps_the_callers_transaction(
    connection: Connection, connect: Connect, queue: str
) -> None:
    session = connect()
    with transaction(session):
        enqueue(session, queue, "mine")
        refused(session, "RQ711", "enqueue", queue_name=queue, priority=10)
        refused(
            session,
            "RQ711",
            "enqueue_batch",
            queue_name=queue,
            messages=[{"body": "one"}, {"body": "two", "priority": 10}],
        )
        refused(session, "RQ721", "complete", queue_name=queue, claim_id=2**40)
    assert [row.body for row in dequeue(connection, queue, 10)] == ["mine"]


@pytest.mark.promise("P17")
@pytest.mark.parametrize("autocommit", [True, False], ids=["own", "the caller's"])
def test_call_ends_lock_tables_only_with_autocommit(
    connection: Connection, connect: Connect, impatient: Connection, queue: str, autocommit: bool
) -> None:
    connection.execute("create table rowq_test.locked (number int primary key)")
    session = connect(autocommit=autocommit)
    session.execute("lock tables rowq_test.locked write")
    try:
        if autocommit:
            enqueue(session, queue, "1")
            impatient.execute("insert into rowq_test.locked values (1)")
        else:
            with pytest.raises(pymysql.err.OperationalError, match="LOCK TABLES"):
                enqueue(session, queue, "1")
            impatient.execute("set lock_wait_timeout = 1")
            with pytest.raises(pymysql.err.OperationalError, match="timeout"):
                impatient.execute("insert into rowq_test.locked values (1)")
    finally:
        session.execute("unlock tables")
        session.rollback()
        connection.execute("drop table rowq_test.locked")


def test_event_may_call_and_trigger_is_refused(connection: Connection, queue: str) -> None:
    statement = f"call rowq.enqueue('{queue}', 'a'{', null' * 13})"
    connection.execute("create table rowq_test.own (number int primary key)")
    ((usual,),) = connection.execute("select @@global.event_scheduler").fetchall()
    connection.execute("set global event_scheduler = on")
    try:
        connection.execute(
            f"create trigger rowq_test.own after insert on rowq_test.own for each row {statement}"
        )
        with pytest.raises(pymysql.err.OperationalError, match="1415"):
            connection.execute("insert into rowq_test.own values (1)")
        connection.execute(f"create event rowq_test.own on schedule every 1 hour do {statement}")
        wait_until(lambda: counts(connection, queue) == (1, 0, 0, 0), "the event has sent")
    finally:
        connection.execute("drop event if exists rowq_test.own")
        connection.execute("drop table rowq_test.own")
        connection.execute(f"set global event_scheduler = {usual}")


@pytest.mark.parametrize("level", LEVELS)
def test_open_drop_queue_locks_gaps_under_repeatable_read_only(
    connection: Connection, connect: Connect, impatient: Connection, queue: str, level: str
) -> None:
    after = f"{queue} after"
    for name in (f"{queue} dropped", after):
        call(connection, "create_queue", queue_name=name)
    enqueue(connection, after, "1", delay_seconds=500)
    begin(session := connect(), level)
    call(session, "drop_queue", queue_name=f"{queue} dropped", force=True)
    if level == "read committed":
        enqueue(impatient, after, "2", delay_seconds=60)
    else:
        with pytest.raises(pymysql.err.OperationalError, match="Lock wait timeout"):
            enqueue(impatient, after, "2", delay_seconds=60)
    session.rollback()


@pytest.mark.pitfall("mysql 4")
@pytest.mark.promise("P17")
def test_call_without_autocommit_opens_the_callers_transaction(
    connection: Connection, connect: Connect, queue: str
) -> None:
    session = connect(autocommit=False)
    enqueue(session, queue, "rolled back")
    session.rollback()
    assert dequeue(connection, queue) == []
    enqueue(session, queue, "committed")
    session.commit()
    dequeue(session, queue)
    session.rollback()
    assert dequeue_one(connection, queue).attempt == 1


@pytest.mark.promise("P17")
def test_call_without_autocommit_keeps_the_isolation_level(
    connection: Connection, connect: Connect, queue: str
) -> None:
    session = connect(autocommit=False)
    session.execute("set session transaction isolation level serializable")
    enqueue(session, queue, "x")
    query = (
        "select trx_isolation_level from information_schema.innodb_trx"
        " where trx_mysql_thread_id = %s"
    )

    def level() -> object:
        """Return the transaction's level, which the server caches for 0.1 seconds."""
        return connection.execute(query, [session.thread_id()]).fetchone()

    wait_until(lambda: level() == ("SERIALIZABLE",), "the level is the caller's")
    session.rollback()


@pytest.mark.promise("P17")
def test_chained_session_is_left_without_a_transaction(connect: Connect, queue: str) -> None:
    session = connect()
    session.execute("set session completion_type = 1")
    enqueue(session, queue, "x")
    refused(session, "RQ701", "enqueue", queue_name=f"no {queue}")
    session.execute("set transaction isolation level read committed")  # 1568 inside a transaction


def test_call_keeps_the_isolation_of_the_next_transaction(
    connection: Connection, connect: Connect, queue: str
) -> None:
    session = connect()
    session.execute("set session transaction isolation level repeatable read")
    call(session, "enqueue", queue_name=queue)
    dequeue(session, queue)
    refused(session, "RQ711", "enqueue", queue_name=queue, priority=10)
    refused(session, "RQ701", "dequeue_fast", queue_name=f"no {queue}")
    session.execute("begin")
    before = _messages(session, queue)
    enqueue(connection, queue, "x")
    assert _messages(session, queue) == before
    session.rollback()


@pytest.mark.pitfall("mysql 2")
def test_only_begin_work_opens_transactions() -> None:
    openers = {"begin_work"}
    # The fast paths of three routines are inlined, because a call in them would cost time.
    enders = {"commit_work", "roll_back", "complete", "dequeue_fast", "complete_and_dequeue"}
    for unit in sql_units("mysql", "internal", "routines"):
        code = [line.strip() for line in unit.text.splitlines()]
        code = [line for line in code if not line.startswith("--")]
        assert ("start transaction;" in code) == (unit.stem in openers), unit
        ends = [line for line in code if re.match(r"commit|rollback(?! to )", line)]
        assert bool(ends) == (unit.stem in enders), unit


def _messages(session: Connection, queue: str) -> int:
    query = "select count(*) from rowq.message join rowq.queue using (queue_id) where queue_name=%s"
    return int(session.execute(query, [queue]).fetchall()[0][0])


def _is_purged(connection: Connection) -> bool:
    """Return whether the server has purged all deleted rows."""
    if "mariadb" not in connection.server_version.lower():
        # MySQL counts purged rows until it truncates its undo logs.
        connection.execute("set global innodb_purge_rseg_truncate_frequency = 1")
    query = (
        "select `count` from information_schema.innodb_metrics where name = 'trx_rseg_history_len'"
    )
    ((length,),) = connection.execute(query).fetchall()
    return int(length) == 0
