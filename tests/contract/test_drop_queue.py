"""drop_queue."""

from collections.abc import Callable

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import rolled_back, transaction
from tests.helpers.queues import CheckedQueue


def leave_ready(queue: CheckedQueue) -> None:
    queue.enqueue("ready")


def leave_delayed(queue: CheckedQueue) -> None:
    queue.enqueue("delayed", delay_seconds=1000)


def leave_leased(queue: CheckedQueue) -> None:
    queue.enqueue("leased")
    queue.dequeue_one()


def leave_dead(queue: CheckedQueue) -> None:
    queue.make_dead("dead", dedup_key="key")


def leave_finished(queue: CheckedQueue) -> None:
    queue.call("alter_queue", archive_days=1)
    leave_ready(queue)
    queue.finish_one()


def leave_archived(queue: CheckedQueue) -> None:
    leave_finished(queue)
    assert queue.call_one("archive").archived >= 1


LEFT_BEHIND = [leave_ready, leave_delayed, leave_leased, leave_dead, leave_finished, leave_archived]
of_each_kind = pytest.mark.parametrize("leave", LEFT_BEHIND, ids=lambda leave: leave.__name__)


@pytest.mark.promise("P15")
def test_drop_queue_removes_an_empty_queue(queue: CheckedQueue) -> None:
    row = queue.call_one("drop_queue")
    assert (row.queue_name, row.outcome) == (queue.name, "dropped")
    queue.refused("RQ701", "enqueue", body="x")


@pytest.mark.promise("P15")
def test_drop_queue_removes_a_queue_of_completed_messages(queue: CheckedQueue) -> None:
    queue.enqueue("done", dedup_key="key")
    queue.finish_one()
    assert queue.call_one("drop_queue").outcome == "dropped"


@pytest.mark.promise("P02", "P15")
@of_each_kind
def test_drop_queue_refuses_a_queue_with_messages(
    queue: CheckedQueue, leave: Callable[[CheckedQueue], None]
) -> None:
    leave(queue)
    before = queue.stored()
    for given in ({}, {"force": False}, {"force": None}):
        assert queue.name in queue.refused("RQ704", "drop_queue", **given)
    assert queue.stored() == before


@pytest.mark.promise("P15")
@of_each_kind
def test_drop_queue_with_force_removes_messages(
    queue: CheckedQueue, leave: Callable[[CheckedQueue], None]
) -> None:
    leave(queue)
    assert queue.call_one("drop_queue", force=True).outcome == "dropped"
    queue.refused("RQ701", "queue_stats")


@pytest.mark.promise("P15")
def test_drop_queue_with_force_leaves_other_queues(queue: CheckedQueue) -> None:
    other = queue.another()
    for filled in (queue, other):
        for leave in LEFT_BEHIND:
            leave(filled)
    before = other.stored()
    queue.call("drop_queue", force=True)
    assert other.stored() == before


@pytest.mark.promise("P15", "P20")
def test_recreated_queue_starts_empty(queue: CheckedQueue) -> None:
    [message_id] = queue.enqueue("old", dedup_key="key")
    claim = queue.dequeue_one().claim_id
    queue.call("drop_queue", force=True)
    queue.call("create_queue")
    assert queue.dequeue() == []
    assert queue.state_of(message_id) is None
    queue.refused("RQ721", "complete", claim_id=claim)
    assert queue.call_one("enqueue", dedup_key="key").outcome == "enqueued"


@pytest.mark.promise("P02", "P15")
@pytest.mark.requires("genuine")
def test_drop_queue_is_refused_during_an_open_enqueue(
    queue: CheckedQueue, elsewhere: CheckedQueue
) -> None:
    with transaction(elsewhere.connection):
        elsewhere.enqueue("in flight")
        queue.refused("RQ705", "drop_queue")
        queue.refused("RQ705", "drop_queue", force=True)
    queue.refused("RQ704", "drop_queue")
    assert queue.dequeue_one().body == "in flight"


@pytest.mark.promise("P17")
def test_rolled_back_drop_keeps_the_queue(connection: Connection, queue: CheckedQueue) -> None:
    queue.enqueue("kept")
    with rolled_back(connection):
        queue.call("drop_queue", force=True)
    assert queue.dequeue_one().body == "kept"
