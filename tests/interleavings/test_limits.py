"""Limits hold for concurrent dequeues, and no capacity leaks."""

from collections.abc import Callable
from typing import Any

import pytest

import rowq
from rowq import Queue
from tests.engines.base import wait_until
from tests.helpers.dialects import dialect_of
from tests.interleavings.conftest import Open
from tests.interleavings.sessions import Session
from tests.interleavings.work import fill, maintain_later, take
from tests.stored_times import pass_seconds

pytestmark = pytest.mark.requires("limits")

TURNS = 50
"""Tries to make a dequeue wait for the limit lock, for up to 100 ms each."""


@pytest.fixture
def admin(sessions: Open) -> Session:
    """Return a session for settings and maintenance."""
    return sessions(1)[0]


def leased(session: Session, queue: str) -> int:
    return session.queue.queue_stats(queue)[0].leased


def taking(queue: str, count: int) -> Callable[[Queue], list[int]]:
    """Return a call that dequeues and returns the ids."""

    def call(own: Queue) -> list[int]:
        return [message.message_id for message in own.dequeue_fast(queue, count)]

    return call


@pytest.mark.promise("P28")
def test_limited_dequeue_during_an_open_one_returns_no_rows(
    sessions: Open, admin: Session, queue: str
) -> None:
    holder, other = sessions(2)
    ids = fill(admin, queue, 9)
    admin.queue.alter_queue(queue, max_leased=5)
    holder.begin()
    assert take(holder, queue, 3) == ids[:3]
    assert other.start(taking(queue, 9)).result() == []
    holder.commit()
    assert take(other, queue, 9) == ids[3:5]
    assert leased(admin, queue) == 5


@pytest.mark.promise("P07", "P28")
def test_rolled_back_dequeue_frees_its_capacity_at_once(
    sessions: Open, admin: Session, queue: str
) -> None:
    holder, other = sessions(2)
    ids = fill(admin, queue, 9)
    admin.queue.alter_queue(queue, max_leased=5)
    holder.begin()
    assert take(holder, queue, 5) == ids[:5]
    holder.rollback()
    assert take(other, queue, 9) == ids[:5]


@pytest.mark.pitfall("oracle 29")
@pytest.mark.promise("P28", "P29")
@pytest.mark.parametrize("setting", ["max_leased", "rate_limit"])
@pytest.mark.parametrize("how", ["commit", "rollback"])
def test_waiting_dequeue_counts_the_lock_holders_leases(
    sessions: Open, admin: Session, queue: str, setting: str, how: str
) -> None:
    holder, waiter = sessions(2)
    fill(admin, queue, 9)
    admin.queue.alter_queue(queue, rate_seconds=1000)
    limit(admin, queue, setting, 4)
    for _ in range(TURNS):
        holder.begin()
        mine = take(holder, queue, 3)
        assert len(mine) == 3
        running = waiter.start(taking(queue, 3))
        try:
            wait_until(lambda: waiter.server.waits_for_limit(waiter.id), "it waits", 0.09)
        except AssertionError:
            # The wait ended before it was seen: try again.
            holder.rollback()
            running.result()
            reset(admin, queue, setting)
            continue
        holder.end(how)
        taken = running.result()
        if not taken:
            reset(admin, queue, setting)
            continue
        assert len(taken) == (1 if how == "commit" else 3)
        return
    raise AssertionError("the waiter never got the limit lock in time")


def limit(admin: Session, queue: str, setting: str, most: int) -> None:
    """Set one of the limits."""
    settings: dict[str, Any] = {setting: most}
    admin.queue.alter_queue(queue, **settings)


def reset(admin: Session, queue: str, setting: str) -> None:
    """Free the capacity: nothing leased, no delivery started within the window."""
    limit(admin, queue, setting, 0)
    pass_seconds(admin.connection, queue, 2000)
    maintain_later(admin, queue)
    limit(admin, queue, setting, 4)


@pytest.mark.promise("P28")
def test_full_queue_returns_at_once_while_limit_lock_is_held(
    sessions: Open, admin: Session, queue: str
) -> None:
    first, holder, other = sessions(3)
    fill(admin, queue, 9)
    admin.queue.alter_queue(queue, max_leased=2)
    claim = first.queue.dequeue_fast(queue, 2)[0].claim_id
    holder.begin().queue.complete(queue, claim)
    assert len(take(holder, queue, 9)) == 2
    # For other sessions the claim counts until its completion commits.
    assert take(other, queue, 9) == []
    holder.commit()
    assert take(other, queue, 9) == []
    assert leased(admin, queue) == 2


@pytest.mark.promise("P28")
@pytest.mark.parametrize("how", ["commit", "rollback"])
def test_completion_frees_capacity_at_its_commit(
    sessions: Open, admin: Session, queue: str, how: str
) -> None:
    worker, other = sessions(2)
    fill(admin, queue, 9)
    admin.queue.alter_queue(queue, max_leased=3)
    claim = worker.queue.dequeue_fast(queue, 3)[0].claim_id
    worker.begin().queue.complete(queue, claim)
    assert take(other, queue, 9) == []
    worker.end(how)
    assert len(take(other, queue, 9)) == (3 if how == "commit" else 0)


