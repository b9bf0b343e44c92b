"""drop_queue."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.engines.base import Connection, Server, wait_until_blocked
from tests.helpers.calls import (
    Row,
    call,
    call_one,
    dequeue,
    dequeue_one,
    enqueue,
    make_dead,
    refused,
    rolled_back,
    state_of,
    transaction,
)
from tests.helpers.dialects import dialect_of


def leave_ready(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, "ready")


def leave_delayed(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, "delayed", delay_seconds=1000)


def leave_leased(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, "leased")
    dequeue_one(connection, queue)


def leave_dead(connection: Connection, queue: str) -> None:
    make_dead(connection, queue, "dead", dedup_key="key")


def leave_finished(connection: Connection, queue: str) -> None:
    call(connection, "alter_queue", queue_name=queue, archive_days=1)
    leave_ready(connection, queue)
    call(connection, "complete", queue_name=queue, claim_id=dequeue_one(connection, queue).claim_id)


def leave_archived(connection: Connection, queue: str) -> None:
    leave_finished(connection, queue)
    assert call_one(connection, "archive", queue_name=queue).archived >= 1


LEFT_BEHIND = [
    leave_ready,
    leave_delayed,
    leave_leased,
    leave_dead,
    leave_finished,
    leave_archived,
]
of_each_kind = pytest.mark.parametrize("leave", LEFT_BEHIND, ids=lambda leave: leave.__name__)


@pytest.mark.promise("P15")
def test_an_empty_queue_is_dropped(connection: Connection, queue: str) -> None:
    row = call_one(connection, "drop_queue", queue_name=queue)
    assert (row.queue_name, row.outcome) == (queue, "dropped")
    refused(connection, "RQ701", "enqueue", queue_name=queue, body="x")


@pytest.mark.promise("P15")
def test_a_queue_whose_messages_are_all_completed_is_empty(
    connection: Connection, queue: str
) -> None:
    enqueue(connection, queue, "done", dedup_key="key")
    call(connection, "complete", queue_name=queue, claim_id=dequeue_one(connection, queue).claim_id)
    assert call_one(connection, "drop_queue", queue_name=queue).outcome == "dropped"


@pytest.mark.promise("P02", "P15")
@of_each_kind
def test_a_queue_with_messages_is_not_dropped_and_keeps_them(
    connection: Connection, queue: str, leave: Callable[[Connection, str], None]
) -> None:
    leave(connection, queue)
    before = dialect_of(connection).stored(connection, queue)
    assert queue in refused(connection, "RQ704", "drop_queue", queue_name=queue)
    refused(connection, "RQ704", "drop_queue", queue_name=queue, force=False)
    refused(connection, "RQ704", "drop_queue", queue_name=queue, force=None)
    assert dialect_of(connection).stored(connection, queue) == before


@pytest.mark.promise("P15")
@of_each_kind
def test_force_drops_a_queue_with_everything_in_it(
    connection: Connection, queue: str, leave: Callable[[Connection, str], None]
) -> None:
    leave(connection, queue)
    assert call_one(connection, "drop_queue", queue_name=queue, force=True).outcome == "dropped"
    refused(connection, "RQ701", "queue_stats", queue_name=queue)


@pytest.mark.promise("P15")
def test_force_leaves_other_queues_alone(connection: Connection, queue: str) -> None:
    other = f"{queue[:80]} other"
    call(connection, "create_queue", queue_name=other)
    for name in (queue, other):
        for leave in LEFT_BEHIND:
            leave(connection, name)
    before = dialect_of(connection).stored(connection, other)
    call(connection, "drop_queue", queue_name=queue, force=True)
    assert dialect_of(connection).stored(connection, other) == before


@pytest.mark.promise("P15", "P20")
def test_a_queue_of_the_same_name_starts_empty(connection: Connection, queue: str) -> None:
    [message_id] = enqueue(connection, queue, "old", dedup_key="key")
    claim = dequeue_one(connection, queue).claim_id
    call(connection, "drop_queue", queue_name=queue, force=True)
    call(connection, "create_queue", queue_name=queue)
    assert dequeue(connection, queue) == []
    assert state_of(connection, queue, message_id) is None
    refused(connection, "RQ721", "complete", queue_name=queue, claim_id=claim)
    assert call_one(connection, "enqueue", queue_name=queue, dedup_key="key").outcome == "enqueued"


@pytest.mark.promise("P15")
def test_an_unknown_queue_is_refused(connection: Connection, queue_name: str) -> None:
    refused(connection, "RQ701", "drop_queue", queue_name=queue_name)
    refused(connection, "RQ701", "drop_queue", queue_name=queue_name, force=True)


@pytest.mark.promise("P15")
def test_a_missing_name_is_refused(connection: Connection) -> None:
    refused(connection, "RQ711", "drop_queue", queue_name=None, force=True)


@pytest.mark.promise("P02", "P15")
@pytest.mark.requires("genuine")
def test_an_enqueue_that_has_not_committed_makes_the_queue_busy(
    connection: Connection, connect: Callable[..., Connection], queue: str
) -> None:
    producer = connect()
    with transaction(producer):
        enqueue(producer, queue, "in flight")
        refused(connection, "RQ705", "drop_queue", queue_name=queue)
        refused(connection, "RQ705", "drop_queue", queue_name=queue, force=True)
    refused(connection, "RQ704", "drop_queue", queue_name=queue)
    assert dequeue_one(connection, queue).body == "in flight"


@pytest.mark.promise("P01")
@pytest.mark.requires("genuine")
def test_an_enqueue_that_waited_for_the_drop_is_refused_and_not_lost(
    server: Server, connection: Connection, connect: Callable[..., Connection], queue: str
) -> None:
    producer = connect()
    answers: list[Row | Exception] = []

    def produce() -> None:
        try:
            answers.append(call_one(producer, "enqueue", queue_name=queue, body="late"))
        except dialect_of(producer).database_error as error:
            answers.append(error)

    waiting = threading.Thread(target=produce)
    with transaction(connection):
        call(connection, "drop_queue", queue_name=queue)
        waiting.start()
        wait_until_blocked(server, server.session_id(producer))
    waiting.join()
    [answer] = answers
    assert isinstance(answer, Exception), "accepted a message for a queue that is gone"
    assert dialect_of(producer).error(answer)[0] == "RQ701"


@pytest.mark.promise("P01")
@pytest.mark.requires("genuine")
def test_a_batch_that_waited_for_the_drop_is_refused_and_not_lost(
    server: Server, connection: Connection, connect: Callable[..., Connection], queue: str
) -> None:
    producer = connect()
    answers: list[Any] = []

    def produce() -> None:
        try:
            answers.append(
                call(producer, "enqueue_batch", queue_name=queue, messages=[{"body": "late"}])
            )
        except dialect_of(producer).database_error as error:
            answers.append(error)

    waiting = threading.Thread(target=produce)
    with transaction(connection):
        call(connection, "drop_queue", queue_name=queue)
        waiting.start()
        wait_until_blocked(server, server.session_id(producer))
    waiting.join()
    [answer] = answers
    assert isinstance(answer, Exception), "accepted messages for a queue that is gone"
    assert dialect_of(producer).error(answer)[0] == "RQ701"


@pytest.mark.promise("P17")
def test_a_rolled_back_drop_changes_nothing(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, "kept")
    with rolled_back(connection):
        call(connection, "drop_queue", queue_name=queue, force=True)
    assert dequeue_one(connection, queue).body == "kept"
