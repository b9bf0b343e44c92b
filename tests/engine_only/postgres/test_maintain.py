"""Queues at rest: maintain skips them by one statement, and misses no work.

A queue is at rest while its messages wait and nothing is due. If the check is too generous, work
waits for the next sweep.
"""

import time
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from tests.engine_only.postgres.conftest import Open
from tests.engine_only.postgres.test_found_by_review import hold_a_snapshot
from tests.engine_only.postgres.test_plans import Watched, faults, nodes
from tests.engines.base import Connection, wait_until
from tests.helpers.calls import Row, bodies, call, dequeue, enqueue, transaction
from tests.helpers.queues import CheckedQueue, new_queue

each_way = pytest.mark.parametrize("others", [0, 100])
"""How many other queues are checked: with few, each lane is searched; with many, read in order."""


SETTINGS = ("enable_seqscan = off", "enable_bitmapscan = off")
"""Settings of maintain that choose its plans."""


def find(queue: CheckedQueue, others: int = 0) -> tuple[bool, bool]:
    """Return whether a queue needs anything, and whether it only needs a sweep."""
    with queue.connection.transaction():
        for setting in SETTINGS:
            queue.connection.execute(f"set local {setting}".encode())
        row = queue.connection.execute(
            """
            select q.queue_id = any (b.o_busy || b.o_resting), q.queue_id = any (b.o_resting)
            from rowq.queue q
            cross join lateral rowq.internal_busy_queues(q.queue_id || array_fill(0, array[%s])) b
            where q.queue_name = %s
            """,
            [others, queue.name],
        ).fetchone()
    return bool(row[0]), bool(row[1])


def is_busy(queue: CheckedQueue, others: int = 0) -> bool:
    """Return whether a queue is found busy each time; once may be a slow machine."""
    return all(find(queue, others)[0] for _ in range(5))


def rest(queue: CheckedQueue) -> None:
    """Call maintain until it has nothing to do."""

    def is_at_rest() -> bool:
        maintain(queue)
        return not find(queue)[0]

    wait_until(is_at_rest, "the queue is at rest", 30)


def maintain(queue: CheckedQueue) -> Row:
    """Call maintain without a name; return the row of a queue."""
    [row] = [row for row in call(queue.connection, "maintain") if row.queue_name == queue.name]
    return row


@pytest.fixture
def resting(own_queue: CheckedQueue) -> CheckedQueue:
    """Return a queue at rest in which messages wait."""
    own_queue.call("enqueue_batch", messages=[{"body": "done"}] * 50)
    own_queue.call("complete", claim_id=own_queue.dequeue(50)[0].claim_id)
    own_queue.enqueue("waits", "waits")
    rest(own_queue)
    return own_queue


@each_way
@pytest.mark.promise("P14")
def test_maintain_finds_late_message_below_those_that_wait(
    open_owner: Open, own_queue: CheckedQueue, others: int
) -> None:
    late = open_owner()
    own_queue.enqueue("opens the lane")
    own_queue.finish_one()
    rest(own_queue)
    with transaction(late):
        own_queue.via(late).enqueue("late")
        own_queue.enqueue("passes by")
        seq = own_queue.connection.execute("select max(seq) from rowq.ready").fetchone()[0]
        own_queue.finish_one()
        own_queue.enqueue("waits")
        own_queue.connection.execute(
            """
            select rowq.internal_move_floor(q.queue_id, 11::smallint, true, p_cap => %s)
            from rowq.queue q
            """,
            [seq + 1],
        )
        wait_until(lambda: not find(own_queue, others)[0], "the queue is at rest")
    assert is_busy(own_queue, others)
    maintain(own_queue)
    assert bodies(own_queue.dequeue(10)) == ["late", "waits"]


def test_maintain_finds_work_that_becomes_due_in_queues_at_rest(owner: Connection) -> None:
    promoting = new_queue(owner, "promoting")
    promoting.enqueue("delayed", delay_seconds=2)
    expiring = new_queue(owner, "expiring")
    expiring.enqueue("expires", expire_seconds=2)
    scheduling = new_queue(owner, "scheduling")
    scheduling.call("create_schedule", schedule_name="a", interval_seconds=2)
    pausing = new_queue(owner, "pausing", group_pause_seconds=2)
    pausing.enqueue("first", "second", group_key="g")
    pausing.finish_one()
    keeping = new_queue(owner, "keeping", result_seconds=1)
    keeping.enqueue("purged")
    keeping.finish_one()
    time.sleep(1.1)
    assert maintain(keeping).purged == 1
    keeping.enqueue("kept")
    keeping.finish_one()
    queues = (promoting, expiring, scheduling, pausing, keeping)
    for queue in queues:
        queue.enqueue("waits", priority=9)
        rest(queue)
    time.sleep(2.1)
    for queue in queues:
        assert is_busy(queue), queue.name
        assert is_busy(queue, others=100), queue.name
    done = {row.queue_name: row for row in call(owner, "maintain")}
    assert done["promoting"].promoted == 1
    assert done["expiring"].expired == 1
    assert done["keeping"].purged == 1
    assert scheduling.counts()[0] == 2
    assert "second" in bodies(pausing.dequeue(10))


