"""Questions that only an Oracle Database can answer, one per test.

Not tested on SQL Server and Oracle. test_00_first_forms.py has the questions that need no rowq.
"""

import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import oracledb
import pytest

from rowq.tools import migrate
from rowq.tools.engines.oracle.install import refusal
from tests.engine_only.oracle.installed import rows
from tests.engines.base import Connection, wait_until, wait_until_blocked
from tests.engines.oracle.server import OracleServer
from tests.engines.oracle.session import Session, number_of, owner_in
from tests.helpers.calls import (
    call,
    call_one,
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
from tests.helpers.waiter import Waiter
from tests.static.sources import unit_text
from tests.stored_times import pass_seconds, tick

LONG = "x" * 40_000
"""Longer than any varchar2."""
CANNOT_SERIALIZE = 8177
PATIENCE_MS = 5000
"""A longer call waits for a lock."""
MAINTAINS = 20
EXECUTIONS_OF_IDLE_MAINTAIN = 20
"""The source has 16 statements and three savepoints."""
OF_QUEUE = "queue_id = (select q.queue_id from rowq_queue q where q.queue_name = %s)"
_EXECUTIONS = "select sum(s.executions) from v$sql s where s.parsing_schema_name = :owner"
_LOCKS = "select l.type from v$lock l where l.sid = :place and l.type in ('TM', 'TX')"
_READS_OF_CATALOG = """
    select coalesce(sum(s.executions), 0)
    from v$sql s
    where s.parsing_schema_name = :owner and s.sql_text like '%USER_TAB_PARTITIONS%'
    """
_CHANGES = """
    select v.value
    from v$sesstat v
    join v$statname n on n.statistic# = v.statistic#
    where v.sid = :place and n.name = 'db block changes'
    """


@pytest.mark.pitfall("oracle 24")
@pytest.mark.promise("P10", "P20")
def test_long_bodies_and_errors_pass_through_forall(connection: Connection, queue: str) -> None:
    messages = [{"body": f"{number} {LONG}"} for number in range(5)]
    call(connection, "enqueue_batch", queue_name=queue, messages=messages)
    claim = dequeue(connection, queue, 5)[0].claim_id
    why = "\N{EURO SIGN}" * 2000
    call(connection, "retry_later", queue_name=queue, claim_id=claim, error=why, delay_seconds=0)
    found = dequeue(connection, queue, 5)
    assert [row.body for row in found] == [message["body"] for message in messages]
    assert [row.last_error for row in found] == [why] * 5


@pytest.mark.pitfall("oracle 24")
@pytest.mark.promise("P32")
def test_results_of_many_messages_pass_through_forall(connection: Connection, queue: str) -> None:
    """An insert binds a LOB per row; a merge binds one error for all rows."""
    call(connection, "alter_queue", queue_name=queue, result_seconds=600.0)
    ids = enqueue(connection, queue, *"abcde")
    claim = dequeue(connection, queue, 5)[0].claim_id
    results = [LONG, None, 1, "", ["\N{EURO SIGN}" * 2000]]
    given = {"queue_name": queue, "claim_id": claim, "message_ids": ids}
    call(connection, "complete", **given, results=results)
    rows = [call_one(connection, "get_result", queue_name=queue, message_id=one) for one in ids]
    assert [row.result for row in rows] == results
    why = "\N{EURO SIGN}" * 2000
    ids = enqueue(connection, queue, *"fgh")
    claim = dequeue(connection, queue, 3)[0].claim_id
    call(connection, "fail_now", queue_name=queue, claim_id=claim, error=why)
    call(connection, "cancel", queue_name=queue, message_ids=ids[1:])
    rows = [call_one(connection, "get_result", queue_name=queue, message_id=one) for one in ids]
    assert [row.state for row in rows] == ["dead", "cancelled", "cancelled"]
    assert {row.last_error for row in rows} == {why}


@pytest.mark.pitfall("oracle 17")
@pytest.mark.promise("P20")
def test_answer_of_a_wait_outlives_its_block(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, LONG)
    block = "begin rowq.dequeue_wait(p_queue_name => :queue, p_rows => :answer); end;"
    with closing(connection.cursor()) as cursor, closing(connection.cursor()) as answer:
        cursor.execute(block, {"queue": queue, "answer": answer})
        enqueue(connection, queue, LONG)
        ((messages,),) = answer.fetchall()
        assert LONG in messages.read()


@pytest.mark.pitfall("oracle 24")
@pytest.mark.promise("P15")
def test_enqueue_batch_refuses_a_very_long_unknown_key(connection: Connection, queue: str) -> None:
    messages = [{"body": "x", "k" * 5000: 1}]
    assert "unknown key" in refused(
        connection, "RQ711", "enqueue_batch", queue_name=queue, messages=messages
    )


@pytest.fixture
def powerless(server: OracleServer) -> Iterator[Session]:
    """Return a session of an account that may only connect."""
    url = server.make_account()
    with closing(server.connect(url)) as session:
        yield session
    server.drop_database(url)


@pytest.mark.pitfall("oracle 21")
def test_missing_privilege_has_a_known_error_number(powerless: Session) -> None:
    with pytest.raises(oracledb.DatabaseError) as caught:
        powerless.execute("create sequence s")
    assert refusal(caught.value) is not None


@pytest.mark.promise("P17")
def test_empty_dequeue_opens_no_transaction(connect: Connect, queue: str) -> None:
    session = connect(autocommit=False)
    assert dequeue(session, queue) == []
    assert not session.transaction_in_progress


@pytest.mark.pitfall("oracle 24")
@pytest.mark.promise("P03")
def test_locking_cursor_skips_rows_changed_after_opening(
    connection: Connection, connect: Connect, queue: str
) -> None:
    enqueue(connection, queue, *"ab")
    claims = [row.claim_id for _ in range(2) for row in dequeue(connection, queue)]
    reaper = connect(autocommit=False)
    opened = """
        begin
            open :claims for
                select c.claim_id
                from rowq_claim c
                where c.lease_until <= sys_extract_utc(systimestamp) + numtodsinterval(60, 'second')
                for update skip locked;
        end;
        """
    with closing(reaper.cursor()) as cursor, closing(reaper.cursor()) as found:
        cursor.execute(opened, {"claims": found})
        call(connection, "extend_lease", queue_name=queue, claim_id=claims[0], lease_seconds=600)
        assert found.fetchall() == [(claims[1],)]
    reaper.rollback()


@pytest.mark.pitfall("oracle 18")
def test_package_can_be_replaced_while_a_consumer_waits(
    server: OracleServer, database_url: str, connection: Connection, queue: str
) -> None:
    """The consumer waits in rowq_consume and rowq_wait, so package rowq is not in use."""
    url = server.make_account("rowq_consumer")
    server.execute(f"create synonym {owner_in(url)}.rowq for {owner_in(database_url)}.rowq_consume")
    try:
        with closing(server.connect(url)) as session:
            waiter = Waiter(session, queue, 30)
            wait_until(lambda: server.sessions_of(owner_in(url)) == 1, "the consumer waits")
            connection.call_timeout = 10_000
            for part in ("specification", "body"):
                dialect_of(connection).execute(connection, f"alter package rowq compile {part}")
            assert waiter.is_alive()
            enqueue(connection, queue, "x")
            waiter.join(20)
            assert (waiter.got, waiter.error) == (["x"], None)
    finally:
        server.drop_database(url)


@pytest.mark.pitfall("oracle 18")
def test_second_migrate_repeats_no_grant(server: OracleServer, empty_database: str) -> None:
    migrate.migrate(empty_database)
    changed = """
        select o.object_name, o.last_ddl_time
        from user_objects o
        where o.object_name like 'ROWQ%' and o.object_type in ('PACKAGE', 'TYPE')
        order by 1, 2
        """
    later = """
        select 1 from dual
        where sysdate > (select max(o.last_ddl_time) from user_objects o)
        """
    with closing(server.connect(empty_database)) as session:
        before = rows(session, changed)
        wait_until(lambda: rows(session, later) != [], "a second has passed")
        migrate.migrate(empty_database)
        assert rows(session, changed) == before


@pytest.mark.pitfall("oracle 22")
def test_role_of_another_owner_gets_no_right(server: OracleServer) -> None:
    """The role exists, and this owner does not have it."""
    url = server.fresh_database()
    server.execute(f"revoke rowq_consumer from {owner_in(url)}")
    try:
        done = migrate.migrate(url)
        assert any("role rowq_consumer" in notice for notice in done.notices)
        with closing(server.connect(url)) as session:
            grantees = rows(session, "select distinct p.grantee from user_tab_privs_made p")
        assert ("ROWQ_CONSUMER",) not in grantees
        assert ("ROWQ_PRODUCER",) in grantees
    finally:
        server.drop_database(url)


@pytest.mark.pitfall("oracle 20")
@pytest.mark.promise("P19")
def test_maintain_of_an_idle_queue_runs_few_statements(
    server: OracleServer, connection: Connection, queue: str
) -> None:
    def counters() -> tuple[int, int]:
        ((executions,),) = server.query(_EXECUTIONS, owner=connection.username.upper())
        ((changes,),) = server.query(_CHANGES, place=connection.session_id)
        return int(executions), int(changes)

    call_one(connection, "maintain", queue_name=queue)
    dialect = dialect_of(connection)
    lanes = "select l.lane, l.floor_seq from rowq_lane l order by l.queue_id, l.lane"
    floors, before = dialect.execute(connection, lanes).fetchall(), counters()
    for _ in range(MAINTAINS):
        call_one(connection, "maintain", queue_name=queue)
    after = counters()
    assert dialect.execute(connection, lanes).fetchall() == floors
    assert (after[0] - before[0]) / MAINTAINS <= EXECUTIONS_OF_IDLE_MAINTAIN
    # The election locks a row, which changes its block and the undo header.
    assert (after[1] - before[1]) / MAINTAINS <= 10


@pytest.mark.pitfall("oracle 23")
@pytest.mark.parametrize("day", ["1970-01-01", "2026-11-22", "2040-02-29", "2199-12-31"])
def test_from_microseconds_works_beyond_2038(connection: Connection, day: str) -> None:
    text = unit_text("oracle", "internal/from_microseconds")
    found = re.search(r"    return (.*?);", text, re.DOTALL)
    assert found
    microseconds = f"(date '{day}' - date '1970-01-01') * 86400000000 + 123456"
    expression = found[1].replace("p_microseconds", f"({microseconds})")
    values: list[Any] = rows(
        connection, f"select to_char({expression}, 'yyyy-mm-dd hh24:mi:ss.ff6') from dual"
    )
    assert values == [(f"{day} 00:00:00.123456",)]


@pytest.mark.pitfall("oracle 27")
@pytest.mark.promise("P22", "P24")
def test_serializable_session_does_not_lock_a_newer_slot(
    connection: Connection, connect: Connect, queue: str
) -> None:
    """It cannot see the message, and would free the slot that the message needs."""
    strict = connect()
    dialect = dialect_of(strict)
    enqueue(connection, queue, "1", group_key="a")
    dialect.begin(strict, "serializable")
    dialect.execute(strict, "select count(*) from rowq_queue")
    enqueue(connection, queue, "2", group_key="a")
    query = f"select t.slot_no from rowq_group_slot t where {OF_QUEUE} for update skip locked"
    locked: list[Any] = []
    try:
        locked = dialect.execute(strict, query, [queue]).fetchall()
    except oracledb.DatabaseError as error:
        if number_of(error) != CANNOT_SERIALIZE:
            raise
    dialect.rollback(strict)
    assert locked == []


@pytest.mark.pitfall("oracle 28")
@pytest.mark.promise("P03", "P21")
def test_locking_cursor_skips_deleted_rows_of_an_iot(
    connection: Connection, connect: Connect, queue: str
) -> None:
    other = connect()
    _, second, third = enqueue(connection, queue, *"123", group_key="a")
    query = f"""
        select /*+ index_rs_asc(g rowq_group_waiting_pk) */ g.message_id
        from rowq_group_waiting g
        where {OF_QUEUE}
        order by g.queue_id, g.group_key, g.message_id
        for update skip locked
        """
    with rolled_back(connection):
        call(connection, "cancel", queue_name=queue, message_ids=[second])
        with rolled_back(other):
            assert dialect_of(other).execute(other, query, [queue]).fetchall() == [(third,)]
    with rolled_back(other):
        found = dialect_of(other).execute(other, query, [queue]).fetchall()
    assert found == [(second,), (third,)]


@pytest.mark.pitfall("oracle 26")
@pytest.mark.promise("P22")
def test_insert_of_a_slot_waits_for_an_open_insert(
    server: OracleServer, connection: Connection, connect: Connect, queue: str
) -> None:
    first, second = connect(), connect()
    with ThreadPoolExecutor(1) as thread:
        with rolled_back(first):
            enqueue(first, queue, "1", group_key="a")
            running = thread.submit(enqueue, second, queue, "2", group_key="a")
            wait_until_blocked(server, server.session_id(second))
        assert len(running.result(20)) == 1
    assert [row.body for row in dequeue(connection, queue, 10)] == ["2"]


@pytest.mark.pitfall("oracle 28")
@pytest.mark.promise("P21", "P22")
def test_forall_returns_values_in_the_order_of_rows(connection: Connection, queue: str) -> None:
    """Otherwise a delayed message that has not joined its group would pass a slot."""
    call(connection, "alter_queue", queue_name=queue, group_after_dead="hold")
    dead = make_dead(connection, queue, "held", group_key="a")
    dead += make_dead(connection, queue, "free")
    _, behind = enqueue(connection, queue, "in work", "behind", group_key="b")
    (free,) = enqueue(connection, queue, "free", delay_seconds=60)
    (late,) = enqueue(connection, queue, "late", group_key="b", delay_seconds=61)
    ids = [*reversed(dead), late, free]
    rows = call(connection, "cancel", queue_name=queue, message_ids=ids)
    assert {row.outcome for row in rows} == {"cancelled"}
    row = call_one(connection, "get_message", queue_name=queue, message_id=behind)
    assert row.state == "blocked"
    groups = f"select distinct t.group_key from rowq_group_slot t where {OF_QUEUE}"
    assert dialect_of(connection).execute(connection, groups, [queue]).fetchall() == [(b"b",)]


@pytest.mark.pitfall("oracle 42")
@pytest.mark.promise("P06", "P26")
def test_empty_dequeue_locks_no_predecessor(
    connection: Connection, connect: Connect, queue: str
) -> None:
    producer, poller, worker = connect(), connect(), connect()
    worker.call_timeout = PATIENCE_MS
    [named] = enqueue(connection, queue, "named")
    claim = dequeue_one(worker, queue).claim_id
    with transaction(producer):
        enqueue(producer, queue, "a", predecessor_ids=[named])
        enqueue(connection, queue, "b", predecessor_ids=[named])
    with rolled_back(poller):
        assert dequeue(poller, queue) == []
        call(worker, "complete", queue_name=queue, claim_id=claim)
        assert not call(connection, "get_message", queue_name=queue, message_id=named)
    tick(connection, queue)
    call_one(connection, "maintain", queue_name=queue)
    assert sorted(row.body for row in dequeue(connection, queue, 10)) == ["a", "b"]


@pytest.mark.pitfall("oracle 42")
@pytest.mark.promise("P24")
def test_empty_dequeue_leaves_groups_to_maintain(
    connection: Connection, connect: Connect, queue: str
) -> None:
    producer, poller = connect(), connect()
    enqueue(connection, queue, "1", group_key="a")
    claim = dequeue_one(connection, queue).claim_id
    with rolled_back(poller):
        with transaction(producer):
            enqueue(producer, queue, "2", group_key="a")
            call(connection, "complete", queue_name=queue, claim_id=claim)
            tick(connection, queue)
            call_one(connection, "maintain", queue_name=queue)
            assert dequeue(poller, queue) == [], "the producer has the slot"
        tick(connection, queue)
        call_one(connection, "maintain", queue_name=queue)
        assert call_one(connection, "queue_stats", queue_name=queue).ready == 1


@pytest.mark.pitfall("oracle 42")
@pytest.mark.promise("P19")
def test_dequeue_of_locked_messages_begins_no_transaction(
    server: OracleServer, connection: Connection, connect: Connect, queue: str
) -> None:
    """A TX lock would mean an open transaction."""
    other = connect(autocommit=False)
    enqueue(connection, queue, "held")
    with rolled_back(connection):
        assert len(dequeue(connection, queue)) == 1
        assert dequeue(other, queue) == []
        assert {kind for (kind,) in server.query(_LOCKS, place=other.session_id)} <= {"TM"}
    other.rollback()


@pytest.mark.pitfall("oracle 43")
@pytest.mark.promise("P19")
def test_maintain_reports_an_error_in_one_queue(server: OracleServer, empty_database: str) -> None:
    migrate.migrate(empty_database)
    with closing(server.connect(empty_database)) as session:
        for name in ("broken", "fine"):
            call(session, "create_queue", queue_name=name)
            enqueue(session, name, "late", delay_seconds=60)
            pass_seconds(session, name, 90)
        broken = "select q.queue_id from rowq_queue q where q.queue_name = 'broken'"
        ((queue_id,),) = rows(session, broken)
        check = f"check (queue_id <> {queue_id})"
        session.execute(f"alter table rowq_ready add constraint broken_ck {check}")
        done = call(session, "maintain")
        assert [(row.queue_name, row.promoted) for row in done] == [("fine", 1)]
        with pytest.raises(oracledb.DatabaseError, match="BROKEN_CK"):
            call(session, "maintain", queue_name="broken")

        def error() -> tuple[str, str]:
            [found] = [row for row in call(session, "health") if row.check_name == "maintain_fault"]
            return found.status, found.detail

        assert error()[0] == "critical"
        assert "maintain of broken: ORA-02290" in error()[1]
        session.execute("alter table rowq_ready drop constraint broken_ck")
        assert {row.promoted for row in call(session, "maintain")} == {0, 1}
        assert error()[0] == "ok"


@pytest.mark.pitfall("oracle 44")
def test_every_table_has_a_segment_after_installation(
    server: OracleServer, empty_database: str
) -> None:
    migrate.migrate(empty_database)
    with closing(server.connect(empty_database)) as session:
        for kind in ("tables", "indexes", "lobs"):
            late = f"select * from user_{kind} s where s.segment_created = 'NO'"
            late += " and s.iot_type is null" if kind == "tables" else ""
            assert rows(session, late) == [], kind


@pytest.mark.pitfall("oracle 45")
@pytest.mark.promise("P02", "P19")
def test_drop_queue_beside_traffic_does_not_deadlock(
    server: OracleServer, connection: Connection, connect: Connect, queue: str
) -> None:
    call(connection, "create_queue", queue_name=f"{queue} other")
    deadlocks, busy = server.deadlocks(), 0
    sessions = [connect() for _ in range(4)]

    def longest_of_many(session: Connection) -> float:
        longest = 0.0
        for _ in range(200):
            began = time.monotonic()
            enqueue(session, queue, "x")
            rows = dequeue(session, queue)
            if rows:
                call(session, "complete", queue_name=queue, claim_id=rows[0].claim_id)
            longest = max(longest, time.monotonic() - began)
        return longest

    with ThreadPoolExecutor(len(sessions)) as threads:
        running = [threads.submit(longest_of_many, session) for session in sessions]
        while not all(one.done() for one in running):
            try:
                call(connection, "drop_queue", queue_name=f"{queue} other")
                call(connection, "create_queue", queue_name=f"{queue} other")
            except oracledb.DatabaseError as error:
                assert number_of(error) == 20705  # noqa: PT017 - it is dropped or refused
                busy += 1
            time.sleep(0.2)
        # drop_queue waits up to 1 s for each of three tables.
        assert max(one.result() for one in running) < 4
    assert server.deadlocks() == deadlocks, f"after {busy} refusals"
    call(connection, "drop_queue", queue_name=f"{queue} other")


@pytest.mark.pitfall("oracle 46")
@pytest.mark.promise("P19")
def test_maintain_reads_partitions_once_a_day(server: OracleServer, empty_database: str) -> None:
    def reads() -> int:
        return int(server.query(_READS_OF_CATALOG, owner=owner_in(empty_database))[0][0])

    migrate.migrate(empty_database)
    with closing(server.connect(empty_database)) as session:
        call(session, "create_queue", queue_name="q", archive_days=2)
        call_one(session, "maintain", queue_name="q")
        before = reads()
        assert before > 0
        for _ in range(3):
            call_one(session, "maintain", queue_name="q")
        assert reads() == before
        call(session, "alter_queue", queue_name="q", archive_days=3)
        call_one(session, "maintain", queue_name="q")
        assert reads() == before + 1


@pytest.mark.promise("P20")
def test_dequeue_wait_returns_a_body_of_16_megabytes(connection: Connection, queue: str) -> None:
    """ORA-04036 would mean that the JSON of the answer needs too much memory."""
    text = "0123456789abcdef" * (1 << 20)
    call(connection, "alter_queue", queue_name=queue, max_body_length=len(text))
    enqueue(connection, queue, text)
    (message,) = call_one(connection, "dequeue_wait", queue_name=queue).messages
    assert message["body"] == text


def test_batch_of_numeric_looking_texts_is_not_slower(connection: Connection, queue: str) -> None:
    def seconds(body: str) -> float:
        messages = [{"body": body * 100}] * 500
        began = time.monotonic()
        call(connection, "enqueue_batch", queue_name=queue, messages=messages)
        return time.monotonic() - began

    seconds("warm up")
    plain = seconds("00-xe-67-a0")
    assert seconds("00:1e:67:a0") < 3 * plain + 0.5
