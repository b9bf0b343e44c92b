"""list_schedules; test_create_schedule.py tests its columns."""

from tests.contract.test_create_schedule import HOURLY
from tests.helpers.calls import call
from tests.helpers.queues import CheckedQueue


def test_list_schedules_orders_by_queue_and_name(queue: CheckedQueue) -> None:
    other = queue.another()
    for one in (other, queue):
        for name in ("b", "a", "B"):
            one.call("create_schedule", schedule_name=name, **HOURLY)
    own = [(row.queue_name, row.schedule_name) for row in queue.call("list_schedules")]
    assert own == [(queue.name, name) for name in ("B", "a", "b")]
    every = call(queue.connection, "list_schedules")
    there = [
        (row.queue_name, row.schedule_name)
        for row in every
        if row.queue_name in {queue.name, other.name}
    ]
    assert there == [(one.name, name) for one in (queue, other) for name in ("B", "a", "b")]