@each_way
@pytest.mark.promise("P09", "P19")
def test_queue_with_claims_or_finished_messages_is_busy(resting: CheckedQueue, others: int) -> None:
    row = resting.dequeue_one()
    assert is_busy(resting, others)
    resting.call("alter_queue", archive_days=1)
    resting.call("complete", claim_id=row.claim_id)
    rows = "select count(*) from rowq.claim union all select count(*) from rowq.finished"
    assert resting.connection.execute(rows).fetchall() == [(0,), (1,)]
    assert is_busy(resting, others)
    assert maintain(resting).archived == 1


@each_way
@pytest.mark.promise("P19")
def test_queue_with_delivery_starts_is_busy(owner: Connection, others: int) -> None:
    limited = new_queue(owner, "limited", rate_limit=10, rate_seconds=3600)
    limited.enqueue("done", "waits")
    limited.finish_one()
    for _ in range(4):
        maintain(limited)
        assert is_busy(limited, others)


UNFIT = {
    "the floor is far below the first message": (
        "update rowq.floor set start_seq = start_seq - 500, safe_seq = safe_seq - 500"
        " where lane = 11"
    ),
    "the safe start is far below the floor": (
        "update rowq.floor set safe_seq = safe_seq - 500 where lane = 11"
    ),
    "the sequence of messages was set back": "select setval('rowq.message_seq', 1)",
    "claims have numbers from before a reset": (
        "update rowq.floor set start_seq = start_seq + 1000 where lane = -1"
    ),
    "finished messages have numbers from before a reset": (
        "update rowq.floor set pending_seq = pending_seq + 1000 where lane = -3"
    ),
    "the clock was set back": (
        "update rowq.floor set pending_seq = pending_seq + 1e10 where lane = -2"
    ),
    "a lane backs off": "update rowq.floor set rescan_at = now() + interval '1 minute'",
    "the floor comes from another server": "update rowq.floor set pending_xid = '5000000000'",
    "claims have no floor": "delete from rowq.floor where lane = -1",
    "delayed messages have no floor": "delete from rowq.floor where lane = -2",
    "finished messages have no floor": "delete from rowq.floor where lane = -3",
}


@each_way
@pytest.mark.pitfall("postgres 3")
@pytest.mark.promise("P14")
@pytest.mark.parametrize("why", UNFIT)
def test_queue_with_an_unfit_floor_is_busy(resting: CheckedQueue, why: str, others: int) -> None:
    resting.connection.execute("select setval('rowq.message_seq', 2000)")
    resting.enqueue("raises the numbers")
    resting.connection.execute(
        "update rowq.floor set start_seq = f.first, safe_seq = f.first"
        " from (select min(seq) as first from rowq.ready) f where lane = 11"
    )
    wait_until(lambda: not find(resting, others)[0], "the queue is at rest")
    resting.connection.execute(UNFIT[why].encode())
    assert is_busy(resting, others)


@each_way
@pytest.mark.promise("P13")
def test_queue_with_many_dead_rows_is_busy_until_its_floor_moves(
    open_owner: Open, resting: CheckedQueue, others: int
) -> None:
    hold_a_snapshot(open_owner())
    resting.connection.execute(
        """
        insert into rowq.claim (queue_id, lease_until, message_ids, lanes, attempts)
        select q.queue_id, now(), '{}', '{}', '{}'
        from rowq.queue q cross join generate_series(1, 20000)
        """
    )
    resting.connection.execute("delete from rowq.claim")
    assert is_busy(resting, others)
    rest(resting)


@each_way
def test_sweep_is_due_at_its_time_or_if_that_is_far_ahead(
    resting: CheckedQueue, others: int
) -> None:
    for at in ("now()", "now() + interval '1 year'"):
        resting.connection.execute(f"update rowq.floor set sweep_at = {at}".encode())
        assert is_busy(resting, others)
        assert find(resting, others) == (True, True)
        rest(resting)
    resting.connection.execute("update rowq.floor set sweep_at = now()")
    resting.dequeue_one()
    assert find(resting, others) == (True, False)


def sweeps(owner: Connection) -> Iterator[tuple[str, timedelta]]:
    """Yield each queue's name and how far ahead its next sweep is; one for all lanes."""
    rows = owner.execute(
        """
        select q.queue_name, array_agg(distinct f.sweep_at), clock_timestamp()
        from rowq.floor f join rowq.queue q using (queue_id)
        group by q.queue_name
        """
    ).fetchall()
    for name, times, now in rows:
        next_sweep: datetime
        (next_sweep,) = times
        yield name, next_sweep - now


