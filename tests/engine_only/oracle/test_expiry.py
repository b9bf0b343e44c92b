"""Expiry on Oracle: session settings, reads, old snapshots and locks."""

import pytest

from tests.engine_only.oracle.plans import plans
from tests.engine_only.oracle.test_plans import LARGE, fill
from tests.engine_only.oracle.test_settings import STRANGE
from tests.engines.base import Connection
from tests.engines.oracle.server import OracleServer
from tests.helpers.calls import call, call_one, dequeue, dequeue_one, enqueue, rolled_back
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect
from tests.stored_times import pass_seconds

TIMEOUT_MS = 5000
"""Timeout that only a wait for a lock reaches."""


def maintain(connection: Connection, queue: str) -> int:
    """Call maintain and return how many messages expired."""
    return int(call_one(connection, "maintain", queue_name=queue).expired)


def in_each_state(connection: Connection, queue: str) -> int:
    """Let messages expire in every state; return how many expired."""
    for where in ({}, {"delay_seconds": 1000}, {"group_key": "ii-I"}, {"priority": 0}):
        enqueue(connection, queue, "a", "b", expire_seconds=60, **where)
    [first] = enqueue(connection, queue, "first", priority=9)
    enqueue(connection, queue, "second", predecessor_ids=[first], expire_seconds=60)
    arguments = {"queue_name": queue, "claim_id": dequeue_one(connection, queue).claim_id}
    call(connection, "retry_later", **arguments, delay_seconds=500)
    arguments["claim_id"] = dequeue(connection, queue, lease_seconds=1000)[0].claim_id
    pass_seconds(connection, queue, 61)
    expired = maintain(connection, queue)
    call(connection, "release", **arguments)
    return expired + maintain(connection, queue)


@pytest.mark.promise("P36")
@pytest.mark.parametrize("setting", STRANGE)
def test_messages_expire_under_any_session_settings(
    connect: Connect, queue: str, setting: str
) -> None:
    strange = connect()
    for change in STRANGE[setting]:
        dialect_of(strange).execute(strange, f"alter session set {change}")
    assert in_each_state(strange, queue) == 9


@pytest.mark.promise("P13", "P36")
@pytest.mark.parametrize("is_planned_while_empty", [True, False])
def test_due_messages_are_found_by_keys_without_sorting(
    server: OracleServer, connection: Connection, queue: str, *, is_planned_while_empty: bool
) -> None:
    if is_planned_while_empty:
        in_each_state(connection, queue)
    fill(connection, queue, LARGE, expire_seconds=90_000)
    fill(connection, queue, LARGE, delay_seconds=3600, expire_seconds=90_000)
    in_each_state(connection, queue)
    found = [plan for plan in plans(server, connection) if plan.uses("ROWQ_EXPIRY")]
    assert found
    assert [plan.shown for plan in found if list(plan.faults())] == []


@pytest.mark.promise("P36")
def test_maintain_expires_10000_messages_in_one_call(connection: Connection, queue: str) -> None:
    fill(connection, queue, 10_000, expire_seconds=0.001)
    arguments = {"queue_name": queue, "batch_size": 10_000}
    assert call_one(connection, "maintain", **arguments).expired == 10_000


@pytest.mark.pitfall("oracle 37")
@pytest.mark.promise("P36")
def test_serializable_maintain_keeps_messages_returned_since(
    connection: Connection, connect: Connect, queue: str
) -> None:
    """Its snapshot shows the message in a claim, so it deletes the enqueue's expiry row."""
    enqueue(connection, queue, "x", expire_seconds=0.001)
    claim = dequeue_one(connection, queue).claim_id
    strict = connect()
    dialect = dialect_of(strict)
    dialect.begin(strict, "serializable")
    dialect.execute(strict, "select count(*) from rowq_queue")
    call(connection, "release", queue_name=queue, claim_id=claim)
    assert maintain(strict, queue) == 0
    dialect.commit(strict)
    assert maintain(connection, queue) == 1


@pytest.mark.pitfall("oracle 37")
@pytest.mark.promise("P36")
def test_serializable_maintain_skips_messages_leased_since(
    connection: Connection, connect: Connect, queue: str
) -> None:
    """Its snapshot shows the message in ready, but the row cannot be locked (ORA-08177)."""
    enqueue(connection, queue, "x", expire_seconds=0.001)
    strict = connect()
    dialect = dialect_of(strict)
    dialect.begin(strict, "serializable")
    dialect.execute(strict, "select count(*) from rowq_queue")
    claim = dequeue_one(connection, queue).claim_id
    assert maintain(strict, queue) == 0
    dialect.commit(strict)
    call(connection, "release", queue_name=queue, claim_id=claim)
    assert maintain(connection, queue) == 1


@pytest.mark.promise("P36", "P06")
@pytest.mark.parametrize("ending", ["retry_later", "release", "complete"])
def test_maintain_does_not_wait_for_sessions_with_due_messages(
    connection: Connection, connect: Connect, queue: str, ending: str
) -> None:
    holder = connect()
    connection.call_timeout = TIMEOUT_MS
    enqueue(connection, queue, "held", "free", expire_seconds=0.001)
    with rolled_back(holder):
        claim = dequeue_one(holder, queue).claim_id
        call(holder, ending, queue_name=queue, claim_id=claim)
        assert maintain(connection, queue) == 1
    assert maintain(connection, queue) == 1
