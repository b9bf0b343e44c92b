"""Queues with results."""

from typing import Any

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import Row, call_one
from tests.helpers.queues import CheckedQueue, new_queue

KEPT_SECONDS = 3600


@pytest.fixture
def keeping(connection: Connection, queue_name: str) -> CheckedQueue:
    """Return a new queue that keeps results for KEPT_SECONDS and retries immediately."""
    return new_queue(
        connection, queue_name, result_seconds=KEPT_SECONDS, backoff_base_seconds=0, max_attempts=1
    )


def result_of(queue: CheckedQueue, message_id: int) -> Row | None:
    """Return the row of get_result, None if the message is unknown."""
    rows = queue.call("get_result", message_id=message_id)
    assert all(row.message_id == message_id for row in rows)
    return rows[0] if rows else None


def end_of(queue: CheckedQueue, message_id: int) -> tuple[Any, ...] | None:
    """Return state, result and last error of a message, None if it is unknown."""
    row = result_of(queue, message_id)
    return None if row is None else (row.state, row.result, row.last_error)


def wait_for(queue: CheckedQueue, message_id: int, seconds: float) -> tuple[Any, ...] | None:
    """Wait for a result, and return what end_of does."""
    answer = call_one(
        queue.connection,
        "wait_for_result",
        queue_name=queue.name,
        message_id=message_id,
        wait_seconds=seconds,
    ).answer
    if answer is None:
        return None
    assert answer.keys() == {"message_id", "state", "finished_at", "result", "last_error"}
    assert answer["message_id"] == message_id
    return answer["state"], answer["result"], answer["last_error"]
