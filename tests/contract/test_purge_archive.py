"""purge_archive; test_maintenance.py covers what the routines of maintenance share."""

import pytest

from tests.contract.test_archive import DAY, finish, stored
from tests.engines.base import Connection
from tests.helpers.calls import transaction
from tests.helpers.queues import CheckedQueue, new_queue

pytestmark = pytest.mark.promise("P19")


def archive_at_age(queue: CheckedQueue, days: int, *bodies: str) -> list[int]:
    """Archive messages that finished `days` ago; the queue must keep them that long."""
    ids = finish(queue, *bodies)
    queue.pass_seconds(days * DAY)
    assert queue.call_one("archive").archived == len(bodies)
    return ids


def purge(queue: CheckedQueue, batch_size: int = 1000) -> tuple[int, int]:
    row = queue.call_one("purge_archive", batch_size=batch_size)
    return row.purged, row.partitions_dropped


@pytest.mark.slow("many days of an archive", on="mariadb", ci="mariadb")
def test_purge_archive_removes_messages_beyond_archive_days(owner: Connection) -> None:
    other = new_queue(owner, "other", archive_days=1000)
    queue = new_queue(owner, "q", archive_days=5)
    [old] = archive_at_age(queue, 6, "old")
    [young] = archive_at_age(queue, 4, "young")
    [others] = archive_at_age(other, 6, "of another queue")
    assert purge(queue) == (1, 0)
    assert queue.state_of(old) is None
    assert queue.state_of(young) == "completed"
    assert other.state_of(others) == "completed"
    assert purge(queue) == (0, 0)


def test_purge_archive_removes_the_old_part_of_a_day(owner: Connection) -> None:
    new_queue(owner, "other", archive_days=1000)
    queue = new_queue(owner, "q", archive_days=5)
    finish(queue, "just too old")
    queue.pass_seconds(3600)
    finish(queue, "just young enough")
    queue.pass_seconds(5 * DAY - 1800)
    queue.call("archive")
    assert purge(queue) == (1, 0)
    assert stored(queue, "archive") == 1


def test_purge_archive_removes_at_most_batch_size_messages(owner: Connection) -> None:
    new_queue(owner, "other", archive_days=1000)
    queue = new_queue(owner, "q", archive_days=1)
    for days in (9, 8, 7):
        archive_at_age(queue, days, "a", "b")
    assert [purge(queue, 3) for _ in range(3)] == [(3, 0), (3, 0), (0, 0)]


@pytest.mark.requires("days")
def test_partition_is_dropped_when_no_queue_needs_it(owner: Connection) -> None:
    queue = new_queue(owner, "q", archive_days=1)
    other = new_queue(owner, "other", archive_days=30)
    archive_at_age(queue, 10, "a", "b")
    [others] = archive_at_age(other, 10, "c")
    assert purge(queue) == (2, 0)
    assert other.state_of(others) == "completed"
    other.call("alter_queue", archive_days=2)
    assert purge(queue) == (0, 1)
    assert other.state_of(others) is None
    assert purge(queue) == purge(other) == (0, 0)


@pytest.mark.requires("days")
def test_maintain_archives_and_drops_partitions(owner: Connection) -> None:
    queue = new_queue(owner, "q", archive_days=2)
    finish(queue, "a")
    queue.pass_seconds(10 * DAY)
    row = queue.call_one("maintain")
    assert row.archived == 1
    row = queue.call_one("maintain") if row.partitions_dropped == 0 else row
    assert (row.purged, row.partitions_dropped) == (0, 1)
    assert stored(queue, "archive") == 0


@pytest.mark.requires("days")
def test_dropped_day_can_be_archived_again(owner: Connection) -> None:
    queue = new_queue(owner, "q", archive_days=2)
    archive_at_age(queue, 10, "a")
    assert purge(queue) == (0, 1)
    archive_at_age(queue, 10, "b")
    assert stored(queue, "archive") == 1


def test_maintain_purges_archive_in_the_callers_transaction(owner: Connection) -> None:
    queue = new_queue(owner, "q", archive_days=1)
    archive_at_age(queue, 3, "a")
    with transaction(owner):
        row = queue.call_one("maintain")
    assert row.purged + row.partitions_dropped == 1
    assert stored(queue, "archive") == 0
