"""The floor of a lane: late committers, idle writers, sequences that jump.

Dequeue starts at a lane's floor, a hint that maintain moves. It may overtake a producer that has
taken its number and not committed yet: such a message must come with the next maintain, and never
be lost, whatever the sequence does.
"""

from __future__ import annotations

import psycopg
import pytest

from tests.engine_only.postgres.conftest import Open
from tests.engines.base import Connection
from tests.helpers.calls import (
    Row,
    bodies,
    call,
    call_one,
    dequeue,
    dequeue_one,
    enqueue,
    rolled_back,
    state_of,
    transaction,
)
from tests.stored_times import pass_seconds

AHEAD = 5000
"""Further than a floor has to move to be worth a ledger row."""


def maintain(connection: Connection, queue: str) -> Row:
    """Maintain as one does, a second after the last time."""
    pass_seconds(connection, queue, 1)
    row = call_one(connection, "maintain", queue_name=queue)
    assert row.elected
    return row


def last_value(connection: Connection) -> int:
    value: int = connection.execute("select last_value from rowq.message_seq").fetchone()[0]
    return value


def set_sequence(connection: Connection, value: int, sequence: str = "message_seq") -> None:
    connection.execute("select setval(%s, %s)", [f"rowq.{sequence}", value])


def drain(connection: Connection, queue: str) -> list[str | None]:
    """Take and complete everything."""
    found = []
    while rows := dequeue(connection, queue, 250):
        found += bodies(rows)
        call(connection, "complete", queue_name=queue, claim_id=rows[0].claim_id)
    return found


def floor_of(connection: Connection, queue: str, lane: int) -> int:
    row = connection.execute(
        """
        select f.seq from rowq.floor f join rowq.queue q using (part_id)
        where q.queue_name = %s and f.lane = %s order by f.generation limit 1
        """,
        [queue, lane],
    ).fetchone()
    return row[0] if row else 0


def raise_floor(connection: Connection, queue: str) -> int:
    """Pass many messages by, so that the floor of priority 5 moves; return the floor."""
    for _ in range(2):
        call(connection, "enqueue_batch", queue_name=queue, messages=[{}] * 1500)
        drain(connection, queue)
        maintain(connection, queue)
    floor = floor_of(connection, queue, 11)
    assert floor > last_value(connection) - 1500
    return floor


@pytest.mark.promise("P14")
def test_a_message_committed_late_below_the_floor_is_delivered_after_the_next_maintain(
    owner: Connection, open_owner: Open, own_queue: str
) -> None:
    late = open_owner()
    enqueue(owner, own_queue, "opens the lane")
    drain(owner, own_queue)
    with transaction(late):
        [late_id] = enqueue(late, own_queue, "late")
        assert raise_floor(owner, own_queue) > late_id
    assert dequeue(owner, own_queue) == []
    maintain(owner, own_queue)
    assert bodies(dequeue(owner, own_queue, 10)) == ["late"]


@pytest.mark.promise("P14")
def test_a_late_message_is_delivered_although_maintain_ran_many_times_meanwhile(
    owner: Connection, open_owner: Open, own_queue: str
) -> None:
    late = open_owner()
    enqueue(owner, own_queue, "opens the lane")
    drain(owner, own_queue)
    with transaction(late):
        enqueue(late, own_queue, "late")
        for _ in range(4):
            raise_floor(owner, own_queue)
            pass_seconds(owner, own_queue, 100)
    maintain(owner, own_queue)
    assert bodies(dequeue(owner, own_queue, 10)) == ["late"]


@pytest.mark.promise("P14")
def test_a_late_message_is_delivered_when_the_floor_moved_after_other_writers_too(
    owner: Connection, open_owner: Open, own_queue: str
) -> None:
    first, second = open_owner(), open_owner()
    enqueue(owner, own_queue, "opens the lane")
    drain(owner, own_queue)
    with transaction(first):
        enqueue(first, own_queue, "first")
        raise_floor(owner, own_queue)
        with transaction(second):
            enqueue(second, own_queue, "second")
            raise_floor(owner, own_queue)
        maintain(owner, own_queue)
        assert bodies(dequeue(owner, own_queue, 10)) == ["second"]
        raise_floor(owner, own_queue)
    maintain(owner, own_queue)
    assert bodies(dequeue(owner, own_queue, 10)) == ["first"]


