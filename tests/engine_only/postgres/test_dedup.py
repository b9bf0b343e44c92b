"""Batches that wait for a dedup key while another of their keys is released.

On MariaDB and MySQL the session that ends the message waits for them, so this cannot happen.
"""

import pytest

from rowq import NewMessage
from tests.interleavings.conftest import Open, queue, sessions

__all__ = ["queue", "sessions"]


@pytest.mark.promise("P12")
def test_batches_do_not_deadlock_on_a_released_key(sessions: Open, queue: str) -> None:
    """A batch that finds its first key taken must not wait for it while it holds the second."""
    batch = [NewMessage(data=name, dedup_key=name) for name in ("a", "b")]
    for _ in range(4):
        blocker, worker, early, late = sessions(4)
        owner = worker.queue.enqueue(queue, 0, dedup_key="a")
        claim = worker.queue.dequeue_fast(queue)[0].claim_id
        blocker.begin().queue.enqueue(queue, 0, dedup_key="b")
        first = early.start(lambda own: own.enqueue_batch(queue, batch))
        first.waits_for(blocker)
        worker.queue.complete(queue, claim)
        second = late.start(lambda own: own.enqueue_batch(queue, batch))
        second.waits_for(blocker)
        blocker.rollback()
        added = [
            row.message_id
            for row in (*first.result(), *second.result())
            if row.outcome == "enqueued"
        ]
        assert {row.message_id for row in first.result()} <= {*added, owner.message_id}
        assert {row.message_id for row in second.result()} == set(added)
        assert len(added) == 2
        taken = worker.queue.dequeue_fast(queue, 9)
        assert sorted(message.message_id for message in taken) == sorted(added)
        worker.queue.complete(queue, taken[0].claim_id)


@pytest.mark.promise("P12")
def test_waiting_batch_does_not_retry_a_reserved_key(sessions: Open, queue: str) -> None:
    blocker, worker, early, late = sessions(4)
    worker.queue.enqueue(queue, 0, dedup_key="a")
    claim = worker.queue.dequeue_fast(queue)[0].claim_id
    last = blocker.begin().queue.enqueue(queue, 0, dedup_key="c")
    batch = [NewMessage(data=name, dedup_key=name) for name in ("a", "b", "c")]
    first = early.start(lambda own: own.enqueue_batch(queue, batch))
    first.waits_for(blocker)
    worker.queue.complete(queue, claim)
    second = late.start(lambda own: own.enqueue_batch(queue, batch[:2]))
    second.waits_for(early)
    blocker.commit()
    assert [row.outcome for row in first.result()] == ["duplicate", "enqueued", "duplicate"]
    assert first.result()[2].message_id == last.message_id
    assert [row.outcome for row in second.result()] == ["enqueued", "duplicate"]
    assert second.result()[1].message_id == first.result()[1].message_id


@pytest.mark.promise("P12")
def test_repeatable_read_ignores_a_former_owner_of_a_key(sessions: Open, queue: str) -> None:
    own, worker = sessions(2)
    worker.queue.enqueue(queue, 0, dedup_key="a")
    own.begin("repeatable read").connection.execute("select")
    worker.queue.complete(queue, worker.queue.dequeue_fast(queue)[0].claim_id)
    added = own.queue.enqueue(queue, 1, dedup_key="a")
    assert added.outcome == "enqueued"
    again = own.queue.enqueue(queue, 1, dedup_key="a")
    batch = own.queue.enqueue_batch(queue, [NewMessage(dedup_key="a"), NewMessage(data=2)])
    assert [(again.message_id, again.outcome), (batch[0].message_id, batch[0].outcome)] == [
        (added.message_id, "duplicate")
    ] * 2
    assert batch[1].outcome == "enqueued"
    own.commit()
