"""A call that ends keyed messages in several slices does not deadlock with producers.

The keys of a slice fit into a packet, so with a small packet a few messages are several slices.
"""

import pytest

from rowq import NewMessage
from tests.engines.base import Connection
from tests.interleavings.conftest import Open, sessions
from tests.interleavings.sessions import Session

__all__ = ["sessions"]

SMALL = 16384
SLICE = SMALL // 3300
"""The most messages that internal_next_slice returns."""

FIRST, LAST = "k2", "k1"
"""The dedup keys of messages in the first and the last slice, in reverse order."""

ENDS = ["complete", "archived", "fail_now", "cancel", "discard_dead"]


@pytest.fixture
def worker(connection: Connection, sessions: Open) -> Session:
    """Return a session with a small packet."""
    ((usual,),) = connection.execute("select @@global.max_allowed_packet").fetchall()
    connection.execute(f"set global max_allowed_packet = {SMALL}")
    try:
        (opened,) = sessions(1)
    finally:
        connection.execute(f"set global max_allowed_packet = {usual}")
    return opened


@pytest.fixture
def ids(sessions: Open, queue: str) -> list[int]:
    """Enqueue more messages than a slice has, the first in a group; return their ids."""
    (admin,) = sessions(1)
    messages = [NewMessage(data=0, group_key="group", dedup_key=FIRST)]
    messages += [NewMessage(data=0)] * SLICE
    messages += [NewMessage(data=0, dedup_key=LAST)]
    return [sent.message_id for sent in admin.queue.enqueue_batch(queue, messages)]


def prepare(worker: Session, queue: str, end: str, ids: list[int]) -> dict[str, object]:
    """Prepare messages for a call that ends them; return its arguments."""
    if end == "archived":
        worker.queue.alter_queue(queue, archive_days=1)
    if end == "cancel":
        return {"message_ids": ids}
    claim = worker.queue.dequeue_fast(queue, len(ids))[0].claim_id
    if end == "discard_dead":
        worker.queue.fail_now(queue, claim)
        return {"message_ids": ids}
    return {"claim_id": claim}


@pytest.mark.promise("P12", "P22", "P26")
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("held", ["predecessor", "duplicate"])
def test_producer_holding_the_last_slice_joins_the_first_group(
    worker: Session,
    sessions: Open,
    queue: str,
    ids: list[int],
    end: str,
    held: str,
) -> None:
    (producer,) = sessions(1)
    arguments = prepare(worker, queue, end, ids)
    producer.begin()
    if held == "predecessor":
        producer.queue.enqueue(queue, 1, predecessor_ids=[ids[-1]])
    else:
        sent = producer.queue.enqueue(queue, 1, dedup_key=LAST)
        assert sent.outcome == ("enqueued" if end == "discard_dead" else "duplicate")
    routine = "complete" if end == "archived" else end
    running = worker.start(lambda own: getattr(own, routine)(queue, **arguments))
    running.result()
    producer.queue.enqueue(queue, 1, group_key="group")
    producer.commit()


@pytest.mark.promise("P03", "P22")
def test_cancel_removes_more_group_messages_than_a_slice(worker: Session, queue: str) -> None:
    messages = [
        NewMessage(data=0, group_key=animal * 200) for animal in "🐇🐢" for _ in range(SLICE)
    ]
    ids = [
        sent.message_id
        for message in messages
        for sent in worker.queue.enqueue_batch(queue, [message])
    ]
    waiting = [*ids[1:SLICE], *ids[SLICE + 1 :]]
    assert len(waiting) > SLICE
    outcomes = worker.queue.cancel(queue, waiting)
    assert {outcome.outcome for outcome in outcomes} == {"cancelled"}
    assert worker.queue.queue_stats(queue)[0].blocked == 0
