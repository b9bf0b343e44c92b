"""Expiry on SQL Server: plans, cost and locks."""

import pytest

from tests.engine_only.sqlserver.sessions import impatient, value
from tests.engine_only.sqlserver.showplan import STEPS, Plan, called, faults, tables
from tests.engines.base import Connection
from tests.helpers.calls import call, call_one, dequeue, enqueue, rolled_back
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect
from tests.stored_times import pass_seconds

pytestmark = pytest.mark.requires("genuine")

MOST_LOCKED = 20
"""Locked messages that one call checks one by one."""


def fill(connection: Connection, queue: str, count: int, seconds: float = 0.001) -> None:
    """Enqueue messages that expire."""
    messages = [{"body": "x", "expire_seconds": seconds}] * count
    call(connection, "enqueue_batch", queue_name=queue, messages=messages)


def expired(connection: Connection, queue: str) -> int:
    """Call maintain and return how many messages expired."""
    return int(call_one(connection, "maintain", queue_name=queue).expired)


def expiry_rows(connection: Connection, queue: str) -> int:
    """Return the number of rows of expiry."""
    return dialect_of(connection).stored(connection, queue)["expiry"]


def cycle(connection: Connection, queue: str) -> list[Plan]:
    """Let messages expire in every state, ended and leased ones too; return the plans."""
    name = {"queue_name": queue}
    arguments = {"body": "x", "expire_seconds": 60}
    plans: list[Plan] = []
    for where in ({}, {"delay_seconds": 900}, {"group_key": "a"}, {"group_key": "a"}):
        plans += called(connection, "Enqueue", **name, **arguments, **where)
    [first] = enqueue(connection, queue, "first", priority=9)
    plans += called(connection, "Enqueue", **name, **arguments, predecessor_ids=f"[{first}]")
    fill(connection, queue, 3, 60)
    for routine in ("Release", "RetryLater", "Complete"):
        claim_id = dequeue(connection, queue)[0].claim_id
        plans += called(connection, routine, **name, claim_id=claim_id)
    dequeue(connection, queue)
    pass_seconds(connection, queue, 61)
    return plans + called(connection, "Maintain", **name)


@pytest.mark.pitfall("sqlserver 35")
@pytest.mark.promise("P13", "P36")
def test_expiry_seeks_with_plans_of_empty_tables(connection: Connection, queue: str) -> None:
    plans = cycle(connection, queue)
    fill(connection, queue, 5000, 9000)
    delayed = [{"body": "x", "delay_seconds": 900}] * 5000
    call(connection, "enqueue_batch", queue_name=queue, messages=delayed)
    plans += cycle(connection, queue)
    assert "expiry" in tables(plans)
    assert not [fault for fault in faults(plans, small=STEPS) if " on " in fault]
    assert not [plan for plan in plans if plan.is_parallel or plan.conversions]


@pytest.mark.pitfall("sqlserver 35")
@pytest.mark.promise("P13")
def test_only_returning_a_message_reads_expiry_if_it_is_unused(
    connection: Connection, queue: str
) -> None:
    name = {"queue_name": queue}
    plans = called(connection, "Enqueue", **name, body="x", dedup_key="key")
    plans += called(connection, "EnqueueBatch", **name, messages='[{"body": "x"}]')
    plans += called(connection, "DequeueFast", **name, batch_size=2)
    enqueue(connection, queue, "y")
    claim_id = dequeue(connection, queue)[0].claim_id
    plans += called(connection, "Complete", **name, claim_id=claim_id)
    assert "expiry" not in tables(plans)
    enqueue(connection, queue, "z")
    claim_id = dequeue(connection, queue)[0].claim_id
    plans = called(connection, "Release", **name, claim_id=claim_id)
    assert len([plan for plan in plans if "expiry" in tables([plan])]) == 1


