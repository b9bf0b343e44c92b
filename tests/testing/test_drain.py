"""drain and assert_enqueued do the same on a database and in memory."""

from typing import Any

import psycopg
import pytest

import rowq
from rowq.contrib.testing import MemoryQueue, assert_enqueued, drain

Handled = list[tuple[int, int]]
"""The delay of each message and its attempt, in the order in which they were handled."""


def test_retries_and_delayed_messages_are_handled_at_once_and_in_their_order(
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


def test_one_round_handles_as_many_as_were_ready(
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


def test_what_was_enqueued_is_found_and_what_was_not_is_shown(
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
        assert "1 blocked, which are not looked at" in text


@pytest.mark.requires("psql")
def test_who_may_not_change_the_tables_is_told_why_that_is_needed(
    rowq_queue: rowq.Queue, rowq_connection: Any, queue_name: str
) -> None:
    rowq_queue.create_queue(queue_name)
    rowq_queue.enqueue(queue_name, 1, delay_seconds=60)
    rowq_connection.execute("set local role rowq_consumer")
    with pytest.raises(Exception, match="permission denied") as refused:
        drain(rowq_queue, queue_name, print)
    assert "as their owner" in refused.value.__notes__[0]


def test_what_a_handler_asserts_is_told_to_the_test(memory: MemoryQueue) -> None:
    memory.create_queue("orders")
    memory.enqueue("orders", {"total": 1})

    def handle(message: rowq.HeldMessage) -> None:
        assert message.data == {"total": 2}

    with pytest.raises(AssertionError):
        drain(memory, "orders", handle)


def test_a_handler_that_a_worker_would_refuse_is_refused(memory: MemoryQueue) -> None:
    memory.create_queue("orders")
    with pytest.raises(rowq.InvalidArgument, match="callable as"):
        drain(memory, "orders", lambda: None)


@pytest.mark.requires("psql")
def test_an_error_of_the_database_undoes_what_its_handler_has_written_and_no_more(
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
    assert "went on after an error of the database" in hidden
    assert "division by zero" in raised


@pytest.mark.requires("psql")
def test_a_transaction_that_has_failed_before_is_refused(
    rowq_queue: rowq.Queue, rowq_connection: Any, queue_name: str
) -> None:
    rowq_queue.create_queue(queue_name)
    with pytest.raises(psycopg.Error):
        rowq_connection.execute("select 1/0")
    with pytest.raises(rowq.WrongTransactionState, match="before drain"):
        drain(rowq_queue, queue_name, print)


@pytest.mark.requires("psql")
def test_a_handler_may_commit_where_its_connection_lets_it(
    database_url: str, queue_name: str
) -> None:
    with psycopg.connect(database_url) as connection:
        queue = rowq.Queue(connection)
        queue.create_queue(queue_name)
        queue.enqueue_batch(queue_name, [1, 2])

        def handle(_message: rowq.HeldMessage) -> None:
            connection.commit()
            connection.execute("select 1")

        assert drain(queue, queue_name, handle).processed == 2
        queue.drop_queue(queue_name)
