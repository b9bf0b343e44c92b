"""cancel of leased messages on SQL Server: plans, statements and locks."""

import pytest

from tests.engine_only.sqlserver.sessions import impatient, value
from tests.engine_only.sqlserver.showplan import STEPS, Plan, called, faults, tables
from tests.engines.base import Connection
from tests.helpers.calls import call, dequeue, enqueue, outcomes, rolled_back, transaction
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect

pytestmark = pytest.mark.requires("genuine")

ENDS = ("RetryLater", "FailNow", "Release", "Complete")


def cancel(connection: Connection, queue: str, *ids: int) -> list[str]:
    """Cancel messages, leased ones included; return the outcomes."""
    rows = call(connection, "cancel", queue_name=queue, message_ids=list(ids), include_leased=True)
    return [row.outcome for row in rows]


def many(connection: Connection, queue: str, count: int, **keys: str) -> None:
    """Enqueue messages."""
    messages = [{"body": "x", **keys}] * count
    call(connection, "enqueue_batch", queue_name=queue, messages=messages)


def cycle(connection: Connection, queue: str) -> list[Plan]:
    """Cancel in claims, end the claims by every routine, and return the plans."""
    plans: list[Plan] = []
    for routine in (*ENDS, "Reap"):
        ids = enqueue(connection, queue, *"abc", priority=0)
        claim_id = dequeue(connection, queue, 3)[0].claim_id
        name = {"queue_name": queue}
        plans += called(connection, "Cancel", **name, message_ids=str(ids[:2]), include_leased=1)
        plans += called(connection, "ExtendLease", **name, claim_id=claim_id)
        if routine == "Reap":
            dialect_of(connection).expire_claim(connection, claim_id)
            plans += called(connection, "Reap", **name)
        else:
            plans += called(connection, routine, **name, claim_id=claim_id)
    return plans


@pytest.mark.pitfall("sqlserver 33")
@pytest.mark.promise("P13", "P34")
def test_cancel_of_leased_seeks_with_plans_of_empty_tables(
    connection: Connection, queue: str
) -> None:
    plans = cycle(connection, queue)
    many(connection, queue, 5000)
    for _ in range(4):
        dequeue(connection, queue, 1000)
    plans += cycle(connection, queue)
    assert {"claim", "leased"} <= tables(plans)
    # leased is read once and hashed, because no key leads from a message to its claim.
    keyed = [plan for plan in plans if "Hash Match" not in plan.operators]
    assert not [fault for fault in faults(keyed, small=STEPS) if " on " in fault]
    assert not [plan for plan in plans if plan.is_parallel or plan.conversions]


@pytest.mark.pitfall("sqlserver 33")
@pytest.mark.promise("P34")
@pytest.mark.parametrize("routine", ["ExtendLease", *ENDS])
def test_claim_without_cancels_needs_no_extra_statement(
    connection: Connection, queue: str, routine: str
) -> None:
    """A recorded cancel costs a heartbeat one statement, and complete none."""
    counts = []
    for is_cancelled in (False, True, False):
        enqueue(connection, queue, *"ab")
        rows = dequeue(connection, queue, 2)
        claim_id = rows[0].claim_id
        if is_cancelled:
            assert cancel(connection, queue, rows[0].message_id) == ["requested"]
        counts.append(len(called(connection, routine, queue_name=queue, claim_id=claim_id)))
        if routine == "ExtendLease":
            call(connection, "complete", queue_name=queue, claim_id=claim_id)
    assert counts[0] == counts[2]
    if routine == "Complete":
        assert counts[1] == counts[0]
    elif routine == "ExtendLease":
        assert counts[1] == counts[0] + 1
    else:
        assert counts[1] > counts[0]


@pytest.mark.pitfall("sqlserver 34")
@pytest.mark.promise("P06", "P34")
def test_cancel_does_not_wait_for_open_calls_of_workers(
    connection: Connection, connect: Connect, queue: str
) -> None:
    other = impatient(connect())
    ids = enqueue(connection, queue, *"abcdefgh", message_type="mail")
    claims = [dequeue(connection, queue)[0].claim_id for _ in ids[:5]]
    with rolled_back(connection):
        call(connection, "extend_lease", queue_name=queue, claim_id=claims[0])
        for routine, claim_id in zip(
            ("complete", "retry_later", "fail_now", "release"), claims[1:], strict=True
        ):
            call(connection, routine, queue_name=queue, claim_id=claim_id)
        dequeue(connection, queue, 2)
        assert cancel(other, queue, *ids[:7]) == ["leased"] * 7
        row = call(other, "cancel_many", queue_name=queue, message_type="mail")[0]
        assert row.cancelled == 1
    assert cancel(other, queue, *ids) == [*["requested"] * 5, "cancelled", "cancelled", "not_found"]


@pytest.mark.pitfall("sqlserver 34")
@pytest.mark.promise("P06", "P34")
def test_open_cancel_blocks_no_other_claim(
    connection: Connection, connect: Connect, queue: str
) -> None:
    other = impatient(connect())
    ids = enqueue(connection, queue, *"abcd")
    first, second = (dequeue(connection, queue, 2)[0].claim_id for _ in range(2))
    enqueue(connection, queue, "e")
    with transaction(connection):
        assert cancel(connection, queue, ids[0]) == ["requested"]
        assert cancel(other, queue, *ids[1:]) == ["leased", "requested", "requested"]
        call(other, "extend_lease", queue_name=queue, claim_id=second)
        call(other, "release", queue_name=queue, claim_id=second)
        assert dequeue(other, queue)
        call(other, "maintain", queue_name=queue)
    done = call(other, "release", queue_name=queue, claim_id=first)
    assert outcomes(done) == {ids[0]: "cancelled", ids[1]: "released"}


@pytest.mark.pitfall("sqlserver 34")
@pytest.mark.promise("P17", "P34")
@pytest.mark.parametrize("setting", ["on", "off"])
def test_callers_transaction_survives_a_locked_message(
    connection: Connection, connect: Connect, queue: str, setting: str
) -> None:
    """Only an error distinguishes a locked row from a deleted one; it must end no transaction."""
    other = connect()
    [held] = enqueue(connection, queue, "held")
    claim_id = dequeue(connection, queue)[0].claim_id
    other.execute(f"set xact_abort {setting}")
    with transaction(connection):
        call(connection, "complete", queue_name=queue, claim_id=claim_id)
        with transaction(other):
            [kept] = enqueue(other, queue, "kept")
            assert cancel(other, queue, held, -1) == ["leased", "not_found"]
            assert value(other, "select xact_state()") == 1
    other.execute("set xact_abort off")
    assert [row.message_id for row in dequeue(other, queue, 9)] == [kept]
    assert cancel(other, queue, held) == ["not_found"]


@pytest.mark.pitfall("sqlserver 43")
@pytest.mark.promise("P06", "P10")
def test_reset_with_a_filter_locks_only_matching_messages(
    connection: Connection, connect: Connect, queue: str
) -> None:
    other = impatient(connect())
    ids: dict[str, int] = {}
    for kind in ("mail", "news"):
        [ids[kind]] = enqueue(connection, queue, kind, message_type=kind)
        claim_id = dequeue(connection, queue)[0].claim_id
        call(connection, "fail_now", queue_name=queue, claim_id=claim_id)
    with transaction(connection):
        done = call(connection, "reset", queue_name=queue, message_type="news")
        assert outcomes(done) == {ids["news"]: "reset"}
        done = call(other, "reset", queue_name=queue)
        assert outcomes(done) == {ids["mail"]: "reset"}
