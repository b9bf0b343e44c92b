"""Concurrent producers of one dedup key, and sessions that end its message."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from rowq import NewMessage
from tests.helpers.dialects import dialect_of
from tests.interleavings.conftest import Open
from tests.interleavings.sessions import Session, Step, each_order, play
from tests.interleavings.work import each_ending, everything, maintain_later
from tests.stored_times import expire_claim

ENDINGS = list(product(["commit", "rollback"], repeat=2))


@pytest.mark.promise("P12")
@pytest.mark.parametrize(("first_end", "second_end"), ENDINGS)
@each_order("a1 a2 a3", "b1 b2 b3")
def test_two_producers_of_one_dedup_key_store_one_message(
    sessions: Open, queue: str, order: str, first_end: str, second_end: str
) -> None:
    first, second, consumer = sessions(3)
    steps = {
        "a1": Step("a1", first, lambda _: first.begin()),
        "a2": Step("a2", first, lambda own: own.enqueue(queue, "a", dedup_key="key")),
        "a3": Step("a3", first, lambda _: first.end(first_end)),
        "b1": Step("b1", second, lambda _: second.begin()),
        "b2": Step("b2", second, lambda own: own.enqueue(queue, "b", dedup_key="key")),
        "b3": Step("b3", second, lambda _: second.end(second_end)),
    }
    done = play([steps[name] for name in order.split()])
    a_first = order.index("a2") < order.index("b2")
    early, late = (done["a2"], done["b2"]) if a_first else (done["b2"], done["a2"])
    early_end = first_end if a_first else second_end
    assert early.outcome == "enqueued"
    if early_end == "commit":
        assert (late.outcome, late.message_id) == ("duplicate", early.message_id)
    else:
        assert late.outcome == "enqueued"

    expected = [
        row.message_id
        for row, end in ((done["a2"], first_end), (done["b2"], second_end))
        if row.outcome == "enqueued" and end == "commit"
    ]
    assert everything(consumer, queue) == expected
    assert len(expected) <= 1


@pytest.mark.promise("P12")
def test_second_producer_of_a_dedup_key_waits_for_the_first(sessions: Open, queue: str) -> None:
    first, second = sessions(2)
    sent = first.begin().queue.enqueue(queue, 0, dedup_key="key")
    later = second.start(lambda own: own.enqueue(queue, 0, dedup_key="key"))
    later.waits_for(first)
    first.commit()
    assert (later.result().message_id, later.result().outcome) == (sent.message_id, "duplicate")


@pytest.mark.promise("P12")
@pytest.mark.parametrize("finish", ["complete", "fail_now", "cancel"])
@each_ending
def test_enqueue_waits_for_an_open_finish_of_its_key(
    sessions: Open, queue: str, finish: str, ending: str
) -> None:
    worker, producer = sessions(2)
    old = worker.queue.enqueue(queue, 0, dedup_key="key").message_id
    if finish == "cancel":
        worker.begin().queue.cancel(queue, [old])
    else:
        claim = worker.queue.dequeue_fast(queue)[0].claim_id
        worker.begin()
        getattr(worker.queue, finish)(queue, claim)
    sending = producer.start(lambda own: own.enqueue(queue, 0, dedup_key="key"))
    sending.waits_for(worker)
    worker.end(ending)
    sent = sending.result()
    if ending == "commit":
        assert sent.outcome == "enqueued"
        assert sent.message_id != old
    else:
        assert (sent.outcome, sent.message_id) == ("duplicate", old)


@pytest.mark.pitfall("postgres 14")
@pytest.mark.promise("P12")
def test_batches_with_reversed_keys_do_not_deadlock(sessions: Open, queue: str) -> None:
    first, second, holder = sessions(3)
    keys = [f"key {number}" for number in range(20)]
    forward = [NewMessage(data=0, dedup_key=key) for key in keys]
    holder.begin().queue.enqueue(queue, 0, dedup_key="key 5")
    forwards = first.start(lambda own: own.enqueue_batch(queue, forward))
    forwards.waits_for(holder)
    backwards = second.start(lambda own: own.enqueue_batch(queue, forward[::-1]))
    backwards.waits_for(first)
    holder.rollback()
    outcomes = [entry.outcome for entry in [*forwards.result(), *backwards.result()]]
    assert outcomes == ["enqueued"] * 20 + ["duplicate"] * 20
    assert len(everything(holder, queue)) == 20


@pytest.mark.promise("P12", "P10")
def test_reset_waits_for_an_open_enqueue_of_its_key(sessions: Open, queue: str) -> None:
    admin, producer = sessions(2)
    dead = admin.queue.enqueue(queue, "old", dedup_key="key").message_id
    admin.queue.fail_now(queue, admin.queue.dequeue_fast(queue)[0].claim_id)
    producer.begin().queue.enqueue(queue, "new", dedup_key="key")
    resetting = admin.start(lambda own: own.reset(queue, [dead]))
    resetting.waits_for(producer)
    producer.commit()
    assert [outcome.outcome for outcome in resetting.result()] == ["duplicate"]
    assert [message.data for message in admin.queue.dequeue_fast(queue, 5)] == ["new"]


@pytest.mark.promise("P12", "P10")
def test_reset_waits_for_many_producers_of_its_keys(sessions: Open, queue: str) -> None:
    """More producers than a call has retries."""
    admin, *producers = sessions(8)
    keys = [f"key {number}" for number in range(len(producers))]
    admin.queue.enqueue_batch(queue, [NewMessage(data="old", dedup_key=key) for key in keys])
    admin.queue.fail_now(queue, admin.queue.dequeue_fast(queue, 10)[0].claim_id)
    for producer, key in zip(producers, keys, strict=True):
        producer.begin().queue.enqueue(queue, "new", dedup_key=key)
    resetting = admin.start(lambda own: own.reset(queue))
    for producer in producers:
        resetting.waits_for(producer)
        producer.commit()
    assert {outcome.outcome for outcome in resetting.result()} == {"duplicate"}
    assert {message.data for message in admin.queue.dequeue_fast(queue, 10)} == {"new"}


ENDS: dict[str, Callable[[Session, str, int, int], Any]] = {
    "complete": lambda own, queue, _, claim: own.queue.complete(queue, claim),
    "fail_now": lambda own, queue, _, claim: own.queue.fail_now(queue, claim),
    "retry_later": lambda own, queue, _, claim: own.queue.retry_later(queue, claim),
    "reap": lambda own, queue, *_: own.queue.maintain(queue),
    "cancel": lambda own, queue, message, _: own.queue.cancel(queue, [message]),
    "purge_queue": lambda own, queue, *_: own.queue.purge_queue(queue),
}
"""Calls that end a message or its last attempt, by queue, message and claim (or 0)."""


@pytest.mark.promise("P03", "P09", "P10", "P12")
@pytest.mark.parametrize("archive_days", [0, 1])
@pytest.mark.parametrize("isolation", ["read committed", "repeatable read"])
@pytest.mark.parametrize("end", ENDS)
@each_ending
def test_ending_does_not_wait_for_a_producer_of_a_duplicate(
    sessions: Open, queue: str, end: str, isolation: str, archive_days: int, ending: str
) -> None:
    producer, another, worker = sessions(3)
    worker.queue.alter_queue(queue, max_attempts=1, archive_days=archive_days)
    first = worker.queue.enqueue(queue, 0, dedup_key="key").message_id
    claim = 0
    if end not in {"cancel", "purge_queue"}:
        claim = worker.queue.dequeue_fast(queue)[0].claim_id
        if end == "reap":
            expire_claim(worker.connection, claim)
    duplicate = producer.begin(isolation).queue.enqueue(queue, 1, dedup_key="key")
    assert (duplicate.outcome, duplicate.message_id) == ("duplicate", first)
    worker.start(lambda _: ENDS[end](worker, queue, first, claim)).result()
    maintain_later(worker, queue)
    assert everything(worker, queue) == []
    assert worker.queue.queue_stats(queue)[0].leased == 0

    # The key is free, though its next producer may have to wait for the first one.
    sending = another.start(lambda own: own.enqueue(queue, 2, dedup_key="key"))
    producer.end(ending)
    sent = sending.result()
    assert sent.outcome == "enqueued"
    assert another.queue.enqueue(queue, 3, dedup_key="key").message_id == sent.message_id
    maintain_later(worker, queue)
    assert everything(worker, queue) == [sent.message_id]
    assert dialect_of(worker.connection).held_keys(worker.connection, queue) == 1
    assert not dialect_of(worker.connection).stored(worker.connection, queue)["deferred"]


@pytest.mark.promise("P10", "P12")
@each_ending
def test_dead_message_with_a_locked_key_is_reset_with_its_key(
    sessions: Open, queue: str, ending: str
) -> None:
    producer, worker = sessions(2)
    first = worker.queue.enqueue(queue, 0, dedup_key="key").message_id
    claim = worker.queue.dequeue_fast(queue)[0].claim_id
    producer.begin().queue.enqueue(queue, 1, dedup_key="key")
    worker.start(lambda own: own.fail_now(queue, claim)).result()
    producer.end(ending)
    assert worker.queue.reset(queue, [first])[0].outcome == "reset"
    maintain_later(worker, queue)
    assert producer.queue.enqueue(queue, 2, dedup_key="key").message_id == first
    assert everything(worker, queue) == [first]
    assert dialect_of(worker.connection).held_keys(worker.connection, queue) == 1
