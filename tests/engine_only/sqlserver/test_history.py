"""History on SQL Server: plans, and sessions that end and purge beside each other."""

import pytest

from tests.engine_only.sqlserver.sessions import impatient
from tests.engine_only.sqlserver.showplan import STEPS, Plan, called, faults, tables
from tests.engines.base import Connection
from tests.helpers.calls import call, dequeue, enqueue, rolled_back
from tests.helpers.dialects import dialect_of
from tests.helpers.history import DAY, KEPT_DAYS
from tests.helpers.queues import Connect
from tests.stored_times import pass_seconds

pytestmark = [pytest.mark.promise("P37"), pytest.mark.requires("genuine")]

ENDS = ("Complete", "RetryLater", "FailNow", "Release")


@pytest.fixture
def kept(connection: Connection, queue: str) -> str:
    """Return the name of a queue that keeps history."""
    call(connection, "alter_queue", queue_name=queue, history_days=KEPT_DAYS)
    return queue


def ended(connection: Connection, queue: str, routine: str, size: int = 3) -> list[Plan]:
    """Lease new messages and end the claim; return the plans of that call."""
    enqueue(connection, queue, *["x"] * size, priority=0)
    claim_id = dequeue(connection, queue, size)[0].claim_id
    return called(connection, routine, queue_name=queue, claim_id=claim_id)


def about(plans: list[Plan]) -> list[Plan]:
    """Return the plans of the statements that read or write history."""
    return [plan for plan in plans if "history" in tables([plan])]


def cycle(connection: Connection, queue: str) -> list[Plan]:
    """End attempts in every way, read one, and purge all."""
    name = {"queue_name": queue}
    plans = [plan for routine in ENDS for plan in ended(connection, queue, routine)]
    [message_id] = enqueue(connection, queue, "x", priority=0)
    dequeue(connection, queue)
    pass_seconds(connection, queue, 1000)
    plans += called(connection, "Reap", **name)
    plans += called(connection, "GetHistory", **name, message_id=message_id)
    plans += called(connection, "Health")
    pass_seconds(connection, queue, (KEPT_DAYS + 1) * DAY)
    return plans + called(connection, "Maintain", **name)


@pytest.mark.pitfall("sqlserver 39")
@pytest.mark.promise("P13")
def test_attempts_are_found_by_seeks_with_early_plans(connection: Connection, kept: str) -> None:
    plans = cycle(connection, kept)
    for _ in range(5):
        ended(connection, kept, "Release", 1000)
    plans += cycle(connection, kept)
    assert about(plans)
    assert not [fault for fault in faults(about(plans), small=STEPS) if " on " in fault]
    assert not [plan for plan in about(plans) if plan.is_parallel or plan.conversions]


@pytest.mark.pitfall("sqlserver 39")
@pytest.mark.parametrize("routine", ENDS)
def test_history_adds_one_insert_per_ending_call(
    connection: Connection, queue: str, routine: str
) -> None:
    ended(connection, queue, routine)
    without = [plan for plan in ended(connection, queue, routine) if plan.accesses]
    assert "history" not in tables(without)
    call(connection, "alter_queue", queue_name=queue, history_days=KEPT_DAYS)
    plans = [plan for plan in ended(connection, queue, routine) if plan.accesses]
    assert len(about(plans)) == 1
    # Complete locks the claim first, to read its worker.
    assert len(plans) - len(without) == (2 if routine == "Complete" else 1)


@pytest.mark.pitfall("sqlserver 39")
@pytest.mark.promise("P19")
def test_open_purge_and_open_completion_do_not_block_others(
    connection: Connection, connect: Connect, kept: str
) -> None:
    other = impatient(connect())
    ended(connection, kept, "Complete", 1000)
    pass_seconds(connection, kept, (KEPT_DAYS + 1) * DAY)
    [message_id] = enqueue(connection, kept, "x")
    claim_id = dequeue(connection, kept)[0].claim_id
    with rolled_back(connection):
        call(connection, "purge_archive", queue_name=kept, batch_size=1000)
        call(other, "release", queue_name=kept, claim_id=claim_id)
        [attempt] = call(other, "get_history", queue_name=kept, message_id=message_id)
        assert attempt.outcome == "released"
    claim_id = dequeue(connection, kept)[0].claim_id
    with rolled_back(connection):
        call(connection, "complete", queue_name=kept, claim_id=claim_id)
        assert len(call(other, "get_history", queue_name=kept, message_id=message_id)) == 1
        call(other, "purge_archive", queue_name=kept, batch_size=1000)
    assert dialect_of(connection).stored(connection, kept)["history"] == 1
