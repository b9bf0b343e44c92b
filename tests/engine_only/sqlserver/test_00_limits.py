"""What only a server can decide about limits; sql/sqlserver/README.md says what follows."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Barrier

import pytest

import rowq
from tests.dice import times
from tests.engine_only.sqlserver.sessions import impatient, value
from tests.engines.base import Connection, Server
from tests.helpers.calls import bodies, call, dequeue, enqueue, rolled_back, transaction
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect

pytestmark = [pytest.mark.requires("genuine"), pytest.mark.pitfall("sqlserver 27")]

SESSIONS = 4


def limited(connection: Connection, queue: str, **settings: float) -> None:
    """Give a queue limits and nine messages."""
    call(connection, "alter_queue", queue_name=queue, **settings)
    enqueue(connection, queue, *"123456789")


@pytest.mark.promise("P28")
def test_first_a_limit_lock_that_is_held_is_passed_over_and_not_waited_for(
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
def test_first_a_count_that_begins_after_the_limit_lock_was_had_sees_what_its_last_holder_committed(
    connection: Connection, connect: Connect, queue: str, setting: str
) -> None:
    """Whoever has the lock reads row versions: are those of who gave it back there by then?"""
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
def test_first_a_count_waits_for_no_transaction_that_is_ending_a_lease_and_counts_it(
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
def test_first_a_transaction_of_any_level_counts_what_others_have_leased_since(
    connection: Connection, connect: Connect, queue: str, isolation: str
) -> None:
    """A routine reads under read committed, in a snapshot transaction, too."""
    strict, other = connect(), connect()
    limited(connection, queue, max_leased=5)
    dialect_of(strict).begin(strict, isolation)
    assert value(strict, "select count(*) from rowq.meta") > 0
    assert len(dequeue(other, queue, 3)) == 3
    assert len(dequeue(strict, queue, 9)) == 2
    dialect_of(strict).rollback(strict)
    assert len(dequeue(other, queue, 9)) == 2


@pytest.mark.promise("P28")
@pytest.mark.parametrize("is_guest", [False, True])
def test_first_without_row_versions_a_limited_queue_gives_nothing_while_a_lease_is_being_ended(
    server: Server, unversioned: str, is_guest: bool
) -> None:
    """Error 1222 comes out of the count, in a transaction of rowq's or of the caller's."""
    with (
        closing(server.connect(unversioned)) as worker,
        closing(server.connect(unversioned)) as other,
    ):
        rowq.Queue(worker).create_queue("q")
        limited(worker, "q", max_leased=5)
        claim = dequeue(worker, "q", 3)[0].claim_id
        with rolled_back(worker):
            call(worker, "complete", queue_name="q", claim_id=claim)
            if is_guest:
                with transaction(other):
                    enqueue(other, "q", "first of all", priority=0)
                    assert dequeue(other, "q", 9) == []
                    assert value(other, "select xact_state()") == 1
            else:
                assert dequeue(other, "q", 9) == []
                assert value(other, "select @@trancount") == 0
        found = bodies(dequeue(other, "q", 9))
        assert len(found) == 2
        assert ("first of all" in found) == is_guest
