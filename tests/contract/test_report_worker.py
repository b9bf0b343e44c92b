"""report_worker."""

import re
from datetime import timedelta
from typing import Any

from tests.engines.base import Connection
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import CheckedQueue
from tests.helpers.reports import HOUR, PLAIN, report, workers
from tests.helpers.together import together
from tests.stored_times import pass_seconds


def test_report_replaces_last_report_and_computes_rates(
    queue: CheckedQueue, connection: Connection
) -> None:
    queue.call("report_worker", **PLAIN, completed=100, failed=10)
    before = workers(queue)[0]
    pass_seconds(connection, queue.name, 100)
    assert 100 <= workers(queue)[0].last_seen_seconds < 200
    report(queue, PLAIN["worker_id"], threads=2, completed=1100, failed=30)
    (row,) = workers(queue)
    assert (row.threads, row.completed, row.failed, row.host_name) == (2, 1100, 30, None)
    # A slow machine needs more than the 100 seconds.
    assert 5 < row.completed_per_second <= 10
    assert 0.1 < row.failed_per_second <= 0.2
    assert row.started_at + timedelta(seconds=99) < before.started_at
    assert row.last_seen_at >= before.last_seen_at
    assert row.last_seen_seconds < 60


def test_decreasing_count_has_rate_0(queue: CheckedQueue, connection: Connection) -> None:
    report(queue, "w", completed=100, failed=10)
    pass_seconds(connection, queue.name, 10)
    report(queue, "w", completed=1, failed=1)
    (row,) = workers(queue)
    assert (row.completed, row.completed_per_second, row.failed_per_second) == (1, 0, 0)


def test_report_deletes_one_expired_worker(queue: CheckedQueue, connection: Connection) -> None:
    for number in range(3):
        report(queue, f"gone-{number}")
    pass_seconds(connection, queue.name, HOUR + 60)
    left = []
    for _ in range(4):
        report(queue, "alive")
        left.append(dialect_of(connection).stored(connection, queue.name)["worker"])
    assert left == [3, 2, 1, 1]


@together(
    "given",
    [
        {"worker_id": None},
        {"worker_id": ""},
        {"worker_id": "x" * 65},
        {"worker_id": "a b"},
        {"worker_id": "a\n"},
        {"worker_id": "\u00e9"},
        {"worker_id": "w", "worker_name": "x" * 201},
        {"worker_id": "w", "host_name": "x" * 201},
        {"worker_id": "w", "worker_version": "x" * 201},
        {"worker_id": "w", "threads": 0},
        {"worker_id": "w", "threads": 100_001},
        {"worker_id": "w", "completed": -1},
        {"worker_id": "w", "failed": 2**53 + 2},
    ],
)
def test_report_worker_refuses_invalid_arguments(
    queue: CheckedQueue, given: dict[str, Any]
) -> None:
    name = [name for name in given if name != "worker_id"] or ["worker_id"]
    assert re.search(name[0], queue.refused("RQ711", "report_worker", **given))
    assert workers(queue) == []
