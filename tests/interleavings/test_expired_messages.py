"""Messages expire beside open transactions: maintain waits for nobody and nothing goes astray."""

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
    """Enqueue messages whose time has come."""
    sent = [session.queue.enqueue(queue, 0, expire_seconds=60, **options) for _ in range(count)]
    pass_seconds(session.connection, queue, 61)
    return [message.message_id for message in sent]


def expired(session: Session, queue: str) -> int:
    """Call maintain and return how many messages it has withdrawn."""
    [row] = session.queue.maintain(queue)
    assert row.elected
    assert row.expired is not None
    return row.expired


def expired_in_a_transaction(keeper: Session, queue: str, count: int) -> bool:
    """Let maintain withdraw what is due and leave its transaction open.

    Where it withdraws nothing in its caller's transaction, the next one does, and this is False.
    """
    expires = dialect_of(keeper.connection).expires_in_transactions
    assert expired(keeper.begin(), queue) == (count if expires else 0)
    if not expires:
        keeper.commit()
        assert expired(keeper, queue) == count
    return expires


@each_ending
@pytest.mark.promise("P36", "P07")
def test_one_that_an_open_dequeue_holds_is_left_until_it_ends(
    sessions: Open, queue: str, ending: str
) -> None:
    worker, keeper = sessions(2)
    late(worker, queue)
    [message] = worker.begin().queue.dequeue_fast(queue)
    assert expired(keeper, queue) == 0
    assert expired(keeper, queue) == 0
    worker.end(ending)
    if ending == "rollback":
        assert expired(keeper, queue) == 1
        assert everything(keeper, queue) == []
        return
    assert expired(keeper, queue) == 0
    worker.queue.release(queue, message.claim_id)
    assert expired(keeper, queue) == 1


@each_ending
@pytest.mark.parametrize("options", [{}, {"delay_seconds": 500}, {"group_key": "a"}], ids=str)
@pytest.mark.promise("P36", "P06")
def test_others_pass_over_what_an_open_maintain_withdraws(
    sessions: Open, queue: str, ending: str, options: dict[str, Any]
) -> None:
    worker, keeper = sessions(2)
    [message_id] = late(worker, queue, **options)
    if not expired_in_a_transaction(keeper, queue, 1):
        return
    assert worker.queue.dequeue_fast(queue) == []
    [outcome] = worker.queue.cancel(queue, [message_id])
    assert outcome.outcome == "leased"
    keeper.end(ending)
    if ending == "rollback":
        assert expired(keeper, queue) == 1
    assert worker.queue.get_message(queue, message_id) is None
    assert everything(worker, queue) == []


@each_ending
@pytest.mark.parametrize("options", [{}, {"delay_seconds": 500}, {"group_key": "a"}], ids=str)
@pytest.mark.promise("P36")
def test_one_that_is_being_cancelled_is_left_to_that_session(
    sessions: Open, queue: str, ending: str, options: dict[str, Any]
) -> None:
    producer, keeper = sessions(2)
    [message_id] = late(producer, queue, **options)
    assert producer.begin().queue.cancel(queue, [message_id])[0].outcome == "cancelled"
    assert expired(keeper, queue) == 0
    producer.end(ending)
    assert expired(keeper, queue) == (1 if ending == "rollback" else 0)
    assert everything(keeper, queue) == []


@each_ending
@pytest.mark.parametrize("give_back", ["release", "retry_later", "reap"])
@pytest.mark.promise("P36")
def test_one_that_comes_back_while_maintain_looks_expires_with_the_next(
    sessions: Open, queue: str, ending: str, give_back: str
) -> None:
    worker, keeper = sessions(2)
    worker.queue.enqueue(queue, 0, expire_seconds=60)
    [message] = worker.queue.dequeue_fast(queue, lease_seconds=30 if give_back == "reap" else 900)
    pass_seconds(worker.connection, queue, 61)
    worker.begin()
    if give_back == "release":
        worker.queue.release(queue, message.claim_id)
    elif give_back == "retry_later":
        worker.queue.retry_later(queue, message.claim_id, delay_seconds=100)
    else:
        assert worker.queue.reap(queue).reaped == 1
    assert expired(keeper, queue) == 0
    worker.end(ending)
    if ending == "rollback" and give_back == "reap":
        # The maintain above may have walked for long and rests then, which a call of reap does not.
        assert worker.queue.reap(queue).reaped == 1
    elif ending == "rollback":
        worker.queue.release(queue, message.claim_id)
    assert expired(keeper, queue) == 1
    assert everything(keeper, queue) == []


@each_ending
@pytest.mark.promise("P36", "P08")
def test_a_complete_that_is_open_is_left_alone(sessions: Open, queue: str, ending: str) -> None:
    worker, keeper = sessions(2)
    worker.queue.enqueue(queue, 0, expire_seconds=60)
    [message] = worker.queue.dequeue_fast(queue, lease_seconds=900)
    pass_seconds(worker.connection, queue, 61)
    worker.begin().queue.complete(queue, message.claim_id)
    assert expired(keeper, queue) == 0
    worker.end(ending)
    if ending == "rollback":
        worker.queue.release(queue, message.claim_id)
        assert expired(keeper, queue) == 1
    assert everything(keeper, queue) == []


