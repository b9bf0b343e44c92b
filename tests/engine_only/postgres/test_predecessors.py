"""Predecessors: plans, number of statements, buffers and rows written."""

import random

import pytest

from rowq import NewMessage
from tests.engine_only.postgres.conftest import Open
from tests.engine_only.postgres.test_groups import dequeue_cost_of, statements, tables
from tests.engine_only.postgres.test_plans import FLOOR_LAG, Watched, faults
from tests.engines.base import Connection, Server, wait_until
from tests.helpers.calls import call, call_one, dequeue, enqueue, transaction
from tests.interleavings.conftest import opening
from tests.stored_times import pass_seconds, tick

TABLES = {"blocked", "successor", "deferred"}


def cycle(connection: Connection, other: Connection) -> None:
    """Run every statement about predecessors."""
    steps = [{"priority": 0}, {"predecessor_positions": [1]}, {"predecessor_positions": [1, 2]}]
    call(connection, "enqueue_batch", queue_name="hot", messages=steps)
    for dead in ("hold", "continue", "fail"):
        [first] = enqueue(connection, "hot", "first", priority=0)
        [second] = enqueue(
            connection, "hot", "second", priority=0, predecessor_ids=[first]
        )  # fmt: skip
        enqueue(
            connection, "hot", "third", predecessor_ids=[first, second], on_predecessor_dead=dead
        )
        enqueue(connection, "hot", "late", predecessor_ids=[second], delay_seconds=1000)
        enqueue(connection, "hot", "in a group", predecessor_ids=[first], group_key="a")
        for routine in ("complete", "fail_now", "complete", "complete"):
            for row in dequeue(connection, "hot", 1):
                call(connection, routine, queue_name="hot", claim_id=row.claim_id)
    [first] = enqueue(connection, "hot", "held", priority=0)
    [row] = dequeue(connection, "hot", 1)
    with transaction(other):
        enqueue(other, "hot", "coming", predecessor_ids=[first], on_predecessor_dead="continue")
        call(connection, "fail_now", queue_name="hot", claim_id=row.claim_id)
    tick(other, "hot")
    call(connection, "maintain", queue_name="hot")


def fill(connection: Connection) -> None:
    """Enqueue 50,000 successors of 10,000 messages, and 10,000 of one."""
    for _ in range(5):
        rows = call(connection, "enqueue_batch", queue_name="hot", messages=[{}] * 2000)
        messages = [{"predecessor_ids": [row.message_id]} for row in rows] * 5
        call(connection, "enqueue_batch", queue_name="hot", messages=messages)
    [one] = enqueue(connection, "hot", "one")
    messages = [{"predecessor_ids": [one]}] * 10000
    call(connection, "enqueue_batch", queue_name="hot", messages=messages)


@pytest.mark.promise("P13")
def test_predecessors_use_indexes_with_plans_of_empty_tables(
    owner: Connection, open_owner: Open
) -> None:
    call(owner, "create_queue", queue_name="hot")
    early, other = Watched(open_owner()), open_owner()
    for _ in range(7):  # The first 5 calls may get a custom plan each.
        early.run(lambda own: cycle(own, other))
    fill(owner)
    assert faults(early.run(lambda own: cycle(own, other))) == set(), "before analyze"
    owner.execute("analyze")
    plans = early.run(lambda own: cycle(own, other))
    assert set(map(str, tables(plans))) >= TABLES
    assert faults(plans) == set(), "after analyze"
    late = Watched(open_owner())
    assert faults(late.run(lambda own: cycle(own, other))) == set(), "in a new session"


def cost_of_complete(watched: Watched, successors: int) -> int:
    """Return the number of statements to complete a message with successors."""
    own = watched.connection
    [first] = enqueue(own, "hot", "first", priority=0)
    for _ in range(successors):
        enqueue(own, "hot", "next", predecessor_ids=[first], priority=0)
    claim = dequeue(own, "hot", 1)[0].claim_id
    found = statements(
        watched.run(lambda own: call(own, "complete", queue_name="hot", claim_id=claim))
    )
    if rest := dequeue(own, "hot", 100):
        call(own, "complete", queue_name="hot", claim_id=rest[0].claim_id)
    return found


@pytest.mark.parametrize(("successors", "most"), [(1, 4), (10, 22)])
def test_end_of_a_predecessor_takes_few_statements(
    owner: Connection, successors: int, most: int
) -> None:
    call(owner, "create_queue", queue_name="hot")
    watched = Watched(owner)
    for _ in range(3):
        cost_of_complete(watched, successors)
    plain = cost_of_complete(watched, 0)
    assert 0 < cost_of_complete(watched, successors) - plain <= most


