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
    one,
    rolled_back,
    send,
    state_of,
    take,
    take_one,
    transaction,
)
from tests.stored_times import pass_seconds

AHEAD = 5000
"""Further than a floor has to move to be worth a ledger row."""


def maintain(connection: Connection, queue: str) -> Row:
    """Maintain as one does, a second after the last time."""
    pass_seconds(connection, queue, 1)
    row = one(connection, "maintain", queue_name=queue)
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
    while rows := take(connection, queue, 250):
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
    lone: Connection, open_lone: Open, q: str
) -> None:
    late = open_lone()
    send(lone, q, "opens the lane")
    drain(lone, q)
    with transaction(late):
        [late_id] = send(late, q, "late")
        assert raise_floor(lone, q) > late_id
    assert take(lone, q) == []
    maintain(lone, q)
    assert bodies(take(lone, q, 10)) == ["late"]


@pytest.mark.promise("P14")
def test_a_late_message_is_delivered_although_maintain_ran_many_times_meanwhile(
    lone: Connection, open_lone: Open, q: str
) -> None:
    late = open_lone()
    send(lone, q, "opens the lane")
    drain(lone, q)
    with transaction(late):
        send(late, q, "late")
        for _ in range(4):
            raise_floor(lone, q)
            pass_seconds(lone, q, 100)
    maintain(lone, q)
    assert bodies(take(lone, q, 10)) == ["late"]


@pytest.mark.promise("P14")
def test_a_late_message_is_delivered_when_the_floor_moved_after_other_writers_too(
    lone: Connection, open_lone: Open, q: str
) -> None:
    first, second = open_lone(), open_lone()
    send(lone, q, "opens the lane")
    drain(lone, q)
    with transaction(first):
        send(first, q, "first")
        raise_floor(lone, q)
        with transaction(second):
            send(second, q, "second")
            raise_floor(lone, q)
        maintain(lone, q)
        assert bodies(take(lone, q, 10)) == ["second"]
        raise_floor(lone, q)
    maintain(lone, q)
    assert bodies(take(lone, q, 10)) == ["first"]


@pytest.mark.promise("P14")
def test_the_first_message_of_a_lane_may_be_the_late_one(
    lone: Connection, open_lone: Open, q: str
) -> None:
    late = open_lone()
    with transaction(late):
        send(late, q, "late", priority=0)
        send(lone, q, "early", priority=0)
        assert drain(lone, q) == ["early"]
        set_sequence(lone, last_value(lone) + AHEAD)
        for _ in range(3):
            maintain(lone, q)
    maintain(lone, q)
    assert drain(lone, q) == ["late"]


@pytest.mark.promise("P13", "P14")
def test_an_idle_writer_elsewhere_keeps_the_floor_from_nothing(
    lone: Connection, open_lone: Open, q: str
) -> None:
    idle = open_lone()
    with transaction(idle):
        idle.execute("create temporary table t () on commit drop")
        idle.execute("select pg_current_xact_id()")
        first = raise_floor(lone, q)
        assert raise_floor(lone, q) > first + 1500
    assert raise_floor(lone, q) > first


@pytest.mark.promise("P13", "P14")
def test_the_safe_mark_follows_once_the_idle_writer_has_ended(
    lone: Connection, open_lone: Open, q: str
) -> None:
    def safe() -> int:
        row = lone.execute(
            "select safe from rowq.floor where lane = 11 order by generation limit 1"
        ).fetchone()
        return int(row[0])

    idle = open_lone()
    with transaction(idle):
        idle.execute("select pg_current_xact_id()")
        raise_floor(lone, q)
        begin = last_value(lone)
        raise_floor(lone, q)
        raise_floor(lone, q)
        assert safe() <= begin
    for _ in range(3):
        pass_seconds(lone, q, 1)
        raise_floor(lone, q)
    assert safe() > begin


@pytest.mark.promise("P09", "P14")
def test_a_claim_committed_late_below_the_floor_of_claims_is_reaped(
    lone: Connection, open_lone: Open, q: str
) -> None:
    late = open_lone()
    send(lone, q, "late")
    with transaction(late):
        assert take_one(late, q).body == "late"
        value = lone.execute("select last_value from rowq.claim_seq").fetchone()[0]
        set_sequence(lone, value + AHEAD, "claim_seq")
        send(lone, q, "passes by")
        drain(lone, q)
        for _ in range(2):
            maintain(lone, q)
        assert floor_of(lone, q, -1) > value
    maintain(lone, q)
    pass_seconds(lone, q, 100)
    assert maintain(lone, q).reaped == 1
    assert bodies(take(lone, q, 10)) == ["late"]


@pytest.mark.promise("P11", "P14")
def test_a_delayed_message_committed_late_and_due_before_the_floor_is_delivered(
    lone: Connection, open_lone: Open, q: str
) -> None:
    late = open_lone()
    with transaction(late):
        send(late, q, "late", delay_seconds=0.001)
        for _ in range(3):
            send(lone, q, "in time", delay_seconds=0.001)
            pass_seconds(lone, q, 5)
            maintain(lone, q)
            assert drain(lone, q) == ["in time"]
    pass_seconds(lone, q, 1)
    maintain(lone, q)
    maintain(lone, q)
    assert drain(lone, q) == ["late"]


