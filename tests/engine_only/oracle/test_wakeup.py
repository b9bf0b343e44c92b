"""The optional wake-up queue ends a wait at once; no call depends on it."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from rowq.tools import migrate
from tests.engine_only.oracle.installed import grant, objects, rows, run_sources
from tests.engine_only.oracle.waiters import Open
from tests.engines.base import Connection, wait_until
from tests.engines.oracle.server import OracleServer
from tests.helpers.calls import call, call_one, dequeue, enqueue, rolled_back, transaction
from tests.helpers.one_message import works
from tests.helpers.waiter import Waiter
from tests.stored_times import pass_seconds

QUEUE = "listened to"
RIGHTS = tuple(f"execute on sys.{name}" for name in ("dbms_aq", "dbms_aqadm", "dbms_lock"))
LISTENS = "select q.queue_name from rowq_queue q where q.waiting_until is not null"
RINGS = "select count(*) from rowq_wakeup_table"
SOMEBODY_LISTENS = "update rowq_queue set waiting_until = timestamp '2999-01-01 00:00:00'"
NOBODY_LISTENS = "update rowq_queue set waiting_until = null"
STOP = "begin dbms_aqadm.stop_queue(queue_name => 'ROWQ_WAKEUP_QUEUE'); end;"
LISTENING = """
    select s.sid from v$session s
    where s.sid = :place and s.event = 'Streams AQ: waiting for messages in the queue'
    """


@pytest.fixture
def open_session(server: OracleServer, empty_database: str) -> Iterator[Open]:
    """Return a function that opens sessions of an owner with a wake-up queue and a queue."""
    grant(server, empty_database, *RIGHTS)
    migrate.migrate(empty_database)
    with ExitStack() as stack:

        def connect() -> Connection:
            return stack.enter_context(closing(server.connect(empty_database)))

        session = connect()
        for _ in range(2):
            run_sources(session, "wakeup.sql")
        call(session, "create_queue", queue_name=QUEUE)
        yield connect


@pytest.fixture
def session(open_session: Open) -> Connection:
    """Return a session of the owner."""
    return open_session()


def wakeups(session: Connection) -> int:
    """Return the number of unreceived wake-ups."""
    return int(rows(session, RINGS)[0][0])


@pytest.mark.promise("P02")
def test_wakeup_ends_a_wait_at_once(
    server: OracleServer, open_session: Open, session: Connection
) -> None:
    waited = []
    for number in range(7):
        waiter = Waiter(open_session(), QUEUE, 60)
        place = waiter.session.session_id
        wait_until(lambda: bool(server.query(LISTENING, place=place)), "it listens")  # noqa: B023
        with transaction(session):
            enqueue(session, QUEUE, f"{number}")
            sent_at = time.monotonic()
        waiter.join(20)
        assert waiter.got == [f"{number}"]
        waited.append(waiter.ended_at - sent_at)
    # Without a wake-up a waiter would need half a second.
    assert sorted(waited)[3] < 0.25, waited
    assert rows(session, LISTENS) == []


def test_transaction_sends_one_wakeup_while_a_session_waits(session: Connection) -> None:
    enqueue(session, QUEUE, *"abc")
    assert wakeups(session) == 0
    session.execute(SOMEBODY_LISTENS)
    with rolled_back(session):
        enqueue(session, QUEUE, *"abc")
        assert wakeups(session) == 1
    assert wakeups(session) == 0
    with transaction(session):
        enqueue(session, QUEUE, *"abc")
        claim = dequeue(session, QUEUE, 2)[0].claim_id
        call(session, "release", queue_name=QUEUE, claim_id=claim)
    assert wakeups(session) == 1
    enqueue(session, QUEUE, "d")
    assert wakeups(session) == 2


@pytest.mark.promise("P11")
def test_routines_that_make_a_message_ready_send_a_wakeup(session: Connection) -> None:
    def woken(routine: str, **arguments: object) -> bool:
        session.execute(SOMEBODY_LISTENS)
        before = wakeups(session)
        call(session, routine, queue_name=QUEUE, **arguments)
        session.execute(NOBODY_LISTENS)
        return wakeups(session) > before

    assert woken("enqueue_batch", messages=[{"body": "a"}, {"body": "b"}])
    assert woken("release", claim_id=dequeue(session, QUEUE)[0].claim_id)
    assert woken("retry_later", claim_id=dequeue(session, QUEUE)[0].claim_id, delay_seconds=0)
    call(session, "fail_now", queue_name=QUEUE, claim_id=dequeue(session, QUEUE)[0].claim_id)
    assert woken("reset")
    assert woken("resume_queue")
    assert not woken("promote")
    assert not woken("reap")
    enqueue(session, QUEUE, "late", delay_seconds=1000)
    pass_seconds(session, QUEUE, 2000)
    assert woken("maintain")


@pytest.mark.promise("P06")
def test_enqueue_does_not_wait_for_an_open_wakeup(open_session: Open, session: Connection) -> None:
    other = open_session()
    other.call_timeout = 5000
    session.execute(SOMEBODY_LISTENS)
    with transaction(session):
        enqueue(session, QUEUE, "mine")
        with transaction(other):
            enqueue(other, QUEUE, "theirs")
        assert len(dequeue(other, QUEUE, 10)) == 1
    assert wakeups(session) == 2


@pytest.mark.promise("P01", "P02")
@pytest.mark.parametrize("broken", ["stopped", "without its package", "removed"])
def test_broken_wakeup_queue_fails_no_call(
    server: OracleServer, open_session: Open, session: Connection, broken: str
) -> None:
    waiter = Waiter(open_session(), QUEUE, 60)
    place = waiter.session.session_id
    wait_until(lambda: bool(server.query(LISTENING, place=place)), "it listens")
    if broken == "stopped":
        session.execute(STOP)
    elif broken == "removed":
        run_sources(session, "wakeup_off.sql")
    else:
        session.execute("drop package body rowq_wakeup")
    session.execute(SOMEBODY_LISTENS)
    with transaction(session):
        enqueue(session, QUEUE, "a")
    waiter.join(20)
    assert (waiter.got, waiter.error) == (["a"], None)
    waiter = Waiter(open_session(), QUEUE, 3)
    waiter.join(20)
    assert (waiter.got, waiter.error) == ([], None)


@pytest.mark.promise("P02")
def test_unreceived_wakeups_go_to_the_next_waiter(open_session: Open, session: Connection) -> None:
    session.execute(SOMEBODY_LISTENS)
    for number in range(20):
        enqueue(session, QUEUE, f"{number}")
    assert wakeups(session) == 20
    assert len(dequeue(session, QUEUE, 100)) == 20
    assert (
        call_one(open_session(), "dequeue_wait", queue_name=QUEUE, wait_seconds=4).messages is None
    )
    assert wakeups(session) == 0


def test_wait_works_while_the_queue_row_is_locked(open_session: Open, session: Connection) -> None:
    other = open_session()
    with rolled_back(session):
        call(session, "alter_queue", queue_name=QUEUE, lease_seconds=60)
        waiter = Waiter(other, QUEUE, 60)
        enqueue(open_session(), QUEUE, "a")
        waiter.join(20)
        assert waiter.got == ["a"]


def test_upgrade_keeps_and_rollback_removes_the_wakeup_queue(
    empty_database: str, session: Connection
) -> None:
    there = "select count(*) from user_objects o where o.object_name = 'ROWQ_WAKEUP'"
    migrate.migrate(empty_database)
    assert migrate.status(empty_database).drift == ()
    assert rows(session, there) == [(2,)]
    migrate.rollback(empty_database, to=0, force=True)
    assert objects(session) == []
    migrate.migrate(empty_database)
    works(empty_database)


def test_wakeup_off_removes_all_objects(empty_database: str, session: Connection) -> None:
    for _ in range(2):
        run_sources(session, "wakeup_off.sql")
    assert [name for name in objects(session) if "WAKEUP" in name] == []
    works(empty_database)


def test_wakeup_without_rights_creates_no_objects(
    server: OracleServer, empty_database: str
) -> None:
    migrate.migrate(empty_database)
    with closing(server.connect(empty_database)) as session:
        with pytest.raises(Exception, match=r"PLS-00201|PLS-00904|ORA-"):
            run_sources(session, "wakeup.sql")
        assert [name for name in objects(session) if "WAKEUP" in name] == []
    works(empty_database)