def test_message_with_10000_predecessors_is_rarely_updated(
    owner: Connection,
) -> None:
    call(owner, "create_queue", queue_name="hot", lease_seconds=3600)
    rows = call(owner, "enqueue_batch", queue_name="hot", messages=[{}] * 10000)
    ids = [row.message_id for row in rows]
    enqueue(owner, "hot", "last", predecessor_ids=ids)
    claims = [dequeue(owner, "hot", 1000)[0].claim_id for _ in range(10)]
    random.Random(5).shuffle(ids)
    claim_of = {
        message_id: claim_id
        for claim_id, held in owner.execute("select claim_id, message_ids from rowq.claim")
        for message_id in held
    }
    assert set(claim_of.values()) == set(claims)
    for message_id in ids:
        call(
            owner, "complete", queue_name="hot", claim_id=claim_of[message_id],
            message_ids=[message_id],
        )  # fmt: skip
    [row] = dequeue(owner, "hot", 10)
    assert row.body == "last"
    owner.execute("select pg_stat_force_next_flush()")
    [updates] = owner.execute(
        "select n_tup_upd from pg_stat_user_tables where relname = 'blocked'"
    ).fetchone()
    assert updates <= 40, "about ln(10000), the number of new maxima in a random order"


@pytest.mark.slow("an old snapshot beside many rows")
@pytest.mark.promise("P13")
def test_held_snapshot_does_not_raise_the_cost_of_chains(
    owner: Connection, open_owner: Open
) -> None:
    call(owner, "create_queue", queue_name="hot")
    chains, length = 200, 40
    for _ in range(chains):
        steps = [{"predecessor_positions": [step]} if step else {} for step in range(length)]
        call(owner, "enqueue_batch", queue_name="hot", messages=steps)
    session, holder = open_owner(), open_owner()
    for _ in range(2):
        dequeue_cost_of(session)
    holder.execute("begin isolation level repeatable read")
    holder.execute("select 1")
    before = dequeue_cost_of(session)
    for turn in range(2 * length - 4):
        rows = dequeue(owner, "hot", chains // 2)
        call(owner, "complete", queue_name="hot", claim_id=rows[0].claim_id)
        if turn % 10 == 0:
            tick(owner, "hot")
            call_one(owner, "maintain", queue_name="hot")

    def is_as_cheap() -> bool:
        tick(owner, "hot")
        call_one(owner, "maintain", queue_name="hot")
        return dequeue_cost_of(session) <= 1.5 * before + FLOOR_LAG

    # A writing transaction keeps floors in place, and autovacuum's analyze is one.
    wait_until(is_as_cheap, f"dequeue costs little more than {before} buffers", 30)
    holder.execute("rollback")


@pytest.mark.promise("P06", "P21", "P26")
def test_batch_waiting_for_a_group_has_locked_no_predecessor(
    server: Server, database_url: str, queue: str
) -> None:
    with opening(server, database_url) as sessions:
        worker, beside, batch = sessions(3)
        first = worker.queue.enqueue(queue, "first").message_id
        claim = worker.queue.dequeue_fast(queue)[0].claim_id
        worker.begin().queue.enqueue(queue, "next step", group_key="b")
        beside.begin().queue.enqueue(queue, "a1", group_key="a")
        second = beside.start(lambda own: own.enqueue(queue, "b2", group_key="b"))
        second.waits_for(worker)
        third = batch.start(
            lambda own: own.enqueue_batch(
                queue,
                [
                    NewMessage(data="after", predecessor_ids=[first]),
                    NewMessage(data="a2", group_key="a"),
                ],
            )
        )
        third.waits_for(beside)
        worker.queue.complete(queue, claim)
        worker.commit()
        second.result()
        beside.commit()
        third.result()
        claimed = worker.queue.dequeue_fast(queue, 10)
        assert sorted(message.data for message in claimed) == ["a1", "after", "next step"]


@pytest.mark.promise("P21", "P25")
@pytest.mark.parametrize("archive_days", [0, 1])
def test_message_with_ended_predecessor_keeps_its_batch_position(
    connection: Connection, queue: str, archive_days: int
) -> None:
    call(connection, "alter_queue", queue_name=queue, archive_days=archive_days)
    [first] = enqueue(connection, queue, "first")
    [row] = dequeue(connection, queue, 1)
    call(connection, "complete", queue_name=queue, claim_id=row.claim_id)
    messages = [
        {"body": "a1", "group_key": "a", "predecessor_ids": [first]},
        {"body": "a2", "group_key": "a"},
    ]
    call(connection, "enqueue_batch", queue_name=queue, messages=messages)
    assert [row.body for row in dequeue(connection, queue, 10)] == ["a1"]


@pytest.mark.promise("P19", "P26")
def test_first_producer_of_a_successor_delays_only_the_archive(
    owner: Connection, open_owner: Open
) -> None:
    call(owner, "create_queue", queue_name="hot", archive_days=1)
    [first] = enqueue(owner, "hot", "first")
    claim = dequeue(owner, "hot", 1)[0].claim_id
    enqueue(owner, "hot", "delayed", delay_seconds=1)
    pass_seconds(owner, "hot", 2)
    producer = open_owner()
    with transaction(producer):
        enqueue(producer, "hot", "second", predecessor_ids=[first])
        call(owner, "complete", queue_name="hot", claim_id=claim)
        row = call_one(owner, "maintain", queue_name="hot")
        assert (row.promoted, row.archived) == (1, 0)
    assert call_one(owner, "maintain", queue_name="hot").archived == 1
    assert [row.body for row in dequeue(owner, "hot", 10)] == ["second", "delayed"]
