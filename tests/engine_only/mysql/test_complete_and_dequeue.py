"""complete_and_dequeue: its fast path and the cases that it leaves to others, floors and locks."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pymysql
import pytest

from tests.engine_only.mysql.costs import queue_id_of
from tests.engine_only.mysql.statements import accesses, run_by
from tests.engine_only.mysql.test_fast_path import check_messages, claims, stopped_at
from tests.engine_only.mysql.test_plans import check
from tests.engines.base import Connection
from tests.helpers.calls import Row, bodies
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import CheckedQueue, Connect, new_queue

NEVER, ALWAYS = (300_000_000, 0), (1, 1)
"""Seeds whose first rand() moves no floor, and those whose first rand() moves one."""

KINDS = ("one", "range", "list")


@pytest.fixture
def queue(connection: Connection, queue_name: str) -> CheckedQueue:
    return new_queue(connection, queue_name)


def leased(queue: CheckedQueue, kind: str) -> tuple[int, list[int]]:
    """Lease one message, or four with or without consecutive ids; return the claim and ids."""
    for number in range(1 if kind == "one" else 4):
        if kind == "list":
            queue.call("cancel", message_ids=queue.enqueue("gone"))
        queue.enqueue(str(number))
    rows = queue.dequeue(4)
    ((_, _, _, messages),) = claims(queue.connection, queue.name)
    assert (messages is not None) == (kind == "list")
    return rows[0].claim_id, [row.message_id for row in rows]


def seed(session: Connection, seeds: tuple[int, int]) -> None:
    """Set the first values of the session's rand()."""
    session.execute("set session rand_seed1 = %s, rand_seed2 = %s", list(seeds))


def statements_of(queue: CheckedQueue, session: Connection, **arguments: Any) -> list[str]:
    """Return the statements of a call that leases messages without moving a floor."""
    queue.connection.execute("use rowq")
    own = queue.via(session)
    seed(session, NEVER)
    rows: list[Row] = []
    found = run_by(
        queue.connection,
        session,
        lambda: rows.extend(own.call("complete_and_dequeue", **arguments)),
    )
    assert {row.outcome for row in rows} == {"leased"}
    return found


def helpers_in(statements: list[str]) -> set[str]:
    """Return the helpers of the general path that are called."""
    helpers = ("internal_complete_claimed", "internal_lease")
    return {name for name in helpers if any(f"{name}(" in text for text in statements)}


@pytest.mark.pitfall("mysql 16")
@pytest.mark.promise("P13")
@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_fast_path_reads_rows_by_their_keys(
    queue: CheckedQueue, connect: Connect, kind: str, named: bool
) -> None:
    session = connect()
    claim, ids = leased(queue, kind)
    queue.enqueue(*"abcdef")
    arguments = {"claim_id": claim, "message_ids": ids if named else None}
    statements = statements_of(queue, session, batch_size=len(ids), **arguments)
    assert helpers_in(statements) == set()
    for statement in statements:
        for access in accesses(queue.connection, statement):
            check(access)
    on_tables = [text for text in statements if " rowq." in text and not text.startswith("call")]
    is_mysql = "mariadb" not in session.server_version.lower()
    # The statement of a cursor is not shown.
    assert len(on_tables) == (7 if kind == "one" else 5 + len(ids)) + is_mysql


def _with_key(queue: CheckedQueue) -> dict[str, Any]:
    queue.enqueue("0", dedup_key="key")
    return {"claim_id": queue.dequeue_one().claim_id}


def _with(**settings: Any) -> Callable[[CheckedQueue], dict[str, Any]]:
    def prepare(queue: CheckedQueue) -> dict[str, Any]:
        queue.call("alter_queue", **settings)
        return {"claim_id": leased(queue, "one")[0]}

    return prepare


def _in_part(queue: CheckedQueue) -> dict[str, Any]:
    claim, ids = leased(queue, "range")
    return {"claim_id": claim, "message_ids": ids[:1]}


def _in_part_of_list(queue: CheckedQueue) -> dict[str, Any]:
    claim, ids = leased(queue, "list")
    return {"claim_id": claim, "message_ids": ids[:1]}


def _in_other_order(queue: CheckedQueue) -> dict[str, Any]:
    claim, ids = leased(queue, "range")
    return {"claim_id": claim, "message_ids": ids[::-1]}


def _with_successor(queue: CheckedQueue) -> dict[str, Any]:
    claim, ids = leased(queue, "one")
    queue.enqueue("successor", predecessor_ids=ids, priority=1)
    return {"claim_id": claim}


def _with_two_lanes(queue: CheckedQueue) -> dict[str, Any]:
    claim, _ = leased(queue, "one")
    queue.enqueue("urgent", priority=1)
    return {"claim_id": claim}