@each_ending
@pytest.mark.promise("P36", "P19")
def test_two_maintains_withdraw_each_message_once(sessions: Open, queue: str, ending: str) -> None:
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
def test_one_that_is_committed_late_expires_with_the_next(
    sessions: Open, queue: str, ending: str
) -> None:
    producer, keeper = sessions(2)
    late(keeper, queue)
    producer.begin().queue.enqueue(queue, 1, expire_seconds=0.001)
    assert expired(keeper, queue) == 1
    late(keeper, queue, 2)
    assert expired(keeper, queue) == 2
    producer.end(ending)
    assert expired(keeper, queue) == (1 if ending == "commit" else 0)
    assert everything(keeper, queue) == []


@each_ending
@pytest.mark.requires("predecessors")
@pytest.mark.promise("P36", "P25", "P26")
def test_maintain_does_not_wait_for_who_has_just_named_it_as_a_predecessor(
    sessions: Open, queue: str, ending: str
) -> None:
    producer, keeper = sessions(2)
    [first] = late(producer, queue)
    producer.begin().queue.enqueue(queue, 1, predecessor_ids=[first])
    at_once = int(dialect_of(keeper.connection).expires_predecessors)
    assert expired(keeper, queue) == at_once
    producer.end(ending)
    assert expired(keeper, queue) == 1 - at_once
    assert len(everything(keeper, queue)) == (1 if ending == "commit" else 0)


@each_ending
@pytest.mark.promise("P36", "P12")
def test_maintain_does_not_wait_for_who_was_told_of_a_duplicate(
    sessions: Open, queue: str, ending: str
) -> None:
    producer, keeper = sessions(2)
    [held] = late(producer, queue, dedup_key="held")
    late(producer, queue, dedup_key="free")
    late(producer, queue)
    assert producer.begin().queue.enqueue(queue, 1, dedup_key="held").message_id == held
    first = expired(keeper, queue)
    assert first >= 2
    producer.end(ending)
    assert expired(keeper, queue) == 3 - first
    assert everything(keeper, queue) == []


@each_ending
@pytest.mark.promise("P36", "P24")
def test_a_group_goes_on_after_its_producer_when_its_last_one_expires(
    sessions: Open, queue: str, ending: str
) -> None:
    producer, keeper = sessions(2)
    late(producer, queue, group_key="a")
    producer.begin().queue.enqueue(queue, 1, group_key="a")
    assert expired(keeper, queue) == 1
    producer.end(ending)
    keeper.queue.maintain(queue)
    pass_seconds(keeper.connection, queue, 1)
    keeper.queue.maintain(queue)
    assert len(everything(keeper, queue)) == (1 if ending == "commit" else 0)


@each_ending
@pytest.mark.promise("P36")
def test_one_that_is_being_promoted_is_withdrawn_when_that_has_ended(
    sessions: Open, queue: str, ending: str
) -> None:
    other, keeper = sessions(2)
    other.queue.enqueue(queue, 0, expire_seconds=60, delay_seconds=30)
    pass_seconds(other.connection, queue, 61)
    assert other.begin().queue.promote(queue).promoted == 1
    assert expired(keeper, queue) == 0
    other.end(ending)
    assert expired(keeper, queue) == 1
    assert everything(keeper, queue) == []


@each_ending
@pytest.mark.parametrize("options", [{}, {"delay_seconds": 500}, {"group_key": "a"}], ids=str)
@pytest.mark.requires("predecessors")
@pytest.mark.promise("P36", "P26")
def test_one_that_is_being_let_go_is_withdrawn_when_that_has_ended(
    sessions: Open, queue: str, ending: str, options: dict[str, Any]
) -> None:
    """It goes from the blocked ones to ready, to delayed or into its group."""
    worker, keeper = sessions(2)
    first = worker.queue.enqueue(queue, 0).message_id
    [message] = worker.queue.dequeue_fast(queue, lease_seconds=9000)
    late(worker, queue, predecessor_ids=[first], **options)
    worker.begin().queue.complete(queue, message.claim_id)
    assert expired(keeper, queue) == 0
    worker.end(ending)
    assert expired(keeper, queue) == 1
    if ending == "rollback":
        worker.queue.complete(queue, message.claim_id)
    assert everything(keeper, queue) == []


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
@pytest.mark.promise("P36")
def test_an_old_snapshot_withdraws_nothing_wrongly(
    sessions: Open, queue: str, isolation: str
) -> None:
    keeper, worker = sessions(2)
    worker.queue.enqueue(queue, 0, expire_seconds=60)
    [message] = worker.queue.dequeue_fast(queue, lease_seconds=900)
    keeper.begin(isolation).queue.get_message(queue, 1)
    worker.queue.release(queue, message.claim_id)
    pass_seconds(worker.connection, queue, 61)
    try:
        keeper.queue.maintain(queue)
        keeper.commit()
    except RowqError:
        keeper.rollback()
    keeper.queue.maintain(queue)
    assert everything(worker, queue) == []
    assert worker.queue.get_message(queue, message.message_id) is None


@pytest.mark.promise("P36", "P06")
def test_what_open_dequeues_hold_does_not_stand_in_front_of_the_others(
    sessions: Open, queue: str
) -> None:
    worker, keeper = sessions(2)
    for _ in range(60):
        worker.queue.enqueue(queue, 0, expire_seconds=60, priority=0)
    for _ in range(3):
        worker.queue.enqueue(queue, 0, expire_seconds=61)
    pass_seconds(worker.connection, queue, 62)
    assert len(worker.begin().queue.dequeue_fast(queue, 60)) == 60
    counts = [keeper.queue.maintain(queue, 2)[0].expired for _ in range(6)]
    assert sum(count or 0 for count in counts) == 3
    worker.rollback()
    assert expired(keeper, queue) == 60
    assert everything(keeper, queue) == []
