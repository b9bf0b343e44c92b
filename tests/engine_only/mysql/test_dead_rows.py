"""Calls cost little beside many dead rows, in every lane, across crashes and rollbacks.

ROWQ_DEAD_ROWS sets their number; 10000000 takes minutes.
"""

import os
from collections.abc import Iterator
from functools import partial
from statistics import median

import pytest

from tests.engine_only.mysql.costs import fewest_pages, pages, queue_id_of, rescan, until_quiet
from tests.engines.base import Connection, Server
from tests.helpers.calls import bodies, call, dequeue, enqueue
from tests.helpers.queues import Connect

pytestmark = pytest.mark.slow("200,000 dead rows")

DEAD = int(os.environ.get("ROWQ_DEAD_ROWS", "200000"))
AT_ONCE = 100_000
MICROSECONDS = "timestampdiff(microsecond, '1970-01-01', utc_timestamp(6))"

INSERTS = {
    "ready": "insert into rowq.ready (queue_id, lane, seq, message_id)"
    f" select {{queue_id}}, {{lane}}, {MICROSECONDS} - 60000000 + n.n, n.n from {{numbers}} n",
    "delayed": "insert into rowq.delayed (queue_id, due_at, message_id, lane)"
    " select {queue_id}, utc_timestamp(6) - interval 1 day + interval n.n microsecond, n.n, {lane}"
    " from {numbers} n",
    "claim": "insert into rowq.claim (queue_id, claim_id, lease_until, messages)"
    " select {queue_id}, n.n, utc_timestamp(6), '[]' from {numbers} n",
}
KEYS = {"ready": "message_id", "delayed": "message_id", "claim": "claim_id"}


@pytest.fixture
def queue(connection: Connection, queue_name: str) -> str:
    call(connection, "create_queue", queue_name=queue_name, backoff_base_seconds=0)
    return queue_name


@pytest.fixture
def old_view(server: Server, database_url: str) -> Iterator[None]:
    """Hold a read view, as a backup or a long report does."""
    session = old_reader(server, database_url)
    yield
    session.close()


def numbers(start: int, count: int) -> str:
    """Return a table of up to that many numbers, as SQL."""
    digits = " union all ".join(f"select {digit} d" for digit in range(10))
    places = range(len(str(AT_ONCE)) - 1)
    tables = " cross join ".join(f"({digits}) t{place}" for place in places)
    value = " + ".join(f"t{place}.d * {10**place}" for place in places)
    return f"(select {value} + {start + 1} as n from {tables} limit {count})"


def make_dead(connection: Connection, queue: str, table: str, count: int, lane: int = 11) -> None:
    """Insert rows and delete them; an older view keeps them."""
    queue_id = queue_id_of(connection, queue)
    connection.execute("set session sql_log_bin = 0")
    for start in range(0, count, AT_ONCE):
        words = {"queue_id": queue_id, "lane": lane, "numbers": numbers(start, min(count, AT_ONCE))}
        connection.execute(INSERTS[table].format(**words).replace("%", "%%"))
    connection.execute(
        f"delete from rowq.{table} where queue_id = {queue_id} and {KEYS[table]} > 0"
    )
    connection.execute("set session sql_log_bin = 1")


@pytest.mark.promise("P13")
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("old_view")
@pytest.mark.parametrize(
    ("table", "routine"), [("ready", "dequeue_fast"), ("delayed", "promote"), ("claim", "reap")]
)
def test_calls_cost_the_same_beside_dead_rows(
    connection: Connection, queue: str, table: str, routine: str
) -> None:
    def look() -> None:
        assert not any(getattr(row, "promoted", 0) for row in call(connection, routine, **queued))

    queued = {"queue_name": queue}
    look()
    before = fewest_pages(connection, look)
    make_dead(connection, queue, table, DEAD)
    rescan(connection, queue)
    assert fewest_pages(connection, look) < before + 60
    forget_floors(connection, queue)
    assert fewest_pages(connection, look) > before + DEAD // 1000


