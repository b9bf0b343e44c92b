"""Consumers skip what another one has locked; a rollback restores positions."""

import pytest

from tests.helpers.dialects import dialect_of
from tests.interleavings.conftest import Open
from tests.interleavings.work import fill, take


@pytest.mark.promise("P03", "P05", "P06")
def test_open_dequeues_lease_disjoint_messages_in_order(sessions: Open, queue: str) -> None:
    first, second, third = sessions(3)
    ids = fill(first, queue, 9)
    first.begin()
    second.begin()
    assert take(first, queue, 3) == ids[:3]
    assert take(second, queue, 3) == ids[3:6]
    assert take(third, queue, 3) == ids[6:]
    assert take(third, queue, 3) == []
    first.commit()
    second.commit()
    assert take(third, queue, 3) == []


@pytest.mark.promise("P05", "P06")
def test_locked_better_priority_does_not_block_worse_ones(sessions: Open, queue: str) -> None:
    holder, other = sessions(2)
    urgent = fill(other, queue, 2, priority=0)
    normal = fill(other, queue, 2, priority=5)
    late = fill(other, queue, 2, priority=9)
    holder.begin()
    assert take(holder, queue, 3) == urgent + normal[:1]
    assert take(other, queue, 10) == normal[1:] + late
    holder.rollback()
    assert take(other, queue, 10) == urgent + normal[:1]


@pytest.mark.promise("P06")
def test_locked_message_blocks_no_later_message(sessions: Open, queue: str) -> None:
    holder, other = sessions(2)
    ids = fill(other, queue, 1)
    holder.begin()
    assert take(holder, queue, 1) == ids
    for _ in range(5):
        later = fill(other, queue, 3)
        assert take(other, queue, 10) == later
        other.queue.maintain(queue)
    holder.rollback()
    assert take(other, queue, 10) == ids


@pytest.mark.promise("P05", "P07")
def test_rolled_back_dequeue_restores_positions_beside_another(sessions: Open, queue: str) -> None:
    unlucky, other = sessions(2)
    ids = fill(unlucky, queue, 6)
    unlucky.begin()
    assert take(unlucky, queue, 2) == ids[:2]
    assert take(other, queue, 2) == ids[2:4]
    unlucky.rollback()
    returned = other.queue.dequeue_fast(queue, 3)
    assert [message.message_id for message in returned] == [*ids[:2], ids[4]]
    assert [message.attempt for message in returned] == [1, 1, 1]
    assert take(unlucky, queue, 3) == ids[5:]


@pytest.mark.promise("P07", "P13")
def test_rolled_back_dequeue_below_the_floor_loses_no_message(sessions: Open, queue: str) -> None:
    unlucky, other = sessions(2)
    ids = [*fill(other, queue, 1000), *fill(other, queue, 1000), *fill(other, queue, 1000)]
    unlucky.begin()
    assert take(unlucky, queue, 10) == ids[:10]
    while rest := other.queue.dequeue_fast(queue, 500):
        other.queue.complete(queue, rest[0].claim_id)
        other.queue.maintain(queue)
    unlucky.rollback()
    assert take(other, queue, 100) == ids[:10]


@pytest.mark.promise("P07")
def test_dequeue_rolled_back_to_a_savepoint_returns_messages(sessions: Open, queue: str) -> None:
    careful, other = sessions(2)
    ids = fill(careful, queue, 4)
    careful.begin()
    assert take(careful, queue, 1) == ids[:1]
    careful.savepoint("before_more")
    assert take(careful, queue, 2) == ids[1:3]
    careful.back_to("before_more")
    returned = dialect_of(other.connection).savepoints_release_locks
    assert take(other, queue, 10) == (ids[1:] if returned else ids[3:])
    careful.commit()
    assert take(other, queue, 10) == ([] if returned else ids[1:3])


@pytest.mark.promise("P02", "P07")
def test_killed_session_returns_its_messages(sessions: Open, queue: str) -> None:
    victim, other = sessions(2)
    ids = fill(other, queue, 3)
    victim.begin()
    claim_id = victim.queue.dequeue_fast(queue, 2)[0].claim_id
    victim.queue.complete(queue, claim_id, ids[:1])
    victim.server.kill_session(victim.id)
    assert take(other, queue, 10) == ids


@pytest.mark.promise("P18")
def test_uncommitted_pause_stops_no_dequeue(sessions: Open, queue: str) -> None:
    admin, consumer = sessions(2)
    ids = fill(consumer, queue, 2)
    admin.begin().queue.pause_queue(queue)
    assert take(consumer, queue, 1) == ids[:1]
    admin.commit()
    assert take(consumer, queue, 1) == []
    admin.begin().queue.resume_queue(queue)
    assert take(consumer, queue, 1) == []
    admin.commit()
    assert take(consumer, queue, 1) == ids[1:]
