"""Reports and lists of workers."""

from typing import Any

from tests.helpers.queues import CheckedQueue

HOUR = 3600
PLAIN: dict[str, Any] = {
    "worker_id": "a-Z_0.9:x",
    "worker_name": "emails \N{SNOWMAN}",
    "host_name": "host.example",
    "worker_version": "rowq 0.1.0",
    "threads": 4,
}


def report(queue: CheckedQueue, worker_id: str, **given: Any) -> str:
    return str(queue.call_one("report_worker", worker_id=worker_id, **given).outcome)


def workers(queue: CheckedQueue) -> list[Any]:
    return queue.call("list_workers")


def ids(queue: CheckedQueue) -> list[str]:
    return [row.worker_id for row in workers(queue)]
