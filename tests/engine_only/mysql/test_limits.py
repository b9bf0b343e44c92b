"""Limits on MariaDB and MySQL: what a dequeue counts, isolation levels and costs."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pymysql
import pytest

from tests.engine_only.mysql.costs import fewest_pages, pages, queue_id_of, rescan
from tests.engine_only.mysql.statements import accesses, run_by
from tests.engine_only.mysql.test_flat import DEAD, SMALL, numbers
from tests.engines.base import Connection, Server, wait_until
from tests.helpers.calls import call, call_one, dequeue, enqueue, refused
from tests.helpers.queues import Connect
from tests.stored_times import pass_seconds

LIMITS = {"limit_lock", "started"}
TEST_S_OWN = " - interval "
"""Words of the statements that move stored times."""

SECOND_LOOK = r"(?s)call rowq\.internal_available_capacity\([^;]*;(?=\s*end if;\s*end)"
INTERRUPTED = 1317
ONE_LEVEL = "set transaction isolation level"
"""For the next transaction only; no variable shows it."""


def fill(connection: Connection, queue: str, count: int) -> None:
    call(connection, "enqueue_batch", queue_name=queue, messages=[{"body": "x"}] * count)


def leased(connection: Connection, queue: str) -> int:
    return int(call_one(connection, "queue_stats", queue_name=queue).leased)


@contextmanager
def changed(connect: Connect, procedure: str, pattern: str, words: str) -> Iterator[None]:
    """Replace a pattern in a procedure for the duration of the block."""
    session = connect()
    session.execute("use rowq")
    (_, mode, source, *_) = session.execute(f"show create procedure rowq.{procedure}").fetchone()
    mutant, count = re.subn(pattern, words, source)
    assert count == 1
    session.execute("set session sql_mode = %s", [mode])

    def put(text: str) -> None:
        session.execute(f"drop procedure if exists rowq.{procedure}")
        session.execute(text)

    try:
        put(mutant)
        yield
    finally:
        put(source)


def leased_beside_a_holder(server: Server, connect: Connect, queue: str) -> int:
    """Return how many of 4 messages two dequeues of 3 lease; the second waits for the first."""
    holder, waiter = connect(), connect()
    fill(holder, queue, 9)
    number = server.session_id(waiter)
    with (
        changed(connect, "internal_lock_limit", "default 10;", "default 2000;"),
        ThreadPoolExecutor(1) as threads,
    ):
        holder.execute("set session transaction isolation level read committed")
        holder.execute("begin")
        taken = len(dequeue(holder, queue, 3))
        running = threads.submit(dequeue, waiter, queue, 3)
        wait_until(lambda: server.waits_for_limit(number), "the second waits for the limit lock")
        holder.execute("commit")
        return taken + len(running.result(20))


@pytest.mark.promise("P28", "P29")
@pytest.mark.parametrize("setting", ["max_leased", "rate_limit"])
def test_two_dequeues_at_the_limit_lock_share_capacity(
    server: Server, connection: Connection, connect: Connect, queue: str, setting: str
) -> None:
    call(connection, "alter_queue", queue_name=queue, rate_seconds=1000, **{setting: 4})
    assert leased_beside_a_holder(server, connect, queue) == 4


@pytest.mark.parametrize("setting", ["max_leased", "rate_limit"])
def test_limit_is_exceeded_without_the_second_count(
    server: Server, connection: Connection, connect: Connect, queue: str, setting: str
) -> None:
    call(connection, "alter_queue", queue_name=queue, rate_seconds=1000, **{setting: 4})
    with changed(connect, "internal_admit", SECOND_LOOK, "do 0;"):
        assert leased_beside_a_holder(server, connect, queue) == 6


@pytest.mark.promise("P17", "P28")
def test_interrupted_dequeue_at_the_limit_lock_leaves_no_lock(
    server: Server, connection: Connection, connect: Connect, queue: str
) -> None:
    call(connection, "alter_queue", queue_name=queue, max_leased=4)
    fill(connection, queue, 9)
    holder, waiter = connect(), connect()
    number, thread = server.session_id(waiter), waiter.thread_id()
    holder.execute("set session transaction isolation level read committed")
    with (
        changed(connect, "internal_lock_limit", "default 10;", "default 2000;"),
        ThreadPoolExecutor(1) as threads,
    ):
        holder.execute("begin")
        assert len(dequeue(holder, queue, 2)) == 2
        running = threads.submit(dequeue, waiter, queue, 2)
        wait_until(lambda: server.waits_for_limit(number), "the second waits for the limit lock")
        connection.execute(f"kill query {thread}")
        error = running.exception(20)
        assert isinstance(error, pymysql.Error)
        assert error.args[0] == INTERRUPTED
        # After a killed call, its own transaction may be open.
        waiter.rollback()
        holder.rollback()
    assert len(dequeue(waiter, queue, 9)) == 4


@pytest.mark.pitfall("mysql 23")
@pytest.mark.promise("P15", "P28")
@pytest.mark.parametrize("level", ["read uncommitted", "repeatable read", "serializable"])
@pytest.mark.parametrize("opens", ["begin", "set autocommit = 0"])
def test_session_isolation_level_decides_refusal(
    connection: Connection, connect: Connect, queue: str, level: str, opens: str
) -> None:
    call(connection, "alter_queue", queue_name=queue, max_leased=2)
    fill(connection, queue, 5)
    session = connect()
    session.execute(f"set session transaction isolation level {level}")
    assert len(dequeue(session, queue)) == 1, "a call in a transaction of its own is welcome"
    session.execute(f"{ONE_LEVEL} read committed")
    session.execute(opens)
    assert "READ COMMITTED" in refused(session, "RQ713", "dequeue_fast", queue_name=queue)
    session.rollback()
    session.execute("set session transaction isolation level read committed")
    session.execute("begin")
    assert len(dequeue(session, queue, 9)) == 1
    session.commit()
    assert leased(connection, queue) == 2


@pytest.mark.pitfall("mysql 23")
@pytest.mark.promise("P28", "P29")
@pytest.mark.parametrize("setting", ["max_leased", "rate_limit"])
def test_transaction_level_is_detected_after_another_lease(
    connection: Connection, connect: Connect, queue: str, setting: str
) -> None:
    call(connection, "alter_queue", queue_name=queue, rate_seconds=1000, **{setting: 4})
    fill(connection, queue, 9)
    session = connect()
    session.execute("set session transaction isolation level read committed")
    session.execute(f"{ONE_LEVEL} repeatable read")
    session.execute("begin")
    session.execute("select count(*) from rowq.queue")
    assert len(dequeue(connection, queue, 3)) == 3
    assert "READ COMMITTED" in refused(session, "RQ713", "dequeue_fast", queue_name=queue)
    session.rollback()
    session.execute(f"{ONE_LEVEL} repeatable read")
    session.execute("begin")
    assert len(dequeue(session, queue, 9)) == 1, "a snapshot that shows all leases"
    session.commit()
    assert leased(connection, queue) == 4


@pytest.mark.promise("P28")
def test_dequeue_that_waited_records_its_claim(
    server: Server, connection: Connection, connect: Connect, queue: str
) -> None:
    call(connection, "alter_queue", queue_name=queue, rate_limit=10)
    fill(connection, queue, 9)
    holder, waiter, old = connect(), connect(), connect()
    number = server.session_id(waiter)
    for session in (holder, waiter, old):
        session.execute("set session transaction isolation level read committed")
    with (
        changed(connect, "internal_lock_limit", "default 10;", "default 2000;"),
        ThreadPoolExecutor(1) as threads,
    ):
        holder.execute("begin")
        assert len(dequeue(holder, queue, 1)) == 1
        waiter.execute("begin")
        running = threads.submit(dequeue, waiter, queue, 9)
        wait_until(lambda: server.waits_for_limit(number), "the second waits for the limit lock")
        call(connection, "alter_queue", queue_name=queue, rate_limit=0, max_leased=3)
        holder.execute("commit")
        assert len(running.result(20)) == 2
        old.execute(f"{ONE_LEVEL} repeatable read")
        old.execute("begin")
        old.execute("select count(*) from rowq.queue")
        # MySQL changes no procedure that an open transaction has called.
        waiter.execute("commit")
    assert "READ COMMITTED" in refused(old, "RQ713", "dequeue_fast", queue_name=queue)
    old.rollback()
    assert leased(connection, queue) == 3


def safe_floor(connection: Connection, queue: str) -> int:
    """Return the id of the first claim that a dequeue counts."""
    query = "select floor from rowq.lane where lane = -9 and queue_id = %s"
    ((floor,),) = connection.execute(query, [queue_id_of(connection, queue)]).fetchall()
    return int(floor)


def skip_claim_ids(connection: Connection) -> None:
    """Use claim ids, enough for a floor to move."""
    for _ in range(500):
        connection.execute("do uuid_short()")


def leased_after_a_late_claim(connection: Connection, connect: Connect, queue: str) -> int:
    """Return what a dequeue leases after maintain ran beside an older open claim."""
    late = connect()
    fill(connection, queue, 30)
    late.execute("set session transaction isolation level read committed")
    late.execute("begin")
    assert len(dequeue(late, queue, 4)) == 4
    call(connection, "alter_queue", queue_name=queue, max_leased=6)
    for _ in range(3):
        skip_claim_ids(connection)
        claim = dequeue(connection, queue, 2)[0].claim_id
        call(connection, "maintain", queue_name=queue)
        call(connection, "complete", queue_name=queue, claim_id=claim)
        call(connection, "maintain", queue_name=queue)
    late.execute("commit")
    return len(dequeue(connection, queue, 9))


@pytest.mark.promise("P14", "P28")
def test_open_claim_from_before_the_limit_counts(
    connection: Connection, connect: Connect, queue: str
) -> None:
    assert leased_after_a_late_claim(connection, connect, queue) == 2
    assert safe_floor(connection, queue) == 0
    skip_claim_ids(connection)
    for claim in claims(connection, queue):
        call(connection, "complete", queue_name=queue, claim_id=claim)
    last = dequeue(connection, queue)[0].claim_id
    call(connection, "maintain", queue_name=queue)
    assert safe_floor(connection, queue) == last


def test_limit_is_exceeded_without_the_late_claim_check(
    connection: Connection, connect: Connect, queue: str
) -> None:
    with changed(
        connect, "internal_has_late_claim", "set p_has_late = true", "set p_has_late = false"
    ):
        assert leased_after_a_late_claim(connection, connect, queue) == 6


def claims(connection: Connection, queue: str) -> list[int]:
    """Return the ids of a queue's claims."""
    query = "select claim_id from rowq.claim where claim_id > 0 and queue_id = %s"
    found = connection.execute(query, [queue_id_of(connection, queue)]).fetchall()
    return [claim for (claim,) in found]


