"""The promises that maintain, reap, promote, archive and purge_archive share."""

import pytest

from tests.helpers.calls import rolled_back, transaction
from tests.helpers.queues import CheckedQueue
from tests.helpers.together import together

pytestmark = pytest.mark.pitfall("oracle 5")

ROUTINES = ["maintain", "reap", "promote", "archive", "purge_archive"]
each_routine = pytest.mark.parametrize("routine", ROUTINES)


@pytest.mark.promise("P19")
@each_routine
def test_maintenance_of_an_empty_queue_does_nothing(queue: CheckedQueue, routine: str) -> None:
    before = queue.stored()
    row = queue.call_one(routine)
    counts = {name: value for name, value in vars(row).items() if name != "queue_name"}
    assert counts.pop("elected", True) is True
    counts.pop("partitions_dropped", None)  # Partitions are shared by queues.
    assert set(counts.values()) <= {0}
    assert queue.stored() == before


@pytest.mark.promise("P19")
@each_routine
@pytest.mark.requires("genuine")
def test_two_sessions_run_maintenance_without_waiting(
    queue: CheckedQueue, elsewhere: CheckedQueue, routine: str
) -> None:
    queue.call("alter_queue", archive_days=1)
    with transaction(elsewhere.connection):
        elsewhere.call_one(routine)
        queue.call_one(routine)
    with rolled_back(elsewhere.connection):
        elsewhere.call_one(routine)
        queue.call_one(routine)


@pytest.mark.promise("P15")
@each_routine
@together("batch_size", [0, -1, 10001, None, 2147483647])
def test_maintenance_refuses_batch_size_out_of_range(
    queue: CheckedQueue, routine: str, batch_size: int | None
) -> None:
    text = queue.refused("RQ711", routine, batch_size=batch_size)
    assert "batch_size" in text


@pytest.mark.promise("P15")
@each_routine
@together("batch_size", [1, 10000])
def test_maintenance_accepts_the_bounds_of_batch_size(
    queue: CheckedQueue, routine: str, batch_size: int
) -> None:
    queue.call_one(routine, batch_size=batch_size)
