"""The floor of a lane: late committers, idle writers, sequences that jump.

The floor may pass a producer that has a number but has not committed: the next maintain must find
its message, also if the sequence jumps.
"""

import psycopg
import pytest

from tests.engine_only.postgres.conftest import Open
from tests.engines.base import Connection
from tests.helpers.calls import Row, bodies, call, rolled_back, transaction
from tests.helpers.queues import CheckedQueue

pytestmark = [pytest.mark.promise("P14"), pytest.mark.pitfall("postgres 2")]

AHEAD = 5000
"""More than the step for which a floor gets a new row."""


def maintain(queue: CheckedQueue) -> Row:
    """Run maintain as if a second had passed."""
    queue.pass_seconds(1)
    row = queue.call_one("maintain")
    assert row.elected
    return row


def last_value(connection: Connection) -> int:
    value: int = connection.execute("select last_value from rowq.message_seq").fetchone()[0]
    return value


def set_sequence(connection: Connection, value: int, sequence: str = "message_seq") -> None:
    connection.execute("select setval(%s, %s)", [f"rowq.{sequence}", value])


def drain(queue: CheckedQueue) -> list[str | None]:
    """Dequeue and complete all messages."""
    found = []
    while rows := queue.dequeue(250):
        found += bodies(rows)
        queue.call("complete", claim_id=rows[0].claim_id)
    return found


def floor_of(queue: CheckedQueue, lane: int) -> int:
    row = queue.connection.execute(
        """
        select f.start_seq from rowq.floor f join rowq.queue q using (queue_id)
        where q.queue_name = %s and f.lane = %s order by f.generation limit 1
        """,
        [queue.name, lane],
    ).fetchone()
    return row[0] if row else 0


def raise_floor(queue: CheckedQueue) -> int:
    """Move the floor of priority 5 by many messages; return it."""
    for _ in range(2):
        queue.call("enqueue_batch", messages=[{}] * 1500)
        drain(queue)
        maintain(queue)
    floor = floor_of(queue, 11)
    assert floor > last_value(queue.connection) - 1500
    return floor


def test_late_message_below_the_floor_comes_after_maintain(
    open_owner: Open, own_queue: CheckedQueue
) -> None:
    late = open_owner()
    own_queue.enqueue("opens the lane")
    drain(own_queue)
    with transaction(late):
        [late_id] = own_queue.via(late).enqueue("late")
        assert raise_floor(own_queue) > late_id
    assert own_queue.dequeue() == []
    maintain(own_queue)
    assert bodies(own_queue.dequeue(10)) == ["late"]


def test_late_message_is_delivered_after_many_maintains(
    open_owner: Open, own_queue: CheckedQueue
) -> None:
    late = open_owner()
    own_queue.enqueue("opens the lane")
    drain(own_queue)
    with transaction(late):
        own_queue.via(late).enqueue("late")
        for _ in range(4):
            raise_floor(own_queue)
            own_queue.pass_seconds(100)
    maintain(own_queue)
    assert bodies(own_queue.dequeue(10)) == ["late"]


def test_late_message_is_delivered_after_other_writers(
    open_owner: Open, own_queue: CheckedQueue
) -> None:
    first, second = open_owner(), open_owner()
    own_queue.enqueue("opens the lane")
    drain(own_queue)
    with transaction(first):
        own_queue.via(first).enqueue("first")
        raise_floor(own_queue)
        with transaction(second):
            own_queue.via(second).enqueue("second")
            raise_floor(own_queue)
        maintain(own_queue)
        assert bodies(own_queue.dequeue(10)) == ["second"]
        raise_floor(own_queue)
    maintain(own_queue)
    assert bodies(own_queue.dequeue(10)) == ["first"]


def test_late_first_message_of_a_lane_is_delivered(
    owner: Connection, open_owner: Open, own_queue: CheckedQueue
) -> None:
    late = open_owner()
    with transaction(late):
        own_queue.via(late).enqueue("late", priority=0)
        own_queue.enqueue("early", priority=0)
        assert drain(own_queue) == ["early"]
        set_sequence(owner, last_value(owner) + AHEAD)
        for _ in range(3):
            maintain(own_queue)
    maintain(own_queue)
    assert drain(own_queue) == ["late"]


