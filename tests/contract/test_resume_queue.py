"""resume_queue."""

from __future__ import annotations

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import bodies, call, call_one, dequeue, enqueue, refused


@pytest.mark.promise("P18")
def test_delivery_goes_on_in_order(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, "first")
    call(connection, "pause_queue", queue_name=queue)
    enqueue(connection, queue, "second")
    row = call_one(connection, "resume_queue", queue_name=queue)
    assert (row.queue_name, row.outcome) == (queue, "resumed")
    assert call_one(connection, "queue_stats", queue_name=queue).is_paused is False
    assert bodies(dequeue(connection, queue, 10)) == ["first", "second"]


@pytest.mark.promise("P18")
def test_a_queue_that_is_not_paused_may_be_resumed(connection: Connection, queue: str) -> None:
    assert call_one(connection, "resume_queue", queue_name=queue).outcome == "resumed"


@pytest.mark.promise("P15")
def test_an_unknown_queue_is_refused(connection: Connection, queue_name: str) -> None:
    refused(connection, "RQ701", "resume_queue", queue_name=queue_name)


@pytest.mark.promise("P15")
def test_a_missing_name_is_refused(connection: Connection) -> None:
    refused(connection, "RQ711", "resume_queue", queue_name=None)
