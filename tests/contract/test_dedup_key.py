"""The dedup key of enqueue: one unfinished message per key, even of producers at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from tests.engines.base import Connection, Server, wait_until_blocked
from tests.helpers.calls import (
    Row,
    bodies,
    call,
    call_one,
    counts,
    dequeue,
    dequeue_one,
    enqueue,
    rolled_back,
    transaction,
)
from tests.helpers.dialects import dialect_of


@pytest.mark.promise("P12")
def test_a_key_of_an_unfinished_message_returns_that_message(
    connection: Connection, queue: str
) -> None:
    [first] = enqueue(connection, queue, "first", dedup_key="key")

    def again() -> Row:
        return call_one(connection, "enqueue", queue_name=queue, body="again", dedup_key="key")

    assert (again().message_id, again().outcome) == (first, "duplicate")  # It is ready.
    claim = dequeue_one(connection, queue).claim_id
    assert (again().message_id, again().outcome) == (first, "duplicate")  # It is leased.
    call(connection, "retry_later", queue_name=queue, claim_id=claim, delay_seconds=60)
    assert (again().message_id, again().outcome) == (first, "duplicate")  # It is delayed.
    assert dialect_of(connection).stored(connection, queue)["message"] == 1


@pytest.mark.promise("P12")
@pytest.mark.parametrize("finish", ["complete", "fail_now", "cancel", "purge_queue"])
@pytest.mark.parametrize("archive_days", [0, 1])
def test_a_key_is_free_again_when_its_message_is_finished(
    connection: Connection, queue: str, finish: str, archive_days: int
) -> None:
    call(connection, "alter_queue", queue_name=queue, archive_days=archive_days)
    [first] = enqueue(connection, queue, "first", dedup_key="key")
    if finish == "cancel":
        call(connection, "cancel", queue_name=queue, message_ids=[first])
    elif finish == "purge_queue":
        call(connection, "purge_queue", queue_name=queue)
    else:
        call(connection, finish, queue_name=queue, claim_id=dequeue_one(connection, queue).claim_id)
    row = call_one(connection, "enqueue", queue_name=queue, dedup_key="key")
    assert row.outcome == "enqueued"
    assert row.message_id != first


@pytest.mark.promise("P12")
def test_keys_are_exact_and_belong_to_their_queue(connection: Connection, queue: str) -> None:
    other = f"{queue[:80]} other"
    call(connection, "create_queue", queue_name=other)
    keys = ["key", "Key", "key ", " key", "k\u00e9y", "ke\u0301y", "ß", "ss", "🐘" * 200]
    for name in (queue, other):
        for key in keys:
            row = call_one(connection, "enqueue", queue_name=name, dedup_key=key)
            assert row.outcome == "enqueued", key
    for key in keys:
        assert (
            call_one(connection, "enqueue", queue_name=queue, dedup_key=key).outcome == "duplicate"
        )


def _enqueue_in_thread(
    connection: Connection, queue: str, key: str, answers: list[Row]
) -> threading.Thread:
    def run() -> None:
        answers.append(
            call_one(connection, "enqueue", queue_name=queue, body="second", dedup_key=key)
        )

    thread = threading.Thread(target=run)
    thread.start()
    return thread


@pytest.mark.promise("P12")
@pytest.mark.requires("genuine")
def test_of_two_producers_at_once_the_second_gets_the_message_that_the_first_commits(
    server: Server, connection: Connection, connect: Callable[..., Connection], queue: str
) -> None:
    second, answers = connect(), list[Row]()
    with transaction(connection):
        [first_id] = enqueue(connection, queue, "first", dedup_key="key")
        thread = _enqueue_in_thread(second, queue, "key", answers)
        wait_until_blocked(server, server.session_id(second), by=server.session_id(connection))
    thread.join()
    assert [(row.message_id, row.outcome) for row in answers] == [(first_id, "duplicate")]
    assert bodies(dequeue(connection, queue, 10)) == ["first"]


@pytest.mark.promise("P01", "P12")
@pytest.mark.requires("genuine")
def test_of_two_producers_at_once_the_second_enqueues_when_the_first_rolls_back(
    server: Server, connection: Connection, connect: Callable[..., Connection], queue: str
) -> None:
    second, answers = connect(), list[Row]()
    with rolled_back(connection):
        [first_id] = enqueue(connection, queue, "first", dedup_key="key")
        thread = _enqueue_in_thread(second, queue, "key", answers)
        wait_until_blocked(server, server.session_id(second), by=server.session_id(connection))
    thread.join()
    [row] = answers
    assert row.outcome == "enqueued"
    assert row.message_id != first_id
    assert bodies(dequeue(connection, queue, 10)) == ["second"]


@pytest.mark.promise("P12")
@pytest.mark.requires("genuine")
def test_a_producer_that_waited_for_a_completion_enqueues_anew(
    server: Server, connection: Connection, connect: Callable[..., Connection], queue: str
) -> None:
    second, answers = connect(), list[Row]()
    [first_id] = enqueue(connection, queue, "first", dedup_key="key")
    claim = dequeue_one(connection, queue).claim_id
    call(connection, "complete", queue_name=queue, claim_id=claim)
    with transaction(connection):
        [third_id] = enqueue(connection, queue, "third", dedup_key="key")
        thread = _enqueue_in_thread(second, queue, "key", answers)
        wait_until_blocked(server, server.session_id(second), by=server.session_id(connection))
        claim = dequeue_one(connection, queue).claim_id
        call(connection, "complete", queue_name=queue, claim_id=claim)
    thread.join()
    [row] = answers
    assert row.outcome == "enqueued"
    assert row.message_id not in (first_id, third_id)


@pytest.mark.promise("P12")
def test_different_keys_do_not_wait_for_each_other(
    connection: Connection, connect: Callable[..., Connection], queue: str
) -> None:
    other = connect()
    with transaction(connection):
        enqueue(connection, queue, "a", dedup_key="a")
        enqueue(other, queue, "b", dedup_key="b")
        enqueue(other, queue, "none")
    assert counts(connection, queue)[0] == 3
