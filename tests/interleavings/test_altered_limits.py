"""A setting that changes while a call waits applies to that call."""

import contextlib
import time
from collections.abc import Callable
from typing import Any

import pytest

from rowq import Queue
from tests.engines.base import wait_until
from tests.interleavings.conftest import Open
from tests.interleavings.sessions import Session
from tests.interleavings.work import fill, maintain_later, take
from tests.stored_times import pass_seconds

TURNS = 50
"""Tries to make a dequeue wait for the limit lock, which it does for milliseconds only."""


def send(session: Session, queue: str, text: str) -> None:
    """Enqueue a message in group a."""
    session.queue.enqueue(queue, text, group_key="a")


def sending(queue: str, text: str) -> Callable[[Queue], Any]:
    """Return a call that enqueues a message in group a."""
    return lambda own: own.enqueue(queue, text, group_key="a")


@pytest.mark.promise("P22")
@pytest.mark.requires("groups")
def test_waiting_producer_uses_a_raised_group_limit(sessions: Open, queue: str) -> None:
    admin, first, second = sessions(3)
    send(first.begin(), queue, "1")
    later = second.start(sending(queue, "2"))
    later.waits_for(first)
    admin.queue.alter_queue(queue, group_limit=2)
    first.commit()
    later.result()
    stats = admin.queue.queue_stats(queue)[0]
    assert (stats.ready, stats.blocked) == (2, 0)


@pytest.mark.promise("P22")
@pytest.mark.requires("groups")
def test_waiting_producer_uses_a_lowered_group_limit(sessions: Open, queue: str) -> None:
    admin, first, second = sessions(3)
    admin.queue.alter_queue(queue, group_limit=2)
    send(admin, queue, "1")
    send(first.begin(), queue, "2")
    later = second.start(sending(queue, "3"))
    later.waits_for(first)
    admin.queue.alter_queue(queue, group_limit=1)
    first.rollback()
    later.result()
    stats = admin.queue.queue_stats(queue)[0]
    assert (stats.ready, stats.blocked) == (1, 1)
    assert len(take(admin, queue, 9)) == 1
    maintain_later(admin, queue)
    assert take(admin, queue, 9) == []


def leased_after_waiting(
    holder: Session,
    waiter: Session,
    queue: str,
    change: Callable[[], None],
    undo: Callable[[], None],
) -> int:
    """Return how many of 4 messages a dequeue leases after it has waited for the limit lock.

    holder leases one message before the change, and commits after it. If the dequeue was too late
    for the limit lock, undo the change and try again.
    """
    for _ in range(TURNS):
        holder.begin()
        assert len(take(holder, queue, 1)) == 1
        began = time.monotonic()
        running = waiter.start(lambda own: len(own.dequeue_fast(queue, 4)))
        with contextlib.suppress(AssertionError):
            wait_until(lambda: waiter.server.waits_for_limit(waiter.id), "it waits", 0.05)
            change()
            holder.commit()
            taken = running.result()
            if taken or time.monotonic() - began < 0.1:
                return taken
        holder.rollback()
        running.result()
        undo()
    raise AssertionError("the waiter never got the limit lock in time")


@pytest.mark.promise("P28")
@pytest.mark.requires("limits")
@pytest.mark.parametrize(("most", "taken"), [(3, 2), (1, 0)])
def test_waiting_dequeue_uses_a_changed_max_leased(
    sessions: Open, queue: str, most: int, taken: int
) -> None:
    admin, holder, waiter = sessions(3)
    fill(admin, queue, 200)
    admin.queue.alter_queue(queue, max_leased=5)

    def undo() -> None:
        free(admin, queue)
        admin.queue.alter_queue(queue, max_leased=5)

    assert taken == leased_after_waiting(
        holder, waiter, queue, lambda: set_to(admin, queue, max_leased=most), undo
    )


@pytest.mark.promise("P29")
@pytest.mark.requires("limits")
def test_waiting_dequeue_uses_a_changed_rate_limit(sessions: Open, queue: str) -> None:
    admin, holder, waiter = sessions(3)
    fill(admin, queue, 200)
    admin.queue.alter_queue(queue, max_leased=100, rate_seconds=1000)

    def undo() -> None:
        free(admin, queue)
        admin.queue.alter_queue(queue, rate_limit=0)

    taken = leased_after_waiting(
        holder, waiter, queue, lambda: set_to(admin, queue, rate_limit=3), undo
    )
    assert taken == 3
    assert take(admin, queue, 9) == [], "the started deliveries count"


@pytest.mark.promise("P18")
@pytest.mark.requires("limits")
def test_waiting_dequeue_of_a_paused_queue_leases_no_message(sessions: Open, queue: str) -> None:
    admin, holder, waiter = sessions(3)
    fill(admin, queue, 200)
    admin.queue.alter_queue(queue, max_leased=5)

    def pause() -> None:
        admin.queue.pause_queue(queue)

    def undo() -> None:
        admin.queue.resume_queue(queue)
        free(admin, queue)

    assert leased_after_waiting(holder, waiter, queue, pause, undo) == 0


def set_to(admin: Session, queue: str, **settings: Any) -> None:
    """Change settings of the queue."""
    admin.queue.alter_queue(queue, **settings)


def free(admin: Session, queue: str) -> None:
    """Expire all leases."""
    pass_seconds(admin.connection, queue, 2000)
    maintain_later(admin, queue)
