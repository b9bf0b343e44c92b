"""Expiry overlaps with open transactions: maintain never waits and no message is lost."""

from typing import Any

import pytest

from rowq import RowqError
from tests.helpers.dialects import dialect_of
from tests.interleavings.conftest import Open
from tests.interleavings.sessions import Session
from tests.interleavings.work import each_ending, everything
from tests.stored_times import pass_seconds

pytestmark = [pytest.mark.requires("expiry"), pytest.mark.pitfall("sqlserver 36")]


def late(session: Session, queue: str, count: int = 1, **options: Any) -> list[int]:
    """Enqueue messages that expire and are due; return their ids."""
    sent = [session.queue.enqueue(queue, 0, expire_seconds=60, **options) for _ in range(count)]
    pass_seconds(session.connection, queue, 61)
    return [message.message_id for message in sent]


def expired(session: Session, queue: str) -> int:
    """Call maintain and return how many messages expired."""
    [row] = session.queue.maintain(queue)
    assert row.elected
    assert row.expired is not None
    return row.expired


def expired_in_a_transaction(maintainer: Session, queue: str, count: int) -> bool:
    """Expire due messages in an open transaction; return whether the engine does that.

    If not, a call outside the transaction expires them.
    """
    expires = dialect_of(maintainer.connection).expires_in_transactions
    assert expired(maintainer.begin(), queue) == (count if expires else 0)
    if not expires:
        maintainer.commit()
        assert expired(maintainer, queue) == count
    return expires


@each_ending
@pytest.mark.promise("P36", "P07")
def test_message_in_an_open_dequeue_expires_after_its_rollback(
    sessions: Open, queue: str, ending: str
) -> None:
    worker, maintainer = sessions(2)
    late(worker, queue)
    [message] = worker.begin().queue.dequeue_fast(queue)
    assert expired(maintainer, queue) == 0
    assert expired(maintainer, queue) == 0
    worker.end(ending)
    if ending == "rollback":
        assert expired(maintainer, queue) == 1
        assert everything(maintainer, queue) == []
        return
    assert expired(maintainer, queue) == 0
    worker.queue.release(queue, message.claim_id)
    assert expired(maintainer, queue) == 1


@each_ending
@pytest.mark.parametrize("options", [{}, {"delay_seconds": 500}, {"group_key": "a"}], ids=str)
@pytest.mark.promise("P36", "P06")
def test_other_calls_skip_a_message_that_is_expiring(
    sessions: Open, queue: str, ending: str, options: dict[str, Any]
) -> None:
    worker, maintainer = sessions(2)
    [message_id] = late(worker, queue, **options)
    if not expired_in_a_transaction(maintainer, queue, 1):
        return
    assert worker.queue.dequeue_fast(queue) == []
    [outcome] = worker.queue.cancel(queue, [message_id])
    assert outcome.outcome == "leased"
    maintainer.end(ending)
    if ending == "rollback":
        assert expired(maintainer, queue) == 1
    assert worker.queue.get_message(queue, message_id) is None
    assert everything(worker, queue) == []


@each_ending
@pytest.mark.parametrize("options", [{}, {"delay_seconds": 500}, {"group_key": "a"}], ids=str)
@pytest.mark.promise("P36")
def test_maintain_skips_a_message_that_is_being_cancelled(
    sessions: Open, queue: str, ending: str, options: dict[str, Any]
) -> None:
    producer, maintainer = sessions(2)
    [message_id] = late(producer, queue, **options)
    assert producer.begin().queue.cancel(queue, [message_id])[0].outcome == "cancelled"
    assert expired(maintainer, queue) == 0
    producer.end(ending)
    assert expired(maintainer, queue) == (1 if ending == "rollback" else 0)
    assert everything(maintainer, queue) == []


