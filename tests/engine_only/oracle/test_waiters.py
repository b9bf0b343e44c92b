"""dequeue_wait with dbms_lock: one waiter polls for all, and is replaced."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from rowq.tools import migrate
from tests.engine_only.oracle.installed import grant, rows
from tests.engine_only.oracle.waiters import Open, find_poller, pollers, polls
from tests.engines.base import Connection, wait_until
from tests.engines.oracle.server import OracleServer
from tests.engines.oracle.session import owner_in
from tests.helpers.calls import call, call_one, enqueue, refused
from tests.helpers.waiter import Waiter

pytestmark = pytest.mark.promise("P17")

WAITERS = 12
POLLS_A_SECOND = 60
"""Polls of two open lanes: 4 times a second by the poller, once by each other waiter."""
QUEUE = "waited for"


@pytest.fixture
def open_session(server: OracleServer, empty_database: str) -> Iterator[Open]:
    """Return a function that opens sessions of an owner with dbms_lock and a queue."""
    grant(server, empty_database, "execute on sys.dbms_lock")
    migrate.migrate(empty_database)
    with ExitStack() as stack:

        def connect() -> Connection:
            return stack.enter_context(closing(server.connect(empty_database)))

        call(connect(), "create_queue", queue_name=QUEUE)
        yield connect


def test_each_waiter_receives_a_message(server: OracleServer, open_session: Open) -> None:
    sessions = [open_session() for _ in range(WAITERS)]
    waiters = [Waiter(session, QUEUE, 30) for session in sessions]
    find_poller(server, sessions)
    sent = [f"{number:02}" for number in range(WAITERS)]
    enqueue(open_session(), QUEUE, *sent)
    for waiter in waiters:
        waiter.join(20)
    assert [waiter.error for waiter in waiters if waiter.error] == []
    assert sorted(body for waiter in waiters for body in waiter.got) == sent
    assert pollers(server, sessions) == []


def test_many_waiters_poll_little_more_than_one(server: OracleServer, open_session: Open) -> None:
    sessions = [open_session() for _ in range(WAITERS)]
    waiters = [Waiter(session, QUEUE, 8) for session in sessions]
    poller = find_poller(server, sessions)
    # Wait until the first polls and the short pauses of the poller are over.
    began_at = time.monotonic()
    wait_until(lambda: time.monotonic() - began_at > 1.5, "the first polls are over")
    before, began_at = polls(server, poller), time.monotonic()
    wait_until(lambda: time.monotonic() - began_at > 4, "four seconds have passed")
    seconds = time.monotonic() - began_at
    assert (polls(server, poller) - before) / seconds < POLLS_A_SECOND
    for waiter in waiters:
        waiter.join(20)
    assert [waiter.got for waiter in waiters] == [[]] * WAITERS


def test_killed_poller_is_replaced(server: OracleServer, open_session: Open) -> None:
    sessions = [open_session(), open_session()]
    waiters = [Waiter(session, QUEUE, 60) for session in sessions]
    poller = find_poller(server, sessions)
    (following,) = (waiter for waiter in waiters if waiter.session is not poller)
    server.kill_session(server.session_id(poller))
    wait_until(lambda: pollers(server, [following.session]) != [], "the other polls")
    enqueue(open_session(), QUEUE, "late")
    following.join(20)
    assert following.got == ["late"]


def test_abandoned_poller_lock_delays_waiters_by_a_second(
    server: OracleServer, open_session: Open
) -> None:
    idle = open_session()
    waiter = Waiter(idle, QUEUE, 60)
    assert find_poller(server, [idle]) is idle
    ((number,),) = server.query(
        "select l.id1 from v$lock l where l.type = 'UL' and l.sid = :place", place=idle.session_id
    )
    enqueue(open_session(), QUEUE, "a")
    waiter.join(20)
    hold = "declare v_result number; begin v_result := sys.dbms_lock.request(%s); end;"
    idle.execute(hold, [number])
    waiter = Waiter(open_session(), QUEUE, 60)
    wait_until(
        lambda: bool(server.waiting_sessions().keys() & {server.session_id(waiter.session)}),
        "the waiter waits for the lock",
    )
    enqueue(open_session(), QUEUE, "b")
    sent_at = time.monotonic()
    waiter.join(20)
    assert waiter.got == ["b"]
    assert waiter.ended_at - sent_at < 5
    # The idle session can still poll with the lock that it has, and releases it.
    call_one(idle, "dequeue_wait", queue_name=QUEUE, wait_seconds=2)
    assert pollers(server, [idle]) == []


@pytest.mark.parametrize("end", ["cancel", "drop"])
def test_failed_wait_leaves_no_lock(server: OracleServer, open_session: Open, end: str) -> None:
    sessions = [open_session(), open_session()]
    waiters = [Waiter(session, QUEUE, 60) for session in sessions]
    poller = find_poller(server, sessions)
    if end == "drop":
        call(open_session(), "drop_queue", queue_name=QUEUE, force=True)
    else:
        poller.cancel()
        (first,) = (waiter for waiter in waiters if waiter.session is poller)
        first.join(20)
        assert first.error is not None
        find_poller(server, [session for session in sessions if session is not poller])
        enqueue(open_session(), QUEUE, "x")
    for waiter in waiters:
        waiter.join(20)
        assert not waiter.is_alive()
    assert pollers(server, sessions) == []


def test_waiters_poll_themselves_after_a_revoked_right(
    server: OracleServer, empty_database: str, open_session: Open
) -> None:
    server.execute(f"revoke execute on sys.dbms_lock from {owner_in(empty_database)}")
    sessions = [open_session(), open_session()]
    waiters = [Waiter(session, QUEUE, 30) for session in sessions]
    other = open_session()
    before = polls(server, other)
    wait_until(lambda: polls(server, other) > before + 8, "both poll")
    assert pollers(server, sessions) == []
    enqueue(other, QUEUE, "a", "b")
    for waiter in waiters:
        waiter.join(20)
    assert sorted(body for waiter in waiters for body in waiter.got) == ["a", "b"]
    assert rows(other, "select o.object_name from user_objects o where o.status <> 'VALID'") == []


def test_refused_wait_takes_no_lock(server: OracleServer, open_session: Open) -> None:
    session = open_session()
    refused(session, "RQ701", "dequeue_wait", queue_name="none", wait_seconds=5)
    assert pollers(server, [session]) == []