@pytest.mark.promise("P28")
def test_claims_count_after_claim_ids_went_backwards(connection: Connection, queue: str) -> None:
    part, high = queue_id_of(connection, queue), 2**53
    call(connection, "alter_queue", queue_name=queue, max_leased=3)
    connection.execute(
        "update rowq.limit_lock set last_claim_id = %s where queue_id = %s", [high, part]
    )
    connection.execute(
        "update rowq.lane set floor = %s where lane = -9 and queue_id = %s", [high, part]
    )
    fill(connection, queue, 9)
    assert [len(dequeue(connection, queue, 2)) for _ in range(3)] == [2, 1, 0]


@pytest.mark.promise("P28")
def test_limit_set_again_counts_from_the_first_claim(connection: Connection, queue: str) -> None:
    part = queue_id_of(connection, queue)
    fill(connection, queue, 9)
    dequeue(connection, queue, 2)
    connection.execute(
        "update rowq.lane set floor = %s where lane = -9 and queue_id = %s", [2**53, part]
    )
    call(connection, "alter_queue", queue_name=queue, max_leased=3)
    assert len(dequeue(connection, queue, 9)) == 1


@pytest.mark.promise("P28")
def test_safe_floor_stops_at_the_last_counted_claim(connection: Connection, queue: str) -> None:
    fill(connection, queue, 9)
    dequeue(connection, queue, 2)
    call(connection, "alter_queue", queue_name=queue, max_leased=3)
    skip_claim_ids(connection)
    call(connection, "maintain", queue_name=queue)
    assert safe_floor(connection, queue) == 0
    assert len(dequeue(connection, queue, 9)) == 1


