"""purge_queue."""

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import bodies, rolled_back, transaction
from tests.helpers.queues import CheckedQueue


@pytest.fixture
def full(queue: CheckedQueue) -> CheckedQueue:
    """Return a queue with a dead, a leased, two delayed and three ready messages."""
    queue.make_dead("dead")
    queue.enqueue("leased")
    queue.dequeue_one()
    queue.enqueue("later", "much later", delay_seconds=1000)
    queue.enqueue("ready")
    queue.enqueue("urgent", priority=0)
    queue.enqueue("idle", priority=9)
    return queue


@pytest.mark.promise("P15")
def test_waiting_messages_go_and_leased_and_dead_ones_stay(full: CheckedQueue) -> None:
    assert full.call_one("purge_queue").removed == 5
    assert full.counts() == (0, 0, 1, 1)
    assert full.dequeue(10) == []
    assert full.stored()["message"] == 2


@pytest.mark.promise("P15")
def test_dead_ones_go_too_when_asked_for(full: CheckedQueue) -> None:
    assert full.call_one("purge_queue", include_dead=True).removed == 6
    assert full.counts() == (0, 0, 1, 0)


@pytest.mark.promise("P02")
def test_a_leased_message_is_delivered_again_after_a_purge(full: CheckedQueue) -> None:
    full.call("purge_queue", include_dead=True)
    full.pass_seconds(100)
    full.call("maintain")
    assert bodies(full.dequeue(10)) == ["leased"]


@pytest.mark.promise("P15")
def test_a_purge_in_parts_takes_no_more_than_asked_for(full: CheckedQueue) -> None:
    sizes = [2, 2, 2, 2]
    removed = [
        full.call_one("purge_queue", include_dead=True, max_messages=size).removed for size in sizes
    ]
    assert removed == [2, 2, 2, 0]
    assert full.counts() == (0, 0, 1, 0)


@pytest.mark.promise("P15")
def test_purged_messages_are_gone_and_their_dedup_keys_free(queue: CheckedQueue) -> None:
    queue.call("alter_queue", archive_days=1)
    ids = queue.enqueue("ready", dedup_key="a")
    ids += queue.enqueue("delayed", dedup_key="b", delay_seconds=9)
    assert queue.call_one("purge_queue").removed == 2
    assert [queue.state_of(one_id) for one_id in ids] == [None, None]
    for key in ("a", "b"):
        assert queue.call_one("enqueue", dedup_key=key).outcome == "enqueued"


@pytest.mark.promise("P15")
def test_a_retried_message_is_purged_too(queue: CheckedQueue) -> None:
    queue.enqueue("again")
    queue.finish_one("release")
    assert queue.call_one("purge_queue").removed == 1
    assert queue.dequeue() == []


@pytest.mark.promise("P06")
@pytest.mark.requires("genuine")
def test_a_message_that_another_session_is_taking_is_left_to_it(
    queue: CheckedQueue, elsewhere: CheckedQueue
) -> None:
    queue.enqueue("taken", "purged")
    with transaction(elsewhere.connection):
        assert elsewhere.dequeue_one().body == "taken"
        assert queue.call_one("purge_queue").removed == 1
    assert queue.counts() == (0, 0, 1, 0)


@pytest.mark.slow("thousands of messages", on="mariadb", ci="mariadb")
@pytest.mark.promise("P15")
def test_more_than_one_step_is_purged_in_one_call(queue: CheckedQueue) -> None:
    messages = [{"body": "x", "priority": number % 10} for number in range(10000)]
    for _ in range(2):
        queue.call("enqueue_batch", messages=messages)
    queue.enqueue("the last one")
    assert queue.call_one("purge_queue").removed == 20001
    assert queue.stored()["message"] == 0


@pytest.mark.promise("P15")
def test_an_empty_queue_has_nothing_to_purge(queue: CheckedQueue) -> None:
    assert queue.call_one("purge_queue", include_dead=True).removed == 0


@pytest.mark.promise("P17")
def test_a_rolled_back_purge_removes_nothing(connection: Connection, full: CheckedQueue) -> None:
    with rolled_back(connection):
        full.call("purge_queue", include_dead=True)
    assert full.counts() == (3, 2, 1, 1)


@pytest.mark.promise("P15")
@pytest.mark.parametrize("max_messages", [0, -1, 10001])
def test_a_part_beyond_its_bounds_is_refused(full: CheckedQueue, max_messages: int) -> None:
    text = full.refused("RQ711", "purge_queue", max_messages=max_messages)
    assert "max_messages" in text
    assert full.counts() == (3, 2, 1, 1)


@pytest.mark.promise("P15")
@pytest.mark.parametrize("max_messages", [1, 10000])
def test_a_part_at_its_bounds_is_taken(full: CheckedQueue, max_messages: int) -> None:
    row = full.call_one("purge_queue", max_messages=max_messages)
    assert row.removed == min(max_messages, 5)