BOTH = {"internal_complete_claimed", "internal_lease"}
GENERAL: dict[str, tuple[Callable[[CheckedQueue], dict[str, Any]], set[str]]] = {
    "key": (_with_key, BOTH),
    "archive": (_with(archive_days=1), BOTH),
    "results": (_with(result_seconds=60), BOTH),
    "history": (_with(history_days=1), BOTH),
    "part": (_in_part, BOTH),
    "part of a list": (_in_part_of_list, BOTH),
    "other order": (_in_other_order, BOTH),
    "successor": (_with_successor, BOTH),
    "max_leased": (_with(max_leased=5), {"internal_lease"}),
    "rate_limit": (_with(rate_limit=9), {"internal_lease"}),
    "two lanes": (_with_two_lanes, {"internal_lease"}),
}
"""Cases that are not on the fast path, and the helpers that each needs."""


@pytest.mark.promise("P04", "P05")
@pytest.mark.parametrize("case", GENERAL)
def test_other_cases_leave_the_fast_path(queue: CheckedQueue, connect: Connect, case: str) -> None:
    prepare, helpers = GENERAL[case]
    arguments = prepare(queue)
    queue.enqueue("a", "b")
    assert helpers_in(statements_of(queue, connect(), **arguments)) == helpers


@pytest.mark.promise("P04", "P09")
def test_empty_lane_promotes_due_messages_in_the_same_transaction(
    queue: CheckedQueue, connect: Connect
) -> None:
    claim, _ = leased(queue, "one")
    queue.enqueue("due", delay_seconds=60)
    queue.pass_seconds(61)
    statements = statements_of(queue, connect(), claim_id=claim)
    assert helpers_in(statements) == {"internal_lease"}
    assert sum("commit and no chain" in text.lower() for text in statements) <= 1
    assert queue.counts() == (0, 0, 1, 0)


def lane_floor(queue: CheckedQueue) -> int:
    """Return the floor of the only open lane."""
    ((floor,),) = queue.connection.execute(
        "select floor from rowq.lane where queue_id = %s and is_open",
        [queue_id_of(queue.connection, queue.name)],
    ).fetchall()
    return int(floor)


@pytest.mark.promise("P07", "P13")
@pytest.mark.parametrize("size", [1, 3])
def test_floor_stays_below_a_row_that_another_session_holds(
    queue: CheckedQueue, connect: Connect, size: int
) -> None:
    claim, _ = leased(queue, "one")
    queue.enqueue(*"abcdefghi")
    queue.pass_seconds(10)
    before = lane_floor(queue)
    holder = queue.via(connect())
    holder.connection.begin()
    assert bodies(holder.dequeue()) == ["a"]
    seed(queue.connection, ALWAYS)
    rows = queue.call("complete_and_dequeue", claim_id=claim, batch_size=size)
    assert bodies(rows) == list("bcd"[:size])
    assert lane_floor(queue) > before
    holder.connection.rollback()
    assert bodies(queue.dequeue()) == ["a"]


@pytest.mark.promise("P01", "P13")
@pytest.mark.parametrize("size", [1, 2])
def test_floor_stays_below_rows_after_the_leased_ones(
    queue: CheckedQueue, connect: Connect, size: int
) -> None:
    claim, _ = leased(queue, "one")
    queue.enqueue(*"ab"[:size])
    producer = queue.via(connect())
    producer.connection.begin()
    producer.enqueue("late")
    queue.enqueue("last")
    time.sleep(0.6)  # A floor stays 0.5 seconds behind now.
    before = lane_floor(queue)
    seed(queue.connection, ALWAYS)
    rows = queue.call("complete_and_dequeue", claim_id=claim, batch_size=size)
    assert bodies(rows) == list("ab"[:size])
    assert lane_floor(queue) > before
    producer.connection.commit()
    assert bodies(queue.dequeue(10)) == ["late", "last"]


@pytest.mark.promise("P04", "P26")
@pytest.mark.parametrize("kind", KINDS)
def test_message_that_a_producer_holds_is_not_waited_for(
    queue: CheckedQueue, connect: Connect, kind: str
) -> None:
    claim, ids = leased(queue, kind)
    queue.enqueue("next")
    producer, worker = queue.via(connect()), queue.via(connect())
    producer.connection.begin()
    [successor] = producer.enqueue("successor", predecessor_ids=ids[-1:])
    worker.connection.execute("set session innodb_lock_wait_timeout = 30")
    began = time.monotonic()
    assert bodies(worker.call("complete_and_dequeue", claim_id=claim)) == ["next"]
    assert time.monotonic() - began < 15
    producer.connection.commit()
    queue.tick()
    queue.call("maintain")
    assert queue.state_of(successor) == "ready"
    assert [queue.state_of(one) for one in ids] == [None] * len(ids)


@pytest.mark.promise("P15")
def test_locked_claim_is_waited_for_once_and_nothing_is_done(
    queue: CheckedQueue, connect: Connect
) -> None:
    claim, ids = leased(queue, "one")
    queue.enqueue("next")
    holder, worker = queue.via(connect()), queue.via(connect())
    holder.connection.begin()
    holder.call("extend_lease", claim_id=claim)
    worker.connection.execute("set session innodb_lock_wait_timeout = 2")
    began = time.monotonic()
    with pytest.raises(pymysql.err.OperationalError, match="Lock wait timeout"):
        worker.call("complete_and_dequeue", claim_id=claim)
    assert time.monotonic() - began < 3.9
    holder.connection.commit()
    assert [queue.state_of(one) for one in ids] == ["leased"]
    assert bodies(worker.call("complete_and_dequeue", claim_id=claim)) == ["next"]


