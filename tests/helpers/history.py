"""Queues with history."""

from typing import Any

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import Row
from tests.helpers.queues import CheckedQueue, new_queue

DAY = 86400
KEPT_DAYS = 5


@pytest.fixture
def keeping(connection: Connection, queue_name: str) -> CheckedQueue:
    """Return a new queue that keeps history for KEPT_DAYS and retries immediately."""
    return new_queue(connection, queue_name, history_days=KEPT_DAYS, backoff_base_seconds=0)


def history_of(queue: CheckedQueue, message_id: int) -> list[Row]:
    """Return the rows of get_history, and check their times and order."""
    rows = queue.call("get_history", message_id=message_id)
    for row in rows:
        if row is not rows[-1]:
            assert row.ended_at is not None
        assert (row.ended_at is None) == (row.outcome is None)
        assert row.ended_at is None or row.leased_at <= row.ended_at
    ends = [row.ended_at for row in rows if row.ended_at is not None]
    assert ends == sorted(ends)
    return rows


def past(queue: CheckedQueue, message_id: int) -> list[tuple[Any, ...]]:
    """Return attempt, worker, outcome and error of each attempt."""
    return [
        (row.attempt, row.worker_name, row.outcome, row.error)
        for row in history_of(queue, message_id)
    ]
