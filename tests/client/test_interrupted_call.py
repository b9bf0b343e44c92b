"""Calls interrupted by an administrator or a timeout, whose session survives."""

import threading
from contextlib import closing

import pytest

import rowq
from rowq.engines import engine_for_connection, engine_for_url
from tests.engines.base import Server, wait_until_blocked
from tests.helpers.dialects import dialect_of, interrupting_dialect_of
from tests.helpers.queues import Connect


@pytest.mark.requires("waits")
@pytest.mark.promise("P19")
def test_interrupted_maintain_raises_a_transient_error(
    server: Server, connect: Connect, queue_name: str
) -> None:
    connection, other = connect(), connect()
    dialect, queue = dialect_of(connection), rowq.Queue(connection)
    interrupting = interrupting_dialect_of(connection)
    queue.create_queue(queue_name, archive_days=7)
    queue.enqueue(queue_name, 1)
    queue.complete(queue_name, queue.dequeue_fast(queue_name)[0].claim_id)
    errors: list[Exception] = []

    def maintain() -> None:
        try:
            rowq.Queue(other).maintain(queue_name)
        except Exception as error:
            errors.append(error)

    with closing(connect()) as holder:
        dialect.lock_table(holder, "archive")
        thread = threading.Thread(target=maintain)
        thread.start()
        wait_until_blocked(server, server.session_id(other))
        interrupting.interrupt(connection, other)
        thread.join(30)
        dialect.unlock_table(holder)
    assert [engine_for_connection(other).is_transient(error) for error in errors] == [True]
    assert queue.maintain(queue_name)[0].archived == 1


@pytest.mark.requires("waits")
@pytest.mark.promise("P01", "P02", "P04")
def test_calls_after_an_interrupted_call_are_committed(
    server: Server, database_url: str, connect: Connect, queue_name: str
) -> None:
    connection = connect()
    dialect, watching = dialect_of(connection), rowq.Queue(connection)
    interrupting = interrupting_dialect_of(connection)
    watching.create_queue(queue_name)
    watching.enqueue(queue_name, "first")
    errors: list[Exception] = []

    def complete(queue: rowq.Queue, claim_id: int) -> None:
        try:
            queue.complete(queue_name, claim_id)
        except Exception as error:
            errors.append(error)

    with rowq.connect(database_url) as queue, closing(connect()) as holder:
        claim_id = queue.dequeue_fast(queue_name)[0].claim_id
        mine = queue._session.connection()
        dialect.lock_table(holder, "message")
        thread = threading.Thread(target=complete, args=(queue, claim_id))
        thread.start()
        wait_until_blocked(server, server.session_id(mine))
        interrupting.interrupt(connection, mine)
        thread.join(30)
        dialect.unlock_table(holder)
        assert [engine_for_url(database_url).is_transient(error) for error in errors] == [True]

        assert watching.queue_stats(queue_name)[0].leased == 1
        assert [outcome.outcome for outcome in queue.complete(queue_name, claim_id)] == [
            "completed"
        ]
        assert watching.queue_stats(queue_name)[0].leased == 0
        queue.enqueue(queue_name, "second")
        assert [message.data for message in watching.peek(queue_name, max_messages=5)] == ["second"]
