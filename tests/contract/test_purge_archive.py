"""purge_archive, beyond what it shares with the rest of the housekeeping (test_housekeeping.py)."""

import pytest

from tests.contract.test_archive import DAY, finish, stored
from tests.engines.base import Connection
from tests.helpers.calls import call, call_one, state_of, transaction
from tests.helpers.queues import CheckedQueue
from tests.stored_times import pass_seconds

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


def test_messages_older_than_the_queues_days_go_and_younger_ones_stay(
    owner: Connection,
) -> None:
    call(owner, "create_queue", queue_name="other", archive_days=1000)
    call(owner, "create_queue", queue_name="q", archive_days=5)
    [old] = archive_at_age(CheckedQueue(owner, "q"), 6, "old")
    [young] = archive_at_age(CheckedQueue(owner, "q"), 4, "young")
    [others] = archive_at_age(CheckedQueue(owner, "other"), 6, "of another queue")
    assert gone(CheckedQueue(owner, "q")) == (1, 0)
    assert state_of(owner, "q", old) is None
    assert state_of(owner, "q", young) == "completed"
    assert state_of(owner, "other", others) == "completed"
    assert gone(CheckedQueue(owner, "q")) == (0, 0)


def test_the_part_of_the_last_day_that_is_too_old_goes_too(owner: Connection) -> None:
    call(owner, "create_queue", queue_name="other", archive_days=1000)
    call(owner, "create_queue", queue_name="q", archive_days=5)
    finish(CheckedQueue(owner, "q"), "just too old")
    pass_seconds(owner, "q", 3600)
    finish(CheckedQueue(owner, "q"), "just young enough")
    pass_seconds(owner, "q", 5 * DAY - 1800)
    call(owner, "archive", queue_name="q")
    assert gone(CheckedQueue(owner, "q")) == (1, 0)
    assert stored(CheckedQueue(owner, "q"), "archive") == 1


def test_it_goes_in_parts_of_batch_size(owner: Connection) -> None:
    call(owner, "create_queue", queue_name="other", archive_days=1000)
    call(owner, "create_queue", queue_name="q", archive_days=1)
    for days in (9, 8, 7):
        archive_at_age(CheckedQueue(owner, "q"), days, "a", "b")
    assert [gone(CheckedQueue(owner, "q"), 3) for _ in range(3)] == [(3, 0), (3, 0), (0, 0)]


@pytest.mark.requires("days")
def test_a_partition_is_dropped_only_when_no_queue_needs_it(owner: Connection) -> None:
    call(owner, "create_queue", queue_name="q", archive_days=1)
    call(owner, "create_queue", queue_name="other", archive_days=30)
    archive_at_age(CheckedQueue(owner, "q"), 10, "a", "b")
    [others] = archive_at_age(CheckedQueue(owner, "other"), 10, "c")
    assert gone(CheckedQueue(owner, "q")) == (2, 0)
    assert state_of(owner, "other", others) == "completed"
    call(owner, "alter_queue", queue_name="other", archive_days=2)
    assert gone(CheckedQueue(owner, "q")) == (0, 1)
    assert state_of(owner, "other", others) is None
    assert gone(CheckedQueue(owner, "q")) == gone(CheckedQueue(owner, "other")) == (0, 0)


@pytest.mark.requires("days")
def test_maintain_purges_and_drops(owner: Connection) -> None:
    call(owner, "create_queue", queue_name="q", archive_days=2)
    finish(CheckedQueue(owner, "q"), "a")
    pass_seconds(owner, "q", 10 * DAY)
    row = call_one(owner, "maintain", queue_name="q")
    assert row.archived == 1
    row = call_one(owner, "maintain", queue_name="q") if row.partitions_dropped == 0 else row
    assert (row.purged, row.partitions_dropped) == (0, 1)
    assert stored(CheckedQueue(owner, "q"), "archive") == 0


@pytest.mark.requires("days")
def test_a_day_whose_partition_was_dropped_can_be_archived_again(owner: Connection) -> None:
    call(owner, "create_queue", queue_name="q", archive_days=2)
    archive_at_age(CheckedQueue(owner, "q"), 10, "a")
    assert gone(CheckedQueue(owner, "q")) == (0, 1)
    archive_at_age(CheckedQueue(owner, "q"), 10, "b")
    assert stored(CheckedQueue(owner, "q"), "archive") == 1


def test_in_the_callers_transactions_too_nothing_is_kept_for_longer(
    owner: Connection,
) -> None:
    call(owner, "create_queue", queue_name="q", archive_days=1)
    archive_at_age(CheckedQueue(owner, "q"), 3, "a")
    with transaction(owner):
        row = call_one(owner, "maintain", queue_name="q")
    assert row.purged + row.partitions_dropped == 1
    assert stored(CheckedQueue(owner, "q"), "archive") == 0
