"""purge_archive, beyond what it shares with the rest of the housekeeping (test_housekeeping.py)."""

import pytest

from tests.contract.test_archive import DAY, finish, stored
from tests.engines.base import Connection
from tests.helpers.calls import transaction
from tests.helpers.queues import CheckedQueue, new_queue

pytestmark = pytest.mark.promise("P19")


def archive_at_age(queue: CheckedQueue, days: int, *bodies: str) -> list[int]:
    """Finish messages so many days ago, and archive them; the queue must keep them that long."""
    ids = finish(queue, *bodies)
    queue.pass_seconds(days * DAY)
    assert queue.call_one("archive").archived == len(bodies)
    return ids


def gone(queue: CheckedQueue, batch_size: int = 1000) -> tuple[int, int]:
    row = queue.call_one("purge_archive", batch_size=batch_size)
    return row.purged, row.partitions_dropped


@pytest.mark.slow("many days of an archive", on="mariadb", ci="mariadb")
def test_messages_older_than_the_queues_days_go_and_younger_ones_stay(owner: Connection) -> None:
    other = new_queue(owner, "other", archive_days=1000)
    queue = new_queue(owner, "q", archive_days=5)
    [old] = archive_at_age(queue, 6, "old")
    [young] = archive_at_age(queue, 4, "young")
    [others] = archive_at_age(other, 6, "of another queue")
    assert gone(queue) == (1, 0)
    assert queue.state_of(old) is None
    assert queue.state_of(young) == "completed"
    assert other.state_of(others) == "completed"
    assert gone(queue) == (0, 0)


def test_the_part_of_the_last_day_that_is_too_old_goes_too(owner: Connection) -> None:
    new_queue(owner, "other", archive_days=1000)
    queue = new_queue(owner, "q", archive_days=5)
    finish(queue, "just too old")
    queue.pass_seconds(3600)
    finish(queue, "just young enough")
    queue.pass_seconds(5 * DAY - 1800)
    queue.call("archive")
    assert gone(queue) == (1, 0)
    assert stored(queue, "archive") == 1


def test_it_goes_in_parts_of_batch_size(owner: Connection) -> None:
    new_queue(owner, "other", archive_days=1000)
    queue = new_queue(owner, "q", archive_days=1)
    for days in (9, 8, 7):
        archive_at_age(queue, days, "a", "b")
    assert [gone(queue, 3) for _ in range(3)] == [(3, 0), (3, 0), (0, 0)]


@pytest.mark.requires("days")
def test_a_partition_is_dropped_only_when_no_queue_needs_it(owner: Connection) -> None:
    queue = new_queue(owner, "q", archive_days=1)
    other = new_queue(owner, "other", archive_days=30)
    archive_at_age(queue, 10, "a", "b")
    [others] = archive_at_age(other, 10, "c")
    assert gone(queue) == (2, 0)
    assert other.state_of(others) == "completed"
    other.call("alter_queue", archive_days=2)
    assert gone(queue) == (0, 1)
    assert other.state_of(others) is None
    assert gone(queue) == gone(other) == (0, 0)


@pytest.mark.requires("days")
def test_maintain_purges_and_drops(owner: Connection) -> None:
    queue = new_queue(owner, "q", archive_days=2)
    finish(queue, "a")
    queue.pass_seconds(10 * DAY)
    row = queue.call_one("maintain")
    assert row.archived == 1
    row = queue.call_one("maintain") if row.partitions_dropped == 0 else row
    assert (row.purged, row.partitions_dropped) == (0, 1)
    assert stored(queue, "archive") == 0


@pytest.mark.requires("days")
def test_a_day_whose_partition_was_dropped_can_be_archived_again(owner: Connection) -> None:
    queue = new_queue(owner, "q", archive_days=2)
    archive_at_age(queue, 10, "a")
    assert gone(queue) == (0, 1)
    archive_at_age(queue, 10, "b")
    assert stored(queue, "archive") == 1


def test_in_the_callers_transactions_too_nothing_is_kept_for_longer(owner: Connection) -> None:
    queue = new_queue(owner, "q", archive_days=1)
    archive_at_age(queue, 3, "a")
    with transaction(owner):
        row = queue.call_one("maintain")
    assert row.purged + row.partitions_dropped == 1
    assert stored(queue, "archive") == 0
