"""create_queue and drop_queue beside sessions that use the queue."""

import contextlib
import time
from typing import Any

import pytest

from rowq import NewMessage, Queue, QueueBusy, QueueNotFound
from tests.interleavings.conftest import Open
from tests.interleavings.sessions import Running, Session
from tests.interleavings.work import each_ending, everything


def start_to_drop(admin: Session, holder: Session, queue: str) -> Running[Any]:
    """Repeat drop_queue until it is seen to wait for another session.

    It waits for milliseconds, which a loaded machine may miss.
    """
    for _ in range(50):
        dropping = admin.start(lambda own: own.drop_queue(queue, force=True))
        while not dropping.future.done():
            if holder.id in admin.server.waiting_sessions().get(admin.id, ()):
                return dropping
            time.sleep(0.001)
        with pytest.raises(QueueBusy):
            dropping.result()
    pytest.fail("drop_queue was never seen to wait")


@pytest.mark.promise("P01", "P02")
def test_drop_queue_fails_beside_an_open_enqueue(sessions: Open, queue: str) -> None:
    producer, admin = sessions(2)
    sent = [producer.begin().queue.enqueue(queue, 0).message_id]
    dropping = start_to_drop(admin, producer, queue)
    sent.append(producer.queue.enqueue(queue, 0).message_id)
    with pytest.raises(QueueBusy):
        dropping.result()
    producer.commit()
    assert everything(admin, queue) == sent


@pytest.mark.promise("P02")
def test_drop_queue_gives_way_to_a_completing_worker(sessions: Open, queue: str) -> None:
    worker, admin = sessions(2)
    worker.queue.enqueue(queue, 0)
    claim = worker.begin().queue.dequeue_fast(queue)[0].claim_id
    dropping = start_to_drop(admin, worker, queue)
    assert [outcome.outcome for outcome in worker.queue.complete(queue, claim)] == ["completed"]
    worker.commit()
    with contextlib.suppress(QueueBusy):
        assert dropping.result().outcome == "dropped"


@pytest.mark.promise("P15")
@pytest.mark.parametrize("force", [False, True])
def test_drop_queue_fails_beside_an_open_pause(sessions: Open, queue: str, *, force: bool) -> None:
    other, admin = sessions(2)
    other.begin().queue.pause_queue(queue)
    with pytest.raises(QueueBusy):
        admin.queue.drop_queue(queue, force=force)
    other.commit()
    assert admin.queue.queue_stats(queue)[0].is_paused


@pytest.mark.promise("P01", "P15")
@each_ending
@pytest.mark.parametrize("size", [None, 1])
def test_enqueue_waits_for_an_open_drop_of_its_queue(
    sessions: Open, queue: str, ending: str, size: int | None
) -> None:
    def send(own: Queue) -> int:
        if size is None:
            return own.enqueue(queue, 0).message_id
        return own.enqueue_batch(queue, [NewMessage(data=0)] * size)[0].message_id

    admin, producer = sessions(2)
    admin.begin().queue.drop_queue(queue)
    sending = producer.start(send)
    sending.waits_for(admin)
    admin.end(ending)
    if ending == "commit":
        with pytest.raises(QueueNotFound):
            sending.result()
    else:
        sent = sending.result()
        assert everything(admin, queue) == [sent]


@pytest.mark.pitfall("sqlserver 12")
@pytest.mark.promise("P15")
def test_two_sessions_create_the_same_queue_once(sessions: Open, queue_name: str) -> None:
    first, second = sessions(2)
    assert first.begin().queue.create_queue(queue_name).outcome == "created"
    creating = second.start(lambda own: own.create_queue(queue_name))
    creating.waits_for(first)
    first.commit()
    assert creating.result().outcome == "exists"
