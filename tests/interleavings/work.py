"""Shared steps of the interleavings."""

from collections.abc import Callable
from typing import Any

import pytest

from rowq import NewMessage, Queue
from tests.interleavings.sessions import Session, Step, play
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


def maintain_later(session: Session, queue: str) -> None:
    """Maintain the queue, 2 seconds later."""
    tick(session.connection, queue)
    assert session.queue.maintain(queue)[0].elected


def play_transactions(
    order: str, transactions: dict[str, tuple[Session, Callable[[Queue], Any], str]]
) -> None:
    """Play transactions of a session, a call and an ending; fail if a step fails.

    Transaction "a" has the steps a1 (begin), a2 (the call) and a3 (the ending).
    """
    steps = {}
    for name, (session, call, ending) in transactions.items():
        calls = (
            lambda _, own=session: own.begin(),
            call,
            lambda _, own=session, how=ending: own.end(how),
        )
        for number, each in enumerate(calls, 1):
            steps[f"{name}{number}"] = Step(f"{name}{number}", session, each)
    done = play([steps[name] for name in order.split()])
    assert not [answer for answer in done.values() if isinstance(answer, Exception)]
