"""Cost of limits on SQL Server."""

import pytest

from tests.engine_only.sqlserver.showplan import Plan, faults, run
from tests.engines.base import Connection
from tests.helpers.calls import call
from tests.stored_times import pass_seconds

pytestmark = pytest.mark.requires("genuine")

STEPS = frozenset({"meta", "queue", "queue_lock", "lane", "limit_lock"})


def fill(connection: Connection, queue: str, count: int) -> None:
    """Enqueue messages."""
    call(connection, "enqueue_batch", queue_name=queue, messages=[{"body": "x"}] * count)


def taken(connection: Connection, queue: str) -> list[Plan]:
    """Dequeue one message; return the plans of its statements."""
    return run(connection, "exec rowq.DequeueFast @queue_name = ?", queue)[1]


def fewest(connection: Connection, queue: str) -> int:
    """Return the fewest statements of a dequeue: sometimes a floor moves."""
    return min(len(taken(connection, queue)) for _ in range(6))


@pytest.mark.promise("P28", "P29")
def test_limits_add_statements_to_limited_queues_only(connection: Connection, queue: str) -> None:
    counts: dict[str, int] = {}
    ways: dict[str, dict[str, float]] = {
        "none": {},
        "leased": {"max_leased": 100},
        "rate": {"max_leased": 0, "rate_limit": 100},
        "full": {"max_leased": 1},
    }
    for name, settings in ways.items():
        call(connection, "alter_queue", queue_name=queue, **settings)
        fill(connection, queue, 12)
        counts[name] = fewest(connection, queue)
    extra = {name: count - counts["none"] for name, count in counts.items()}
    # Counting leased messages is two statements, counting starts one, the limit lock one.
    assert extra["leased"] <= 5
    assert extra["rate"] <= 4
    assert extra["full"] <= 0


@pytest.mark.pitfall("sqlserver 27")
@pytest.mark.promise("P13")
@pytest.mark.parametrize("count", [0, 5000])
def test_limited_dequeue_counts_by_seeks(connection: Connection, queue: str, count: int) -> None:
    call(connection, "alter_queue", queue_name=queue, max_leased=9000, rate_limit=9000)
    fill(connection, queue, count + 10)
    for _ in range(count // 1000):
        call(connection, "dequeue_fast", queue_name=queue, batch_size=1000)
    plans = taken(connection, queue)
    _, kept = run(connection, "exec rowq.Maintain @queue_name = ?", queue)
    assert {"leased", "started", "limit_lock"} <= {
        access.table for plan in plans for access in plan.accesses
    }
    assert not faults(plans, small=STEPS)
    assert not [fault for fault in faults(kept, small=STEPS) if "on started" in fault]


@pytest.mark.promise("P19")
def test_limited_queue_is_idle_after_its_starts_are_purged(
    connection: Connection, queue: str
) -> None:
    call(connection, "alter_queue", queue_name=queue, rate_limit=5)
    fill(connection, queue, 1)
    taken(connection, queue)
    call(connection, "alter_queue", queue_name=queue, rate_limit=0)
    for _ in range(2):
        pass_seconds(connection, queue, 61)
        call(connection, "maintain", queue_name=queue)
    _, plans = run(connection, "exec rowq.Maintain @queue_name = ?", queue)
    deleting = [plan for plan in plans if "delete" in plan.text and "rowq.started" in plan.text]
    assert not deleting
