"""What maintain does to the archive of a queue that is idle otherwise."""

import pytest

from tests.contract.test_purge_archive import archive_at_age
from tests.engines.base import Connection
from tests.helpers.queues import CheckedQueue, new_queue


@pytest.mark.promise("P19")
@pytest.mark.parametrize("days_kept", [1, 0])
def test_an_idle_queue_is_not_passed_over_while_its_archive_has_more_to_purge(
    connection: Connection, queue_name: str, days_kept: int
) -> None:
    new_queue(connection, f"{queue_name} other", archive_days=1000)
    queue = new_queue(connection, queue_name, archive_days=5)
    for days in (4, 4, 4):
        archive_at_age(queue, days, "a", "b")
    queue.call("maintain")
    assert purged(queue) == 0
    queue.call("alter_queue", archive_days=days_kept)
    connection.execute("update rowq.lane set sweep_at = '1970-01-01'")
    assert [purged(queue, 4) for _ in range(3)] == [4, 2, 0]


def purged(queue: CheckedQueue, batch_size: int = 1000) -> int:
    found: int = queue.call_one("maintain", batch_size=batch_size).purged
    return found
