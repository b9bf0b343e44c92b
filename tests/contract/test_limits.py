"""max_leased, rate_limit and rate_seconds."""

from typing import Any

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import rolled_back, transaction
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import CheckedQueue, new_queue
from tests.helpers.together import together

pytestmark = pytest.mark.requires("limits")

NONE = {"max_leased": 0, "rate_limit": 0, "rate_seconds": 1}
SETTINGS: dict[str, Any] = {"max_leased": 5, "rate_limit": 7, "rate_seconds": 2.5}
BOUNDS = {
    "max_leased": (0, 100_000, 1),
    "rate_limit": (0, 100_000, 1),
    "rate_seconds": (0.1, 86400, 0.001),
}
INSIDE = [(name, value) for name, (low, high, _) in BOUNDS.items() for value in (low, high)]
OUTSIDE = [
    (name, value)
    for name, (low, high, step) in BOUNDS.items()
    for value in (low - step, high + step, -1, 2_147_483_647)
]
NOT_FINITE = [("rate_seconds", float(word)) for word in ("nan", "inf", "-inf")]


def limits_of(queue: CheckedQueue) -> dict[str, Any]:
    row = queue.call_one("queue_stats")
    return {name: getattr(row, name) for name in NONE}


def limited(queue: CheckedQueue, messages: int = 20, **settings: Any) -> CheckedQueue:
    """Give a queue limits and messages."""
    queue.call("alter_queue", **settings)
    queue.enqueue(*map(str, range(messages)))
    return queue


@pytest.mark.promise("P15", "P28", "P29")
def test_queue_has_no_limits_by_default(
    connection: Connection, queue_name: str, queue: CheckedQueue
) -> None:
    assert limits_of(queue) == NONE
    made = new_queue(connection, f"{queue_name[:80]} made", **SETTINGS)
    assert limits_of(made) == SETTINGS


@pytest.mark.promise("P15")
def test_null_keeps_a_limit_and_0_removes_it(queue: CheckedQueue) -> None:
    queue.call("alter_queue", **SETTINGS)
    queue.call("alter_queue", lease_seconds=9)
    assert limits_of(queue) == SETTINGS
    queue.call("alter_queue", max_leased=0, rate_limit=0)
    assert limits_of(queue) == SETTINGS | {"max_leased": 0, "rate_limit": 0}
    queue.enqueue(*map(str, range(30)))
    assert len(queue.dequeue(100)) == 30


@pytest.mark.promise("P15")
@pytest.mark.parametrize(("setting", "value"), INSIDE)
def test_limit_accepts_its_bounds(queue: CheckedQueue, setting: str, value: float) -> None:
    queue.call("alter_queue", **{setting: value})
    assert limits_of(queue)[setting] == value


@pytest.mark.promise("P15")
@pytest.mark.parametrize("routine", ["create_queue", "alter_queue"])
@together(("setting", "value"), [*OUTSIDE, *NOT_FINITE])
def test_limit_out_of_range_is_refused(
    queue: CheckedQueue, routine: str, setting: str, value: float
) -> None:
    assert setting in queue.refused("RQ711", routine, **{setting: value})
    assert limits_of(queue) == NONE


@pytest.mark.promise("P28")
def test_max_leased_limits_leased_messages(
    queue: CheckedQueue,
) -> None:
    limited(queue, max_leased=5)
    assert [len(queue.dequeue(size)) for size in (1, 3, 10, 1)] == [1, 3, 1, 0]
    assert queue.counts()[2] == 5


@pytest.mark.promise("P28")
@pytest.mark.parametrize("finish", ["complete", "retry_later", "fail_now", "release"])
def test_finishing_messages_frees_capacity(queue: CheckedQueue, finish: str) -> None:
    limited(queue, max_leased=4)
    rows = queue.dequeue(4)
    claim_id = rows[0].claim_id
    queue.call(finish, claim_id=claim_id, message_ids=[rows[0].message_id, rows[2].message_id])
    assert len(queue.dequeue(10)) == 2
    queue.call(finish, claim_id=claim_id)
    assert len(queue.dequeue(10)) == 2


