"""History on Oracle: errors of any length, plans and purge."""

import pytest

from tests.engine_only.oracle.plans import plans
from tests.engine_only.oracle.test_plans import LARGE, fill
from tests.engines.base import Connection
from tests.engines.oracle.server import OracleServer
from tests.helpers.calls import call, dequeue, enqueue, rolled_back
from tests.helpers.dialects import dialect_of
from tests.helpers.history import DAY, KEPT_DAYS
from tests.helpers.queues import Connect
from tests.stored_times import pass_seconds

pytestmark = pytest.mark.promise("P37")

ENDS = ("complete", "retry_later", "fail_now", "release")


@pytest.fixture
def kept(connection: Connection, queue: str) -> str:
    """Return the name of a queue that keeps history."""
    call(connection, "alter_queue", queue_name=queue, history_days=KEPT_DAYS)
    return queue


def ended(connection: Connection, queue: str, routine: str, size: int = 2) -> list[int]:
    """Lease new messages and end the claim by a routine; return their ids."""
    ids = enqueue(connection, queue, *["x"] * size, priority=0)
    claim = dequeue(connection, queue, size, worker_name="w")[0].claim_id
    call(connection, routine, queue_name=queue, claim_id=claim)
    return ids


@pytest.mark.pitfall("oracle 24")
@pytest.mark.parametrize("error", ["\N{EURO SIGN}" * 2000, "\N{SNAKE}" * 1500, "", None])
def test_error_of_any_length_passes_through_forall(
    connection: Connection, kept: str, error: str | None
) -> None:
    ids = enqueue(connection, kept, *"abc")
    claim = dequeue(connection, kept, 3)[0].claim_id
    call(connection, "fail_now", queue_name=kept, claim_id=claim, error=error)
    for message in ids:
        [attempt] = call(connection, "get_history", queue_name=kept, message_id=message)
        assert attempt.error == error


@pytest.mark.promise("P13")
@pytest.mark.parametrize("is_planned_while_empty", [True, False])
def test_attempts_are_found_and_purged_by_indexes(
    server: OracleServer, connection: Connection, kept: str, *, is_planned_while_empty: bool
) -> None:
    def every_read() -> None:
        ids = [message for routine in ENDS for message in ended(connection, kept, routine)]
        call(connection, "get_history", queue_name=kept, message_id=ids[0])
        call(connection, "health")
        pass_seconds(connection, kept, (KEPT_DAYS + 1) * DAY)
        call(connection, "maintain", queue_name=kept)

    if is_planned_while_empty:
        every_read()
    fill(connection, kept, LARGE)
    for _ in range(LARGE // 1000):
        claim = dequeue(connection, kept, 1000)[0].claim_id
        call(connection, "complete", queue_name=kept, claim_id=claim)
    every_read()
    found = [plan for plan in plans(server, connection) if plan.uses("ROWQ_HISTORY")]
    assert found
    # get_history sorts the few attempts of one message.
    wrong = [plan for plan in found if "case when n.ended_at" not in plan.text]
    assert [plan.shown for plan in wrong if list(plan.faults())] == []


@pytest.mark.pitfall("oracle 40")
@pytest.mark.promise("P06")
def test_open_purge_of_history_does_not_block_another(
    connection: Connection, connect: Connect, kept: str
) -> None:
    other = connect()
    ended(connection, kept, "complete", 5)
    pass_seconds(connection, kept, (KEPT_DAYS + 1) * DAY)
    with rolled_back(connection):
        call(connection, "purge_archive", queue_name=kept, batch_size=3)
        ended(other, kept, "complete", 1)
        call(other, "purge_archive", queue_name=kept, batch_size=10)
    assert dialect_of(connection).stored(connection, kept)["history"] == 4
