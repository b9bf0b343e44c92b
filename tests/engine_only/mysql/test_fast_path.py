"""The fast paths of dequeue_fast and complete, stopped at each table that they use.

A call stops at a table that another session has locked, and continues when that ends.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain
from typing import Any

import pymysql
import pytest

from tests.dice import dice
from tests.engine_only.mysql.costs import queue_id_of
from tests.engine_only.mysql.costs import rows as rows_touched
from tests.engines.base import Connection, Server, wait_until
from tests.helpers.calls import bodies, call, call_one, dequeue, dequeue_one, enqueue, state_of
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect

STEPS = ("lane", "ready", "claim", "message")
"""The tables of a dequeue, in the order of use."""

WAITS = """
    select count(*) from information_schema.processlist
    where id = %s and state like 'Waiting for table metadata lock%%'
"""


@pytest.fixture
def queue(connection: Connection, queue_name: str) -> str:
    call(connection, "create_queue", queue_name=queue_name)
    return queue_name


@contextmanager
def stopped_at(
    table: str,
    connection: Connection,
    connect: Connect,
    session: Connection,
    work: Callable[[], Any],
) -> Iterator[Future[Any]]:
    """Run a call in a session until it waits for a table; it continues after the block."""
    number = session.thread_id()
    holder = connect()
    holder.execute(f"lock tables rowq.{table} write")
    with ThreadPoolExecutor(1) as threads:
        try:
            calling = threads.submit(work)

            def waits() -> bool:
                ((waiting,),) = connection.execute(WAITS, [number]).fetchall()
                return bool(waiting)

            wait_until(waits, f"the call waits for {table}")
            yield calling
        finally:
            holder.close()


def claims(connection: Connection, queue: str) -> list[tuple[Any, ...]]:
    """Return first_id, last_id, is_keyed and messages of all claims."""
    return list(
        connection.execute(
            "select first_id, last_id, is_keyed, messages from rowq.claim"
            " where queue_id = %s and claim_id > 0 order by claim_id",
            [queue_id_of(connection, queue)],
        ).fetchall()
    )


def open_lanes(connection: Connection, queue: str) -> list[int]:
    """Return the open lanes."""
    rows = connection.execute(
        "select lane from rowq.lane where queue_id = %s and is_open order by lane",
        [queue_id_of(connection, queue)],
    ).fetchall()
    return [lane for (lane,) in rows]


def check_messages(connection: Connection, queue: str, ids: list[int]) -> None:
    """Check that each message is in exactly one table, and has its body."""
    tables = dialect_of(connection)
    assert sorted(message_id for message_id, _ in tables.census(connection, queue)) == sorted(ids)
    assert tables.bodies(connection, queue) == set(ids)


def test_claim_is_a_range_for_consecutive_ids_else_a_list(
    connection: Connection, queue: str
) -> None:
    ids = enqueue(connection, queue, *"abcdef")
    assert bodies(dequeue(connection, queue, 3)) == ["a", "b", "c"]
    assert claims(connection, queue) == [(ids[0], ids[2], 0, None)]
    call(connection, "cancel", queue_name=queue, message_ids=[ids[4]])
    rows = dequeue(connection, queue, 3)
    assert bodies(rows) == ["d", "f"]
    listed = claims(connection, queue)[1][3]
    assert listed.replace(" ", "") == f"[[{ids[3]},11,1],[{ids[5]},11,1]]"
    assert [
        row.outcome
        for row in call(connection, "complete", queue_name=queue, claim_id=rows[0].claim_id)
    ] == ["completed"] * 2
    check_messages(connection, queue, ids[:3])


def test_different_attempts_make_a_list(connection: Connection, queue: str) -> None:
    ids = enqueue(connection, queue, "a", "b")
    claim = dequeue_one(connection, queue).claim_id
    call(connection, "retry_later", queue_name=queue, claim_id=claim, delay_seconds=0)
    enqueue(connection, queue, "c")
    rows = dequeue(connection, queue, 3)
    assert {row.body: row.attempt for row in rows} == {"a": 2, "b": 1, "c": 1}
    assert bodies(rows) == ["b", "a", "c"]
    assert claims(connection, queue)[0][3] is not None
    call(connection, "complete", queue_name=queue, claim_id=rows[0].claim_id)
    assert state_of(connection, queue, ids[0]) is None


@pytest.mark.promise("P12")
def test_completed_batch_releases_its_dedup_key(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, "a")
    enqueue(connection, queue, "b", dedup_key="k")
    rows = dequeue(connection, queue, 10)
    assert claims(connection, queue)[0][2] == 1
    call(connection, "complete", queue_name=queue, claim_id=rows[0].claim_id)
    arguments = {"queue_name": queue, "body": "c", "dedup_key": "k"}
    assert call_one(connection, "enqueue", **arguments).outcome == "enqueued"


@pytest.mark.promise("P09")
def test_reaped_range_returns_its_remaining_messages(connection: Connection, queue: str) -> None:
    ids = enqueue(connection, queue, *"abcd")
    claim = dequeue(connection, queue, 4)[0].claim_id
    gone = [
        row.outcome for row in call(connection, "cancel", queue_name=queue, message_ids=[ids[1]])
    ]
    assert gone == ["leased"]
    assert call_one(connection, "purge_queue", queue_name=queue).removed == 0
    call(connection, "complete", queue_name=queue, claim_id=claim, message_ids=[ids[2]])
    dialect_of(connection).pass_seconds(connection, queue, 60)
    assert call_one(connection, "maintain", queue_name=queue).reaped == 3
    assert bodies(dequeue(connection, queue, 10)) == ["a", "b", "d"]


def claim_of(connection: Connection, queue: str, kind: str) -> tuple[int, list[int]]:
    """Lease four messages with consecutive ids, holes or keys; return claim and ids."""
    keys = {0: "k0", 2: "k2"} if "keys" in kind else {}
    ids = []
    for number in range(4):
        if "holes" in kind:
            gone = enqueue(connection, queue, "gone")
            call(connection, "cancel", queue_name=queue, message_ids=gone)
        ids += enqueue(connection, queue, str(number), dedup_key=keys.get(number))
    return dequeue(connection, queue, 10)[0].claim_id, ids


@pytest.mark.promise("P04", "P08", "P12")
@pytest.mark.parametrize("kind", ["range", "range with keys", "holes", "holes and keys"])
@pytest.mark.parametrize("level", [None, "read committed", "repeatable read"])
def test_claim_is_finished_in_parts_under_an_old_snapshot(
    connection: Connection, connect: Connect, queue: str, level: str | None, kind: str
) -> None:
    caller = connect()
    if level:
        caller.execute(f"set transaction isolation level {level}")
        caller.execute("begin")
        caller.execute("select count(*) from rowq.claim")
        caller.execute("select count(*) from rowq.message")
    claim, ids = claim_of(connection, queue, kind)
    has_keys = "keys" in kind
    assert [bool(is_keyed) for *_, is_keyed, _ in claims(connection, queue)] == [has_keys]

    def finish(routine: str, *places: int) -> list[str]:
        given = [ids[place] for place in places] if places else None
        rows = call(caller, routine, queue_name=queue, claim_id=claim, message_ids=given)
        return [row.outcome for row in rows]

    assert finish("complete", 1, 0) == ["completed"] * 2
    assert finish("complete", 0, 2) == ["stale", "completed"]
    assert finish("retry_later", 1) == ["stale"]
    call(caller, "extend_lease", queue_name=queue, claim_id=claim, lease_seconds=600)
    assert finish("release") == ["released"]
    assert finish("complete", *range(4)) == ["stale"] * 4
    caller.execute("commit")
    check_messages(connection, queue, ids[3:])
    assert claims(connection, queue) == []
    assert dialect_of(connection).held_keys(connection, queue) == 0
    [row] = dequeue(connection, queue, 10)
    assert (row.body, row.attempt) == ("3", 1)


@pytest.mark.promise("P03", "P06")
@pytest.mark.parametrize("kind", ["range", "range with keys", "holes", "holes and keys"])
def test_old_snapshot_leases_no_finished_message(
    connection: Connection, connect: Connect, queue: str, kind: str
) -> None:
    claim, ids = claim_of(connection, queue, kind)
    call(connection, "release", queue_name=queue, claim_id=claim)
    caller = connect()
    caller.execute("set transaction isolation level repeatable read")
    caller.execute("begin")
    caller.execute("select count(*) from rowq.message")
    first, second = (dequeue_one(connection, queue) for _ in range(2))
    call(connection, "complete", queue_name=queue, claim_id=first.claim_id)
    rows = dequeue(caller, queue, 10)
    assert [row.message_id for row in rows] == ids[2:]
    assert len(call(caller, "complete", queue_name=queue, claim_id=rows[0].claim_id)) == 2
    call(caller, "complete", queue_name=queue, claim_id=second.claim_id)
    caller.execute("commit")
    check_messages(connection, queue, [])
    assert claims(connection, queue) == []
    assert dialect_of(connection).held_keys(connection, queue) == 0


@pytest.mark.promise("P04", "P08", "P09")
@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize(
    ("routine", "part"),
    [
        *((routine, []) for routine in ("complete", "release", "retry_later")),
        *((routine, [1, 2]) for routine in ("complete", "release", "retry_later")),
        ("extend_lease", []),
        ("reap", []),
    ],
)
def test_stopped_complete_is_atomic_beside_another_call(
    connection: Connection,
    connect: Connect,
    queue: str,
    routine: str,
    part: list[int],
    *,
    is_killed: bool,
) -> None:
    claim, ids = claim_of(connection, queue, "range")
    dialect_of(connection).expire_claim(connection, claim)
    worker, other = connect(), connect()
    given: dict[str, Any] = {"queue_name": queue}
    if routine != "reap":
        given["claim_id"] = claim
    if part:
        given["message_ids"] = [ids[place] for place in part]

    def complete() -> list[str]:
        rows = call(worker, "complete", queue_name=queue, claim_id=claim)
        return [row.outcome for row in rows]

    with (
        ThreadPoolExecutor(1) as threads,
        stopped_at("message", connection, connect, worker, complete) as completing,
    ):
        acting = threads.submit(call, other, routine, **given)
        wait_until(
            lambda: acting.done() or _waits(connection, other.thread_id()),
            "the other call waits or ends",
        )
        if is_killed:
            connection.execute(f"kill query {worker.thread_id()}")
            assert isinstance(completing.exception(30), pymysql.Error)
    if is_killed:
        acting.result(30)
        done = [ids[place] for place in part or range(4)] if routine == "complete" else []
    else:
        done = ids
        assert completing.result(30) == ["completed"] * 4
        came = _answer(connection, acting)
        assert came[0].reaped == 0 if routine == "reap" else _is_stale(came, part)
    check_messages(connection, queue, [number for number in ids if number not in done])


@pytest.mark.promise("P02", "P15")
@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("batch_size", [1, 2])
@pytest.mark.parametrize("table", STEPS)
def test_drop_beside_a_dequeue_leaves_all_rows_or_none(
    connection: Connection,
    connect: Connect,
    queue: str,
    table: str,
    batch_size: int,
    *,
    force: bool,
) -> None:
    ids = enqueue(connection, queue, "a", "b", "c")
    worker, admin = connect(), connect()
    queue_id = queue_id_of(connection, queue)
    with (
        ThreadPoolExecutor(1) as threads,
        stopped_at(
            table, connection, connect, worker, lambda: dequeue(worker, queue, batch_size)
        ) as taking,
    ):
        dropping = threads.submit(call, admin, "drop_queue", queue_name=queue, force=force)
        wait_until(
            lambda: dropping.done() or _waits(connection, admin.thread_id()),
            "the drop waits or ends",
        )
    answers = [_answer(connection, running) for running in (dropping, taking)]
    dropped = answers[0] not in ("RQ704", "RQ705")
    assert answers[1] != "RQ701" or dropped
    if dropped:
        for name in ("message", "ready", "delayed", "claim", "dead", "dedup", "lane", "queue_lock"):
            query = f"select count(*) from rowq.{name} where queue_id = %s"
            assert connection.execute(query, [queue_id]).fetchall() == ((0,),), name
        call(connection, "create_queue", queue_name=queue)
    else:
        assert not force or table != "message"
        assert len(answers[1]) == batch_size
        check_messages(connection, queue, ids)


def _is_stale(answer: Any, part: list[int]) -> bool:
    """Return whether a call found its claim gone."""
    return {row.outcome for row in answer} == {"stale"} if part else answer == "RQ721"


def _answer(connection: Connection, running: Future[Any]) -> Any:
    """Return the rows of a call, or the number of its error."""
    error = running.exception(30)
    if error is None:
        return running.result()
    assert isinstance(error, pymysql.Error)
    number, _ = dialect_of(connection).error(error)
    assert number in ("RQ701", "RQ704", "RQ705", "RQ721"), error
    return number


def _waits(connection: Connection, number: int) -> bool:
    """Return whether a session waits for a row or a table."""
    # InnoDB refreshes its list of transactions only if it was not read for 100 ms.
    time.sleep(0.11)
    ((waits,),) = connection.execute(
        "select (select count(*) from information_schema.innodb_trx t"
        " where t.trx_mysql_thread_id = %s and t.trx_state = 'LOCK WAIT')"
        " + (select count(*) from information_schema.processlist p"
        " where p.id = %s and p.state like 'Waiting for table metadata lock%%')",
        [number, number],
    ).fetchall()
    return bool(waits)


@pytest.mark.promise("P15")
def test_drop_does_not_wait_for_another_queue(
    connection: Connection, connect: Connect, queue: str, queue_name: str
) -> None:
    other = f"{queue_name} other"
    call(connection, "create_queue", queue_name=other)
    enqueue(connection, other, *"abcd")
    call(connection, "enqueue_batch", queue_name=queue, messages=[{"body": "x"}] * 500)
    for size in (1, 2) * 50:
        dequeue(connection, queue, size)
    claim = dequeue_one(connection, other).claim_id
    caller = connect()
    caller.execute("begin")
    dequeue(caller, other, 2)
    call(caller, "complete", queue_name=other, claim_id=claim)
    assert call_one(connection, "drop_queue", queue_name=queue, force=True).outcome == "dropped"


@pytest.mark.promise("P18")
@pytest.mark.parametrize("table", STEPS[1:])
def test_pause_and_alter_do_not_wait_for_a_dequeue(
    connection: Connection, connect: Connect, queue: str, table: str
) -> None:
    enqueue(connection, queue, "a", "b")
    worker = connect()
    with stopped_at(table, connection, connect, worker, lambda: dequeue(worker, queue)) as taking:
        call(connection, "pause_queue", queue_name=queue)
        call(connection, "alter_queue", queue_name=queue, lease_seconds=7)
    assert bodies(taking.result(30)) == ["a"]
    assert dequeue(connection, queue) == []
    call(connection, "resume_queue", queue_name=queue)
    assert bodies(dequeue(connection, queue)) == ["b"]


@pytest.mark.promise("P02", "P06")
@pytest.mark.parametrize("sizes", [(1, 1), (1, 3), (3, 2)])
def test_two_dequeues_of_a_lane_lease_different_messages(
    connection: Connection, connect: Connect, queue: str, sizes: tuple[int, int]
) -> None:
    ids = enqueue(connection, queue, *"abcdef")
    first, second = connect(), connect()
    with (
        ThreadPoolExecutor(1) as threads,
        stopped_at(
            "claim", connection, connect, first, lambda: dequeue(first, queue, sizes[0])
        ) as taking,
    ):
        also_taking = threads.submit(dequeue, second, queue, sizes[1])
        wait_until(lambda: _waits(connection, second.thread_id()), "the second one waits")
    taken, also_taken = taking.result(30), also_taking.result(30)
    assert [row.message_id for row in taken] == ids[: sizes[0]]
    assert [row.message_id for row in also_taken] == ids[sizes[0] : sum(sizes)]
    check_messages(connection, queue, ids)


@pytest.mark.promise("P04", "P08")
@pytest.mark.parametrize("more", [0, 20])
@pytest.mark.parametrize("sizes", [(1, 1, 1), (1, 2, 1), (3, 10, 3)])
@pytest.mark.parametrize("level", ["read committed", "repeatable read"])
def test_complete_does_not_wait_for_adjacent_messages(
    connection: Connection,
    connect: Connect,
    queue: str,
    level: str,
    sizes: tuple[int, int, int],
    more: int,
) -> None:
    ids = enqueue(connection, queue, *map(str, range(sum(sizes) + more)))
    worker, caller = connect(), connect()
    before, own, behind = (dequeue(worker, queue, size)[0].claim_id for size in sizes)
    caller.execute(f"set transaction isolation level {level}")
    caller.execute("begin")
    for claim in (before, behind):
        call(caller, "complete", queue_name=queue, claim_id=claim)
    worker.execute("set session innodb_lock_wait_timeout = 1")
    done = call(worker, "complete", queue_name=queue, claim_id=own)
    assert [row.message_id for row in done] == ids[sizes[0] : sizes[0] + sizes[1]]
    caller.execute("commit")
    check_messages(connection, queue, ids[sum(sizes) :])


@pytest.mark.chaos
@pytest.mark.requires("restart")
@pytest.mark.promise("P01", "P02", "P09")
@pytest.mark.parametrize("batch_size", [1, 10])
@pytest.mark.parametrize("table", STEPS)
def test_crash_during_a_dequeue_leaves_a_claim_or_no_change(
    server: Server, database_url: str, queue_name: str, table: str, batch_size: int
) -> None:
    connection = server.connect(database_url)
    call(connection, "create_queue", queue_name=queue_name)
    ids = enqueue(connection, queue_name, "a", "b", "c")
    worker = server.connect(database_url)
    with (
        contextlib.suppress(pymysql.Error, OSError),
        stopped_at(
            table,
            connection,
            lambda: server.connect(database_url),
            worker,
            lambda: dequeue(worker, queue_name, batch_size),
        ) as taking,
    ):
        server.crash()
        assert taking.exception(30)
    server.restart()
    with server.connect(database_url) as after:
        check_messages(after, queue_name, ids)
        assert len(claims(after, queue_name)) == (table == "message")
        dialect_of(after).pass_seconds(after, queue_name, 60)
        reaped = call_one(after, "maintain", queue_name=queue_name).reaped
        assert reaped == (min(batch_size, 3) if table == "message" else 0)
        assert bodies(dequeue(after, queue_name, 10)) == ["a", "b", "c"]


@pytest.mark.requires("restart")
@pytest.mark.promise("P13")
def test_complete_after_a_restart_reads_only_its_messages(
    server: Server, database_url: str, queue_name: str
) -> None:
    """After a restart the server has the statistics of empty tables."""
    connection = server.connect(database_url)
    call(connection, "create_queue", queue_name=queue_name)
    call(connection, "enqueue_batch", queue_name=queue_name, messages=[{"body": "x"}] * 5000)
    sizes = (10, 1, 2, 30, 100)
    claims = [(size, dequeue(connection, queue_name, size)[0].claim_id) for size in sizes]
    server.crash()
    server.restart()
    for size, claim in claims:
        with server.connect(database_url) as session:
            call(session, "version")

            def complete(session: Connection = session, claim: int = claim) -> None:
                call(session, "complete", queue_name=queue_name, claim_id=claim)

            # The first call reads 250 rows of the catalog; MySQL reads 13 per message, MariaDB 7.
            assert rows_touched(session, complete) < 300 + 15 * size


@pytest.mark.promise("P05")
@pytest.mark.parametrize("ending", ["commit", "rollback"])
def test_release_opens_a_closed_front_lane(
    connection: Connection, connect: Connect, queue: str, ending: str
) -> None:
    enqueue(connection, queue, *"abcde")
    caller = connect()
    claim = dequeue_one(connection, queue).claim_id
    assert open_lanes(connection, queue) == [11]
    caller.execute("begin")
    call(caller, "release", queue_name=queue, claim_id=claim)
    assert bodies(dequeue(connection, queue)) == ["b"]
    caller.execute(ending)
    assert bodies(dequeue(connection, queue)) == ["a" if ending == "commit" else "c"]


@pytest.mark.promise("P02", "P05")
def test_lane_opened_by_another_session_hides_no_message(
    connection: Connection, connect: Connect, queue: str
) -> None:
    enqueue(connection, queue, *"abcd")
    caller = connect()
    claim, also_claim = (dequeue_one(connection, queue).claim_id for _ in range(2))
    caller.execute("begin")
    call(caller, "release", queue_name=queue, claim_id=claim)
    call(connection, "release", queue_name=queue, claim_id=also_claim)
    assert bodies(dequeue(connection, queue)) == ["b"]
    call(connection, "maintain", queue_name=queue)
    assert bodies(dequeue(connection, queue)) == ["c"]
    caller.execute("rollback")
    call(connection, "maintain", queue_name=queue)
    assert open_lanes(connection, queue) == [11]


@pytest.mark.promise("P02", "P14")
def test_open_lane_request_stays_while_the_lane_backs_off(
    connection: Connection, connect: Connect, queue: str
) -> None:
    enqueue(connection, queue, *"abc")
    caller = connect()
    claim, also_claim = (dequeue_one(connection, queue).claim_id for _ in range(2))
    connection.execute("update rowq.lane set check_after = '9999-01-01' where lane = 10")
    caller.execute("begin")
    call(caller, "release", queue_name=queue, claim_id=claim)
    call(connection, "release", queue_name=queue, claim_id=also_claim)
    call(connection, "maintain", queue_name=queue)
    caller.execute("rollback")
    call(connection, "maintain", queue_name=queue)
    assert bodies(dequeue(connection, queue)) == ["b"]
    connection.execute("update rowq.lane set check_after = '1970-01-01'")
    call(connection, "maintain", queue_name=queue)
    assert open_lanes(connection, queue) == [11]


def test_maintain_closes_an_empty_front_lane_after_a_minute(
    connection: Connection, queue: str
) -> None:
    enqueue(connection, queue, "a")
    claim = dequeue_one(connection, queue).claim_id
    call(connection, "release", queue_name=queue, claim_id=claim)

    def lanes_a_minute_later() -> list[int]:
        connection.execute("update rowq.lane set sweep_at = '1970-01-01'")
        call(connection, "maintain", queue_name=queue)
        return open_lanes(connection, queue)

    call(connection, "maintain", queue_name=queue)
    assert lanes_a_minute_later() == [10, 11]
    claim = dequeue_one(connection, queue).claim_id
    assert lanes_a_minute_later() == [11]
    call(connection, "release", queue_name=queue, claim_id=claim)
    assert open_lanes(connection, queue) == [10, 11]
    assert bodies(dequeue(connection, queue)) == ["a"]


@pytest.mark.promise("P02", "P03")
def test_batches_of_all_sizes_lease_each_message_once(
    connection: Connection, connect: Connect, queue: str
) -> None:
    chance = dice("batches of all sizes")
    sent: list[int] = []
    for _ in range(4):
        rows = call(connection, "enqueue_batch", queue_name=queue, messages=[{"body": "x"}] * 1000)
        sent += [row.message_id for row in rows]
    holes = sorted(chance.sample(sent, 60))
    call(connection, "cancel", queue_name=queue, message_ids=holes)
    sizes = [[chance.randint(1, 100) for _ in range(10)] for _ in range(6)]

    def consume(session: Connection, batches: list[int]) -> list[int]:
        done: list[int] = []
        turn = 0
        while rows := dequeue(session, queue, batches[turn % len(batches)]):
            answer = call(session, "complete", queue_name=queue, claim_id=rows[0].claim_id)
            assert [row.message_id for row in answer] == [row.message_id for row in rows]
            done += [row.message_id for row in rows]
            turn += 1
        return done

    with ThreadPoolExecutor(6) as threads:
        done = list(threads.map(consume, [connect() for _ in sizes], sizes))
    assert sorted(chain.from_iterable(done)) == sorted(set(sent) - set(holes))
    assert claims(connection, queue) == []
    check_messages(connection, queue, [])
