"""Statements and cost of complete_and_dequeue, beside those of complete and dequeue_fast."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.engine_only.postgres.conftest import Open
from tests.engine_only.postgres.test_plans import Plan, Watched, nodes
from tests.helpers.calls import bodies
from tests.helpers.queues import CheckedQueue

pytestmark = pytest.mark.promise("P13")


@pytest.fixture
def watched(open_owner: Open, own_queue: CheckedQueue) -> Watched:
    """Return a session that reports its plans, after calls of every routine."""
    session = Watched(open_owner())
    queue = own_queue.via(session.connection)
    for size in (1, 3):
        queue.enqueue(*"abcdef")
        claim = queue.dequeue(size)[0].claim_id
        [row, *_] = queue.call("complete_and_dequeue", claim_id=claim, batch_size=size)
        queue.call("complete", claim_id=row.claim_id)
        queue.call("purge_queue")
    return session


def tables(plans: list[Plan]) -> Counter[str]:
    """Return the number of statements on each table."""
    used = [{str(node.get("Relation Name")) for node in nodes(plan["Plan"])} for plan in plans]
    return Counter(name for names in used for name in names - {"None"})


def buffers(plans: list[Plan]) -> int:
    """Return the buffers of the calls, which include those of their statements."""
    calls = [plan["Plan"] for plan in plans if plan["Query Text"].startswith("select * from rowq.")]
    return sum(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] for plan in calls)


def fewest(watched: Watched, work: Callable[[Any], None]) -> list[Plan]:
    """Return the statements of the shortest of six runs: some also move a floor, at random."""
    return min((watched.run(work) for _ in range(6)), key=len)


@pytest.mark.parametrize("size", [1, 3])
def test_one_call_runs_fewer_statements_than_two(
    own_queue: CheckedQueue, watched: Watched, size: int
) -> None:
    queue = own_queue.via(watched.connection)
    queue.enqueue(*map(str, range(13 * size)))
    rows = queue.dequeue(size)

    def two(_: Any) -> None:
        queue.call("complete", claim_id=rows[0].claim_id)
        rows[:] = queue.dequeue(size)

    def one(_: Any) -> None:
        rows[:] = queue.call("complete_and_dequeue", claim_id=rows[0].claim_id, batch_size=size)

    apart, together = fewest(watched, two), fewest(watched, one)
    assert bodies(rows) == [str(number) for number in range(12 * size, 13 * size)]
    assert tables(apart) == tables(together) + Counter({"queue": 1})
    assert len(together) < len(apart)
    assert buffers(together) < buffers(apart)


@pytest.mark.parametrize("is_named", [False, True], ids=["whole claim", "ids"])
def test_one_message_takes_eight_statements(
    own_queue: CheckedQueue, watched: Watched, *, is_named: bool
) -> None:
    queue = own_queue.via(watched.connection)
    queue.enqueue(*"abcdefg")
    rows = queue.dequeue()

    def exchange(_: Any) -> None:
        given: dict[str, Any] = {"message_ids": [rows[0].message_id]} if is_named else {}
        rows[:] = queue.call("complete_and_dequeue", claim_id=rows[0].claim_id, **given)

    plans = fewest(watched, exchange)
    assert bodies(rows) == ["g"]
    assert tables(plans) == {"queue": 1, "claim": 2, "message": 2, "floor": 1, "ready": 2}
    assert len(plans) == 8 + len(["the call"])
