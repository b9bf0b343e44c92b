"""Decisions about limits that need a SQL Server; docstrings name remedies."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Barrier

import pytest

import rowq
from tests.dice import times
from tests.engine_only.sqlserver.sessions import impatient, value
from tests.engines.base import Connection, Server
from tests.helpers.calls import (
    bodies,
    call,
    dequeue,
    enqueue,
    rolled_back,
    state_of,
    transaction,
)
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect

pytestmark = [pytest.mark.requires("genuine"), pytest.mark.pitfall("sqlserver 27")]

SESSIONS = 4


def limited(connection: Connection, queue: str, **settings: float) -> None:
    """Set limits of a queue, and enqueue 9 messages."""
    call(connection, "alter_queue", queue_name=queue, **settings)
    enqueue(connection, queue, *"123456789")


@pytest.mark.promise("P28")
def test_dequeue_skips_a_held_limit_lock(
    connection: Connection, connect: Connect, queue: str
) -> None:
    holder, other = connect(), impatient(connect())
    limited(connection, queue, max_leased=5)
    with transaction(holder):
        assert len(dequeue(holder, queue, 3)) == 3
        assert dequeue(other, queue, 9) == []
    assert len(dequeue(other, queue, 9)) == 2


@pytest.mark.promise("P28", "P29")
@pytest.mark.parametrize("setting", ["max_leased", "rate_limit"])
def test_count_under_the_limit_lock_sees_earlier_commits(
    connection: Connection, connect: Connect, queue: str, setting: str
) -> None:
    """The new holder reads row versions, which must include the previous holder's.

    If it fails: InternalAvailableCapacity must count with readcommittedlock.
    """
    sessions = [connect() for _ in range(SESSIONS)]
    limited(connection, queue, max_attempts=10000, rate_seconds=1000, **{setting: 5})
    start = Barrier(SESSIONS)

    def take(session: Connection) -> int:
        start.wait(30)
        return len(dequeue(session, queue, 3))

    with ThreadPoolExecutor(SESSIONS) as pool:
        for _ in range(times(100)):
            assert 0 < sum(pool.map(take, sessions)) <= 5
            dialect_of(connection).pass_seconds(connection, queue, 2000)
            call(connection, "maintain", queue_name=queue)


@pytest.mark.promise("P28")
@pytest.mark.parametrize("ending", ["commit", "rollback"])
def test_count_includes_a_lease_that_is_being_ended(
    connection: Connection, connect: Connect, queue: str, ending: str
) -> None:
    worker, other = connect(), impatient(connect())
    limited(connection, queue, max_leased=4)
    claim = dequeue(worker, queue, 3)[0].claim_id
    dialect_of(worker).begin(worker)
    call(worker, "complete", queue_name=queue, claim_id=claim)
    assert len(dequeue(other, queue, 9)) == 1
    getattr(dialect_of(worker), ending)(worker)
    assert len(dequeue(other, queue, 9)) == (3 if ending == "commit" else 0)


@pytest.mark.promise("P28")
@pytest.mark.parametrize("isolation", ["snapshot", "serializable", "repeatable read"])
def test_count_at_any_isolation_level_includes_newer_leases(
    connection: Connection, connect: Connect, queue: str, isolation: str
) -> None:
    """A routine reads at READ COMMITTED even in a snapshot transaction.

    If it fails: a limited queue must refuse such callers with 52713, as on PostgreSQL.
    """
    strict, other = connect(), connect()
    limited(connection, queue, max_leased=5)
    dialect_of(strict).begin(strict, isolation)
    assert value(strict, "select count(*) from rowq.meta") > 0
    assert len(dequeue(other, queue, 3)) == 3
    assert len(dequeue(strict, queue, 9)) == 2
    dialect_of(strict).rollback(strict)
    assert len(dequeue(other, queue, 9)) == 2


@pytest.mark.promise("P28")
@pytest.mark.parametrize("in_transaction", [False, True])
def test_without_row_versions_an_open_complete_stops_dequeues(
    server: Server, unversioned: str, in_transaction: bool
) -> None:
    """The count raises error 1222, in rowq's own or the caller's transaction.

    If it fails: error_procedure() names another procedure; compare with that name.
    """
    with (
        closing(server.connect(unversioned)) as worker,
        closing(server.connect(unversioned)) as other,
    ):
        rowq.Queue(worker).create_queue("q")
        limited(worker, "q", max_leased=5)
        claim = dequeue(worker, "q", 3)[0].claim_id
        with rolled_back(worker):
            call(worker, "complete", queue_name="q", claim_id=claim)
            if in_transaction:
                with transaction(other):
                    enqueue(other, "q", "first of all", priority=0)
                    assert dequeue(other, "q", 9) == []
                    assert value(other, "select xact_state()") == 1
            else:
                assert dequeue(other, "q", 9) == []
                assert value(other, "select @@trancount") == 0
        found = bodies(dequeue(other, "q", 9))
        assert len(found) == 2
        assert ("first of all" in found) == in_transaction


@pytest.mark.promise("P28")
@pytest.mark.parametrize("in_transaction", [False, True])
def test_without_row_versions_a_full_queue_keeps_a_completion(
    server: Server, unversioned: str, in_transaction: bool
) -> None:
    """Error 1222 of the count leases nothing, and complete_and_dequeue still completes.

    If it fails in a transaction: `set xact_abort on` of InternalCompleteClaim outlives it.
    """
    with (
        closing(server.connect(unversioned)) as worker,
        closing(server.connect(unversioned)) as other,
    ):
        rowq.Queue(worker).create_queue("q")
        limited(worker, "q", max_leased=5)
        claim = dequeue(worker, "q", 3)[0].claim_id
        [row] = dequeue(other, "q")
        ours = {"queue_name": "q", "claim_id": row.claim_id, "batch_size": 9}
        with rolled_back(worker):
            call(worker, "complete", queue_name="q", claim_id=claim)
            if in_transaction:
                with transaction(other):
                    assert call(other, "complete_and_dequeue", **ours) == []
                    assert value(other, "select xact_state()") == 1
            else:
                assert call(other, "complete_and_dequeue", **ours) == []
                assert value(other, "select @@trancount") == 0
        assert state_of(other, "q", row.message_id) is None
        assert len(dequeue(other, "q", 9)) == 2