@pytest.mark.pitfall("sqlserver 36")
@pytest.mark.promise("P06", "P36")
def test_maintain_does_not_wait_for_sessions_with_due_messages(
    connection: Connection, connect: Connect, queue: str
) -> None:
    maintainer = impatient(connect())
    enqueue(connection, queue, *"ab", priority=0, expire_seconds=60)
    claim_id = dequeue(connection, queue, lease_seconds=9000)[0].claim_id
    [cancelled] = enqueue(connection, queue, "c", expire_seconds=60)
    enqueue(connection, queue, "d", delay_seconds=30, expire_seconds=60)
    enqueue(connection, queue, "e", expire_seconds=60, group_key="a")
    enqueue(connection, queue, "f", expire_seconds=60, group_key="a")
    [named] = enqueue(connection, queue, "g", expire_seconds=60)
    fill(connection, queue, 3, 60)
    pass_seconds(connection, queue, 61)
    with rolled_back(connection):
        call(connection, "complete", queue_name=queue, claim_id=claim_id)
        call(connection, "cancel", queue_name=queue, message_ids=[cancelled])
        call(connection, "promote", queue_name=queue)
        enqueue(connection, queue, "next", predecessor_ids=[named])
        assert [row.body for row in dequeue(connection, queue)] == ["b"]
        assert expired(maintainer, queue) == 5
    assert expired(maintainer, queue) == 4


@pytest.mark.pitfall("sqlserver 36")
@pytest.mark.promise("P36")
def test_locked_messages_above_the_limit_do_not_delay_others(
    connection: Connection, connect: Connect, queue: str
) -> None:
    maintainer = connect()
    fill(connection, queue, MOST_LOCKED + 10, 50)
    enqueue(connection, queue, "late", expire_seconds=60)
    pass_seconds(connection, queue, 61)
    with rolled_back(connection):
        assert len(dequeue(connection, queue, MOST_LOCKED + 10)) == MOST_LOCKED + 10
        assert expired(maintainer, queue) == 1
        assert expired(maintainer, queue) == 0
    assert expired(maintainer, queue) == MOST_LOCKED + 10
    assert expiry_rows(maintainer, queue) == 0


@pytest.mark.pitfall("sqlserver 36")
@pytest.mark.promise("P17", "P36")
def test_maintain_in_a_callers_transaction_expires_nothing(
    connection: Connection, queue: str
) -> None:
    fill(connection, queue, 3, 50)
    pass_seconds(connection, queue, 51)
    with rolled_back(connection):
        assert expired(connection, queue) == 0
        assert expiry_rows(connection, queue) == 3
    assert expired(connection, queue) == 3


@pytest.mark.pitfall("sqlserver 41")
@pytest.mark.promise("P36")
def test_one_locked_message_among_thousands_costs_few_statements(
    connection: Connection, connect: Connect, queue: str
) -> None:
    """Thousands have ended before their expiry, and one is in an open dequeue."""
    maintainer = connect()
    fill(connection, queue, 4000, 50)
    for _ in range(4):
        claim_id = dequeue(connection, queue, 1000)[0].claim_id
        call(connection, "complete", queue_name=queue, claim_id=claim_id)
    fill(connection, queue, 1, 50)
    pass_seconds(connection, queue, 51)
    with rolled_back(connection):
        dequeue(connection, queue)
        plans = called(maintainer, "Maintain", queue_name=queue, batch_size=1000)
        assert len(plans) < 1000
        assert expiry_rows(maintainer, queue) == 1
    assert expired(maintainer, queue) == 1


@pytest.mark.pitfall("sqlserver 42")
@pytest.mark.promise("P16")
def test_callers_scope_identity_is_unchanged(connection: Connection, queue: str) -> None:
    name = f"[own {queue}]"
    connection.execute(f"create table {name} (own_id int identity (1000, 1) primary key)")
    connection.execute(f"insert into {name} default values")
    call(connection, "alter_queue", queue_name=queue, group_pause_seconds=1)
    enqueue(connection, queue, "x", expire_seconds=60, group_key="a")
    fill(connection, queue, 3, 60)
    claim_id = dequeue(connection, queue)[0].claim_id
    call(connection, "retry_later", queue_name=queue, claim_id=claim_id, delay_seconds=0)
    call(connection, "promote", queue_name=queue)
    claim_id = dequeue(connection, queue, 9)[0].claim_id
    call(connection, "complete", queue_name=queue, claim_id=claim_id)
    assert value(connection, "select @@identity") == 1000
    connection.execute(f"drop table {name}")
