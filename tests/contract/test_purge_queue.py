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
def test_purge_queue_keeps_leased_and_dead_messages(full: CheckedQueue) -> None:
    assert full.call_one("purge_queue").removed == 5
    assert full.counts() == (0, 0, 1, 1)
    assert full.dequeue(10) == []
    assert full.stored()["message"] == 2


@pytest.mark.promise("P15")
def test_purge_queue_removes_dead_messages_on_request(full: CheckedQueue) -> None:
    assert full.call_one("purge_queue", include_dead=True).removed == 6
    assert full.counts() == (0, 0, 1, 0)


@pytest.mark.promise("P02")
def test_leased_message_is_redelivered_after_a_purge(full: CheckedQueue) -> None:
    full.call("purge_queue", include_dead=True)
    full.pass_seconds(100)
    full.call("maintain")
    assert bodies(full.dequeue(10)) == ["leased"]


@pytest.mark.promise("P15")
def test_purge_queue_removes_at_most_max_messages(full: CheckedQueue) -> None:
    for expected in (2, 2, 2, 0):
        row = full.call_one("purge_queue", include_dead=True, max_messages=2)
        assert row.removed == expected
    assert full.counts() == (0, 0, 1, 0)


@pytest.mark.promise("P15")
def test_purge_queue_releases_dedup_keys(queue: CheckedQueue) -> None:
    queue.call("alter_queue", archive_days=1)
    ids = queue.enqueue("ready", dedup_key="a")
    ids += queue.enqueue("delayed", dedup_key="b", delay_seconds=9)
    assert queue.call_one("purge_queue").removed == 2
    assert [queue.state_of(one_id) for one_id in ids] == [None, None]
    for key in ("a", "b"):
        assert queue.call_one("enqueue", dedup_key=key).outcome == "enqueued"


@pytest.mark.promise("P15")
def test_purge_queue_removes_released_messages(queue: CheckedQueue) -> None:
    queue.enqueue("again")
    queue.finish_one("release")
    assert queue.call_one("purge_queue").removed == 1
    assert queue.dequeue() == []


@pytest.mark.promise("P06")
@pytest.mark.requires("genuine")
def test_purge_queue_skips_locked_messages(queue: CheckedQueue, elsewhere: CheckedQueue) -> None:
    queue.enqueue("taken", "purged")
    with transaction(elsewhere.connection):
        assert elsewhere.dequeue_one().body == "taken"
        assert queue.call_one("purge_queue").removed == 1
    assert queue.counts() == (0, 0, 1, 0)


@pytest.mark.slow("thousands of messages", on="mariadb", ci="mariadb")
@pytest.mark.promise("P15")
def test_purge_queue_removes_more_than_one_step(queue: CheckedQueue) -> None:
    messages = [{"body": "x", "priority": number % 10} for number in range(10000)]
    for _ in range(2):
        queue.call("enqueue_batch", messages=messages)
    queue.enqueue("the last one")
    assert queue.call_one("purge_queue").removed == 20001
    assert queue.stored()["message"] == 0


@pytest.mark.promise("P15")
def test_purge_queue_of_an_empty_queue_removes_nothing(queue: CheckedQueue) -> None:
    assert queue.call_one("purge_queue", include_dead=True).removed == 0


@pytest.mark.promise("P17")
def test_rolled_back_purge_removes_nothing(connection: Connection, full: CheckedQueue) -> None:
    with rolled_back(connection):
        full.call("purge_queue", include_dead=True)
    assert full.counts() == (3, 2, 1, 1)


@pytest.mark.promise("P15")
@pytest.mark.parametrize("max_messages", [0, -1, 10001])
def test_purge_queue_refuses_max_messages_out_of_range(
    full: CheckedQueue, max_messages: int
) -> None:
    text = full.refused("RQ711", "purge_queue", max_messages=max_messages)
    assert "max_messages" in text
    assert full.counts() == (3, 2, 1, 1)


@pytest.mark.promise("P15")
@pytest.mark.parametrize("max_messages", [1, 10000])
def test_purge_queue_accepts_the_bounds_of_max_messages(
    full: CheckedQueue, max_messages: int
) -> None:
    row = full.call_one("purge_queue", max_messages=max_messages)
    assert row.removed == min(max_messages, 5)
