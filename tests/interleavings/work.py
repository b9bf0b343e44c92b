"""Shared steps of the interleavings."""

import pytest

from rowq import NewMessage
from tests.interleavings.sessions import Session
from tests.stored_times import tick

each_ending = pytest.mark.parametrize("ending", ["commit", "rollback"])
"""How the open transaction ends."""


def fill(session: Session, queue: str, count: int, priority: int = 5) -> list[int]:
    """Enqueue `count` messages and return their ids in the order of delivery."""
    sent = session.queue.enqueue_batch(queue, [NewMessage(data=0, priority=priority)] * count)
    return [message.message_id for message in sent]


def take(session: Session, queue: str, count: int) -> list[int]:
    """Dequeue up to `count` messages and return their ids."""
    return [message.message_id for message in session.queue.dequeue_fast(queue, count)]


def everything(session: Session, queue: str) -> list[int]:
    """Dequeue all ready messages."""
    return take(session, queue, 1000)


def claim_of(session: Session, queue: str, count: int) -> tuple[int, list[int]]:
    """Enqueue messages and lease them to one claim."""
    for _ in range(count):
        session.queue.enqueue(queue, 0)
    messages = session.queue.dequeue_fast(queue, count)
    return messages[0].claim_id, [message.message_id for message in messages]


def work_off(session: Session, queue: str) -> list[str]:
    """Dequeue and complete all messages, one by one; return their data."""
    found = []
    while messages := session.queue.dequeue_fast(queue):
        session.queue.complete(queue, messages[0].claim_id)
        found.append(messages[0].data)
    return found


def keep_house(session: Session, queue: str) -> None:
    """Maintain the queue, 2 seconds later."""
    tick(session.connection, queue)
    assert session.queue.maintain(queue)[0].elected
