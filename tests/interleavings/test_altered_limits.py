"""A setting that is changed while a call waits holds for that call, too."""

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
"""How often a test tries to have a dequeue wait for the limit lock: it waits milliseconds only."""


def send(session: Session, queue: str, text: str) -> None:
    """Enqueue a message of the one group."""
    session.queue.enqueue(queue, text, group_key="a")


def sending(queue: str, text: str) -> Callable[[Queue], Any]:
    """Return a call that enqueues a message of the one group."""
    return lambda own: own.enqueue(queue, text, group_key="a")


@pytest.mark.promise("P22")
@pytest.mark.requires("groups")
def test_a_producer_that_waits_for_a_group_has_the_limit_that_was_raised_meanwhile(
    sessions: Open, queue: str
) -> None:
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
def test_a_producer_that_waits_for_a_group_has_the_limit_that_was_lowered_meanwhile(
    sessions: Open, queue: str
) -> None:
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


def taken_at_gate(
    holder: Session,
    waiter: Session,
    queue: str,
    change: Callable[[], None],
    undo: Callable[[], None],
) -> int:
    """Return how many of four messages a dequeue takes that has waited for the limit lock.

    holder takes one message before the change, and commits after it. Where the dequeue was too
    late to have the limit lock, the change is undone, and all of it is tried again.
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
    raise AssertionError("the waiter never had its turn in time")


@pytest.mark.promise("P28")
@pytest.mark.requires("limits")
@pytest.mark.parametrize(("most", "taken"), [(3, 2), (1, 0)])
def test_a_dequeue_that_waits_for_the_limit_lock_has_the_max_leased_that_was_set_meanwhile(
    sessions: Open, queue: str, most: int, taken: int
) -> None:
    admin, holder, waiter = sessions(3)
    fill(admin, queue, 200)
    admin.queue.alter_queue(queue, max_leased=5)

    def undo() -> None:
        free(admin, queue)
        admin.queue.alter_queue(queue, max_leased=5)

    assert taken == taken_at_gate(
        holder, waiter, queue, lambda: set_to(admin, queue, max_leased=most), undo
    )


@pytest.mark.promise("P29")
@pytest.mark.requires("limits")
def test_a_dequeue_that_waits_for_the_limit_lock_has_the_rate_limit_that_was_set_meanwhile(
    sessions: Open, queue: str
) -> None:
    admin, holder, waiter = sessions(3)
    fill(admin, queue, 200)
    admin.queue.alter_queue(queue, max_leased=100, rate_seconds=1000)

    def undo() -> None:
        free(admin, queue)
        admin.queue.alter_queue(queue, rate_limit=0)

    taken = taken_at_gate(holder, waiter, queue, lambda: set_to(admin, queue, rate_limit=3), undo)
    assert taken == 3
    assert take(admin, queue, 9) == [], "what it has begun counts"


@pytest.mark.promise("P18")
@pytest.mark.requires("limits")
def test_a_dequeue_that_waits_for_the_limit_lock_of_a_queue_that_is_paused_meanwhile_takes_nothing(
    sessions: Open, queue: str
) -> None:
    admin, holder, waiter = sessions(3)
    fill(admin, queue, 200)
    admin.queue.alter_queue(queue, max_leased=5)

    def pause() -> None:
        admin.queue.pause_queue(queue)

    def undo() -> None:
        admin.queue.resume_queue(queue)
        free(admin, queue)

    assert taken_at_gate(holder, waiter, queue, pause, undo) == 0


def set_to(admin: Session, queue: str, **settings: Any) -> None:
    """Change settings of the queue."""
    admin.queue.alter_queue(queue, **settings)


def free(admin: Session, queue: str) -> None:
    """Let all leases run out, so that there is room again."""
    pass_seconds(admin.connection, queue, 2000)
    maintain_later(admin, queue)