@each_ending
@pytest.mark.parametrize("routine", ["release", "retry_later", "reap"])
@pytest.mark.promise("P36")
def test_message_in_an_open_return_expires_with_the_next_run(
    sessions: Open, queue: str, ending: str, routine: str
) -> None:
    worker, maintainer = sessions(2)
    worker.queue.enqueue(queue, 0, expire_seconds=60)
    [message] = worker.queue.dequeue_fast(queue, lease_seconds=30 if routine == "reap" else 900)
    pass_seconds(worker.connection, queue, 61)
    worker.begin()
    if routine == "release":
        worker.queue.release(queue, message.claim_id)
    elif routine == "retry_later":
        worker.queue.retry_later(queue, message.claim_id, delay_seconds=100)
    else:
        assert worker.queue.reap(queue).reaped == 1
    assert expired(maintainer, queue) == 0
    worker.end(ending)
    if ending == "rollback" and routine == "reap":
        # maintain may back off after a slow scan, a call of reap does not.
        assert worker.queue.reap(queue).reaped == 1
    elif ending == "rollback":
        worker.queue.release(queue, message.claim_id)
    assert expired(maintainer, queue) == 1
    assert everything(maintainer, queue) == []


@each_ending
@pytest.mark.promise("P36", "P08")
def test_maintain_skips_a_message_in_an_open_complete(
    sessions: Open, queue: str, ending: str
) -> None:
    worker, maintainer = sessions(2)
    worker.queue.enqueue(queue, 0, expire_seconds=60)
    [message] = worker.queue.dequeue_fast(queue, lease_seconds=900)
    pass_seconds(worker.connection, queue, 61)
    worker.begin().queue.complete(queue, message.claim_id)
    assert expired(maintainer, queue) == 0
    worker.end(ending)
    if ending == "rollback":
        worker.queue.release(queue, message.claim_id)
        assert expired(maintainer, queue) == 1
    assert everything(maintainer, queue) == []


@each_ending
@pytest.mark.promise("P36", "P19")
def test_overlapping_maintain_calls_expire_each_message_once(
    sessions: Open, queue: str, ending: str
) -> None:
    first, second = sessions(2)
    late(first, queue, 3)
    if not expired_in_a_transaction(first, queue, 3):
        return
    [row] = second.queue.maintain(queue)
    assert not row.elected
    assert row.expired == 0
    first.end(ending)
    assert expired(second, queue) == (3 if ending == "rollback" else 0)


@each_ending
@pytest.mark.promise("P36", "P14")
def test_message_committed_late_expires_with_the_next_run(
    sessions: Open, queue: str, ending: str
) -> None:
    producer, maintainer = sessions(2)
    late(maintainer, queue)
    producer.begin().queue.enqueue(queue, 1, expire_seconds=0.001)
    assert expired(maintainer, queue) == 1
    late(maintainer, queue, 2)
    assert expired(maintainer, queue) == 2
    producer.end(ending)
    assert expired(maintainer, queue) == (1 if ending == "commit" else 0)
    assert everything(maintainer, queue) == []


@each_ending
@pytest.mark.requires("predecessors")
@pytest.mark.promise("P36", "P25", "P26")
def test_maintain_does_not_wait_for_a_producer_naming_a_message(
    sessions: Open, queue: str, ending: str
) -> None:
    producer, maintainer = sessions(2)
    [first] = late(producer, queue)
    producer.begin().queue.enqueue(queue, 1, predecessor_ids=[first])
    at_once = int(dialect_of(maintainer.connection).expires_predecessors)
    assert expired(maintainer, queue) == at_once
    producer.end(ending)
    assert expired(maintainer, queue) == 1 - at_once
    assert len(everything(maintainer, queue)) == (1 if ending == "commit" else 0)


@each_ending
@pytest.mark.promise("P36", "P12")
def test_maintain_does_not_wait_for_a_producer_of_a_duplicate(
    sessions: Open, queue: str, ending: str
) -> None:
    producer, maintainer = sessions(2)
    [held] = late(producer, queue, dedup_key="held")
    late(producer, queue, dedup_key="free")
    late(producer, queue)
    assert producer.begin().queue.enqueue(queue, 1, dedup_key="held").message_id == held
    first = expired(maintainer, queue)
    assert first >= 2
    producer.end(ending)
    assert expired(maintainer, queue) == 3 - first
    assert everything(maintainer, queue) == []


