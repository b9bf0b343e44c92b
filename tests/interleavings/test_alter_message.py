"""alter_message overlaps with the calls that move, deliver or end its message."""

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import product
from typing import Any

import pytest

from rowq import Queue
from rowq.engines import engine_for_connection
from tests.interleavings.conftest import Open
from tests.interleavings.sessions import Session
from tests.interleavings.test_expired_messages import expired, late
from tests.interleavings.test_isolation import result_or_transient_error
from tests.interleavings.work import each_ending, maintain_later, play_transactions, work_off
from tests.stored_times import pass_seconds, tick

pytestmark = [pytest.mark.requires("cancel", "expiry", "groups", "predecessors")]

ENDINGS = ["commit", "rollback"]
PAST = datetime(2020, 1, 1, tzinfo=UTC)
STATES = ("ready", "delayed", "leased", "dead", "blocked")
CHANGES: list[dict[str, Any]] = [{"priority": 2}, {"delay_seconds": 60}]
Arrange = Callable[[Session, str], tuple[int, int]]
"""Adds a message that waits; returns its id and the claim that it waits for, or 0."""


def ready(session: Session, queue: str) -> tuple[int, int]:
    return session.queue.enqueue(queue, "old").message_id, 0


def delayed(session: Session, queue: str) -> tuple[int, int]:
    message_id = session.queue.enqueue(queue, "old", delay_seconds=60).message_id
    pass_seconds(session.connection, queue, 61)
    return message_id, 0


def group_waiting(session: Session, queue: str) -> tuple[int, int]:
    session.queue.enqueue(queue, "first", group_key="g")
    [first] = session.queue.dequeue_fast(queue, lease_seconds=600)
    return session.queue.enqueue(queue, "old", group_key="g").message_id, first.claim_id


def blocked(session: Session, queue: str) -> tuple[int, int]:
    session.queue.enqueue(queue, "first")
    [first] = session.queue.dequeue_fast(queue, lease_seconds=600)
    sent = session.queue.enqueue(queue, "old", predecessor_ids=[first.message_id])
    return sent.message_id, first.claim_id


OTHERS: dict[str, tuple[Arrange, Callable[[Queue, str, int, int], Any]]] = {
    "dequeue": (ready, lambda own, queue, *_: own.dequeue_fast(queue, lease_seconds=600)),
    "promote": (delayed, lambda own, queue, *_: own.promote(queue)),
    "cancel": (ready, lambda own, queue, message, _: own.cancel(queue, [message])),
    "pass a slot": (group_waiting, lambda own, queue, _, claim: own.complete(queue, claim)),
    "resume": (blocked, lambda own, queue, _, claim: own.complete(queue, claim)),
}


@pytest.mark.promise("P04", "P06", "P21", "P24", "P25", "P39")
@pytest.mark.parametrize(("alter_end", "other_end"), list(product(ENDINGS, repeat=2)))
@pytest.mark.parametrize("changes", CHANGES, ids=str)
@pytest.mark.parametrize("order", ["a1 a2 o1 o2 a3 o3", "a1 a2 o1 o2 o3 a3", "o1 o2 a1 a2 o3 a3"])
@pytest.mark.parametrize("other", list(OTHERS))
def test_message_is_delivered_once_as_altered(
    sessions: Open,
    queue: str,
    other: str,
    order: str,
    changes: dict[str, Any],
    alter_end: str,
    other_end: str,
) -> None:
    producer, second, third = sessions(3)
    arrange, call = OTHERS[other]
    message_id, claim = arrange(third, queue)
    answers: dict[str, Any] = {}

    def alter(own: Queue) -> None:
        answers["alter"] = own.alter_message(queue, message_id, "new", **changes).outcome

    def move(own: Queue) -> None:
        answers["other"] = call(own, queue, message_id, claim)

    play_transactions(order, {"a": (producer, alter, alter_end), "o": (second, move, other_end)})
    is_altered = answers["alter"] == "altered" and alter_end == "commit"
    assert answers["alter"] == ("altered" if order.startswith("a") else "leased")

    found = []
    if other_end == "commit" and other == "dequeue":
        found = [message.data for message in answers["other"]]
        for message in answers["other"]:
            third.queue.complete(queue, message.claim_id)
    elif other_end == "commit" and other == "cancel" and answers["other"][0].outcome == "cancelled":
        found = ["cancelled"]
    if other_end == "rollback" and claim:
        third.queue.complete(queue, claim)
    pass_seconds(third.connection, queue, 61)
    maintain_later(third, queue)
    found += work_off(third, queue)
    assert found in (["new"] if is_altered else ["old"], ["cancelled"])
    maintain_later(third, queue)
    [stats] = third.queue.queue_stats(queue)
    assert not any(getattr(stats, state) for state in STATES)