@pytest.mark.promise("P14")
def test_the_first_message_of_a_lane_may_be_the_late_one(
    owner: Connection, open_owner: Open, own_queue: str
) -> None:
    late = open_owner()
    with transaction(late):
        enqueue(late, own_queue, "late", priority=0)
        enqueue(owner, own_queue, "early", priority=0)
        assert drain(owner, own_queue) == ["early"]
        set_sequence(owner, last_value(owner) + AHEAD)
        for _ in range(3):
            maintain(owner, own_queue)
    maintain(owner, own_queue)
    assert drain(owner, own_queue) == ["late"]


@pytest.mark.promise("P13", "P14")
def test_an_idle_writer_elsewhere_keeps_the_floor_from_nothing(
    owner: Connection, open_owner: Open, own_queue: str
) -> None:
    idle = open_owner()
    with transaction(idle):
        idle.execute("create temporary table t () on commit drop")
        idle.execute("select pg_current_xact_id()")
        first = raise_floor(owner, own_queue)
        assert raise_floor(owner, own_queue) > first + 1500
    assert raise_floor(owner, own_queue) > first


@pytest.mark.promise("P13", "P14")
def test_the_safe_mark_follows_once_the_idle_writer_has_ended(
    owner: Connection, open_owner: Open, own_queue: str
) -> None:
    def safe() -> int:
        row = owner.execute(
            "select safe from rowq.floor where lane = 11 order by generation limit 1"
        ).fetchone()
        return int(row[0])

    idle = open_owner()
    with transaction(idle):
        idle.execute("select pg_current_xact_id()")
        raise_floor(owner, own_queue)
        begin = last_value(owner)
        raise_floor(owner, own_queue)
        raise_floor(owner, own_queue)
        assert safe() <= begin
    for _ in range(3):
        pass_seconds(owner, own_queue, 1)
        raise_floor(owner, own_queue)
    assert safe() > begin


@pytest.mark.promise("P09", "P14")
def test_a_claim_committed_late_below_the_floor_of_claims_is_reaped(
    owner: Connection, open_owner: Open, own_queue: str
) -> None:
    late = open_owner()
    enqueue(owner, own_queue, "late")
    with transaction(late):
        assert dequeue_one(late, own_queue).body == "late"
        value = owner.execute("select last_value from rowq.claim_seq").fetchone()[0]
        set_sequence(owner, value + AHEAD, "claim_seq")
        enqueue(owner, own_queue, "passes by")
        drain(owner, own_queue)
        for _ in range(2):
            maintain(owner, own_queue)
        assert floor_of(owner, own_queue, -1) > value
    maintain(owner, own_queue)
    pass_seconds(owner, own_queue, 100)
    assert maintain(owner, own_queue).reaped == 1
    assert bodies(dequeue(owner, own_queue, 10)) == ["late"]


@pytest.mark.promise("P11", "P14")
def test_a_delayed_message_committed_late_and_due_before_the_floor_is_delivered(
    owner: Connection, open_owner: Open, own_queue: str
) -> None:
    late = open_owner()
    with transaction(late):
        enqueue(late, own_queue, "late", delay_seconds=0.001)
        for _ in range(3):
            enqueue(owner, own_queue, "in time", delay_seconds=0.001)
            pass_seconds(owner, own_queue, 5)
            maintain(owner, own_queue)
            assert drain(owner, own_queue) == ["in time"]
    pass_seconds(owner, own_queue, 1)
    maintain(owner, own_queue)
    maintain(owner, own_queue)
    assert drain(owner, own_queue) == ["late"]


@pytest.mark.promise("P07", "P14")
def test_the_floor_does_not_pass_a_message_whose_dequeue_may_still_be_rolled_back(
    owner: Connection, open_owner: Open, own_queue: str
) -> None:
    slow = open_owner()
    [message_id] = enqueue(owner, own_queue, "slow")
    with rolled_back(slow):
        assert dequeue_one(slow, own_queue).body == "slow"
        for _ in range(3):
            call(owner, "enqueue_batch", queue_name=own_queue, messages=[{}] * 1500)
            drain(owner, own_queue)
            maintain(owner, own_queue)
        assert floor_of(owner, own_queue, 11) <= message_id
    assert bodies(dequeue(owner, own_queue, 10)) == ["slow"]


@pytest.mark.promise("P14")
def test_messages_under_numbers_below_the_floor_come_after_maintain_when_the_sequence_jumped_back(
    owner: Connection, own_queue: str
) -> None:
    floor = raise_floor(owner, own_queue)
    set_sequence(owner, 100)
    ids = enqueue(owner, own_queue, "a", "b", "c")
    assert max(ids) < floor
    maintain(owner, own_queue)
    assert drain(owner, own_queue) == ["a", "b", "c"]
    enqueue(owner, own_queue, "d")
    assert drain(owner, own_queue) == ["d"]


