"""list_workers."""

from tests.engines.base import Connection
from tests.helpers.calls import call
from tests.helpers.queues import CheckedQueue
from tests.helpers.reports import HOUR, PLAIN, ids, report, workers
from tests.stored_times import pass_seconds


def test_worker_is_listed_as_reported(queue: CheckedQueue) -> None:
    assert queue.call_one("report_worker", **PLAIN).outcome == "reported"
    (row,) = workers(queue)
    assert {name: getattr(row, name) for name in PLAIN} == PLAIN
    assert row.queue_name == queue.name
    assert row.started_at == row.last_seen_at
    assert 0 <= row.last_seen_seconds < 60
    assert (row.completed, row.failed) == (0, 0)
    assert (row.completed_per_second, row.failed_per_second) == (0, 0)


def test_report_requires_only_the_worker_id(queue: CheckedQueue) -> None:
    assert report(queue, "w") == "reported"
    (row,) = workers(queue)
    assert (row.worker_name, row.host_name, row.worker_version) == (None, None, None)
    assert row.threads == 1


def test_ended_worker_is_not_listed(queue: CheckedQueue) -> None:
    for name in ("b", "a", "c"):
        report(queue, name)
    assert report(queue, "a", is_ended=True) == "ended"
    assert ids(queue) == ["b", "c"]
    assert report(queue, "a", is_ended=True) == "ended"


def test_worker_is_listed_for_an_hour_after_its_last_report(
    queue: CheckedQueue, connection: Connection
) -> None:
    report(queue, "killed")
    pass_seconds(connection, queue.name, HOUR - 300)
    report(queue, "alive")
    assert ids(queue) == ["alive", "killed"]
    pass_seconds(connection, queue.name, 400)
    assert ids(queue) == ["alive"]


def test_workers_of_all_queues_are_listed_by_queue(queue: CheckedQueue) -> None:
    other = queue.another()
    report(other, "b")
    report(queue, "c")
    report(queue, "a")
    listed = [(row.queue_name, row.worker_id) for row in call(queue.connection, "list_workers")]
    own = [(queue.name, "a"), (queue.name, "c"), (other.name, "b")]
    assert [row for row in listed if row in own] == own
    assert ids(other) == ["b"]


def test_workers_end_with_their_queue(queue: CheckedQueue) -> None:
    report(queue, "w")
    queue.call("drop_queue")
    queue.call("create_queue")
    assert workers(queue) == []