@pytest.mark.promise("P28")
def test_finishing_does_not_wait_for_the_limit_lock(
    sessions: Open, admin: Session, queue: str
) -> None:
    worker, holder = sessions(2)
    fill(admin, queue, 9)
    admin.queue.alter_queue(queue, max_leased=6)
    claims = [worker.queue.dequeue_fast(queue)[0].claim_id for _ in range(4)]
    holder.begin()
    assert len(take(holder, queue, 9)) == 2
    worker.queue.complete(queue, claims[0])
    worker.queue.retry_later(queue, claims[1])
    worker.queue.fail_now(queue, claims[2])
    worker.queue.release(queue, claims[3])
    admin.queue.maintain(queue)
    holder.commit()
    assert len(take(worker, queue, 9)) == 4


@pytest.mark.promise("P14", "P28")
def test_late_claim_below_the_floor_counts(sessions: Open, admin: Session, queue: str) -> None:
    late, other = sessions(2)
    fill(admin, queue, 20)
    late.begin()
    assert len(take(late, queue, 4)) == 4
    # Claims with higher ids end, and the floor of claims passes the late one.
    for _ in range(3):
        for _ in range(5):
            fill(admin, queue, 100)
            for message in other.queue.dequeue_fast(queue, 100)[:1]:
                other.queue.complete(queue, message.claim_id)
        pass_seconds(admin.connection, queue, 100)
        maintain_later(admin, queue)
    admin.queue.alter_queue(queue, max_leased=6)
    late.commit()
    assert len(take(other, queue, 9)) == 2


@pytest.mark.promise("P28")
def test_killed_session_frees_its_capacity(sessions: Open, admin: Session, queue: str) -> None:
    victim, dead, other = sessions(3)
    fill(admin, queue, 9)
    admin.queue.alter_queue(queue, max_leased=5)
    assert len(take(dead, queue, 2)) == 2
    victim.begin()
    assert len(take(victim, queue, 9)) == 3
    for session in (victim, dead):
        session.server.kill_session(session.id)
    assert len(take(other, queue, 9)) == 3
    pass_seconds(admin.connection, queue, 60)
    maintain_later(admin, queue)
    assert len(take(other, queue, 9)) == 5


@pytest.mark.promise("P28", "P29")
def test_rollback_to_a_savepoint_frees_capacity(sessions: Open, admin: Session, queue: str) -> None:
    careful, other = sessions(2)
    lets_in = dialect_of(other.connection).savepoints_release_locks
    fill(admin, queue, 9)
    admin.queue.alter_queue(queue, max_leased=4, rate_limit=4, rate_seconds=1000)
    careful.begin()
    # Write first: rolling back to a savepoint before any write would roll back everything.
    fill(careful, queue, 1)
    careful.savepoint("earlier")
    assert len(take(careful, queue, 9)) == 4
    careful.back_to("earlier")
    assert len(take(other, queue, 9)) == (4 if lets_in else 0)
    assert len(take(careful, queue, 9)) == (0 if lets_in else 4)
    careful.commit()
    assert leased(admin, queue) == 4


@pytest.mark.promise("P28")
def test_limit_applies_from_the_commit_of_its_change(
    sessions: Open, admin: Session, queue: str
) -> None:
    early, late = sessions(2)
    fill(admin, queue, 9)
    admin.begin().queue.alter_queue(queue, max_leased=1)
    assert len(take(early, queue, 2)) == 2
    admin.commit()
    assert take(late, queue, 1) == []
    admin.begin().queue.alter_queue(queue, max_leased=4)
    assert take(late, queue, 1) == []
    admin.commit()
    assert len(take(late, queue, 9)) == 2


@pytest.mark.promise("P28")
def test_limit_locks_of_two_queues_do_not_deadlock(
    sessions: Open, admin: Session, queue: str
) -> None:
    one, two = sessions(2)
    other = f"{queue[:80]} other"
    admin.queue.create_queue(other)
    for name in (queue, other):
        fill(admin, name, 9)
        admin.queue.alter_queue(name, max_leased=5)
    one.begin()
    two.begin()
    assert len(take(one, queue, 2)) == len(take(two, other, 2)) == 2
    crossed = [one.start(taking(other, 2)), two.start(taking(queue, 2))]
    assert [running.result() for running in crossed] == [[], []]
    one.commit()
    two.commit()
    assert len(take(one, other, 9)) == 3


@pytest.mark.promise("P28")
def test_drop_with_the_limit_lock_held_raises_queue_busy(
    sessions: Open, admin: Session, queue: str
) -> None:
    (holder,) = sessions(1)
    admin.queue.alter_queue(queue, max_leased=5)
    holder.begin()
    assert take(holder, queue, 2) == []
    with pytest.raises(rowq.QueueBusy):
        admin.queue.drop_queue(queue, force=True)
    holder.commit()
    assert admin.queue.drop_queue(queue, force=True).outcome == "dropped"
