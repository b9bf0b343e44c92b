"""maintain and the archive of an otherwise idle queue."""

import pytest

from tests.contract.test_purge_archive import archive_at_age
from tests.engines.base import Connection
from tests.helpers.queues import CheckedQueue, new_queue


@pytest.mark.promise("P19")
@pytest.mark.parametrize("archive_days", [1, 0])
def test_maintain_keeps_purging_the_archive_of_an_idle_queue(
    connection: Connection, queue_name: str, archive_days: int
) -> None:
    new_queue(connection, f"{queue_name} other", archive_days=1000)
    queue = new_queue(connection, queue_name, archive_days=5)
    for days in (4, 4, 4):
        archive_at_age(queue, days, "a", "b")
    queue.call("maintain")
    assert purged(queue) == 0
    queue.call("alter_queue", archive_days=archive_days)
    connection.execute("update rowq.lane set sweep_at = '1970-01-01'")
    assert [purged(queue, 4) for _ in range(3)] == [4, 2, 0]


def purged(queue: CheckedQueue, batch_size: int = 1000) -> int:
    found: int = queue.call_one("maintain", batch_size=batch_size).purged
    return found
