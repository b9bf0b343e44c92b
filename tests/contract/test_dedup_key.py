"""The dedup key of enqueue: one unfinished message per key, also with concurrent producers."""

from concurrent.futures import Future

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import Row, call_one, transaction
from tests.helpers.queues import CheckedQueue, SecondSession

pytestmark = pytest.mark.promise("P12")


def test_enqueue_returns_the_unfinished_owner_of_a_key(queue: CheckedQueue) -> None:
    [first] = queue.enqueue("first", dedup_key="key")

    def enqueue_is_duplicate() -> bool:
        row = queue.call_one("enqueue", body="again", dedup_key="key")
        return (row.message_id, row.outcome) == (first, "duplicate")

    assert enqueue_is_duplicate(), "ready"
    claim = queue.dequeue_one().claim_id
    assert enqueue_is_duplicate(), "leased"
    queue.call("retry_later", claim_id=claim, delay_seconds=60)
    assert enqueue_is_duplicate(), "delayed"
    assert queue.stored()["message"] == 1


@pytest.mark.parametrize("finish", ["complete", "fail_now", "cancel", "purge_queue"])
@pytest.mark.parametrize("archive_days", [0, 1])
def test_key_is_free_again_when_its_message_ends(
    queue: CheckedQueue, finish: str, archive_days: int
) -> None:
    queue.call("alter_queue", archive_days=archive_days)
    [first] = queue.enqueue("first", dedup_key="key")
    if finish == "cancel":
        queue.call("cancel", message_ids=[first])
    elif finish == "purge_queue":
        queue.call("purge_queue")
    else:
        queue.call(finish, claim_id=queue.dequeue_one().claim_id)
    row = queue.call_one("enqueue", dedup_key="key")
    assert row.outcome == "enqueued"
    assert row.message_id != first


def test_keys_are_compared_as_bytes_per_queue(queue: CheckedQueue) -> None:
    other = queue.another()
    keys = ["key", "Key", "key ", " key", "k\u00e9y", "ke\u0301y", "ß", "ss", "🐘" * 200]
    for name in (queue.name, other.name):
        for key in keys:
            row = call_one(queue.connection, "enqueue", queue_name=name, dedup_key=key)
            assert row.outcome == "enqueued", key
    for key in keys:
        assert queue.call_one("enqueue", dedup_key=key).outcome == "duplicate"


def start_blocked(second: SecondSession, queue: CheckedQueue) -> Future[Row]:
    """Enqueue with a key that another session's open transaction has reserved."""
    return second.start_blocked(
        lambda own: queue.via(own).call_one("enqueue", body="second", dedup_key="key")
    )


@pytest.mark.requires("genuine")
def test_waiting_producer_enqueues_after_a_completion(
    connection: Connection, second: SecondSession, queue: CheckedQueue
) -> None:
    [first_id] = queue.enqueue("first", dedup_key="key")
    queue.finish_one()
    with transaction(connection):
        [third_id] = queue.enqueue("third", dedup_key="key")
        waiting = start_blocked(second, queue)
        queue.finish_one()
    row = waiting.result()
    assert row.outcome == "enqueued"
    assert row.message_id not in (first_id, third_id)


def test_different_keys_do_not_block_each_other(
    queue: CheckedQueue, elsewhere: CheckedQueue
) -> None:
    with transaction(queue.connection):
        queue.enqueue("a", dedup_key="a")
        elsewhere.enqueue("b", dedup_key="b")
        elsewhere.enqueue("none")
    assert queue.counts()[0] == 3