def cycle(connection: Connection, other: Connection, queue: str) -> None:
    """Dequeue and complete messages in both kinds of transaction, and run maintain."""
    for opens, closes in (("do 0", "do 0"), ("begin", "commit")):
        for size in (1, 3):
            fill(connection, queue, size)
            connection.execute(opens)
            rows = dequeue(connection, queue, size)
            call(connection, "complete", queue_name=queue, claim_id=rows[0].claim_id)
            connection.execute(closes)
    skip_claim_ids(connection)
    dequeue(connection, queue)
    pass_seconds(other, queue, 100)
    call(connection, "maintain", queue_name=queue)
    assert safe_floor(connection, queue) > 0


@pytest.mark.promise("P19", "P29")
def test_old_delivery_starts_are_purged_in_steps(connection: Connection, queue: str) -> None:
    call(connection, "alter_queue", queue_name=queue, rate_limit=5000)
    part = queue_id_of(connection, queue)
    connection.execute(
        "insert into rowq.started (queue_id, started_at, claim_id, messages)"
        " select %s, utc_timestamp(6) - interval 1 day + interval n.n microsecond,"
        f" 3106936560025602 + n.n, 1 from {numbers(DEAD)} n where n.n <= 40000",
        [part],
    )
    count = "select count(*) from rowq.started where queue_id = %s and claim_id > 0"
    left = [40000]
    while left[-1]:
        call(connection, "maintain", queue_name=queue, batch_size=10000)
        left.append(connection.execute(count, [part]).fetchone()[0])
        assert left[-1] < left[-2]
    assert left == [40000, 30000, 20000, 10000, 0]


