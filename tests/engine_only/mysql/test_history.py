"""History on MariaDB and MySQL: statements, plans and purge."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.engine_only.mysql.costs import cost_of_purge, queue_id_of
from tests.engine_only.mysql.statements import Access, run_by
from tests.engine_only.mysql.test_results import accesses_of, count_rows
from tests.engines.base import Connection
from tests.helpers.calls import call, call_one, dequeue, enqueue
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect

pytestmark = pytest.mark.promise("P37")

OUTCOMES = {
    "complete": "completed",
    "retry_later": "retrying",
    "fail_now": "dead",
    "release": "released",
    "reap": "lease_expired",
}
"""The outcome by the routine that ends an attempt."""

each_end = pytest.mark.parametrize("end", OUTCOMES)


@pytest.fixture
def queue(connection: Connection, queue_name: str) -> str:
    call(connection, "create_queue", queue_name=queue_name, backoff_base_seconds=0)
    return queue_name


@pytest.fixture
def kept(connection: Connection, queue: str) -> str:
    """Return a queue that keeps history."""
    call(connection, "alter_queue", queue_name=queue, history_days=2)
    return queue


def ends(session: Connection, queue: str, end: str, claim: int) -> None:
    """End all attempts of a claim."""
    if end == "reap":
        dialect_of(session).expire_claim(session, claim)
        call(session, "reap", queue_name=queue)
    else:
        call(session, end, queue_name=queue, claim_id=claim)


def attempts(session: Connection, queue: str, message: int) -> list[tuple[Any, ...]]:
    """Return worker, number and outcome of each attempt, oldest first."""
    rows = call(session, "get_history", queue_name=queue, message_id=message)
    return [(row.worker_name, row.attempt, row.outcome) for row in rows]


def cycle(session: Connection, queue: str) -> None:
    """End attempts in every way, one and several at a time, read them, and maintain."""
    for end in OUTCOMES:
        for size in (1, 3):
            enqueue(session, queue, *"x" * size)
            rows = dequeue(session, queue, size)
            ends(session, queue, end, rows[0].claim_id)
            for row in rows[:2]:
                call(session, "get_history", queue_name=queue, message_id=row.message_id)
    ids = enqueue(session, queue, *"abc")
    claim = dequeue(session, queue, 100)[0].claim_id
    call(session, "cancel", queue_name=queue, message_ids=ids, include_leased=True)
    call(session, "get_history", queue_name=queue, message_id=ids[0])
    call(session, "complete", queue_name=queue, claim_id=claim, message_ids=ids[:1])
    call(session, "retry_later", queue_name=queue, claim_id=claim)
    call(session, "get_history", queue_name=queue, message_id=ids[1])
    call(session, "maintain", queue_name=queue)
    call(session, "purge_archive", queue_name=queue)


def check(access: Access) -> None:
    """Check that a plan reads history by a key."""
    assert "filesort" not in access.extra, access
    if access.statement.lstrip().startswith("insert"):
        assert access.type == "ALL"  # explain prints this for a table that is written
    elif access.key == "PRIMARY":
        # find_idle reads from the start of each queue, and measures the time.
        finds_idle = "sysdate(6)" in access.statement
        assert access.type in {"const", "eq_ref", "range", *["ref"] * finds_idle}, access
        assert "Using index;" not in f"{access.extra};", access
    else:
        assert (access.key, access.type) == ("history_message_ix", "ref"), access


@pytest.mark.promise("P13")
@pytest.mark.parametrize("level", [None, "repeatable read"])
def test_history_is_never_scanned_or_sorted(
    connection: Connection, connect: Connect, kept: str, level: str | None
) -> None:
    cycle(connection, kept)
    connection.execute(
        "update rowq.history set ended_at = ended_at - interval 4 day where message_id > 0"
    )
    work = partial(cycle, queue=kept)
    found = accesses_of(connection, connect(), work, "history", level)
    assert {(access.key, access.type) for access in found} >= {
        ("PRIMARY", "range"),
        ("history_message_ix", "ref"),
    }
    for access in found:
        check(access)


@each_end
@pytest.mark.parametrize("size", [1, 3])
def test_history_adds_one_insert_per_ending_call(
    connection: Connection, connect: Connect, queue: str, end: str, size: int
) -> None:
    session = connect()
    connection.execute("use rowq")

    def ran(days: int, messages: int = size) -> list[str]:
        """Return the statements that end a claim, with one keyed message."""
        other = f"{queue} {days} {messages} {time.monotonic_ns()}"
        call(connection, "create_queue", queue_name=other, history_days=days)
        enqueue(connection, other, *"x" * messages)
        enqueue(connection, other, "key", dedup_key="key")
        claim = dequeue(connection, other, messages + 1)[0].claim_id
        return run_by(connection, session, lambda: ends(session, other, end, claim))

    ran(0)
    without, kept = ran(0), ran(2)
    more = [text for text in kept if "rowq.history" in text]
    assert len(more) == 1
    assert more[0].lstrip().startswith("insert")
    assert not [text for text in without if "rowq.history" in text]
    assert len(kept) - len(without) <= 2
    assert len(ran(2, 10 * size)) == len(kept)


def test_only_a_queue_with_history_leaves_the_fast_path(
    connection: Connection, connect: Connect, queue: str
) -> None:
    session = connect()
    connection.execute("use rowq")

    def count(days: int) -> tuple[int, int]:
        call(connection, "alter_queue", queue_name=queue, history_days=days)
        enqueue(connection, queue, *"xyz")
        claims: list[int] = []

        def take() -> None:
            claims.append(dequeue(session, queue, 3)[0].claim_id)

        taking = run_by(connection, session, take)
        completing = run_by(
            connection, session, lambda: ends(session, queue, "complete", claims[0])
        )
        assert not [text for text in taking if "rowq.history" in text]
        # A quarter of the dequeues, at random, moves a floor.
        moving = [text for text in taking if "internal_move_floor" in text or ".lane l" in text]
        return len(taking) - len(moving), len(completing)

    count(0)
    taken, completed = zip(*(count(days) for days in (0, 2, 0)), strict=True)
    assert completed[1] > completed[0] == completed[2]
    assert max(taken) - min(taken) <= 3


def test_call_with_several_outcomes_inserts_history_once(
    connection: Connection, connect: Connect, kept: str
) -> None:
    session = connect()
    connection.execute("use rowq")
    ids = [
        *enqueue(connection, kept, "dies", max_attempts=1),
        *enqueue(connection, kept, "retried", "cancelled"),
    ]
    claim = dequeue(connection, kept, 3, worker_name="w")[0].claim_id
    call(connection, "cancel", queue_name=kept, message_ids=ids[2:], include_leased=True)
    ran = run_by(
        connection,
        session,
        lambda: call(session, "retry_later", queue_name=kept, claim_id=claim, error="broken"),
    )
    assert len([text for text in ran if "rowq.history" in text]) == 1
    rows = [call(connection, "get_history", queue_name=kept, message_id=one) for one in ids]
    assert [[(row.outcome, row.error) for row in found] for found in rows] == [
        [("dead", "broken")],
        [("retrying", "broken")],
        [("cancelled", None)],
    ]


def test_leased_at_is_the_start_of_the_lease(
    connection: Connection, connect: Connect, queue: str
) -> None:
    """On the fast path, on the general path and as JSON."""
    leases: list[Callable[[Connection], object]] = [
        lambda session: dequeue(session, queue, 1, lease_seconds=100),
        lambda session: dequeue(session, queue, 2, lease_seconds=100),
        lambda session: call(session, "dequeue_wait", queue_name=queue, lease_seconds=100),
    ]
    for lease in leases:
        enqueue(connection, queue, "x", "y", priority=5)
        lease(connection)
    enqueue(connection, queue, "opens another lane", priority=1)
    dequeue(connection, queue, 2, lease_seconds=100)
    session = connect()
    session.execute("begin")
    enqueue(session, queue, "in a transaction")
    dequeue(session, queue, 10, lease_seconds=100)
    session.commit()
    found = connection.execute(
        "select timestampdiff(microsecond, leased_at, lease_until) from rowq.claim"
        " where claim_id > 0 and queue_id = %s",
        [queue_id_of(connection, queue)],
    ).fetchall()
    assert [microseconds for (microseconds,) in found] == [100_000_000] * 5


def fill(connection: Connection, queue: str, count: int) -> None:
    """End attempts."""
    call(connection, "enqueue_batch", queue_name=queue, messages=[{"body": "x"}] * count)
    claim = dequeue(connection, queue, count)[0].claim_id
    call(connection, "complete", queue_name=queue, claim_id=claim)


def cost(connection: Connection, queue: str) -> int:
    """Return the pages read to purge one attempt, between rescans of maintain."""
    purge = "call rowq.internal_purge_history(%s, 0, 10000, @purged)"
    queue_id = queue_id_of(connection, queue)
    return cost_of_purge(
        connection,
        lambda: fill(connection, queue, 1),
        lambda: connection.execute(purge, [queue_id]),
        lambda: count_rows(connection, queue, "history") == 0,
    )


@pytest.mark.slow("an old view beside many rows", ci="mariadb")
@pytest.mark.promise("P13")
@pytest.mark.usefixtures("old_view")
def test_old_read_view_does_not_slow_down_a_purge(connection: Connection, queue: str) -> None:
    costs = []
    for rounds in (5, 15):
        for _ in range(rounds):
            call(connection, "alter_queue", queue_name=queue, history_days=1)
            fill(connection, queue, 1000)
            # Without history_days everything is purged.
            call(connection, "alter_queue", queue_name=queue, history_days=0)
            call(connection, "maintain", queue_name=queue)
        assert count_rows(connection, queue, "history") == 0
        call(connection, "alter_queue", queue_name=queue, history_days=1)
        costs.append(cost(connection, queue))
    first, last = costs
    assert last <= 1.2 * first + 10, f"{first} pages beside 5,000 dead rows, {last} beside 20,000"


@pytest.mark.promise("P13")
def test_maintain_skips_history_until_a_day_expires(connection: Connection, kept: str) -> None:
    fill(connection, kept, 3)
    for _ in range(2):
        call(connection, "maintain", queue_name=kept)
    queue_id = queue_id_of(connection, kept)
    ((before,),) = connection.execute(
        "select sweep_at from rowq.lane where lane = -1 and queue_id = %s", [queue_id]
    ).fetchall()
    dialect_of(connection).pass_seconds(connection, kept, 86400)
    call(connection, "maintain", queue_name=kept)
    assert count_rows(connection, kept, "history") == 3
    dialect_of(connection).pass_seconds(connection, kept, 3 * 86400)
    call(connection, "maintain", queue_name=kept)
    assert count_rows(connection, kept, "history") == 0
    assert before is not None


def test_old_snapshot_records_and_reads_attempts(
    connection: Connection, connect: Connect, kept: str
) -> None:
    session = connect()
    session.execute("set transaction isolation level repeatable read")
    session.execute("begin")
    session.execute("select count(*) from rowq.queue")
    ids = enqueue(connection, kept, "x", "y")
    claim = dequeue(connection, kept, 2, worker_name="w")[0].claim_id
    call(session, "release", queue_name=kept, claim_id=claim, message_ids=ids[:1])
    call(session, "complete", queue_name=kept, claim_id=claim)
    assert attempts(session, kept, ids[0]) == [("w", 1, "released")]
    assert attempts(session, kept, ids[1]) == [("w", 1, "completed")]
    assert attempts(connection, kept, ids[1]) == [("w", 1, None)]
    session.commit()
    assert attempts(connection, kept, ids[1]) == [("w", 1, "completed")]


def make_due(connection: Connection, queue: str) -> None:
    """Make history expire and a message due."""
    fill(connection, queue, 3)
    enqueue(connection, queue, "delayed", delay_seconds=10)
    dialect_of(connection).pass_seconds(connection, queue, 3 * 86400)


@pytest.mark.promise("P19")
def test_serializable_reader_does_not_block_maintain(
    connection: Connection, connect: Connect, kept: str
) -> None:
    make_due(connection, kept)
    reader = connect()
    dialect_of(reader).begin(reader, "serializable")
    reader.execute(
        "select outcome from rowq.history where queue_id = %s and message_id > 0 limit 1",
        [queue_id_of(connection, kept)],
    ).fetchall()
    connection.execute("set session innodb_lock_wait_timeout = 1")
    row = call_one(connection, "maintain", queue_name=kept)
    assert (row.promoted, row.purged) == (1, 2)
    reader.rollback()
    assert call_one(connection, "maintain", queue_name=kept).purged == 1
