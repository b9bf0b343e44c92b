"""Plans and costs on Oracle: index ranges in order, no sorts, no full scans."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.engine_only.oracle.plans import Plan, plans, reads
from tests.engines.base import Connection
from tests.engines.oracle.server import OracleServer
from tests.helpers.calls import call, call_one, dequeue, dequeue_one, enqueue, make_dead
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect
from tests.stored_times import expire_claim, pass_seconds

pytestmark = pytest.mark.promise("P13")


LARGE = 20_000
"""Messages in a large queue."""

LOCKING = {
    "dequeue_fast": ("r.lane = :", "ROWQ_READY_PK", ("QUEUE_ID", "LANE", "SEQ")),
    "promote": ("d.due_at <= :", "ROWQ_DELAYED_PK", ("QUEUE_ID", "DUE_AT")),
    "reap": ("c.lease_until <= :", "ROWQ_CLAIM_PK", ("QUEUE_ID", "CLAIM_ID")),
    "archive": ("f.finish_id >= :", "ROWQ_FINISHED_PK", ("QUEUE_ID", "FINISH_ID")),
}
"""A word of the statement that locks rows for a routine, and its index range."""


def fill(connection: Connection, queue: str, count: int, **settings: object) -> None:
    """Enqueue many small messages."""
    for _ in range(count // 5000):
        messages = [{"body": "x", **settings}] * 5000
        call(connection, "enqueue_batch", queue_name=queue, messages=messages)


def of_groups(session: Connection, queue: str) -> None:
    """Run groups through every change, and leave no rows of them."""
    common = {"queue_name": queue}
    messages = [{"body": "x", "group_key": f"group {number % 3}"} for number in range(9)]
    sent = call(session, "enqueue_batch", **common, messages=messages)
    enqueue(session, queue, "late", group_key="late", delay_seconds=1)
    pass_seconds(session, queue, 2)
    call(session, "promote", **common)
    call(session, "get_message", **common, message_id=sent[-1].message_id)
    call(session, "cancel", **common, message_ids=[sent[-1].message_id])
    call(session, "alter_queue", **common, group_limit=2)
    call(session, "maintain", **common)
    call(session, "alter_queue", **common, group_limit=1, group_pause_seconds=1.0)
    while rows := dequeue(session, queue, 100):
        call(session, "complete", **common, claim_id=rows[0].claim_id)
    pass_seconds(session, queue, 2)
    call(session, "maintain", **common)
    call(session, "alter_queue", **common, group_pause_seconds=0.0)
    call(session, "purge_queue", **common)


def of_limits(session: Connection, queue: str) -> None:
    """Dequeue under limits, and purge the delivery starts."""
    common = {"queue_name": queue}
    call(session, "alter_queue", **common, max_leased=5, rate_limit=5)
    for row in dequeue(session, queue, 2):
        call(session, "release", **common, claim_id=row.claim_id, message_ids=[row.message_id])
    pass_seconds(session, queue, 2)
    call(session, "maintain", **common)
    call(session, "alter_queue", **common, max_leased=0, rate_limit=0)


def of_predecessors(session: Connection, queue: str) -> None:
    """Run messages with predecessors through every change."""
    common = {"queue_name": queue}
    first, second = enqueue(session, queue, "first", "second", priority=0)
    for asked in ("hold", "continue", "fail"):
        enqueue(
            session, queue, asked, predecessor_ids=[first, second], on_predecessor_dead=asked
        )  # fmt: skip
    enqueue(session, queue, "late", predecessor_ids=[first], delay_seconds=1000)
    [waits] = enqueue(session, queue, "group_waiting", predecessor_ids=[first], group_key="a")
    call(session, "get_message", **common, message_id=waits)
    call(session, "queue_stats", **common)
    call(session, "health")
    rows = dequeue(session, queue, 2)
    for routine, row in zip(("complete", "fail_now"), rows, strict=True):
        call(
            session, routine, **common, claim_id=row.claim_id, message_ids=[row.message_id]
        )  # fmt: skip
    call(session, "archive", **common)
    call(session, "cancel", **common, message_ids=[second, waits])
    [named] = enqueue(session, queue, "named", priority=0)
    enqueue(session, queue, "purged", predecessor_ids=[named])
    call(session, "purge_queue", **common, max_messages=1)
    call(session, "complete", **common, claim_id=dequeue_one(session, queue).claim_id)


def of_exchange(session: Connection, queue: str) -> None:
    """Complete and dequeue in one call, with a stale message."""
    common = {"queue_name": queue}
    first, _ = enqueue(session, queue, "first", "second", priority=0)
    claim = dequeue_one(session, queue).claim_id
    *_, row = call(
        session, "complete_and_dequeue", **common, claim_id=claim, message_ids=[first, 0]
    )
    call(session, "complete", **common, claim_id=row.claim_id)


def every_routine(session: Connection, queue: str) -> None:
    """Call every routine that works on messages, with work for each."""
    common = {"queue_name": queue}
    call(session, "alter_queue", **common, archive_days=1)
    ids = enqueue(session, queue, *"123456")
    enqueue(session, queue, "key", dedup_key="key")
    enqueue(session, queue, "key", dedup_key="key")
    enqueue(session, queue, "late", delay_seconds=1000)
    of_groups(session, queue)
    of_limits(session, queue)
    of_predecessors(session, queue)
    of_exchange(session, queue)
    call(session, "peek", **common)
    for finish in ("release", "retry_later", "fail_now", "complete"):
        claim = dequeue(session, queue, 2)[0].claim_id
        call(session, "extend_lease", **common, claim_id=claim)
        call(session, finish, **common, claim_id=claim)
    call(session, "list_dead", **common)
    call(session, "list_dead", **common, before_message_id=2**62, message_type="x")
    call(session, "discard_dead", **common, message_type="x")
    call(session, "list_claims", **common)
    call(session, "list_delayed", **common)
    call(session, "find_message", **common, dedup_key="key")
    call(session, "reset", **common)
    make_dead(session, queue, "dead")
    call(session, "reset", **common, message_ids=ids)
    make_dead(session, queue, "dead")
    call(session, "discard_dead", **common)
    call(session, "cancel", **common, message_ids=ids[3:])
    call(session, "get_message", **common, message_id=ids[0])
    expire_claim(session, dequeue_one(session, queue).claim_id)
    call(session, "reap", **common)
    pass_seconds(session, queue, 2 * 86_400)
    for routine in ("promote", "archive", "maintain", "purge_archive", "queue_stats"):
        call(session, routine, **common)
    call_one(session, "dequeue_wait", **common, wait_seconds=0)
    call(session, "purge_queue", **common, include_dead=True, max_messages=10)


@pytest.mark.pitfall("oracle 1")
@pytest.mark.parametrize("size", [0, LARGE])
def test_statements_use_index_ranges_without_sorts(
    server: OracleServer, connection: Connection, queue: str, size: int
) -> None:
    fill(connection, queue, size)
    fill(connection, queue, size, delay_seconds=3600)
    every_routine(connection, queue)
    found = {plan: list(plan.faults()) for plan in plans(server, connection)}
    assert len(found) > 30
    wrong = [f"{faults}\n{plan.shown}" for plan, faults in found.items() if faults]
    assert not wrong, "\n\n".join(wrong)


def locking(server: OracleServer, connection: Connection, routine: str) -> list[Plan]:
    """Return the plans of the statement by which a routine locks rows."""
    words = (LOCKING[routine][0], "order by", "for update skip locked")
    return [plan for plan in plans(server, connection) if all(word in plan.text for word in words)]


@pytest.mark.pitfall("oracle 1")
@pytest.mark.promise("P05", "P06", "P13")
@pytest.mark.parametrize("routine", LOCKING)
def test_rows_are_locked_in_index_order_without_sorts(
    server: OracleServer, connection: Connection, queue: str, routine: str
) -> None:
    every_routine(connection, queue)
    _, index, keys = LOCKING[routine]
    found = locking(server, connection, routine)
    assert found
    for plan in found:
        assert "FOR UPDATE" in plan.operations, plan.shown
        assert "SORT" not in plan.operations, plan.shown
        (scan,) = (step for step in plan.steps if step.operation == "INDEX")
        assert (scan.options, scan.table) == ("RANGE SCAN", index), plan.shown
        assert all(f'"{key}"' in scan.access for key in keys), plan.shown


@pytest.mark.pitfall("oracle 8")
def test_plan_made_on_an_empty_queue_is_kept(
    server: OracleServer, connection: Connection, connect: Connect, queue: str
) -> None:
    first = connect()
    enqueue(first, queue, "a")
    dequeue_one(first, queue)
    before = {plan.text: plan.steps for plan in locking(server, connection, "dequeue_fast")}
    fill(connection, queue, LARGE)
    for session in (first, connect()):
        assert len(dequeue(session, queue, 50)) == 50
    for plan in locking(server, connection, "dequeue_fast"):
        assert before.get(plan.text, plan.steps) == plan.steps, plan.shown


@pytest.mark.pitfall("oracle 8")
def test_statistics_of_busy_tables_are_locked(connection: Connection) -> None:
    rows = dialect_of(connection).execute(
        connection,
        "select s.table_name, s.stattype_locked, s.num_rows from user_tab_statistics s"
        " where s.table_name in ('ROWQ_MESSAGE', 'ROWQ_READY', 'ROWQ_DELAYED', 'ROWQ_CLAIM',"
        " 'ROWQ_LEASED', 'ROWQ_DEAD', 'ROWQ_DEDUP', 'ROWQ_FINISHED', 'ROWQ_GROUP_WAITING',"
        " 'ROWQ_GROUP_SLOT', 'ROWQ_DEFERRED', 'ROWQ_STARTED', 'ROWQ_EXPIRY',"
        " 'ROWQ_RESULT', 'ROWQ_HISTORY')",
    )
    found = {table: (locked, count) for table, locked, count in rows.fetchall()}
    assert len(found) == 15
    assert {locked for locked, _ in found.values()} == {"ALL"}
    assert all(count >= 10_000 for _, count in found.values())


@pytest.mark.pitfall("oracle 19")
def test_indexes_of_busy_tables_have_statistics(
    connection: Connection,
) -> None:
    indexes = dialect_of(connection).execute(
        connection,
        "select i.index_name, i.num_rows from user_ind_statistics i"
        " join user_tab_statistics s on s.table_name = i.table_name"
        " where s.stattype_locked = 'ALL' and i.index_name not like 'SYS%'",
    )
    found = dict(indexes.fetchall())
    assert {"ROWQ_RESULT_FINISHED_IX", "ROWQ_HISTORY_MESSAGE_IX", "ROWQ_READY_PK"} <= found.keys()
    assert {name for name, count in found.items() if (count or 0) < 10_000} == set()


def cost(server: OracleServer, connection: Connection, queue: str) -> int:
    """Return the fewest blocks of a dequeue."""
    found = []
    for _ in range(5):
        before = reads(server, connection)
        assert len(dequeue(connection, queue, 10)) == 10
        found.append(reads(server, connection) - before)
    return min(found)


def test_dequeue_costs_the_same_beside_a_large_backlog(
    server: OracleServer, connection: Connection, queue: str
) -> None:
    fill(connection, queue, 5000)
    small = cost(server, connection, queue)
    fill(connection, queue, LARGE)
    fill(connection, queue, LARGE, delay_seconds=3600)
    # A large index may have one more level, which a call reads a few times.
    assert cost(server, connection, queue) <= small * 1.5 + 30


@pytest.mark.pitfall("oracle 19")
def test_cancel_reads_few_blocks_beside_a_large_backlog(
    server: OracleServer, connection: Connection, queue: str
) -> None:
    fill(connection, queue, LARGE)
    fill(connection, queue, LARGE, delay_seconds=3600)
    found = []
    for _ in range(5):
        ids = enqueue(connection, queue, "x")
        before = reads(server, connection)
        assert [
            row.outcome for row in call(connection, "cancel", queue_name=queue, message_ids=ids)
        ] == ["cancelled"]
        found.append(reads(server, connection) - before)
    # The tables have hundreds of blocks each; a call reads a few index paths.
    assert min(found) < 100


@contextmanager
def snapshot(connection: Connection) -> Iterator[None]:
    """Hold a snapshot of all rows."""
    dialect = dialect_of(connection)
    dialect.begin(connection, "serializable")
    dialect.execute(connection, "select count(*) from rowq_meta")
    yield
    dialect.rollback(connection)


@pytest.mark.pitfall("oracle 2")
def test_dequeue_costs_the_same_behind_emptied_blocks(
    server: OracleServer, connection: Connection, connect: Connect, queue: str
) -> None:
    fill(connection, queue, LARGE)
    fresh = cost(server, connection, queue)
    with snapshot(connect()):
        for _ in range(15):
            claim = dequeue(connection, queue, 1000)[0].claim_id
            call(connection, "complete", queue_name=queue, claim_id=claim)
        pass_seconds(connection, queue, 2)
        call_one(connection, "maintain", queue_name=queue)
        # The 15,000 rows fill some 60 blocks of the index; the floor spares them.
        assert cost(server, connection, queue) <= fresh * 1.5 + 30


@pytest.mark.pitfall("oracle 2")
def test_emptied_blocks_can_be_reclaimed(
    server: OracleServer, connection: Connection, queue: str
) -> None:
    fill(connection, queue, 5000)
    fresh = cost(server, connection, queue)
    fill(connection, queue, LARGE)
    while rows := dequeue(connection, queue, 1000):
        call(connection, "complete", queue_name=queue, claim_id=rows[0].claim_id)
    dialect_of(connection).execute(connection, "alter index rowq_ready_pk coalesce")
    fill(connection, queue, 5000)
    assert cost(server, connection, queue) <= fresh * 1.5 + 30