@pytest.mark.promise("P13", "P14")
def test_idle_writer_elsewhere_does_not_stop_the_floor(
    open_owner: Open, own_queue: CheckedQueue
) -> None:
    idle = open_owner()
    with transaction(idle):
        idle.execute("create temporary table t () on commit drop")
        idle.execute("select pg_current_xact_id()")
        first = raise_floor(own_queue)
        assert raise_floor(own_queue) > first + 1500
    assert raise_floor(own_queue) > first


@pytest.mark.promise("P13", "P14")
def test_safe_start_moves_once_the_idle_writer_has_ended(
    owner: Connection, open_owner: Open, own_queue: CheckedQueue
) -> None:
    def safe() -> int:
        row = owner.execute(
            "select safe_seq from rowq.floor where lane = 11 order by generation limit 1"
        ).fetchone()
        return int(row[0])

    own_queue.enqueue("keeps maintain from passing over an idle queue")
    own_queue.dequeue_one()
    idle = open_owner()
    with transaction(idle):
        idle.execute("select pg_current_xact_id()")
        raise_floor(own_queue)
        begin = last_value(owner)
        raise_floor(own_queue)
        raise_floor(own_queue)
        assert safe() <= begin
    for _ in range(3):
        own_queue.pass_seconds(1)
        raise_floor(own_queue)
    assert safe() > begin


@pytest.mark.promise("P09", "P14")
def test_late_claim_below_the_floor_is_reaped(
    owner: Connection, open_owner: Open, own_queue: CheckedQueue
) -> None:
    late = open_owner()
    own_queue.enqueue("late")
    with transaction(late):
        assert own_queue.via(late).dequeue_one().body == "late"
        value = owner.execute("select last_value from rowq.claim_seq").fetchone()[0]
        set_sequence(owner, value + AHEAD, "claim_seq")
        own_queue.enqueue("passes by")
        drain(own_queue)
        for _ in range(2):
            maintain(own_queue)
        assert floor_of(own_queue, -1) > value
    maintain(own_queue)
    own_queue.pass_seconds(100)
    assert maintain(own_queue).reaped == 1
    assert bodies(own_queue.dequeue(10)) == ["late"]


@pytest.mark.promise("P11", "P14")
def test_late_delayed_message_due_before_the_floor_is_delivered(
    open_owner: Open, own_queue: CheckedQueue
) -> None:
    late = open_owner()
    with transaction(late):
        own_queue.via(late).enqueue("late", delay_seconds=0.001)
        for _ in range(3):
            own_queue.enqueue("in time", delay_seconds=0.001)
            own_queue.pass_seconds(5)
            maintain(own_queue)
            assert drain(own_queue) == ["in time"]
    own_queue.pass_seconds(1)
    maintain(own_queue)
    maintain(own_queue)
    assert drain(own_queue) == ["late"]


@pytest.mark.promise("P07", "P14")
def test_floor_does_not_pass_a_message_of_an_open_dequeue(
    open_owner: Open, own_queue: CheckedQueue
) -> None:
    slow = open_owner()
    [message_id] = own_queue.enqueue("slow")
    with rolled_back(slow):
        assert own_queue.via(slow).dequeue_one().body == "slow"
        for _ in range(3):
            own_queue.call("enqueue_batch", messages=[{}] * 1500)
            drain(own_queue)
            maintain(own_queue)
        assert floor_of(own_queue, 11) <= message_id
    assert bodies(own_queue.dequeue(10)) == ["slow"]


@pytest.mark.pitfall("postgres 3")
def test_messages_below_floor_come_after_a_sequence_reset(
    owner: Connection, own_queue: CheckedQueue
) -> None:
    floor = raise_floor(own_queue)
    set_sequence(owner, 100)
    ids = own_queue.enqueue("a", "b", "c")
    assert max(ids) < floor
    maintain(own_queue)
    assert drain(own_queue) == ["a", "b", "c"]
    own_queue.enqueue("d")
    assert drain(own_queue) == ["d"]


def test_sequence_that_caught_up_after_a_reset_loses_no_message(
    owner: Connection, own_queue: CheckedQueue
) -> None:
    floor = raise_floor(own_queue)
    set_sequence(owner, 100)
    own_queue.enqueue("below")
    set_sequence(owner, floor + AHEAD)
    own_queue.enqueue("above")
    maintain(own_queue)
    own_queue.pass_seconds(61)  # A sweep runs once a minute.
    maintain(own_queue)
    assert sorted(body or "" for body in drain(own_queue)) == ["above", "below"]


