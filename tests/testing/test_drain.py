"""drain and assert_enqueued behave the same on a database and in memory."""

from typing import Any

import psycopg
import pytest

import rowq
from rowq.contrib.testing import MemoryQueue, assert_enqueued, drain

Handled = list[tuple[int, int]]
"""The delay and attempt of each message, in the order of handling."""


def test_drain_handles_retries_and_delayed_messages_in_order(
    rowq_queue: rowq.Queue, memory: MemoryQueue, queue_name: str
) -> None:
    for queue in (rowq_queue, memory):
        queue.create_queue(queue_name, max_attempts=3)
        for delay in (3600, 60, 0):
            queue.enqueue(queue_name, {"after": delay}, delay_seconds=delay)
        handled: Handled = []

        async def handle(message: rowq.HeldMessage, handled: Handled = handled) -> None:
            handled.append((message.data["after"], message.attempt))
            if message.data["after"] == 0:
                raise rowq.Retry(delay_seconds=600)
            if message.data["after"] == 60:
                raise ValueError("no address")

        stats = drain(queue, queue_name, handle)
        assert handled[:3] == [(0, 1), (60, 1), (3600, 1)]
        assert sorted(handled[3:]) == [(0, 2), (0, 3), (60, 2), (60, 3)]
        assert (stats.processed, stats.retried, stats.failed) == (1, 4, 2)
        assert queue.queue_stats(queue_name)[0].dead == 2


def test_drain_round_handles_messages_ready_at_its_start(
    rowq_queue: rowq.Queue, memory: MemoryQueue, queue_name: str
) -> None:
    for queue in (rowq_queue, memory):
        queue.create_queue(queue_name, result_seconds=60)
        first = queue.enqueue(queue_name, 1)
        queue.enqueue(queue_name, 2, predecessor_ids=[first.message_id])
        queue.enqueue(queue_name, 3, group_key="a")

        def handle(message: rowq.HeldMessage, queue: rowq.Queue = queue) -> None:
            message.set_result({"was": message.data})
            queue.enqueue(queue_name, 10 * message.data)

        assert drain(queue, queue_name, handle, rounds=1).processed == 2
        assert [message.data for message in queue.peek(queue_name, max_messages=9)] == [3, 10, 20]
        result = queue.get_result(queue_name, first.message_id)
        assert result
        assert (result.state, result.result) == ("completed", {"was": 1})


def test_assert_enqueued_finds_matches_and_lists_others(
    rowq_queue: rowq.Queue, memory: MemoryQueue, queue_name: str
) -> None:
    for queue in (rowq_queue, memory):
        queue.create_queue(queue_name)
        queue.enqueue(queue_name, {"id": 1}, message_type="mail")
        queue.enqueue(queue_name, {"id": 2}, message_type="sms", delay_seconds=60)
        queue.enqueue(queue_name, text="no JSON", group_key="a")
        queue.enqueue(queue_name, None, group_key="a")
        assert len(assert_enqueued(queue, queue_name)) == 3
        (found,) = assert_enqueued(queue, queue_name, "sms", data={"id": 2}, count=1)
        assert found.message_type == "sms"
        assert_enqueued(queue, queue_name, data="no JSON", count=1)
        assert_enqueued(queue, queue_name, "push", count=0)
        with pytest.raises(AssertionError) as refused:
            assert_enqueued(queue, queue_name, "mail", data={"id": 3})
        text = str(refused.value)
        assert f"at least one message in {queue_name} with message_type 'mail'" in text
        assert "(delayed): 'sms' {'id': 2}" in text
        assert "1 blocked, not read" in text


@pytest.mark.requires("psql")
def test_drain_explains_missing_rights_on_tables(
    rowq_queue: rowq.Queue, rowq_connection: Any, queue_name: str
) -> None:
    rowq_queue.create_queue(queue_name)
    rowq_queue.enqueue(queue_name, 1, delay_seconds=60)
    rowq_connection.execute("set local role rowq_consumer")
    with pytest.raises(Exception, match="permission denied") as refused:
        drain(rowq_queue, queue_name, print)
    assert "as their owner" in refused.value.__notes__[0]


def test_drain_raises_the_handlers_assertion_error(memory: MemoryQueue) -> None:
    memory.create_queue("orders")
    memory.enqueue("orders", {"total": 1})

    def handle(message: rowq.HeldMessage) -> None:
        assert message.data == {"total": 2}

    with pytest.raises(AssertionError):
        drain(memory, "orders", handle)


def test_drain_refuses_an_invalid_handler(memory: MemoryQueue) -> None:
    memory.create_queue("orders")
    with pytest.raises(rowq.InvalidArgument, match="callable as"):
        drain(memory, "orders", lambda: None)


@pytest.mark.requires("psql")
def test_database_error_rolls_back_only_the_handlers_writes(
    rowq_queue: rowq.Queue, rowq_connection: Any, queue_name: str
) -> None:
    rowq_queue.create_queue(queue_name, max_attempts=1)
    for deed in ("hides", "raises", "is well"):
        rowq_queue.enqueue(queue_name, deed)
    rowq_connection.execute("create temporary table done (deed text) on commit drop")

    def handle(message: rowq.HeldMessage) -> None:
        rowq_connection.execute("insert into done values (%s)", [message.data])
        if message.data == "is well":
            return
        try:
            rowq_connection.execute("select 1/0")
        except psycopg.Error:
            if message.data == "raises":
                raise

    stats = drain(rowq_queue, queue_name, handle)
    assert (stats.processed, stats.failed) == (1, 2)
    assert rowq_connection.execute("select deed from done").fetchall() == [("is well",)]
    hidden, raised = (str(dead.last_error) for dead in rowq_queue.list_dead(queue_name))
    assert "continued after a database error" in hidden
    assert "division by zero" in raised


@pytest.mark.requires("psql")
def test_drain_refuses_an_aborted_transaction(
    rowq_queue: rowq.Queue, rowq_connection: Any, queue_name: str
) -> None:
    rowq_queue.create_queue(queue_name)
    with pytest.raises(psycopg.Error):
        rowq_connection.execute("select 1/0")
    with pytest.raises(rowq.WrongTransactionState, match="before drain"):
        drain(rowq_queue, queue_name, print)


@pytest.mark.requires("psql")
def test_handler_may_commit_if_its_connection_allows_it(database_url: str, queue_name: str) -> None:
    with psycopg.connect(database_url) as connection:
        queue = rowq.Queue(connection)
        queue.create_queue(queue_name)
        queue.enqueue_batch(queue_name, [1, 2])

        def handle(_message: rowq.HeldMessage) -> None:
            connection.commit()
            connection.execute("select 1")

        assert drain(queue, queue_name, handle).processed == 2
        queue.drop_queue(queue_name)
