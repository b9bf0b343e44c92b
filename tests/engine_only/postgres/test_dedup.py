"""Batches with the same dedup keys, of which one is freed while they wait.

On MariaDB and MySQL whoever ends its message waits for them, so that this cannot happen.
"""

import pytest

from rowq import NewMessage
from tests.interleavings.conftest import Open, queue, sessions

__all__ = ["queue", "sessions"]


@pytest.mark.promise("P12")
def test_a_key_whose_owner_ends_while_two_batches_wait_makes_no_deadlock(
    sessions: Open, queue: str
) -> None:
    """Who has found its first key taken must not come back for it with the second in hand."""
    batch = [NewMessage(data=name, dedup_key=name) for name in ("a", "b")]
    for _ in range(4):
        keeper, worker, early, late = sessions(4)
        owner = worker.queue.enqueue(queue, 0, dedup_key="a")
        claim = worker.queue.dequeue_fast(queue)[0].claim_id
        keeper.begin().queue.enqueue(queue, 0, dedup_key="b")
        first = early.start(lambda own: own.enqueue_batch(queue, batch))
        first.waits_for(keeper)
        worker.queue.complete(queue, claim)
        second = late.start(lambda own: own.enqueue_batch(queue, batch))
        second.waits_for(keeper)
        keeper.rollback()
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
