"""The dedup key of enqueue: one unfinished message per key, even of producers at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from tests.engines.base import Connection, Server, wait_until_blocked
from tests.helpers.calls import Row, bodies, call_one, rolled_back, transaction
from tests.helpers.queues import CheckedQueue


@pytest.mark.promise("P12")
def test_a_key_of_an_unfinished_message_returns_that_message(queue: CheckedQueue) -> None:
    [first] = queue.enqueue("first", dedup_key="key")

    def again() -> Row:
        return queue.call_one("enqueue", body="again", dedup_key="key")

    assert (again().message_id, again().outcome) == (first, "duplicate")  # It is ready.
    claim = queue.dequeue_one().claim_id
    assert (again().message_id, again().outcome) == (first, "duplicate")  # It is leased.
    queue.call("retry_later", claim_id=claim, delay_seconds=60)
    assert (again().message_id, again().outcome) == (first, "duplicate")  # It is delayed.
    assert queue.stored()["message"] == 1


@pytest.mark.promise("P12")
@pytest.mark.parametrize("finish", ["complete", "fail_now", "cancel", "purge_queue"])
@pytest.mark.parametrize("archive_days", [0, 1])
def test_a_key_is_free_again_when_its_message_is_finished(
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


@pytest.mark.promise("P12")
def test_keys_are_exact_and_belong_to_their_queue(
    connection: Connection, queue: CheckedQueue
) -> None:
    other = queue.another()
    keys = ["key", "Key", "key ", " key", "k\u00e9y", "ke\u0301y", "ß", "ss", "🐘" * 200]
    for name in (queue.name, other.name):
        for key in keys:
            row = call_one(connection, "enqueue", queue_name=name, dedup_key=key)
            assert row.outcome == "enqueued", key
    for key in keys:
        assert queue.call_one("enqueue", dedup_key=key).outcome == "duplicate"


def _enqueue_in_thread(queue: CheckedQueue, key: str, answers: list[Row]) -> threading.Thread:
    def run() -> None:
        answers.append(queue.call_one("enqueue", body="second", dedup_key=key))

    thread = threading.Thread(target=run)
    thread.start()
    return thread


@pytest.mark.promise("P12")
@pytest.mark.requires("genuine")
def test_of_two_producers_at_once_the_second_gets_the_message_that_the_first_commits(
    server: Server, connection: Connection, connect: Callable[..., Connection], queue: CheckedQueue
) -> None:
    second, answers = connect(), list[Row]()
    with transaction(connection):
        [first_id] = queue.enqueue("first", dedup_key="key")
        thread = _enqueue_in_thread(queue.via(second), "key", answers)
        wait_until_blocked(server, server.session_id(second), by=server.session_id(connection))
    thread.join()
    assert [(row.message_id, row.outcome) for row in answers] == [(first_id, "duplicate")]
    assert bodies(queue.dequeue(10)) == ["first"]


@pytest.mark.promise("P01", "P12")
@pytest.mark.requires("genuine")
def test_of_two_producers_at_once_the_second_enqueues_when_the_first_rolls_back(
    server: Server, connection: Connection, connect: Callable[..., Connection], queue: CheckedQueue
) -> None:
    second, answers = connect(), list[Row]()
    with rolled_back(connection):
        [first_id] = queue.enqueue("first", dedup_key="key")
        thread = _enqueue_in_thread(queue.via(second), "key", answers)
        wait_until_blocked(server, server.session_id(second), by=server.session_id(connection))
    thread.join()
    [row] = answers
    assert row.outcome == "enqueued"
    assert row.message_id != first_id
    assert bodies(queue.dequeue(10)) == ["second"]


@pytest.mark.promise("P12")
@pytest.mark.requires("genuine")
def test_a_producer_that_waited_for_a_completion_enqueues_anew(
    server: Server, connection: Connection, connect: Callable[..., Connection], queue: CheckedQueue
) -> None:
    second, answers = connect(), list[Row]()
    [first_id] = queue.enqueue("first", dedup_key="key")
    claim = queue.dequeue_one().claim_id
    queue.call("complete", claim_id=claim)
    with transaction(connection):
        [third_id] = queue.enqueue("third", dedup_key="key")
        thread = _enqueue_in_thread(queue.via(second), "key", answers)
        wait_until_blocked(server, server.session_id(second), by=server.session_id(connection))
        claim = queue.dequeue_one().claim_id
        queue.call("complete", claim_id=claim)
    thread.join()
    [row] = answers
    assert row.outcome == "enqueued"
    assert row.message_id not in (first_id, third_id)


@pytest.mark.promise("P12")
def test_different_keys_do_not_wait_for_each_other(
    connection: Connection, connect: Callable[..., Connection], queue: CheckedQueue
) -> None:
    other = connect()
    with transaction(connection):
        queue.enqueue("a", dedup_key="a")
        queue.via(other).enqueue("b", dedup_key="b")
        queue.via(other).enqueue("none")
    assert queue.counts()[0] == 3