@pytest.mark.promise("P13")
def test_limit_statements_use_primary_key_ranges(
    connection: Connection, connect: Connect, queue: str
) -> None:
    call(connection, "alter_queue", queue_name=queue, max_leased=5000, rate_limit=5000)
    part = queue_id_of(connection, queue)
    connection.execute(
        "insert into rowq.started (queue_id, started_at, claim_id, messages)"
        " select %s, utc_timestamp(6) - interval n.n * 10 second, n.n, 1"
        f" from {numbers(DEAD)} n where n.n <= 20000",
        [part],
    )
    fill(connection, queue, 400)
    for _ in range(400):
        dequeue(connection, queue)
    session, other = connect(), connect()
    session.execute("set session transaction isolation level read committed")
    connection.execute("use rowq")
    ran = run_by(connection, session, lambda: cycle(session, other, queue))
    found = [
        access
        for statement in ran
        if TEST_S_OWN not in statement or "rowq.started" in statement
        for access in accesses(connection, statement)
        if access.table in {*LIMITS, "claim"} and not statement.lstrip().startswith("insert")
    ]
    assert {access.table for access in found} == {*LIMITS, "claim"}
    for access in found:
        assert access.key == "PRIMARY", access
        assert access.type in {"const", "eq_ref", "ref", "range"}, access
        assert "filesort" not in access.extra, access
        assert "temporary" not in access.extra, access
        if "sum(" in access.statement:
            assert access.type == "range", access


def statements(admin: Connection, connect: Connect, queue: str, size: int) -> list[str]:
    """Return the statements of the shortest of six dequeues: sometimes one moves a floor."""
    session = connect()

    def taken() -> list[str]:
        ran = run_by(admin, session, lambda: dequeue(session, queue, size))
        return [text for text in ran if "rowq." in text and not text.startswith("call ")]

    fill(session, queue, 7 * size)
    dequeue(session, queue, size)
    return min((taken() for _ in range(6)), key=len)


@pytest.mark.promise("P28", "P29")
@pytest.mark.parametrize("size", [1, 5])
def test_limits_add_statements_to_limited_queues_only(
    connection: Connection, connect: Connect, queue: str, size: int
) -> None:
    ran = {"none": " ".join(statements(connection, connect, queue, size))}
    counts: dict[str, int] = {}
    # A second open lane makes a queue without limits use the general path.
    enqueue(connection, queue, "urgent", priority=0)
    dequeue(connection, queue)
    for name, settings in {
        "lanes": {},
        "leased": {"max_leased": 1000},
        "both": {"rate_limit": 1000, "rate_seconds": 60},
        "full": {"max_leased": 1},
    }.items():
        call(connection, "alter_queue", queue_name=queue, **settings)
        found = statements(connection, connect, queue, size)
        ran[name], counts[name] = " ".join(found), len(found)
    assert not [table for table in LIMITS if f"rowq.{table}" in ran["none"] + ran["lanes"]]
    # A limited dequeue counts each limit twice, locks and updates the limit lock, reads the
    # settings and records the delivery start. A full queue is counted once.
    assert counts["leased"] - counts["lanes"] == 5
    assert counts["both"] - counts["leased"] == 3
    assert counts["full"] < counts["lanes"]
    assert "rowq.limit_lock" not in ran["full"]