@pytest.mark.promise("P14")
def test_a_sequence_that_jumped_back_and_caught_up_before_maintain_loses_nothing(
    owner: Connection, own_queue: str
) -> None:
    floor = raise_floor(owner, own_queue)
    set_sequence(owner, 100)
    enqueue(owner, own_queue, "below")
    set_sequence(owner, floor + AHEAD)
    enqueue(owner, own_queue, "above")
    maintain(owner, own_queue)
    pass_seconds(owner, own_queue, 61)  # The floor is swept once a minute.
    maintain(owner, own_queue)
    assert sorted(body or "" for body in drain(owner, own_queue)) == ["above", "below"]


@pytest.mark.promise("P14")
@pytest.mark.parametrize("jump", [AHEAD, 10**12, 2**62])
def test_a_sequence_that_jumped_ahead_loses_nothing(
    owner: Connection, own_queue: str, jump: int
) -> None:
    enqueue(owner, own_queue, "before")
    set_sequence(owner, jump)
    enqueue(owner, own_queue, "after")
    maintain(owner, own_queue)
    assert drain(owner, own_queue) == ["before", "after"]
    for turn in range(3):
        maintain(owner, own_queue)
        enqueue(owner, own_queue, f"{turn}")
        assert drain(owner, own_queue) == [f"{turn}"]


@pytest.mark.promise("P09", "P14")
def test_claims_under_numbers_below_the_floor_are_reaped_when_their_sequence_jumped_back(
    owner: Connection, own_queue: str
) -> None:
    set_sequence(owner, 10 * AHEAD, "claim_seq")
    enqueue(owner, own_queue, "a")
    drain(owner, own_queue)
    maintain(owner, own_queue)
    maintain(owner, own_queue)
    set_sequence(owner, 1000, "claim_seq")
    enqueue(owner, own_queue, "leased")
    dequeue_one(owner, own_queue)
    maintain(owner, own_queue)
    pass_seconds(owner, own_queue, 100)
    maintain(owner, own_queue)
    assert drain(owner, own_queue) == ["leased"]


@pytest.mark.promise("P11", "P14")
def test_dequeue_does_not_fail_on_due_messages_while_the_sequence_is_behind_the_floor(
    owner: Connection, own_queue: str
) -> None:
    raise_floor(owner, own_queue)
    enqueue(owner, own_queue, "due", delay_seconds=60)
    set_sequence(owner, 100)
    pass_seconds(owner, own_queue, 61)
    dequeue(owner, own_queue)  # It may find nothing before the next maintain.
    maintain(owner, own_queue)
    dequeue(owner, own_queue)
    maintain(owner, own_queue)
    pass_seconds(owner, own_queue, 100)
    maintain(owner, own_queue)
    assert drain(owner, own_queue) == ["due"]


@pytest.mark.promise("P14", "P15")
def test_a_number_that_is_in_use_is_refused_and_loses_nothing_and_health_names_the_sequence(
    owner: Connection, own_queue: str
) -> None:
    def behind() -> tuple[str, str]:
        [row] = [r for r in call(owner, "health") if r.check_name == "sequence_behind"]
        return row.status, row.detail

    ids = enqueue(owner, own_queue, "a", "b", "c")
    assert behind()[0] == "ok"
    set_sequence(owner, ids[0] - 1 or 1)
    owner.execute("select setval('rowq.message_seq', %s, false)", [ids[0]])
    status, detail = behind()
    assert status == "critical"
    assert "message_seq" in detail
    with pytest.raises(psycopg.errors.UniqueViolation):
        enqueue(owner, own_queue, "collides")
    assert [state_of(owner, own_queue, message_id) for message_id in ids] == ["ready"] * 3
    set_sequence(owner, ids[-1])
    assert behind()[0] == "ok"
    enqueue(owner, own_queue, "d")
    assert drain(owner, own_queue) == ["a", "b", "c", "d"]


@pytest.mark.promise("P14")
def test_maintain_in_repeatable_read_moves_no_floor_and_does_its_other_work(
    owner: Connection, own_queue: str
) -> None:
    enqueue(owner, own_queue, "delayed", delay_seconds=10)
    pass_seconds(owner, own_queue, 100)
    owner.execute("begin isolation level repeatable read")
    assert call_one(owner, "maintain", queue_name=own_queue).promoted == 1
    owner.execute("commit")
    assert drain(owner, own_queue) == ["delayed"]
