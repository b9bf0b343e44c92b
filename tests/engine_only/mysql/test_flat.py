"""Dequeue stays flat on InnoDB while an old read view keeps every dead row.

The tests count pages, because dead rows appear in no other counter.
"""

from collections.abc import Callable
from statistics import median

import pytest

from tests.engine_only.mysql.costs import fewest_pages, pages, queue_id_of, rescan
from tests.engines.base import Connection
from tests.helpers.calls import call, dequeue, rolled_back, transaction
from tests.helpers.queues import Connect

pytestmark = [
    pytest.mark.pitfall("mysql 6"),
    pytest.mark.slow("fills large tables"),
]

BATCHES = 3
"""Batches of 10,000 messages."""

DEAD = 200_000
"""Dead rows that a test creates at once."""

SMALL = 150
"""Pages of a call that finds nothing; scanning the dead rows costs hundreds more."""


def fill(connection: Connection, queue: str, batches: int = BATCHES) -> None:
    for _ in range(batches):
        call(connection, "enqueue_batch", queue_name=queue, messages=[{"body": "x"}] * 10_000)


def drain(connection: Connection, queue: str, isolation: str | None) -> list[int]:
    """Dequeue and complete all messages; return the pages of each dequeue."""
    costs: list[int] = []
    found = True
    while found:

        def look() -> None:
            nonlocal found
            rows = dequeue(connection, queue, 100)
            found = bool(rows)
            if rows:
                call(connection, "complete", queue_name=queue, claim_id=rows[0].claim_id)

        if isolation is None:
            costs.append(pages(connection, look))
        else:
            costs.append(pages(connection, lambda: in_transaction(connection, isolation, look)))
        if len(costs) % 20 == 0:
            rescan(connection, queue)
    return costs[:-1]


def in_transaction(connection: Connection, isolation: str, work: Callable[[], None]) -> None:
    """Run some work in a transaction: newer servers count its pages at the end."""
    connection.execute(f"set transaction isolation level {isolation}")
    with transaction(connection):
        work()


@pytest.mark.promise("P13")
@pytest.mark.parametrize("isolation", [None, "read committed", "repeatable read"])
@pytest.mark.usefixtures("old_view")
def test_dequeue_is_flat_under_an_old_read_view(
    connection: Connection, connect: Connect, queue: str, isolation: str | None
) -> None:
    fill(connection, queue)
    session = connect()
    costs = drain(session, queue, isolation)
    assert len(costs) == BATCHES * 100
    assert median(costs[-40:]) < 1.2 * median(costs[:40]), costs
    rescan(connection, queue)
    nothing = fewest_pages(connection, lambda: dequeue(session, queue))
    _forget_floors(connection, queue)
    assert pages(connection, lambda: dequeue(session, queue)) > nothing + BATCHES * 15


@pytest.mark.promise("P13")
@pytest.mark.usefixtures("old_view")
def test_empty_lane_does_not_scan_dead_rows_of_the_next(connection: Connection, queue: str) -> None:
    call(connection, "enqueue", queue_name=queue, priority=4)
    [first] = dequeue(connection, queue)
    call(connection, "complete", queue_name=queue, claim_id=first.claim_id)
    _make_dead_rows(connection, queue, lane=11)
    rescan(connection, queue)
    assert fewest_pages(connection, lambda: dequeue(connection, queue)) < SMALL


@pytest.mark.promise("P13")
@pytest.mark.usefixtures("old_view")
def test_dead_rows_are_scanned_without_floors(connection: Connection, queue: str) -> None:
    _make_dead_rows(connection, queue, lane=11)
    _forget_floors(connection, queue)
    assert pages(connection, lambda: dequeue(connection, queue)) > 2 * SMALL


@pytest.mark.promise("P13")
@pytest.mark.usefixtures("old_view")
def test_promote_skips_dead_rows(connection: Connection, queue: str) -> None:
    queue_id = queue_id_of(connection, queue)
    connection.execute(
        "insert into rowq.delayed (queue_id, due_at, message_id, lane)"
        " select %s, utc_timestamp(6) - interval 1 day + interval n.n microsecond, n.n, 11"
        f" from {numbers(DEAD)} n",
        [queue_id],
    )
    connection.execute(
        "delete from rowq.delayed where queue_id = %s and message_id > 0", [queue_id]
    )
    rescan(connection, queue)
    assert fewest_pages(connection, lambda: call(connection, "promote", queue_name=queue)) < SMALL


@pytest.mark.promise("P13")
@pytest.mark.usefixtures("old_view")
def test_reap_skips_dead_rows(connection: Connection, queue: str) -> None:
    queue_id = queue_id_of(connection, queue)
    call(connection, "enqueue", queue_name=queue)
    connection.execute(
        "insert into rowq.claim (queue_id, claim_id, lease_until, messages)"
        f" select %s, n.n, utc_timestamp(6), '[]' from {numbers(DEAD)} n",
        [queue_id],
    )
    connection.execute("delete from rowq.claim where queue_id = %s and claim_id > 0", [queue_id])
    dequeue(connection, queue)
    rescan(connection, queue)
    assert fewest_pages(connection, lambda: call(connection, "reap", queue_name=queue)) < SMALL


@pytest.mark.promise("P14")
def test_clock_set_back_delays_a_message_by_one_rescan(connection: Connection, queue: str) -> None:
    queue_id = queue_id_of(connection, queue)
    ahead = "timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)) + 3600000000"
    connection.execute(
        f"update rowq.lane set floor = {ahead} where queue_id = %s and lane = 11", [queue_id]
    )
    call(connection, "enqueue", queue_name=queue, body="after the clock was set right")
    assert dequeue(connection, queue) == []
    rescan(connection, queue)
    assert [row.body for row in dequeue(connection, queue)] == ["after the clock was set right"]


@pytest.mark.promise("P14")
def test_lane_of_a_rolled_back_producer_is_opened_by_a_rescan(
    connection: Connection, connect: Connect, queue: str
) -> None:
    with rolled_back(first := connect()):
        call(first, "enqueue", queue_name=queue, priority=0)
        call(connection, "enqueue", queue_name=queue, body="second", priority=0)
    rescan(connection, queue)
    assert [row.body for row in dequeue(connection, queue)] == ["second"]


def _forget_floors(connection: Connection, queue: str) -> None:
    queue_id = queue_id_of(connection, queue)
    connection.execute("update rowq.lane set floor = 0 where queue_id = %s", [queue_id])


def _make_dead_rows(connection: Connection, queue: str, lane: int) -> None:
    queue_id = queue_id_of(connection, queue)
    now = "timestampdiff(microsecond, '1970-01-01', utc_timestamp(6))"
    connection.execute(
        "insert into rowq.ready (queue_id, lane, seq, message_id)"
        f" select %s, %s, {now} - 60000000 + n.n, n.n from {numbers(DEAD)} n",
        [queue_id, lane],
    )
    connection.execute("delete from rowq.ready where queue_id = %s and message_id > 0", [queue_id])


def numbers(count: int) -> str:
    """Return a table with the numbers from 1, as SQL."""
    assert count == 200_000
    digits = " union all ".join(f"select {n} d" for n in range(10))
    parts = " cross join ".join(f"({digits}) t{n}" for n in range(4))
    return (
        "(select h.d * 10000 + t0.d * 1000 + t1.d * 100 + t2.d * 10 + t3.d + 1 as n"
        f" from (select d + 10 * e as d from ({digits}) a"
        f" cross join (select 0 e union all select 1) b) h cross join {parts})"
    )
