"""A producer's open transaction blocks neither producers nor consumers."""

from functools import partial
from itertools import product

import pytest

from rowq import NewMessage, Queue
from tests.interleavings.conftest import Open
from tests.interleavings.sessions import Session, Step, orders, play
from tests.interleavings.work import each_ending, everything, maintain_later

ENDINGS = list(product(["commit", "rollback"], repeat=2))


@pytest.mark.pitfall("mysql 8")
@pytest.mark.promise("P01", "P06")
def test_open_enqueue_blocks_no_other_session(sessions: Open, queue: str) -> None:
    slow, producer, consumer = sessions(3)
    late = slow.begin().queue.enqueue(queue, 0).message_id
    later = producer.queue.enqueue(queue, 0).message_id
    batch = producer.queue.enqueue_batch(queue, [NewMessage(data=0), NewMessage(priority=1)])
    assert everything(consumer, queue) == [batch[1].message_id, later, batch[0].message_id]
    assert consumer.queue.maintain(queue)[0].elected
    slow.commit()
    maintain_later(consumer, queue)
    assert everything(consumer, queue) == [late]


@pytest.mark.promise("P01")
def test_rollback_to_savepoint_undoes_one_enqueue(sessions: Open, queue: str) -> None:
    producer, consumer = sessions(2)
    kept = [producer.begin().queue.enqueue(queue, 0).message_id]
    producer.savepoint("before_more")
    producer.queue.enqueue(queue, 0, priority=1)
    producer.back_to("before_more")
    kept.insert(0, producer.queue.enqueue(queue, 0, priority=1).message_id)
    producer.commit()
    assert everything(consumer, queue) == kept


@pytest.mark.slow("two sessions in 60 orders", on="mariadb", ci="mariadb")
@pytest.mark.promise("P01", "P02")
@pytest.mark.parametrize(("first_end", "second_end"), ENDINGS)
def test_first_messages_of_a_new_lane_are_all_delivered(
    sessions: Open, queue_name: str, first_end: str, second_end: str
) -> None:
    first, second, consumer = sessions(3)
    for number, order in enumerate(orders("a1 a2", "b1 b2", "drain")):
        queue = f"{queue_name}_{number}"
        consumer.queue.create_queue(queue)
        steps = {
            "a1": Step("a1", first, partial(enqueue, first, queue, "a")),
            "a2": Step("a2", first, lambda _: first.end(first_end)),
            "b1": Step("b1", second, partial(enqueue, second, queue, "b")),
            "b2": Step("b2", second, lambda _: second.end(second_end)),
            "drain": Step("drain", consumer, partial(drain, queue)),
        }
        seen = play([steps[name] for name in order.split()])["drain"]
        expected = {"a"} if first_end == "commit" else set()
        expected |= {"b"} if second_end == "commit" else set()
        maintain_later(consumer, queue)
        later = {message.data for message in consumer.queue.dequeue_fast(queue, 10)}
        assert (seen | later, seen & later) == (expected, set()), order


def enqueue(producer: Session, queue: str, data: str, _: Queue) -> None:
    """Open a transaction and enqueue one message."""
    producer.begin().queue.enqueue(queue, data)


def drain(queue: str, own: Queue) -> set[str]:
    """Maintain the queue, and dequeue all ready messages."""
    own.maintain(queue)
    return {message.data for message in own.dequeue_fast(queue, 10)}


@pytest.mark.promise("P05", "P14")
@each_ending
def test_maintain_opens_a_lane_with_an_open_first_message(
    sessions: Open, queue: str, ending: str
) -> None:
    first, other, worker = sessions(3)
    mine = first.begin().queue.enqueue(queue, priority=1).message_id
    usual = other.queue.enqueue(queue).message_id
    ids = [other.queue.enqueue(queue, priority=1).message_id for _ in range(2)]
    worker.queue.maintain(queue)
    assert [message.message_id for message in worker.queue.peek(queue, max_messages=1)] == ids[:1]
    [leased] = worker.queue.dequeue_fast(queue)
    assert leased.message_id == ids[0]
    worker.queue.release(queue, leased.claim_id)
    worker.queue.maintain(queue)
    assert [message.message_id for message in worker.queue.dequeue_fast(queue, 2)] == ids
    first.end(ending)
    worker.queue.maintain(queue)
    assert everything(worker, queue) == [mine] * (ending == "commit") + [usual]
    worker.queue.maintain(queue)
    later = other.queue.enqueue(queue, priority=1).message_id
    assert everything(worker, queue) == [later]
