"""Stricter isolation levels, and effects in the same transaction as the message."""

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from rowq import NewMessage, Queue, QueueNotEmpty, WrongTransactionState
from rowq.engines import engine_for_connection
from tests.engines.base import wait_until
from tests.helpers.dialects import dialect_of
from tests.interleavings.conftest import Open
from tests.interleavings.sessions import Session
from tests.interleavings.work import everything
from tests.stored_times import tick

pytestmark = pytest.mark.pitfall("postgres 12")

STRICT = ["repeatable read", "serializable"]
each_strict = pytest.mark.parametrize("isolation", STRICT)


def result_or_transient_error(session: Session, call: Callable[[Queue], Any]) -> Any:
    """Return the result of a call in an open transaction, or None after a transient error."""
    try:
        return call(session.queue)
    except Exception as error:
        if not engine_for_connection(session.connection).is_transient(error):
            raise
        session.rollback()
        return None


@each_strict
@pytest.mark.promise("P03", "P06")
def test_strict_dequeue_is_correct_or_fails_transiently(
    sessions: Open, queue: str, isolation: str
) -> None:
    strict, other = sessions(2)
    ids = [message.message_id for message in other.queue.enqueue_batch(queue, [NewMessage()] * 4)]
    strict.begin(isolation).execute("select 1")
    taken = [message.message_id for message in other.queue.dequeue_fast(queue, 2)]
    messages = result_or_transient_error(strict, lambda own: own.dequeue_fast(queue, 2))
    if messages:
        taken += [message.message_id for message in messages]
        strict.commit()
    strict.begin(isolation)
    taken += everything(strict, queue)
    strict.commit()
    assert taken == ids


@each_strict
@pytest.mark.promise("P08")
def test_strict_complete_is_stale_or_fails_transiently(
    sessions: Open, queue: str, isolation: str
) -> None:
    strict, other = sessions(2)
    sent = other.queue.enqueue(queue, 0).message_id
    claim = other.queue.dequeue_fast(queue)[0].claim_id
    strict.begin(isolation).execute("select 1")
    other.queue.release(queue, claim)
    outcomes = result_or_transient_error(strict, lambda own: own.complete(queue, claim, [sent]))
    if outcomes:
        assert [outcome.outcome for outcome in outcomes] == ["stale"]
        strict.commit()
    assert everything(other, queue) == [sent]


@each_strict
@pytest.mark.promise("P12")
def test_strict_enqueue_is_duplicate_or_fails_transiently(
    sessions: Open, queue: str, isolation: str
) -> None:
    strict, other = sessions(2)
    strict.begin(isolation).execute("select 1")
    sent = other.queue.enqueue(queue, 0, dedup_key="key").message_id
    again = result_or_transient_error(strict, lambda own: own.enqueue(queue, dedup_key="key"))
    if again:
        assert (again.outcome, again.message_id) == ("duplicate", sent)
        strict.commit()
    strict.begin(isolation)
    assert strict.queue.enqueue(queue, 0, dedup_key="key").outcome == "duplicate"
    strict.commit()
    assert everything(other, queue) == [sent]


@each_strict
@pytest.mark.promise("P01", "P02")
def test_strict_drop_queue_loses_no_newer_message(
    sessions: Open, queue: str, isolation: str
) -> None:
    strict, other = sessions(2)
    strict.begin(isolation).execute("select 1")
    sent = other.queue.enqueue(queue, 0).message_id
    with contextlib.suppress(QueueNotEmpty, WrongTransactionState):
        assert not result_or_transient_error(strict, lambda own: own.drop_queue(queue))
    strict.rollback()
    assert everything(other, queue) == [sent]


