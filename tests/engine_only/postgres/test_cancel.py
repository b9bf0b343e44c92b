"""cancel scans the claims once, and finds messages by key."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.engine_only.postgres.conftest import Open
from tests.engine_only.postgres.test_plans import Watched, faults, nodes
from tests.engines.base import Connection, Server, wait_until_blocked
from tests.helpers.calls import call
from tests.helpers.queues import CheckedQueue


def scans(plans: list[Any], table: str) -> list[Any]:
    """Return the plan nodes that scan a table."""
    return [
        node
        for plan in plans
        for node in nodes(plan["Plan"])
        if node.get("Relation Name") == table and node["Node Type"].endswith("Scan")
    ]


def cancel(session: Connection, ids: list[int]) -> list[str]:
    rows = call(session, "cancel", queue_name="q", message_ids=ids, include_leased=True)
    return [row.outcome for row in rows]


def cancel_many(session: Connection) -> int:
    row = call(session, "cancel_many", queue_name="q", message_type="mail", max_messages=100)[0]
    return int(row.cancelled)


def reset(session: Connection) -> int:
    filters = {"message_type": "mail", "died_before": datetime.now(UTC), "max_messages": 10}
    return len(call(session, "reset", queue_name="q", **filters))


@pytest.mark.promise("P13", "P34")
@pytest.mark.parametrize("is_planned_while_empty", [True, False])
def test_cancel_cancel_many_and_reset_use_indexes(
    open_owner: Open, own_queue: CheckedQueue, *, is_planned_while_empty: bool
) -> None:
    watched = Watched(open_owner())
    if is_planned_while_empty:
        watched.run(lambda session: (cancel(session, [1]), cancel_many(session), reset(session)))
    entries = [{"message_type": "mail" if number % 2 else "other"} for number in range(6000)]
    sent = own_queue.call("enqueue_batch", messages=entries)
    ids = [row.message_id for row in sent]
    own_queue.call("enqueue_batch", messages=[{"delay_seconds": 1000}] * 6000)
    for _ in range(20):
        rows = own_queue.dequeue(50)
        own_queue.call("fail_now", claim_id=rows[0].claim_id)
    claims = [own_queue.dequeue(10)[0].claim_id for _ in range(200)]
    own_queue.connection.execute("analyze")

    outcomes: list[str] = []
    plans = watched.run(lambda session: outcomes.extend(cancel(session, ids[1000:3000])))
    assert outcomes == ["requested"] * 2000
    assert faults(plans) == set()
    of_claims = [node for node in scans(plans, "claim") if node["Actual Rows"] > 1]
    assert [node["Actual Loops"] for node in of_claims] == [1]
    assert all(node["Actual Rows"] == 0 for node in scans(plans, "ready"))
    assert len(own_queue.call_one("extend_lease", claim_id=claims[0]).cancel_ids) == 10

    counts: list[int] = []
    plans = watched.run(lambda session: counts.append(cancel_many(session)))
    assert counts == [50]
    assert faults(plans) == set()
    plans = watched.run(lambda session: counts.append(reset(session)))
    assert counts == [50, 10]
    assert faults(plans) == set()


@pytest.mark.promise("P08", "P34")
def test_heartbeat_that_waited_gets_its_full_lease(
    server: Server, open_owner: Open, own_queue: CheckedQueue
) -> None:
    holder, worker = open_owner(), open_owner()
    own_queue.call("enqueue_batch", messages=[{}])
    [row] = own_queue.dequeue(1)
    arguments = {"queue_name": "q", "claim_id": row.claim_id, "lease_seconds": 1000}
    with ThreadPoolExecutor(1) as pool:
        with holder.transaction():
            assert cancel(holder, [row.message_id]) == ["requested"]
            beating = pool.submit(call, worker, "extend_lease", **arguments)
            wait_until_blocked(server, server.session_id(worker), by=server.session_id(holder))
            time.sleep(0.2)
            [(before,)] = holder.execute("select clock_timestamp()").fetchall()
        [extended] = beating.result(20)
    assert extended.cancel_ids == [row.message_id]
    assert extended.lease_until - before >= timedelta(seconds=1000)