def made_dead(connection: Connection, queue: str) -> None:
    """Create many dead rows of claims and old delivery starts."""
    part = queue_id_of(connection, queue)
    connection.execute(
        "insert into rowq.claim (queue_id, claim_id, lease_until, messages)"
        f" select %s, n.n, utc_timestamp(6), '[]' from {numbers(DEAD)} n",
        [part],
    )
    connection.execute("delete from rowq.claim where queue_id = %s and claim_id > 0", [part])
    connection.execute(
        "insert into rowq.started (queue_id, started_at, claim_id, messages)"
        " select %s, utc_timestamp(6) - interval 1 day + interval n.n microsecond, n.n, 1"
        f" from {numbers(DEAD)} n",
        [part],
    )
    connection.execute("delete from rowq.started where queue_id = %s and claim_id > 0", [part])


@pytest.mark.slow("an old view beside many rows", ci="mariadb")
@pytest.mark.promise("P13", "P28", "P29")
@pytest.mark.usefixtures("old_view")
def test_limited_dequeue_is_flat_under_an_old_read_view(connection: Connection, queue: str) -> None:
    call(connection, "alter_queue", queue_name=queue, max_leased=5, rate_limit=50)
    made_dead(connection, queue)
    enqueue(connection, queue, "x")
    dequeue(connection, queue)
    call(connection, "maintain", queue_name=queue)
    rescan(connection, queue)
    assert fewest_pages(connection, lambda: dequeue(connection, queue)) < SMALL
    purge = "call rowq.internal_purge_started(%s, 1, 100)"
    part = queue_id_of(connection, queue)
    assert fewest_pages(connection, lambda: connection.execute(purge, [part])) < SMALL
    connection.execute("update rowq.lane set floor = 0 where queue_id = %s", [part])
    assert pages(connection, lambda: dequeue(connection, queue)) > 2 * SMALL
    assert pages(connection, lambda: connection.execute(purge, [part])) > 2 * SMALL


@pytest.mark.promise("P13")
@pytest.mark.usefixtures("old_view")
def test_limited_dequeue_skips_dead_rows_of_the_next_queue(
    connection: Connection, queue: str
) -> None:
    call(connection, "alter_queue", queue_name=queue, max_leased=5, rate_limit=50)
    call(connection, "create_queue", queue_name=f"{queue} next")
    made_dead(connection, f"{queue} next")
    assert fewest_pages(connection, lambda: dequeue(connection, queue)) < SMALL


@pytest.mark.promise("P19", "P29")
def test_limited_queue_is_idle_until_its_starts_expire(connection: Connection, queue: str) -> None:
    call(connection, "alter_queue", queue_name=queue, max_leased=5, rate_limit=5, rate_seconds=60)
    enqueue(connection, queue, "x")
    claim = dequeue(connection, queue)[0].claim_id
    call(connection, "complete", queue_name=queue, claim_id=claim)
    call(connection, "maintain", queue_name=queue)
    assert is_idle(connection, queue)
    pass_seconds(connection, queue, 61)
    assert not is_idle(connection, queue)
    call(connection, "maintain", queue_name=queue)
    assert is_idle(connection, queue)
    assert call(connection, "maintain", queue_name=queue)[0].elected


def is_idle(connection: Connection, queue: str) -> bool:
    """Return whether maintain skips a queue; a slowed down check returns false."""
    part = queue_id_of(connection, queue)

    def look() -> bool:
        connection.execute("call rowq.internal_find_idle(%s, @idle)", [f"[{part}]"])
        ((idle,),) = connection.execute("select @idle").fetchall()
        return idle is not None

    return any(look() for _ in range(5))
