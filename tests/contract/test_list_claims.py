"""list_claims."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.helpers.calls import call, rolled_back, transaction
from tests.helpers.queues import CheckedQueue


def listed(queue: CheckedQueue, **arguments: Any) -> list[int]:
    return [row.claim_id for row in queue.call("list_claims", **arguments)]


def claims_of(queue: CheckedQueue, count: int) -> list[int]:
    """Lease messages one by one; return their claims in order."""
    queue.enqueue(*["x"] * count)
    return [queue.dequeue_one().claim_id for _ in range(count)]


@pytest.mark.promise("P03")
def test_list_claims_returns_worker_count_and_lease(
    queue: CheckedQueue,
) -> None:
    queue.enqueue(*"abcd")
    taken = queue.dequeue(3, worker_name="w \N{SNOWMAN}", lease_seconds=600)
    row = queue.call_one("list_claims")
    assert (row.queue_name, row.claim_id) == (queue.name, taken[0].claim_id)
    assert (row.worker_name, row.message_count) == ("w \N{SNOWMAN}", 3)
    assert row.lease_until == taken[0].lease_until
    assert 500 < row.lease_left_seconds <= 600
    left = row.lease_until - datetime.now(UTC)
    assert abs(left - timedelta(seconds=row.lease_left_seconds)) < timedelta(seconds=60)


@pytest.mark.promise("P03")
def test_message_count_falls_as_messages_finish(queue: CheckedQueue) -> None:
    queue.enqueue(*"abc")
    taken = queue.dequeue(3)
    queue.call("complete", claim_id=taken[0].claim_id, message_ids=[taken[1].message_id])
    row = queue.call_one("list_claims")
    assert (row.worker_name, row.message_count) == (None, 2)
    queue.call("release", claim_id=row.claim_id)
    assert queue.call("list_claims") == []


@pytest.mark.promise("P09")
def test_expired_claim_is_listed_until_maintain(
    queue: CheckedQueue,
) -> None:
    [claim_id] = claims_of(queue, 1)
    queue.pass_seconds(1000)
    row = queue.call_one("list_claims")
    assert row.claim_id == claim_id
    assert -1100 < row.lease_left_seconds < -900
    queue.call("maintain")
    assert queue.call("list_claims") == []


@pytest.mark.promise("P03")
def test_pages_are_ordered_by_claim_id(queue: CheckedQueue) -> None:
    ids = claims_of(queue, 5)
    assert ids == sorted(ids)
    assert listed(queue) == ids
    assert listed(queue, after_claim_id=None) == ids
    assert listed(queue, max_claims=2) == ids[:2]
    assert listed(queue, max_claims=2, after_claim_id=ids[1]) == ids[2:4]
    queue.call("complete", claim_id=ids[3])
    assert listed(queue, max_claims=2, after_claim_id=ids[3]) == ids[4:]
    assert listed(queue, after_claim_id=ids[4]) == []
    assert listed(queue, after_claim_id=9223372036854775807) == []


@pytest.mark.promise("P03")
def test_claims_of_all_queues_are_ordered_by_id(
    queue: CheckedQueue,
) -> None:
    other = queue.another()
    wanted = []
    for one in (queue, other, queue, other):
        [claim_id] = claims_of(one, 1)
        wanted.append((one.name, claim_id))
    first = min(claim_id for _, claim_id in wanted)
    arguments = {"after_claim_id": first - 1}
    found = [
        (row.queue_name, row.claim_id)
        for row in call(queue.connection, "list_claims", **arguments, max_claims=10000)
    ]
    assert [row for row in found if row in wanted] == sorted(wanted, key=lambda row: row[1])
    page = call(queue.connection, "list_claims", **arguments, max_claims=3)
    assert [(row.queue_name, row.claim_id) for row in page] == found[:3]
    assert listed(other) == [claim_id for name, claim_id in wanted if name == other.name]


@pytest.mark.promise("P03")
def test_max_claims_defaults_to_100(queue: CheckedQueue) -> None:
    queue.call("enqueue_batch", messages=[{}] * 101)
    ids = [queue.dequeue_one().claim_id for _ in range(101)]
    assert listed(queue) == ids[:100]
    assert listed(queue, max_claims=10000) == ids


@pytest.mark.promise("P07")
def test_uncommitted_claim_is_visible_to_its_session_only(
    queue: CheckedQueue, elsewhere: CheckedQueue
) -> None:
    queue.enqueue("a")
    with rolled_back(queue.connection):
        claim_id = queue.dequeue_one().claim_id
        assert listed(queue) == [claim_id]
        assert listed(elsewhere) == []
    assert listed(queue) == []


@pytest.mark.promise("P14")
def test_late_claim_is_listed_after_maintain(queue: CheckedQueue, elsewhere: CheckedQueue) -> None:
    queue.enqueue(*["x"] * 40)
    with transaction(elsewhere.connection):
        late = elsewhere.dequeue_one().claim_id
        for _ in range(30):
            queue.finish_one()
        queue.call("maintain")
        newer = queue.dequeue_one().claim_id
    queue.tick()
    queue.call("maintain")
    assert listed(queue) == [late, newer]


@pytest.mark.promise("P15")
@pytest.mark.parametrize("max_claims", [0, -1, 10001, None])
def test_max_claims_out_of_range_is_refused(queue: CheckedQueue, max_claims: int | None) -> None:
    text = queue.refused("RQ711", "list_claims", max_claims=max_claims)
    assert "max_claims" in text
