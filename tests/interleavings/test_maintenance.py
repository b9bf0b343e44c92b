"""Maintenance in several sessions at once: no work is done twice, and no session waits."""

import pytest

from rowq import NewMessage
from tests.interleavings.conftest import Open
from tests.interleavings.sessions import Session
from tests.interleavings.work import each_ending, everything
from tests.stored_times import pass_seconds

pytestmark = pytest.mark.promise("P19")


def delayed(session: Session, queue: str, count: int) -> list[int]:
    """Enqueue delayed messages that are overdue now."""
    sent = session.queue.enqueue_batch(queue, [NewMessage(data=0, delay_seconds=30)] * count)
    pass_seconds(session.connection, queue, 60)
    return [message.message_id for message in sent]


def expired(session: Session, queue: str, claims: int) -> list[int]:
    """Lease one new message each to claims whose leases have expired."""
    ids = []
    for _ in range(claims):
        session.queue.enqueue(queue, 0)
        ids.append(session.queue.dequeue_fast(queue)[0].message_id)
    pass_seconds(session.connection, queue, 60)
    return ids


def count_archived(session: Session) -> int:
    """Count the archive, as a report might."""
    ((count,),) = session.execute(f"select count(*) from {session.archive_table}").fetchall()
    return int(count)


@pytest.mark.promise("P03")
def test_two_reapers_return_different_claims(sessions: Open, queue: str) -> None:
    first, second = sessions(2)
    ids = expired(first, queue, 4)
    assert first.begin().queue.reap(queue, 1).reaped == 1
    assert second.begin().queue.reap(queue, 2).reaped == 2
    assert first.queue.reap(queue).reaped == 1
    assert second.queue.reap(queue).reaped == 0
    first.commit()
    second.commit()
    assert sorted(everything(first, queue)) == ids


@pytest.mark.promise("P02", "P09")
def test_rolled_back_reap_is_repeated_by_another_session(sessions: Open, queue: str) -> None:
    first, second = sessions(2)
    ids = expired(first, queue, 3)
    assert first.begin().queue.reap(queue).reaped == 3
    assert second.queue.reap(queue).reaped == 0
    first.rollback()
    assert second.queue.reap(queue).reaped == 3
    assert everything(first, queue) == ids


@pytest.mark.promise("P11")
def test_two_promoters_promote_each_message_once(sessions: Open, queue: str) -> None:
    first, second = sessions(2)
    ids = delayed(first, queue, 6)
    assert first.begin().queue.promote(queue, 2).promoted == 2
    assert second.begin().queue.promote(queue, 3).promoted == 3
    assert first.queue.promote(queue).promoted == 1
    first.commit()
    second.rollback()
    assert first.queue.promote(queue).promoted == 3
    assert sorted(everything(first, queue)) == ids


@pytest.mark.promise("P11")
def test_dequeue_promotes_beside_an_open_promote(sessions: Open, queue: str) -> None:
    maintainer, consumer = sessions(2)
    ids = delayed(consumer, queue, 4)
    assert maintainer.begin().queue.promote(queue, 2).promoted == 2
    assert everything(consumer, queue) == ids[2:]
    maintainer.rollback()
    assert everything(consumer, queue) == ids[:2]


def test_maintain_elects_one_of_two_sessions(sessions: Open, queue: str) -> None:
    first, second = sessions(2)
    ids = [*expired(first, queue, 1), *delayed(first, queue, 1)]
    elected = first.begin().queue.maintain(queue)[0]
    assert (elected.elected, elected.reaped, elected.promoted) == (True, 1, 1)
    passed = second.queue.maintain(queue)[0]
    assert (passed.elected, passed.reaped, passed.promoted) == (False, 0, 0)
    first.rollback()
    again = second.queue.maintain(queue)[0]
    assert (again.elected, again.reaped, again.promoted) == (True, 1, 1)
    assert sorted(everything(first, queue)) == sorted(ids)


@pytest.mark.promise("P06")
def test_maintain_of_all_queues_skips_a_maintained_queue(
    sessions: Open, queue: str, queue_name: str
) -> None:
    first, second = sessions(2)
    other = f"{queue_name}_other"
    first.queue.create_queue(other)
    first.begin().queue.maintain(queue)
    elected: dict[str, bool] = {}
    while not {queue, other} <= elected.keys():
        # With more than 1000 queues a call maintains 1000 at random.
        elected |= {result.queue_name: result.elected for result in second.queue.maintain()}
    assert (elected[queue], elected[other]) == (False, True)