@pytest.mark.promise("P28", "P09")
def test_expired_lease_counts_until_reap(queue: CheckedQueue) -> None:
    limited(queue, max_leased=3)
    assert len(queue.dequeue(9, lease_seconds=5)) == 3
    queue.pass_seconds(6)
    assert queue.dequeue() == []
    queue.call("maintain")
    assert len(queue.dequeue(9)) == 3


@pytest.mark.promise("P28")
def test_lowered_max_leased_keeps_existing_leases(
    queue: CheckedQueue,
) -> None:
    limited(queue)
    first, second = queue.dequeue(6)[0].claim_id, queue.dequeue(2)[0].claim_id
    queue.call("alter_queue", max_leased=3)
    assert queue.dequeue(9) == []
    queue.call("complete", claim_id=first)
    assert len(queue.dequeue(9)) == 1
    queue.call("complete", claim_id=second)
    queue.call("alter_queue", max_leased=8)
    assert len(queue.dequeue(9)) == 7


@pytest.mark.promise("P28")
def test_dequeues_of_one_transaction_share_the_capacity(
    queue: CheckedQueue,
) -> None:
    limited(queue, max_leased=3)
    with transaction(queue.connection):
        [*_, row] = queue.dequeue(2)
        assert len(queue.dequeue(2)) == 1
        assert queue.dequeue(2) == []
        queue.call("complete", claim_id=row.claim_id)
        assert len(queue.dequeue(9)) == 2
    assert queue.dequeue() == []


@pytest.mark.promise("P07", "P28", "P29")
def test_rolled_back_dequeue_uses_no_capacity(queue: CheckedQueue) -> None:
    limited(queue, max_leased=3, rate_limit=3, rate_seconds=1000)
    with rolled_back(queue.connection):
        assert len(queue.dequeue(9)) == 3
    assert len(queue.dequeue(9)) == 3


@pytest.mark.promise("P29")
def test_rate_limit_limits_deliveries_per_rate_seconds(queue: CheckedQueue) -> None:
    limited(queue, rate_limit=5, rate_seconds=60)
    claims = [queue.dequeue(size) for size in (2, 2, 4, 4)]
    assert [len(rows) for rows in claims] == [2, 2, 1, 0]
    for rows in claims[:3]:
        queue.call("complete", claim_id=rows[0].claim_id)
    assert queue.dequeue() == [], "finished deliveries count"
    queue.pass_seconds(59)
    assert queue.dequeue() == []
    queue.pass_seconds(1)
    assert len(queue.dequeue(9)) == 5


@pytest.mark.promise("P29")
def test_rate_window_slides(queue: CheckedQueue) -> None:
    limited(queue, rate_limit=3, rate_seconds=60)
    assert len(queue.dequeue(2)) == 2
    queue.pass_seconds(40)
    assert len(queue.dequeue(2)) == 1
    queue.pass_seconds(21)
    assert len(queue.dequeue(9)) == 2
    queue.pass_seconds(20)
    assert queue.dequeue() == []
    queue.pass_seconds(20)
    assert len(queue.dequeue(9)) == 1


@pytest.mark.promise("P29")
def test_retries_count_as_deliveries(queue: CheckedQueue) -> None:
    limited(queue, messages=1, rate_limit=3, rate_seconds=60)
    for routine in ("release", "retry_later", "release"):
        extra = {"delay_seconds": 0} if routine == "retry_later" else {}
        queue.finish_one(routine, **extra)
    assert queue.dequeue() == []
    queue.pass_seconds(61)
    assert len(queue.dequeue()) == 1


@pytest.mark.promise("P29")
def test_rate_seconds_may_be_below_one(queue: CheckedQueue) -> None:
    limited(queue, rate_limit=2, rate_seconds=0.5)
    assert len(queue.dequeue(9)) == 2
    rows = queue.call_one("dequeue_wait", batch_size=9, wait_seconds=20).messages
    assert len(rows) == 2