def test_maintain_sweeps_few_queues_per_call(owner: Connection) -> None:
    for number in range(50):
        call(owner, "create_queue", queue_name=f"q{number}")
    for _ in range(3):
        call(owner, "maintain")
    owner.execute("update rowq.floor set sweep_at = now()")

    def swept() -> int:
        query = "select count(distinct queue_id) from rowq.floor where sweep_at > now()"
        return int(owner.execute(query).fetchone()[0])

    call(owner, "maintain")
    # A queue whose check is slowed down by other load is maintained as well.
    assert 20 <= swept() <= 40
    for _ in range(2):
        call(owner, "maintain")
    assert swept() == 50


def test_sweeps_of_many_queues_are_spread_and_rare_at_rest(owner: Connection) -> None:
    queues = [new_queue(owner, f"q{number}") for number in range(40)]
    for queue in queues:
        queue.enqueue("waits")
    for _ in range(3):
        call(owner, "maintain")
    ahead = dict(sweeps(owner))
    # The time of a few may have come since.
    assert sum(time <= timedelta(minutes=1) for time in ahead.values()) >= 35
    assert len({round(time.total_seconds()) for time in ahead.values()}) >= 30
    owner.execute("update rowq.floor set sweep_at = now()")
    for _ in range(3):
        call(owner, "maintain")
    ahead = dict(sweeps(owner))
    assert max(ahead.values()) <= timedelta(minutes=10)
    assert min(ahead.values()) < timedelta(minutes=2)
    assert max(ahead.values()) > timedelta(minutes=8)
    owner.execute("update rowq.floor set sweep_at = now()")
    queues[0].dequeue_one()
    call(owner, "maintain")
    assert dict(sweeps(owner))["q0"] <= timedelta(minutes=1), "it was not at rest"


def test_archive_is_swept_again_soon_while_it_has_more_to_purge(
    owner: Connection, resting: CheckedQueue
) -> None:
    resting.call("alter_queue", archive_days=1)
    for _ in range(2):
        resting.finish_one()
    rest(resting)
    resting.call("alter_queue", archive_days=0)
    owner.execute(
        "insert into rowq.archive select a.queue_id, a.lane, a.attempt, n, a.enqueued_at,"
        " a.finished_at, a.state from rowq.archive a, generate_series(1000, 1014) n"
        " where message_id = (select min(message_id) from rowq.archive)"
    )

    def purge() -> tuple[int, timedelta]:
        owner.execute("update rowq.floor set sweep_at = now()")
        (row,) = call(owner, "maintain", batch_size=1)
        (ahead,) = owner.execute(
            "select sweep_at - clock_timestamp() from rowq.floor where lane = -3"
            " order by generation limit 1"
        ).fetchone()
        return row.purged, ahead

    purged, ahead = purge()
    assert purged == 10
    assert ahead <= timedelta(minutes=1)
    purged, _ = purge()
    assert purged == 7


@pytest.mark.promise("P13")
def test_maintain_costs_the_same_with_dead_floors(owner: Connection, open_owner: Open) -> None:
    queues = [new_queue(owner, f"q{number}") for number in range(20)]
    for queue in queues:
        queue.enqueue("waits")
    session = open_owner()

    def cost() -> int:
        """Return the fewest buffers of five calls."""
        costs: list[int] = []
        for _ in range(5):
            [plans] = session.execute(
                "explain (analyze, buffers, timing off, format json) select rowq.maintain()"
            ).fetchone()
            top = plans[0]["Plan"]
            costs.append(top["Shared Hit Blocks"] + top["Shared Read Blocks"])
        return min(costs)

    for queue in queues:
        rest(queue)
    hold_a_snapshot(open_owner())
    before = cost()
    owner.execute("select setval('rowq.message_seq', 1000000)")
    owner.execute(
        """
        do $$
        begin
            for v_number in 1..5000 loop
                perform rowq.internal_move_floor(
                    (select q.queue_id from rowq.queue q where q.queue_name = 'q7'),
                    10::smallint, true, p_cap => v_number
                );
            end loop;
        end;
        $$
        """
    )
    rest(queues[7])
    assert cost() <= 2 * before, before


@pytest.mark.promise("P13", "P19")
@pytest.mark.parametrize("count", [2, 50])
def test_check_for_work_reads_indexes_of_its_queues_only(
    owner: Connection, open_owner: Open, count: int
) -> None:
    for number in range(count):
        queue = f"q{number}"
        call(owner, "create_queue", queue_name=queue)
        enqueue(owner, queue, "x", delay_seconds=3600)
        enqueue(owner, queue, "x", expire_seconds=3600)
        enqueue(owner, queue, *"abc", group_key="g")
        call(owner, "complete", queue_name=queue, claim_id=dequeue(owner, queue)[0].claim_id)
    watched = Watched(open_owner())
    for _ in range(2):
        [plan] = [
            plan
            for plan in watched.run(lambda session: call(session, "maintain"))
            if "recursive search" in plan["Query Text"]
        ]
        assert faults([plan]) == set()
        assert not [node for node in nodes(plan["Plan"]) if "Sort" in node["Node Type"]]
        owner.execute("analyze")
