"""explain_message reads by index, and at most 10,000 rows of a table."""

import pytest

from tests.engine_only.postgres.conftest import Open
from tests.engine_only.postgres.test_plans import Watched, faults, nodes
from tests.helpers.calls import call
from tests.helpers.queues import CheckedQueue

pytestmark = pytest.mark.promise("P42")

MOST = 10_000


def fill(queue: CheckedQueue) -> dict[str, int]:
    """Insert 12,000 messages in each state; return one message of each."""
    queue.call("alter_queue", max_leased=100_000, rate_limit=100_000, rate_seconds=60.0)
    queue.enqueue("a", group_key="g", priority=9)
    for kind in ({}, {"group_key": "g"}, {"delay_seconds": 1000}, {"priority": 1}):
        for _ in range(12):
            queue.call("enqueue_batch", messages=[kind] * 1000)
    for _ in range(12):
        queue.call("enqueue_batch", messages=[{"priority": 0}] * 1000)
        queue.dequeue(1000)
    connection = queue.connection
    connection.execute(
        """
        insert into rowq.dead (queue_id, lane, attempt, message_id, died_at)
        select q.queue_id, 11, 1, -n, now() from rowq.queue q cross join generate_series(1, 12000) n
        """
    )
    [delayed] = queue.enqueue("a", delay_seconds=1000, expire_seconds=2000)
    [ready] = queue.enqueue("a")
    [grouped] = queue.enqueue("a", group_key="g")
    return {
        "ready": ready,
        "delayed": delayed,
        "blocked": grouped,
        "successor": queue.enqueue("a", predecessor_ids=[ready])[0],
        "unknown": ready + 10_000,
    }


@pytest.mark.slow("60,000 messages")
def test_explain_message_scans_and_sorts_nothing(open_owner: Open, own_queue: CheckedQueue) -> None:
    messages = fill(own_queue)
    watched = Watched(open_owner())
    for state, message_id in messages.items():
        plans = watched.run(
            lambda session, own=message_id: call(  # type: ignore[misc]
                session, "explain_message", queue_name=own_queue.name, message_id=own
            )
        )
        assert plans
        assert faults(plans) == set(), state
        rows = {
            node["Actual Rows"] * node["Actual Loops"]
            for plan in plans
            for node in nodes(plan["Plan"])
        }
        assert max(rows) <= MOST + 20, state
    behind = own_queue.call("explain_message", message_id=messages["ready"])
    assert behind[0].detail == f"{MOST} ready messages are before it"