@each_ending
@pytest.mark.promise("P36", "P24")
def test_group_continues_with_its_producer_if_its_last_expires(
    sessions: Open, queue: str, ending: str
) -> None:
    producer, maintainer = sessions(2)
    late(producer, queue, group_key="a")
    producer.begin().queue.enqueue(queue, 1, group_key="a")
    assert expired(maintainer, queue) == 1
    producer.end(ending)
    maintainer.queue.maintain(queue)
    pass_seconds(maintainer.connection, queue, 1)
    maintainer.queue.maintain(queue)
    assert len(everything(maintainer, queue)) == (1 if ending == "commit" else 0)


@each_ending
@pytest.mark.promise("P36")
def test_message_in_an_open_promotion_expires_after_it_ends(
    sessions: Open, queue: str, ending: str
) -> None:
    other, maintainer = sessions(2)
    other.queue.enqueue(queue, 0, expire_seconds=60, delay_seconds=30)
    pass_seconds(other.connection, queue, 61)
    assert other.begin().queue.promote(queue).promoted == 1
    assert expired(maintainer, queue) == 0
    other.end(ending)
    assert expired(maintainer, queue) == 1
    assert everything(maintainer, queue) == []


@each_ending
@pytest.mark.parametrize("options", [{}, {"delay_seconds": 500}, {"group_key": "a"}], ids=str)
@pytest.mark.requires("predecessors")
@pytest.mark.promise("P36", "P26")
def test_message_that_is_resuming_expires_after_the_call_ends(
    sessions: Open, queue: str, ending: str, options: dict[str, Any]
) -> None:
    """The message moves from blocked to ready, to delayed or into its group."""
    worker, maintainer = sessions(2)
    first = worker.queue.enqueue(queue, 0).message_id
    [message] = worker.queue.dequeue_fast(queue, lease_seconds=9000)
    late(worker, queue, predecessor_ids=[first], **options)
    worker.begin().queue.complete(queue, message.claim_id)
    assert expired(maintainer, queue) == 0
    worker.end(ending)
    assert expired(maintainer, queue) == 1
    if ending == "rollback":
        worker.queue.complete(queue, message.claim_id)
    assert everything(maintainer, queue) == []


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
@pytest.mark.promise("P36")
def test_maintain_under_an_old_snapshot_expires_correctly(
    sessions: Open, queue: str, isolation: str
) -> None:
    maintainer, worker = sessions(2)
    worker.queue.enqueue(queue, 0, expire_seconds=60)
    [message] = worker.queue.dequeue_fast(queue, lease_seconds=900)
    maintainer.begin(isolation).queue.get_message(queue, 1)
    worker.queue.release(queue, message.claim_id)
    pass_seconds(worker.connection, queue, 61)
    try:
        maintainer.queue.maintain(queue)
        maintainer.commit()
    except RowqError:
        maintainer.rollback()
    maintainer.queue.maintain(queue)
    assert everything(worker, queue) == []
    assert worker.queue.get_message(queue, message.message_id) is None


@pytest.mark.promise("P36", "P06")
def test_messages_in_an_open_dequeue_block_no_others_expiry(sessions: Open, queue: str) -> None:
    worker, maintainer = sessions(2)
    for _ in range(60):
        worker.queue.enqueue(queue, 0, expire_seconds=60, priority=0)
    for _ in range(3):
        worker.queue.enqueue(queue, 0, expire_seconds=61)
    pass_seconds(worker.connection, queue, 62)
    assert len(worker.begin().queue.dequeue_fast(queue, 60)) == 60
    counts = [maintainer.queue.maintain(queue, 2)[0].expired for _ in range(6)]
    assert sum(count or 0 for count in counts) == 3
    worker.rollback()
    assert expired(maintainer, queue) == 60
    assert everything(maintainer, queue) == []