@pytest.mark.slow("two sessions in every order", on="mariadb", ci="mariadb")
@each_strict
@pytest.mark.promise("P14", "P19")
def test_strict_maintain_loses_no_late_message(sessions: Open, queue: str, isolation: str) -> None:
    strict, late, other = sessions(3)
    sent = late.begin().queue.enqueue(queue, 0).message_id
    dialect_of(strict.connection).wait_at_most(strict.connection, 1)
    strict.begin(isolation).execute("select 1")
    for _ in range(2):
        other.queue.enqueue_batch(queue, [NewMessage()] * 1000)
        messages = other.queue.dequeue_fast(queue, 1000)
        other.queue.complete(queue, messages[0].claim_id)
    result_or_transient_error(strict, lambda own: own.maintain(queue))
    with contextlib.suppress(Exception):
        strict.commit()
    late.commit()
    tick(other.connection, queue)
    other.queue.maintain(queue)
    assert everything(other, queue) == [sent]


@each_strict
@pytest.mark.promise("P03", "P04")
def test_strict_consumers_finish_every_message_once(
    sessions: Open, queue: str, isolation: str
) -> None:
    workers = sessions(3)
    ids = [
        message.message_id for message in workers[0].queue.enqueue_batch(queue, [NewMessage()] * 60)
    ]
    done: list[int] = []

    def work(session: Session, _: Queue) -> None:
        def all_is_done() -> bool:
            step(session, queue, isolation, done)
            return len(done) >= len(ids)

        # Strict readers may skip each other's rows at first.
        wait_until(all_is_done, "all is done", seconds=20)

    running = [worker.start(partial(work, worker)) for worker in workers]
    for call in running:
        call.result()
    assert sorted(done) == ids


def step(session: Session, queue: str, isolation: str, done: list[int]) -> None:
    """Dequeue and complete in one transaction; ignore a transient error."""
    try:
        session.begin(isolation)
        messages = session.queue.dequeue_fast(queue, 3)
        if messages:
            session.queue.complete(queue, messages[0].claim_id)
        session.commit()
    except Exception as error:
        if not engine_for_connection(session.connection).is_transient(error):
            raise
        session.rollback()
        return
    done += [message.message_id for message in messages]


@pytest.fixture
def effects(sessions: Open, queue: str) -> Iterator[str]:
    """Return the name of a table for the effects of a handler."""
    (admin,) = sessions(1)
    table = f"effect_{queue[-8:]}"
    dialect_of(admin.connection).make_table(admin.connection, table, "message_id bigint not null")
    yield table
    admin.execute(f"drop table {table}")


@pytest.mark.promise("P01", "P02", "P07")
@pytest.mark.parametrize("isolation", ["read committed", *STRICT])
def test_dequeue_effect_and_complete_are_atomic(
    sessions: Open, queue: str, effects: str, isolation: str
) -> None:
    worker, other = sessions(2)
    sent = other.queue.enqueue(queue, 0).message_id

    def handle() -> int:
        message = worker.begin(isolation).queue.dequeue_fast(queue)[0]
        worker.execute(f"insert into {effects} values (%s)", [message.message_id])
        worker.queue.complete(queue, message.claim_id)
        assert everything(other, queue) == []
        return message.attempt

    def count() -> int:
        return int(other.execute(f"select count(*) from {effects}").fetchone()[0])

    assert handle() == 1
    worker.rollback()
    assert count() == 0
    assert handle() == 1
    worker.commit()
    assert count() == 1
    assert other.queue.get_message(queue, sent) is None


@pytest.mark.promise("P01", "P12")
def test_next_step_is_enqueued_with_the_completion(sessions: Open, queue: str) -> None:
    worker, other = sessions(2)
    other.queue.enqueue(queue, "step 1", dedup_key="order 1")
    for ending in ("rollback", "commit"):
        message = worker.begin().queue.dequeue_fast(queue)[0]
        assert message.data == "step 1"
        worker.queue.complete(queue, message.claim_id)
        sent = worker.queue.enqueue(queue, "step 2", dedup_key="order 1")
        assert sent.outcome == "enqueued"
        assert other.queue.dequeue_fast(queue) == []
        worker.end(ending)
    assert [message.data for message in other.queue.dequeue_fast(queue, 5)] == ["step 2"]