@pytest.mark.promise("P28", "P29")
def test_both_limits_apply_together(queue: CheckedQueue) -> None:
    limited(queue, max_leased=2, rate_limit=3, rate_seconds=60)
    rows = queue.dequeue(9)
    assert len(rows) == 2
    queue.call("complete", claim_id=rows[0].claim_id)
    assert [len(queue.dequeue(9)) for _ in range(2)] == [1, 0]


@pytest.mark.promise("P29")
@pytest.mark.parametrize("seconds", [2, 61, 3600])
def test_maintain_purges_only_old_delivery_starts(queue: CheckedQueue, seconds: int) -> None:
    limited(queue, rate_limit=4, rate_seconds=1000)
    for _ in range(3):
        queue.finish_one()
    queue.pass_seconds(seconds)
    queue.call("maintain")
    assert len(queue.dequeue(9)) == (1 if seconds < 1000 else 4)
    queue.pass_seconds(1001)
    for _ in range(2):
        queue.call("maintain")
    assert queue.stored()["started"] == 0


@pytest.mark.promise("P29")
def test_removed_rate_limit_purges_delivery_starts(
    queue: CheckedQueue,
) -> None:
    limited(queue, rate_limit=4, rate_seconds=1000)
    queue.finish_one()
    queue.call("alter_queue", rate_limit=0)
    queue.finish_one()
    assert queue.stored()["started"] == 1
    queue.pass_seconds(61)
    queue.call("maintain")
    assert queue.stored()["started"] == 0


@pytest.mark.promise("P28")
def test_dropped_limited_queue_leaves_no_limits(
    queue: CheckedQueue,
) -> None:
    limited(queue, max_leased=2, rate_limit=3)
    queue.dequeue(2)
    queue.call("drop_queue", force=True)
    queue.call("create_queue")
    queue.enqueue("a", "b", "c")
    assert len(queue.dequeue(9)) == 3


@pytest.mark.pitfall("oracle 27")
@pytest.mark.promise("P28", "P29", "P15")
@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
@pytest.mark.parametrize("setting", ["max_leased", "rate_limit"])
def test_limited_dequeue_with_an_old_snapshot(
    queue: CheckedQueue, elsewhere: CheckedQueue, isolation: str, setting: str
) -> None:
    """Oracle does not show the isolation level: it refuses only a snapshot that is too old."""
    limited(queue, **{setting: 2})
    dialect = dialect_of(queue.connection)
    dialect.begin(queue.connection, isolation)
    dialect.execute(queue.connection, "select count(*) from rowq.queue")
    assert len(elsewhere.dequeue()) == 1
    if dialect.sees_newer:
        assert len(queue.dequeue(9)) == 1
    else:
        assert "READ COMMITTED" in queue.refused("RQ713", "dequeue_fast")
    dialect.rollback(queue.connection)
    assert queue.counts()[2] == 1
    assert len(queue.dequeue(9)) == 1


@pytest.mark.promise("P28")
def test_limited_queue_promotes_and_pauses(queue: CheckedQueue) -> None:
    queue.call("alter_queue", max_leased=2)
    queue.enqueue("1", "2", "3", delay_seconds=5)
    queue.pass_seconds(6)
    rows = queue.dequeue(9)
    assert len(rows) == 2
    queue.call("complete", claim_id=rows[0].claim_id)
    queue.call("pause_queue")
    assert queue.dequeue() == []
    queue.call("resume_queue")
    assert len(queue.dequeue(9)) == 1


@pytest.mark.promise("P28")
def test_dequeue_wait_waits_for_capacity(queue: CheckedQueue, elsewhere: CheckedQueue) -> None:
    limited(queue, max_leased=1)
    row = queue.dequeue_one()
    assert elsewhere.call_one("dequeue_wait", wait_seconds=0.3).messages is None
    queue.call("complete", claim_id=row.claim_id)
    assert len(elsewhere.call_one("dequeue_wait", wait_seconds=5).messages) == 1