@each_ending
@pytest.mark.parametrize("options", [{}, {"delay_seconds": 500}, {"group_key": "g"}], ids=str)
@pytest.mark.parametrize("expire_seconds", [0, 600])
@pytest.mark.promise("P36", "P39")
def test_due_message_in_an_open_alter_expires_after_its_rollback(
    sessions: Open, queue: str, ending: str, options: dict[str, Any], expire_seconds: int
) -> None:
    producer, maintainer = sessions(2)
    [message_id] = late(producer, queue, **options)
    row = producer.begin().queue.alter_message(queue, message_id, expire_seconds=expire_seconds)
    assert row.outcome == "altered"
    assert expired(maintainer, queue) == 0
    producer.end(ending)
    assert expired(maintainer, queue) == (0 if ending == "commit" else 1)
    pass_seconds(maintainer.connection, queue, 601)
    assert expired(maintainer, queue) == (1 if ending == "commit" and expire_seconds else 0)


@pytest.mark.promise("P11", "P14")
def test_past_time_in_an_open_alter_is_found_behind_the_floor(sessions: Open, queue: str) -> None:
    producer, worker = sessions(2)
    message_id = worker.queue.enqueue(queue, "late", delay_seconds=3600).message_id
    row = producer.begin().queue.alter_message(queue, message_id, run_at=PAST)
    assert row.outcome == "altered"
    for _ in range(3):
        for _ in range(30):
            worker.queue.enqueue(queue, 0, delay_seconds=0.001)
        tick(worker.connection, queue)
        worker.queue.maintain(queue)
        work_off(worker, queue)
    producer.commit()
    maintain_later(worker, queue)
    maintain_later(worker, queue)
    assert work_off(worker, queue) == ["late"]


@each_ending
@pytest.mark.promise("P21", "P22", "P24")
def test_producer_joins_group_during_an_open_alter(sessions: Open, queue: str, ending: str) -> None:
    producer, other = sessions(2)
    first = other.queue.enqueue(queue, "1", group_key="g").message_id
    assert producer.begin().queue.alter_message(queue, first, delay_seconds=60).due_at
    running = other.start(lambda own: own.enqueue(queue, "2", group_key="g"))
    producer.end(ending)
    running.result()
    maintain_later(other, queue)
    assert work_off(other, queue) == (["2"] if ending == "commit" else ["1", "2"])
    pass_seconds(other.connection, queue, 61)
    assert work_off(other, queue) == (["1"] if ending == "commit" else [])


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
@pytest.mark.promise("P39")
def test_dequeue_with_old_snapshot_fails_or_returns_new_body(
    sessions: Open, queue: str, isolation: str
) -> None:
    strict, producer = sessions(2)
    message_id = producer.queue.enqueue(queue, "old").message_id
    strict.begin(isolation).queue.list_dead(queue)
    row = producer.queue.alter_message(queue, message_id, "new")
    assert row.outcome == "altered"
    messages = result_or_transient_error(strict, lambda own: own.dequeue_fast(queue))
    # On MySQL it returns the message as its snapshot shows it.
    is_mysql = engine_for_connection(strict.connection).name == "mysql"
    assert [message.data for message in messages or ()] in ([], ["new"], ["old"] * is_mysql)