@pytest.mark.promise("P05", "P13")
@pytest.mark.usefixtures("old_view")
def test_dead_rows_in_every_lane_do_not_slow_a_dequeue(connection: Connection, queue: str) -> None:
    def look() -> None:
        connection.begin()
        assert bodies(dequeue(connection, queue)) == ["last"]
        connection.rollback()

    for priority in range(9, -1, -1):
        ids = enqueue(connection, queue, "1", "2", priority=priority)
        claim = dequeue(connection, queue, 2)[0].claim_id
        call(connection, "release", queue_name=queue, claim_id=claim, message_ids=ids[:1])
        call(connection, "complete", queue_name=queue, claim_id=claim)
        claim = dequeue(connection, queue)[0].claim_id
        call(connection, "complete", queue_name=queue, claim_id=claim)
    enqueue(connection, queue, "last", priority=9)
    before = fewest_pages(connection, look)
    claim = dequeue(connection, queue)[0].claim_id
    call(connection, "complete", queue_name=queue, claim_id=claim)
    for lane in range(20):
        make_dead(connection, queue, "ready", AT_ONCE // 5, lane)
    enqueue(connection, queue, "last", priority=9)
    rescan(connection, queue)
    assert fewest_pages(connection, look) < before + 200
    forget_floors(connection, queue)
    assert fewest_pages(connection, look) > before + 600


@pytest.mark.promise("P13")
@pytest.mark.parametrize("level", ["read committed", "repeatable read"])
@pytest.mark.usefixtures("old_view")
def test_repeated_rolled_back_dequeues_stay_flat(
    connection: Connection, connect: Connect, queue: str, level: str
) -> None:
    call(connection, "enqueue_batch", queue_name=queue, messages=[{"body": "x"}] * 6040)
    session, costs, taken = connect(), [], 0

    def look(ending: str) -> None:
        nonlocal taken
        session.execute("begin")
        rows = dequeue(session, queue, 20)
        taken = len(rows)
        if rows:
            call(session, "complete", queue_name=queue, claim_id=rows[0].claim_id)
        # End the transaction here: newer servers count its pages only then.
        session.execute(ending)

    for turn in range(600):
        session.execute(f"set transaction isolation level {level}")
        ending = "rollback" if turn % 2 else "commit"
        costs.append(pages(connection, partial(look, ending)))
        assert taken == 20
        if turn % 20 == 0:
            rescan(connection, queue)
    assert median(costs[-60:]) < 1.3 * median(costs[:60]), costs
    assert len(dequeue(connection, queue, 100)) == 40


@pytest.mark.chaos
@pytest.mark.requires("restart")
@pytest.mark.promise("P01", "P02", "P13")
def test_dequeue_costs_the_same_after_a_crash(
    server: Server, database_url: str, queue_name: str
) -> None:
    first = old_reader(server, database_url)
    with server.connect(database_url) as connection:
        call(connection, "create_queue", queue_name=queue_name)
        for start in range(0, 6000, 1000):
            batch = [{"body": str(number)} for number in range(start, start + 1000)]
            call(connection, "enqueue_batch", queue_name=queue_name, messages=batch)
        costs, seen = drain(connection, queue_name, 40)
        held = dequeue(connection, queue_name, 10)
    server.crash()
    server.restart()
    second = old_reader(server, database_url)
    with server.connect(database_url) as connection:
        until_quiet(connection)
        later, also_seen = drain(connection, queue_name, 19)
        assert median(later[5:]) < 1.3 * median(costs), (costs, later)
        call(connection, "release", queue_name=queue_name, claim_id=held[0].claim_id)
        rest = [row.body for row in dequeue(connection, queue_name, 1000)]
        assert len(rest) == 100
        assert sorted([*seen, *also_seen, *rest]) == sorted(map(str, range(6000)))
    for session in (first, second):
        session.close()


def forget_floors(connection: Connection, queue: str) -> None:
    """Make every scan start at the very first row."""
    queue_id = queue_id_of(connection, queue)
    connection.execute("update rowq.lane set floor = 0 where queue_id = %s", [queue_id])


def old_reader(server: Server, url: str) -> Connection:
    """Return a session that keeps all rows deleted from now on."""
    session = server.connect(url)
    session.execute("set session transaction isolation level repeatable read")
    session.execute("start transaction with consistent snapshot")
    session.execute("select count(*) from rowq.queue")
    return session


def drain(connection: Connection, queue: str, rounds: int) -> tuple[list[int], list[str]]:
    """Dequeue and complete batches of 100; return pages and bodies."""
    costs: list[int] = []
    seen: list[str] = []

    def look() -> None:
        rows = dequeue(connection, queue, 100)
        call(connection, "complete", queue_name=queue, claim_id=rows[0].claim_id)
        seen.extend(row.body for row in rows)

    for _ in range(rounds):
        costs.append(pages(connection, look))
        if len(costs) % 10 == 0:
            rescan(connection, queue)
    return costs, seen
