"""extend_lease."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import rolled_back
from tests.helpers.queues import CheckedQueue


@pytest.mark.promise("P08")
def test_extend_lease_extends_all_messages_of_the_claim(queue: CheckedQueue) -> None:
    queue.enqueue("a", "b")
    rows = queue.dequeue(2, lease_seconds=60)
    row = queue.call_one("extend_lease", claim_id=rows[0].claim_id, lease_seconds=1000)
    assert row.claim_id == rows[0].claim_id
    assert abs(row.lease_until - datetime.now(UTC) - timedelta(seconds=1000)).seconds < 20
    for leased in rows:
        found = queue.message(leased.message_id)
        assert found.lease_until == row.lease_until
    queue.pass_seconds(900)
    assert queue.call_one("reap").reaped == 0


@pytest.mark.promise("P08")
@pytest.mark.parametrize("given", [{}, {"lease_seconds": None}])
def test_lease_defaults_to_the_queue_setting(queue: CheckedQueue, given: dict[str, Any]) -> None:
    queue.enqueue("a")
    claim = queue.dequeue_one(lease_seconds=1).claim_id
    queue.call("alter_queue", lease_seconds=5000)
    row = queue.call_one("extend_lease", claim_id=claim, **given)
    assert abs((row.lease_until - datetime.now(UTC)).total_seconds() - 5000) < 20


@pytest.mark.promise("P08")
def test_lease_is_never_shortened(queue: CheckedQueue) -> None:
    queue.enqueue("a")
    leased = queue.dequeue_one(lease_seconds=1000)
    row = queue.call_one("extend_lease", claim_id=leased.claim_id, lease_seconds=1)
    assert row.lease_until == leased.lease_until


@pytest.mark.promise("P08")
def test_expired_lease_can_be_extended_before_reap(queue: CheckedQueue) -> None:
    queue.enqueue("a")
    claim = queue.dequeue_one().claim_id
    queue.pass_seconds(100)
    queue.call("extend_lease", claim_id=claim, lease_seconds=30)
    assert queue.call_one("reap").reaped == 0
    assert queue.counts() == (0, 0, 1, 0)


@pytest.mark.promise("P08")
def test_reaped_claim_is_stale(queue: CheckedQueue) -> None:
    queue.enqueue("a")
    claim = queue.dequeue_one().claim_id
    queue.pass_seconds(100)
    queue.call("reap")
    queue.refused("RQ721", "extend_lease", claim_id=claim)
    queue.refused("RQ721", "extend_lease", claim_id=-1)
    assert queue.counts() == (1, 0, 0, 0)


@pytest.mark.promise("P08")
def test_claim_of_another_queue_is_stale(queue: CheckedQueue) -> None:
    other = queue.another()
    queue.enqueue("a")
    claim = queue.dequeue_one().claim_id
    other.refused("RQ721", "extend_lease", claim_id=claim)


@pytest.mark.promise("P17")
def test_rolled_back_extension_has_no_effect(connection: Connection, queue: CheckedQueue) -> None:
    queue.enqueue("a")
    leased = queue.dequeue_one()
    with rolled_back(connection):
        queue.call("extend_lease", claim_id=leased.claim_id, lease_seconds=1000)
    row = queue.message(leased.message_id)
    assert row.lease_until == leased.lease_until


@pytest.mark.promise("P15")
@pytest.mark.parametrize("lease_seconds", [0, -1, 86401, 2147483647])
def test_lease_out_of_range_is_refused(queue: CheckedQueue, lease_seconds: int) -> None:
    queue.enqueue("a")
    claim = queue.dequeue_one().claim_id
    given = {"claim_id": claim, "lease_seconds": lease_seconds}
    assert "lease_seconds" in queue.refused("RQ711", "extend_lease", **given)


@pytest.mark.promise("P15")
@pytest.mark.parametrize("lease_seconds", [1, 86400])
def test_lease_seconds_accepts_its_bounds(queue: CheckedQueue, lease_seconds: int) -> None:
    queue.enqueue("a")
    claim = queue.dequeue_one(lease_seconds=1).claim_id
    row = queue.call_one("extend_lease", claim_id=claim, lease_seconds=lease_seconds)
    assert abs((row.lease_until - datetime.now(UTC)).total_seconds() - lease_seconds) < 20


@pytest.mark.promise("P15")
def test_null_claim_is_refused(queue: CheckedQueue) -> None:
    queue.refused("RQ711", "extend_lease", claim_id=None)


@pytest.mark.requires("results")
def test_progress_is_stored_until_the_next_one(queue: CheckedQueue) -> None:
    ids = queue.enqueue("a", "b")
    claim = queue.dequeue(2)[0].claim_id
    assert queue.message(ids[0]).progress is None
    queue.call("extend_lease", claim_id=claim, progress="a tenth")
    assert [queue.message(message).progress for message in ids] == ["a tenth"] * 2
    queue.call("extend_lease", claim_id=claim)
    queue.call("complete", claim_id=claim, message_ids=ids[:1])
    assert queue.message(ids[1]).progress == "a tenth"
    queue.call("extend_lease", claim_id=claim, progress="ü" * 3000)
    assert queue.message(ids[1]).progress == "ü" * 2000
    queue.call("extend_lease", claim_id=claim, progress="")
    assert queue.message(ids[1]).progress == ""
    queue.call("release", claim_id=claim)
    assert queue.message(ids[1]).progress is None


@pytest.mark.promise("P08")
@pytest.mark.requires("results")
def test_progress_of_a_released_claim_is_refused(queue: CheckedQueue) -> None:
    queue.enqueue("a")
    claim = queue.dequeue_one().claim_id
    queue.call("release", claim_id=claim)
    queue.refused("RQ721", "extend_lease", claim_id=claim, progress="x")
    with rolled_back(queue.connection):
        claim = queue.dequeue_one().claim_id
        queue.call("extend_lease", claim_id=claim, progress="x")
    assert queue.counts() == (1, 0, 0, 0)
