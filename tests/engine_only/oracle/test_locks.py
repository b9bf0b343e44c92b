"""A fetch on Oracle locks only the rows it returns, and no call waits without need."""

from contextlib import ExitStack
from typing import Any

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import (
    bodies,
    call,
    call_one,
    dequeue,
    enqueue,
    rolled_back,
    transaction,
)
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect
from tests.stored_times import expire_claim, pass_seconds

DAY = 86_400
PATIENCE_MS = 5000
"""Seconds after which a call must be waiting for a lock."""


def free_rows(connection: Connection, queue: str, table: str) -> int:
    """Return how many rows of a queue are not locked."""
    dialect = dialect_of(connection)
    query = (
        f"select 1 from rowq_{table} where queue_id = (select q.queue_id from rowq_queue q"
        " where q.queue_name = %s) for update skip locked"
    )
    with rolled_back(connection):
        return len(dialect.execute(connection, query, [queue]).fetchall())


def patient(connection: Connection) -> Connection:
    """Make a session's calls fail instead of waiting."""
    connection.call_timeout = PATIENCE_MS
    return connection


@pytest.mark.pitfall("oracle 1")
@pytest.mark.promise("P03", "P05", "P06")
@pytest.mark.parametrize("batch_size", [1, 7, 100])
def test_dequeue_locks_only_the_leased_rows(
    connection: Connection, connect: Connect, queue: str, batch_size: int
) -> None:
    count = 3 * batch_size
    sent = [str(number) for number in range(count)]
    call(connection, "enqueue_batch", queue_name=queue, messages=[{"body": body} for body in sent])
    other = patient(connect())
    with rolled_back(connection):
        assert bodies(dequeue(connection, queue, batch_size)) == sent[:batch_size]
        assert free_rows(other, queue, "ready") == count - batch_size
        assert bodies(dequeue(other, queue, batch_size)) == sent[batch_size : 2 * batch_size]
        assert free_rows(other, queue, "ready") == count - 2 * batch_size
    assert free_rows(other, queue, "ready") == count - batch_size
    assert bodies(dequeue(other, queue, batch_size)) == sent[:batch_size]


def prepare_promote(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, *"123456", delay_seconds=30)
    pass_seconds(connection, queue, 60)


def prepare_reap(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, *"123456")
    for _ in range(6):
        expire_claim(connection, dequeue(connection, queue)[0].claim_id)


def prepare_archive(connection: Connection, queue: str) -> None:
    call(connection, "alter_queue", queue_name=queue, archive_days=3)
    enqueue(connection, queue, *"123456")
    call(
        connection, "complete", queue_name=queue, claim_id=dequeue(connection, queue, 6)[0].claim_id
    )


def prepare_purge_archive(connection: Connection, queue: str) -> None:
    prepare_archive(connection, queue)
    pass_seconds(connection, queue, 9 * DAY)
    assert call_one(connection, "archive", queue_name=queue).archived == 6


MAINTENANCE = {
    "promote": ("delayed", prepare_promote),
    "reap": ("claim", prepare_reap),
    "archive": ("finished", prepare_archive),
    "purge_archive": ("archive", prepare_purge_archive),
}


@pytest.mark.pitfall("oracle 1")
@pytest.mark.promise("P06", "P19")
@pytest.mark.parametrize("routine", MAINTENANCE)
def test_maintenance_locks_only_its_batch(
    connection: Connection, connect: Connect, queue: str, routine: str
) -> None:
    table, prepare = MAINTENANCE[routine]
    prepare(connection, queue)
    other = patient(connect())
    with transaction(connection):
        done = call_one(connection, routine, queue_name=queue, batch_size=2)
        assert 2 in vars(done).values()
        assert free_rows(other, queue, table) == 4
        rest = call_one(other, routine, queue_name=queue)
        assert 4 in vars(rest).values()
    assert free_rows(other, queue, table) == 0


@pytest.mark.pitfall("oracle 3")
@pytest.mark.promise("P03", "P06")
@pytest.mark.parametrize("backlog", [0, 5000], ids=["an empty block", "full blocks"])
def test_one_block_holds_the_locks_of_many_dequeues(
    connection: Connection, connect: Connect, queue: str, backlog: int
) -> None:
    """A full block has only the lock entries of initrans."""
    sessions = [patient(connect()) for _ in range(40)]
    sent = [f"{number:04}" for number in range(len(sessions) + backlog)]
    call(connection, "enqueue_batch", queue_name=queue, messages=[{"body": body} for body in sent])
    with ExitStack() as stack:
        for session, body in zip(sessions, sent, strict=False):
            stack.enter_context(rolled_back(session))
            assert bodies(dequeue(session, queue)) == [body]
    assert bodies(dequeue(connection, queue, 100)) == sent[:100]


@pytest.mark.promise("P06", "P19")
@pytest.mark.parametrize("held_by", ["enqueue", "dequeue", "complete", "maintain"])
def test_calls_do_not_wait_for_an_open_transaction(
    connection: Connection, connect: Connect, queue: str, held_by: str
) -> None:
    enqueue(connection, queue, *"123456789")
    mine = dequeue(connection, queue, 2)[0].claim_id
    theirs = dequeue(connection, queue, 2)[0].claim_id
    other = patient(connect())
    common: dict[str, Any] = {"queue_name": queue}
    with transaction(connection):
        if held_by == "enqueue":
            enqueue(connection, queue, "mine", dedup_key="mine")
        elif held_by == "dequeue":
            dequeue(connection, queue, 3)
        elif held_by == "complete":
            call(connection, "complete", **common, claim_id=mine)
        else:
            assert call_one(connection, "maintain", **common).elected
        enqueue(other, queue, "theirs", dedup_key="theirs")
        rows = dequeue(other, queue)
        call(other, "complete", **common, claim_id=rows[0].claim_id)
        call(other, "extend_lease", **common, claim_id=theirs)
        call(other, "retry_later", **common, claim_id=theirs, delay_seconds=0)
        for routine in ("reap", "promote", "archive", "purge_archive", "maintain"):
            call(other, routine, **common)
        for routine in ("peek", "queue_stats", "list_dead"):
            call(other, routine, **common)
        call(other, "health")
        call(other, "pause_queue", **common)
        call(other, "resume_queue", **common)