@pytest.mark.promise("P06")
def test_maintain_of_all_queues_is_not_elected_for_a_held_idle_queue(
    sessions: Open, queue: str
) -> None:
    first, second = sessions(2)
    first.queue.enqueue(queue, 0)
    for _ in range(4):  # Then there is nothing to do.
        first.queue.maintain(queue)

    def is_elected() -> bool:
        elected: dict[str, bool] = {}
        while queue not in elected:
            elected |= {result.queue_name: result.elected for result in second.queue.maintain()}
        return elected[queue]

    first.begin().queue.maintain(queue)
    assert not is_elected()
    first.commit()
    assert is_elected()


@pytest.mark.promise("P03", "P07")
def test_maintain_keeps_messages_of_an_open_dequeue(sessions: Open, queue: str) -> None:
    consumer, maintainer = sessions(2)
    ids = [consumer.queue.enqueue(queue, 0).message_id for _ in range(4)]
    consumer.begin().queue.dequeue_fast(queue, 2)
    for _ in range(3):
        assert maintainer.queue.maintain(queue)[0].elected
        pass_seconds(maintainer.connection, queue, 120)
    consumer.rollback()
    # Without order: no time has passed for the locked rows.
    assert sorted(everything(maintainer, queue)) == ids


@pytest.mark.promise("P02")
def test_open_maintain_blocks_no_producer_or_consumer(sessions: Open, queue: str) -> None:
    maintainer, producer, consumer = sessions(3)
    old = [*expired(producer, queue, 2), *delayed(producer, queue, 2)]
    maintainer.begin().queue.maintain(queue)
    new = [producer.queue.enqueue(queue, 0).message_id for _ in range(3)]
    messages = consumer.queue.dequeue_fast(queue, 10)
    assert [message.message_id for message in messages] == new
    consumer.queue.complete(queue, messages[0].claim_id)
    maintainer.commit()
    assert sorted(everything(consumer, queue)) == sorted(old)


def finish_days_ago(session: Session, queue: str, days: int) -> int:
    """Complete a new message as if `days` ago, and return its id."""
    session.queue.enqueue(queue, 0)
    message = session.queue.dequeue_fast(queue)[0]
    session.queue.complete(queue, message.claim_id)
    pass_seconds(session.connection, queue, days * 86400)
    return message.message_id


@each_ending
@pytest.mark.requires("days")
def test_two_sessions_add_an_archive_day_once(sessions_apart: Open, ending: str) -> None:
    first, second = sessions_apart(2)
    for queue in ("one", "two"):
        first.queue.create_queue(queue, archive_days=30)
        finish_days_ago(first, queue, 3)
    assert first.begin().queue.archive("one").archived == 1
    archiving = second.start(lambda own: own.archive("two"))
    archiving.waits_for(first)
    first.end(ending)
    assert archiving.result().archived == 1
    assert first.queue.archive("one").archived == (0 if ending == "commit" else 1)


@pytest.mark.pitfall("postgres 13", "mysql 15", "sqlserver 47")
@pytest.mark.requires("days")
def test_purge_archive_skips_days_during_a_long_read(
    sessions_apart: Open,
) -> None:
    admin, reader = sessions_apart(2)
    admin.queue.create_queue("orders", archive_days=2)
    for days in (9, 5, 1):
        message = finish_days_ago(admin, "orders", days)
    assert admin.queue.archive("orders").archived == 3
    reader.begin("repeatable read")
    assert count_archived(reader) == 3

    held_up = admin.queue.purge_archive("orders")
    assert (held_up.purged, held_up.partitions_dropped) == (0, 0)
    assert count_archived(reader) == 3

    reader.commit()
    assert admin.queue.purge_archive("orders").partitions_dropped == 2
    kept = admin.queue.get_message("orders", message)
    assert kept is not None
    assert kept.state == "completed"


@pytest.mark.pitfall("mysql 15")
@pytest.mark.promise("P04")
@pytest.mark.requires("days")
def test_reader_of_the_archive_blocks_no_work(sessions_apart: Open) -> None:
    worker, reader = sessions_apart(2)
    worker.queue.create_queue("orders", archive_days=2)
    finish_days_ago(worker, "orders", 9)
    worker.queue.archive("orders")
    count_archived(reader.begin("repeatable read"))
    finish_days_ago(worker, "orders", 0)
    done = worker.queue.maintain("orders")[0]
    assert (done.elected, done.archived, done.partitions_dropped) == (True, 1, 0)
    finish_days_ago(worker, "orders", 0)
    reader.commit()
    pass_seconds(worker.connection, "orders", 61)
    done = worker.queue.maintain("orders")[0]
    assert (done.archived, done.partitions_dropped) == (1, 1)
