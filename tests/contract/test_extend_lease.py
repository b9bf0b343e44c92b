"""extend_lease."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import (
    call,
    call_one,
    counts,
    dequeue,
    dequeue_one,
    enqueue,
    refused,
    rolled_back,
)
from tests.stored_times import pass_seconds


@pytest.mark.promise("P08")
def test_all_messages_of_a_claim_are_held_from_now_on(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, "a", "b")
    rows = dequeue(connection, queue, 2, lease_seconds=60)
    row = call_one(
        connection,
        "extend_lease",
        queue_name=queue,
        claim_id=rows[0].claim_id,
        lease_seconds=1000,
    )
    assert row.claim_id == rows[0].claim_id
    assert abs(row.lease_until - datetime.now(UTC) - timedelta(seconds=1000)).seconds < 20
    for leased in rows:
        found = call_one(connection, "get_message", queue_name=queue, message_id=leased.message_id)
        assert found.lease_until == row.lease_until
    pass_seconds(connection, queue, 900)
    assert call_one(connection, "reap", queue_name=queue).reaped == 0


@pytest.mark.promise("P08")
@pytest.mark.parametrize("given", [{}, {"lease_seconds": None}])
def test_the_lease_is_the_queues_unless_given(
    connection: Connection, queue: str, given: dict[str, Any]
) -> None:
    enqueue(connection, queue, "a")
    claim = dequeue_one(connection, queue, lease_seconds=1).claim_id
    call(connection, "alter_queue", queue_name=queue, lease_seconds=5000)
    row = call_one(connection, "extend_lease", queue_name=queue, claim_id=claim, **given)
    assert abs((row.lease_until - datetime.now(UTC)).total_seconds() - 5000) < 20


@pytest.mark.promise("P08")
def test_a_lease_is_never_shortened(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, "a")
    leased = dequeue_one(connection, queue, lease_seconds=1000)
    row = call_one(
        connection, "extend_lease", queue_name=queue, claim_id=leased.claim_id, lease_seconds=1
    )
    assert row.lease_until == leased.lease_until


@pytest.mark.promise("P08")
def test_a_lease_that_ran_out_is_held_again_if_nobody_was_faster(
    connection: Connection, queue: str
) -> None:
    enqueue(connection, queue, "a")
    claim = dequeue_one(connection, queue).claim_id
    pass_seconds(connection, queue, 100)
    call(connection, "extend_lease", queue_name=queue, claim_id=claim, lease_seconds=30)
    assert call_one(connection, "reap", queue_name=queue).reaped == 0
    assert counts(connection, queue) == (0, 0, 1, 0)


@pytest.mark.promise("P08")
def test_a_claim_that_is_gone_is_stale(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, "a")
    claim = dequeue_one(connection, queue).claim_id
    pass_seconds(connection, queue, 100)
    call(connection, "reap", queue_name=queue)
    refused(connection, "RQ721", "extend_lease", queue_name=queue, claim_id=claim)
    refused(connection, "RQ721", "extend_lease", queue_name=queue, claim_id=-1)
    assert counts(connection, queue) == (1, 0, 0, 0)


@pytest.mark.promise("P08")
def test_a_claim_of_another_queue_is_stale(connection: Connection, queue: str) -> None:
    other = f"{queue[:80]} other"
    call(connection, "create_queue", queue_name=other)
    enqueue(connection, queue, "a")
    claim = dequeue_one(connection, queue).claim_id
    refused(connection, "RQ721", "extend_lease", queue_name=other, claim_id=claim)


@pytest.mark.promise("P17")
def test_a_rolled_back_extension_was_none(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, "a")
    leased = dequeue_one(connection, queue)
    with rolled_back(connection):
        call(
            connection,
            "extend_lease",
            queue_name=queue,
            claim_id=leased.claim_id,
            lease_seconds=1000,
        )
    row = call_one(connection, "get_message", queue_name=queue, message_id=leased.message_id)
    assert row.lease_until == leased.lease_until


@pytest.mark.promise("P15")
@pytest.mark.parametrize("lease_seconds", [0, -1, 86401, 2147483647])
def test_a_lease_out_of_range_is_refused(
    connection: Connection, queue: str, lease_seconds: int
) -> None:
    enqueue(connection, queue, "a")
    claim = dequeue_one(connection, queue).claim_id
    given = {"queue_name": queue, "claim_id": claim, "lease_seconds": lease_seconds}
    assert "lease_seconds" in refused(connection, "RQ711", "extend_lease", **given)


@pytest.mark.promise("P15")
@pytest.mark.parametrize("lease_seconds", [1, 86400])
def test_a_lease_at_its_bounds_is_taken(
    connection: Connection, queue: str, lease_seconds: int
) -> None:
    enqueue(connection, queue, "a")
    claim = dequeue_one(connection, queue, lease_seconds=1).claim_id
    row = call_one(
        connection,
        "extend_lease",
        queue_name=queue,
        claim_id=claim,
        lease_seconds=lease_seconds,
    )
    assert abs((row.lease_until - datetime.now(UTC)).total_seconds() - lease_seconds) < 20


@pytest.mark.promise("P15")
def test_a_missing_claim_is_refused(connection: Connection, queue: str) -> None:
    refused(connection, "RQ711", "extend_lease", queue_name=queue, claim_id=None)


@pytest.mark.promise("P15")
def test_an_unknown_queue_is_refused(connection: Connection, queue_name: str) -> None:
    refused(connection, "RQ701", "extend_lease", queue_name=queue_name, claim_id=1)


@pytest.mark.promise("P15")
def test_a_missing_name_is_refused(connection: Connection) -> None:
    refused(connection, "RQ711", "extend_lease", queue_name=None, claim_id=1)
