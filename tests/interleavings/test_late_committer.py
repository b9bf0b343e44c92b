"""Messages that commit late, below the floor, are delivered after the next maintain.

In between, messages with higher numbers are delivered, finished and cleaned up.
"""

import pytest

from rowq import NewMessage
from tests.engines.base import wait_until
from tests.helpers.dialects import dialect_of, preparing_dialect_of
from tests.interleavings.conftest import Open
from tests.interleavings.sessions import Session
from tests.interleavings.work import each_ending, everything, maintain_later
from tests.stored_times import pass_seconds

pytestmark = pytest.mark.pitfall("postgres 2", "sqlserver 10")

BATCH = [NewMessage(data=0)] * 1000


def move_floor_beyond(session: Session, queue: str, *messages: int) -> None:
    """Move other messages through the queue until its floor is above `messages`."""
    dialect = dialect_of(session.connection)

    def is_beyond() -> bool:
        for _ in range(2):
            session.queue.enqueue_batch(queue, BATCH)
            while taken := session.queue.dequeue_fast(queue, 500):
                session.queue.complete(queue, taken[0].claim_id)
        maintain_later(session, queue)
        return all(
            dialect.is_below_floor(session.connection, queue, message_id) for message_id in messages
        )

    wait_until(is_beyond, f"the floor is beyond {messages}")


@pytest.mark.promise("P14")
def test_maintain_delivers_each_of_several_late_messages(sessions: Open, queue: str) -> None:
    *late, other = sessions(5)
    sent = [session.begin().queue.enqueue(queue, 0).message_id for session in late]
    move_floor_beyond(other, queue, *sent)
    for session, message in zip(reversed(late), reversed(sent), strict=True):
        session.commit()
        maintain_later(other, queue)
        assert everything(other, queue) == [message]
        move_floor_beyond(other, queue)


@pytest.mark.promise("P14")
def test_maintain_delivers_a_late_message_of_an_empty_queue(sessions: Open, queue: str) -> None:
    late, other = sessions(2)
    move_floor_beyond(other, queue)
    sent = late.begin().queue.enqueue(queue, 0).message_id
    maintain_later(other, queue)
    maintain_later(other, queue)
    late.commit()
    maintain_later(other, queue)
    assert everything(other, queue) == [sent]


@pytest.mark.promise("P14", "P13")
@each_ending
def test_idle_writer_loses_nothing_over_many_maintains(
    sessions: Open, queue: str, ending: str
) -> None:
    idle, other = sessions(2)
    sent = idle.begin().queue.enqueue(queue, 0).message_id
    for _ in range(8):
        move_floor_beyond(other, queue, sent)
        assert everything(other, queue) == []
    last = idle.queue.enqueue(queue, 0).message_id
    move_floor_beyond(other, queue)
    idle.end(ending)
    maintain_later(other, queue)
    assert everything(other, queue) == ([sent, last] if ending == "commit" else [])


@pytest.mark.promise("P02", "P14")
def test_maintain_delivers_messages_released_late(sessions: Open, queue: str) -> None:
    worker, other = sessions(2)
    released = [message.message_id for message in other.queue.enqueue_batch(queue, BATCH[:3])]
    claim = worker.queue.dequeue_fast(queue, 3)[0].claim_id
    worker.begin().queue.release(queue, claim)
    for _ in range(2):
        for _ in range(2):
            other.queue.enqueue_batch(queue, BATCH)
            first = other.queue.dequeue_fast(queue, 1000)
            other.queue.release(queue, first[0].claim_id)
            again = other.queue.dequeue_fast(queue, 1000)
            other.queue.complete(queue, again[0].claim_id)
        maintain_later(other, queue)
    worker.commit()
    maintain_later(other, queue)
    assert everything(other, queue) == released


@pytest.mark.promise("P11", "P14")
def test_maintain_promotes_a_delayed_message_committed_late(sessions: Open, queue: str) -> None:
    late, other = sessions(2)
    sent = late.begin().queue.enqueue(queue, 0, delay_seconds=0.001).message_id
    for _ in range(3):
        other.queue.enqueue_batch(queue, [NewMessage(data=0, delay_seconds=1)] * 100)
        pass_seconds(other.connection, queue, 2)
        assert len(everything(other, queue)) == 100
        maintain_later(other, queue)
    late.commit()
    maintain_later(other, queue)
    assert everything(other, queue) == [sent]


@pytest.mark.promise("P02", "P09", "P14")
def test_maintain_reaps_a_claim_committed_late(sessions: Open, queue: str) -> None:
    late, other = sessions(2)
    sent = other.queue.enqueue(queue, 0).message_id
    late.begin().queue.dequeue_fast(queue)
    for _ in range(3):
        move_floor_beyond(other, queue)
    late.commit()
    pass_seconds(other.connection, queue, 60)
    assert other.queue.maintain(queue)[0].reaped == 1
    assert everything(other, queue) == [sent]


@pytest.mark.pitfall("postgres 15")
@pytest.mark.promise("P01", "P14")
def test_maintain_delivers_a_prepared_transaction(sessions: Open, queue: str) -> None:
    late, other = sessions(2)
    dialect = preparing_dialect_of(other.connection)
    dialect.begin_prepared(late.connection, queue)
    sent = late.queue.enqueue(queue, 0).message_id
    dialect.prepare(late.connection, queue)
    late.connection.close()
    try:
        for _ in range(3):
            move_floor_beyond(other, queue, sent)
    finally:
        dialect.commit_prepared(other.connection, queue)
    maintain_later(other, queue)
    assert everything(other, queue) == [sent]