@pytest.mark.pitfall("postgres 3")
@pytest.mark.parametrize("jump", [AHEAD, 10**12, 2**62])
def test_sequence_that_jumped_ahead_loses_no_message(
    owner: Connection, own_queue: CheckedQueue, jump: int
) -> None:
    own_queue.enqueue("before")
    set_sequence(owner, jump)
    own_queue.enqueue("after")
    maintain(own_queue)
    assert drain(own_queue) == ["before", "after"]
    for turn in range(3):
        maintain(own_queue)
        own_queue.enqueue(f"{turn}")
        assert drain(own_queue) == [f"{turn}"]


@pytest.mark.promise("P09", "P14")
def test_claims_below_the_floor_are_reaped_after_a_reset(
    owner: Connection, own_queue: CheckedQueue
) -> None:
    set_sequence(owner, 10 * AHEAD, "claim_seq")
    own_queue.enqueue("a")
    drain(own_queue)
    maintain(own_queue)
    maintain(own_queue)
    set_sequence(owner, 1000, "claim_seq")
    own_queue.enqueue("leased")
    own_queue.dequeue_one()
    maintain(own_queue)
    own_queue.pass_seconds(100)
    maintain(own_queue)
    assert drain(own_queue) == ["leased"]


@pytest.mark.promise("P11", "P14")
def test_dequeue_promotes_while_the_sequence_is_below_floor(
    owner: Connection, own_queue: CheckedQueue
) -> None:
    raise_floor(own_queue)
    own_queue.enqueue("due", delay_seconds=60)
    set_sequence(owner, 100)
    own_queue.pass_seconds(61)
    own_queue.dequeue()  # It may return no rows before the next maintain.
    maintain(own_queue)
    own_queue.dequeue()
    maintain(own_queue)
    own_queue.pass_seconds(100)
    maintain(own_queue)
    assert drain(own_queue) == ["due"]


@pytest.mark.promise("P14", "P15")
def test_health_reports_a_sequence_behind_used_numbers(
    owner: Connection, own_queue: CheckedQueue
) -> None:
    def behind() -> tuple[str, str]:
        [row] = [
            row
            for row in call(owner, "health")
            if row.check_name == "sequence_behind" and row.detail.startswith("message ")
        ]
        return row.status, row.detail

    ids = own_queue.enqueue("a", "b", "c")
    assert behind()[0] == "ok"
    set_sequence(owner, ids[0] - 1 or 1)
    owner.execute("select setval('rowq.message_seq', %s, false)", [ids[0]])
    status, detail = behind()
    assert status == "critical"
    assert "after_failover" in detail
    with pytest.raises(psycopg.errors.UniqueViolation):
        own_queue.enqueue("collides")
    assert [own_queue.state_of(message_id) for message_id in ids] == ["ready"] * 3
    set_sequence(owner, ids[-1])
    assert behind()[0] == "ok"
    own_queue.enqueue("d")
    assert drain(own_queue) == ["a", "b", "c", "d"]


@pytest.mark.pitfall("postgres 12")
def test_maintain_in_repeatable_read_moves_no_floor(
    owner: Connection, own_queue: CheckedQueue
) -> None:
    own_queue.enqueue("delayed", delay_seconds=10)
    own_queue.pass_seconds(100)
    owner.execute("begin isolation level repeatable read")
    assert own_queue.call_one("maintain").promoted == 1
    owner.execute("commit")
    assert drain(own_queue) == ["delayed"]


def test_dequeues_during_an_open_one_write_no_useless_floor(
    open_owner: Open, own_queue: CheckedQueue
) -> None:
    elsewhere = own_queue.via(open_owner())
    own_queue.call("enqueue_batch", messages=[{"body": "x"}] * 2000)
    rows = "select coalesce(array_agg(f.generation order by f.lane, f.generation), '{}')"
    with transaction(elsewhere.connection):
        elsewhere.dequeue_one()
        while own_queue.counts()[0] > 500:
            own_queue.dequeue(250)
        before = own_queue.connection.execute(f"{rows} from rowq.floor f").fetchone()
        for _ in range(5):
            own_queue.dequeue_one()
        assert own_queue.connection.execute(f"{rows} from rowq.floor f").fetchone() == before