@pytest.mark.promise("P03", "P08")
@pytest.mark.parametrize("others", [[], [2**62]])
def test_message_that_the_snapshot_does_not_show_has_its_body(
    queue: CheckedQueue, connect: Connect, others: list[int]
) -> None:
    claim, ids = leased(queue, "one")
    caller = queue.via(connect())
    caller.connection.execute("set transaction isolation level repeatable read")
    caller.connection.begin()
    caller.connection.execute("select count(*) from rowq.message")
    queue.enqueue("newer")
    # The caller's own row of ready is in its snapshot, but not the message.
    caller.call("release", claim_id=queue.dequeue_one().claim_id)
    rows = caller.call("complete_and_dequeue", claim_id=claim, message_ids=[*ids, *others])
    assert [row.message_id for row in rows[:-1]] == others
    assert bodies(rows[-1:]) == ["newer"]
    caller.connection.commit()
    assert queue.counts() == (0, 0, 1, 0)


def answer(queue: CheckedQueue, routine: str, **arguments: Any) -> Any:
    """Return the rows of a call, or the number of its error."""
    try:
        return queue.call(routine, **arguments)
    except pymysql.Error as error:
        return dialect_of(queue.connection).error(error)[0]


@contextmanager
def stopped(
    queue: CheckedQueue, connect: Connect, table: str, claim: int, **other: Any
) -> Iterator[tuple[int, Future[Any], Future[Any]]]:
    """Stop a call at a table and start another one; return its session and the two answers."""
    worker, second = queue.via(connect()), queue.via(connect())

    def exchange() -> Any:
        return answer(worker, "complete_and_dequeue", claim_id=claim)

    with (
        ThreadPoolExecutor(1) as threads,
        stopped_at(table, queue.connection, connect, worker.connection, exchange) as exchanging,
    ):
        acting = threads.submit(answer, second, **other)
        time.sleep(0.2)
        yield worker.connection.thread_id(), exchanging, acting


@pytest.mark.promise("P04", "P08", "P09")
@pytest.mark.parametrize("table", ["message", "ready"])
@pytest.mark.parametrize("routine", ["complete_and_dequeue", "release", "reap"])
def test_call_that_has_taken_the_claim_keeps_it(
    queue: CheckedQueue, connect: Connect, routine: str, table: str
) -> None:
    claim, _ = leased(queue, "range")
    others = queue.enqueue("a", "b")
    dialect_of(queue.connection).expire_claim(queue.connection, claim)
    given = {} if routine == "reap" else {"claim_id": claim}
    with stopped(queue, connect, table, claim, routine=routine, **given) as (_, first, second):
        pass
    assert bodies(first.result(30)) == ["a"]
    found = second.result(30)
    if routine == "complete_and_dequeue":
        assert [(row.outcome, row.body) for row in found] == [("stale", None), ("leased", "b")]
    else:
        assert found == "RQ721" if routine == "release" else found[0].reaped == 0
    check_messages(queue.connection, queue.name, others)


@pytest.mark.promise("P04", "P08")
@pytest.mark.parametrize("table", ["claim", "message", "ready"])
@pytest.mark.parametrize("routine", ["complete_and_dequeue", "release"])
def test_killed_call_leaves_the_claim_to_others(
    queue: CheckedQueue, connect: Connect, routine: str, table: str
) -> None:
    claim, ids = leased(queue, "range")
    others = queue.enqueue("a", "b")
    call = {"routine": routine, "claim_id": claim}
    with stopped(queue, connect, table, claim, **call) as (number, first, second):
        queue.connection.execute(f"kill query {number}")
        assert first.result(30) == "1317"
    if routine == "release":
        assert {row.outcome for row in second.result(30)} == {"released"}
        others += ids
    else:
        assert bodies(second.result(30)) == ["a"]
    check_messages(queue.connection, queue.name, others)


@pytest.mark.promise("P02", "P15")
@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("table", ["claim", "message", "ready"])
def test_drop_beside_a_call_leaves_all_rows_or_none(
    queue: CheckedQueue, connect: Connect, table: str, force: bool
) -> None:
    claim, _ = leased(queue, "range")
    others = queue.enqueue("a", "b")
    queue_id = queue_id_of(queue.connection, queue.name)
    drop = {"routine": "drop_queue", "force": force}
    with stopped(queue, connect, table, claim, **drop) as (_, first, second):
        pass
    if second.result(30) in ("RQ704", "RQ705"):
        # The call skips rows that the refused drop has locked.
        assert {row.outcome for row in first.result(30)} <= {"leased"}
        check_messages(queue.connection, queue.name, others)
        return
    for name in ("message", "ready", "claim", "lane", "queue_lock"):
        query = f"select count(*) from rowq.{name} where queue_id = %s"
        assert queue.connection.execute(query, [queue_id]).fetchall() == ((0,),), name