@pytest.mark.promise("P07", "P14")
def test_the_floor_does_not_pass_a_message_whose_dequeue_may_still_be_rolled_back(
    lone: Connection, open_lone: Open, q: str
) -> None:
    slow = open_lone()
    [message_id] = send(lone, q, "slow")
    with rolled_back(slow):
        assert take_one(slow, q).body == "slow"
        for _ in range(3):
            call(lone, "enqueue_batch", queue_name=q, messages=[{}] * 1500)
            drain(lone, q)
            maintain(lone, q)
        assert floor_of(lone, q, 11) <= message_id
    assert bodies(take(lone, q, 10)) == ["slow"]


@pytest.mark.promise("P14")
def test_messages_under_numbers_below_the_floor_come_after_maintain_when_the_sequence_jumped_back(
    lone: Connection, q: str
) -> None:
    floor = raise_floor(lone, q)
    set_sequence(lone, 100)
    ids = send(lone, q, "a", "b", "c")
    assert max(ids) < floor
    maintain(lone, q)
    assert drain(lone, q) == ["a", "b", "c"]
    send(lone, q, "d")
    assert drain(lone, q) == ["d"]


@pytest.mark.promise("P14")
def test_a_sequence_that_jumped_back_and_caught_up_before_maintain_loses_nothing(
    lone: Connection, q: str
) -> None:
    floor = raise_floor(lone, q)
    set_sequence(lone, 100)
    send(lone, q, "below")
    set_sequence(lone, floor + AHEAD)
    send(lone, q, "above")
    maintain(lone, q)
    pass_seconds(lone, q, 61)  # the sweep below the floor comes once a minute
    maintain(lone, q)
    assert sorted(body or "" for body in drain(lone, q)) == ["above", "below"]


@pytest.mark.promise("P14")
@pytest.mark.parametrize("jump", [AHEAD, 10**12, 2**62])
def test_a_sequence_that_jumped_ahead_loses_nothing(lone: Connection, q: str, jump: int) -> None:
    send(lone, q, "before")
    set_sequence(lone, jump)
    send(lone, q, "after")
    maintain(lone, q)
    assert drain(lone, q) == ["before", "after"]
    for turn in range(3):
        maintain(lone, q)
        send(lone, q, f"{turn}")
        assert drain(lone, q) == [f"{turn}"]


@pytest.mark.promise("P09", "P14")
def test_claims_under_numbers_below_the_floor_are_reaped_when_their_sequence_jumped_back(
    lone: Connection, q: str
) -> None:
    set_sequence(lone, 10 * AHEAD, "claim_seq")
    send(lone, q, "a")
    drain(lone, q)
    maintain(lone, q)
    maintain(lone, q)
    set_sequence(lone, 1000, "claim_seq")
    send(lone, q, "leased")
    take_one(lone, q)
    maintain(lone, q)
    pass_seconds(lone, q, 100)
    maintain(lone, q)
    assert drain(lone, q) == ["leased"]


@pytest.mark.promise("P11", "P14")
def test_dequeue_does_not_fail_on_due_messages_while_the_sequence_is_behind_the_floor(
    lone: Connection, q: str
) -> None:
    raise_floor(lone, q)
    send(lone, q, "due", delay_seconds=60)
    set_sequence(lone, 100)
    pass_seconds(lone, q, 61)
    take(lone, q)  # may find nothing before the next maintain
    maintain(lone, q)
    take(lone, q)
    maintain(lone, q)
    pass_seconds(lone, q, 100)
    maintain(lone, q)
    assert drain(lone, q) == ["due"]


@pytest.mark.promise("P14", "P15")
def test_a_number_that_is_in_use_is_refused_and_loses_nothing_and_health_names_the_sequence(
    lone: Connection, q: str
) -> None:
    def behind() -> tuple[str, str]:
        [row] = [r for r in call(lone, "health") if r.check_name == "sequence_behind"]
        return row.status, row.detail

    ids = send(lone, q, "a", "b", "c")
    assert behind()[0] == "ok"
    set_sequence(lone, ids[0] - 1 or 1)
    lone.execute("select setval('rowq.message_seq', %s, false)", [ids[0]])
    status, detail = behind()
    assert status == "critical"
    assert "message_seq" in detail
    with pytest.raises(psycopg.errors.UniqueViolation):
        send(lone, q, "collides")
    assert [state_of(lone, q, message_id) for message_id in ids] == ["ready"] * 3
    set_sequence(lone, ids[-1])
    assert behind()[0] == "ok"
    send(lone, q, "d")
    assert drain(lone, q) == ["a", "b", "c", "d"]


@pytest.mark.promise("P14")
def test_maintain_in_repeatable_read_moves_no_floor_and_does_its_other_work(
    lone: Connection, q: str
) -> None:
    send(lone, q, "delayed", delay_seconds=10)
    pass_seconds(lone, q, 100)
    lone.execute("begin isolation level repeatable read")
    assert one(lone, "maintain", queue_name=q).promoted == 1
    lone.execute("commit")
    assert drain(lone, q) == ["delayed"]
