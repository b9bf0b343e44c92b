"""dequeue_wait where the owner may use dbms_lock: one waiter looks for all, and is followed."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from rowq.tools import migrate
from tests.engine_only.oracle.installed import grant, rows
from tests.engine_only.oracle.waiters import Open, leaders, looks, one_leads
from tests.engines.base import Connection, wait_until
from tests.engines.oracle.server import OracleServer
from tests.engines.oracle.session import owner_in
from tests.helpers.calls import call, call_one, enqueue, refused
from tests.helpers.waiter import Waiter

pytestmark = pytest.mark.promise("P17")

WAITERS = 12
LOOKS_A_SECOND = 60
"""Looks into one of two open lanes: by the leader four times a second, by each other once."""
QUEUE = "waited for"


@pytest.fixture
def open_session(server: OracleServer, empty_database: str) -> Iterator[Open]:
    """Return what opens sessions of an owner who may use dbms_lock, with a queue."""
    grant(server, empty_database, "execute on sys.dbms_lock")
    migrate.migrate(empty_database)
    with ExitStack() as stack:

        def connect() -> Connection:
            return stack.enter_context(closing(server.connect(empty_database)))

        call(connect(), "create_queue", queue_name=QUEUE)
        yield connect


def test_each_of_many_waiters_gets_a_message(server: OracleServer, open_session: Open) -> None:
    sessions = [open_session() for _ in range(WAITERS)]
    waiters = [Waiter(session, QUEUE, 30) for session in sessions]
    one_leads(server, sessions)
    sent = [f"{number:02}" for number in range(WAITERS)]
    enqueue(open_session(), QUEUE, *sent)
    for waiter in waiters:
        waiter.join(20)
    assert [waiter.error for waiter in waiters if waiter.error] == []
    assert sorted(body for waiter in waiters for body in waiter.got) == sent
    assert leaders(server, sessions) == []


def test_many_waiters_look_little_more_often_than_one(
    server: OracleServer, open_session: Open
) -> None:
    sessions = [open_session() for _ in range(WAITERS)]
    waiters = [Waiter(session, QUEUE, 8) for session in sessions]
    leader = one_leads(server, sessions)
    # Wait until everybody's first looks and the short pauses of the leader are over.
    began_at = time.monotonic()
    wait_until(lambda: time.monotonic() - began_at > 1.5, "the first looks are over")
    before, began_at = looks(server, leader), time.monotonic()
    wait_until(lambda: time.monotonic() - began_at > 4, "four seconds have passed")
    seconds = time.monotonic() - began_at
    assert (looks(server, leader) - before) / seconds < LOOKS_A_SECOND
    for waiter in waiters:
        waiter.join(20)
    assert [waiter.got for waiter in waiters] == [[]] * WAITERS


def test_a_leader_that_is_killed_is_followed(server: OracleServer, open_session: Open) -> None:
    sessions = [open_session(), open_session()]
    waiters = [Waiter(session, QUEUE, 60) for session in sessions]
    leader = one_leads(server, sessions)
    (following,) = (waiter for waiter in waiters if waiter.session is not leader)
    server.kill_session(server.session_id(leader))
    wait_until(lambda: leaders(server, [following.session]) != [], "the other leads")
    enqueue(open_session(), QUEUE, "late")
    following.join(20)
    assert following.got == ["late"]


def test_a_lock_that_was_left_behind_delays_others_by_a_second(
    server: OracleServer, open_session: Open
) -> None:
    idle = open_session()
    waiter = Waiter(idle, QUEUE, 60)
    assert one_leads(server, [idle]) is idle
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
    # The idle session can still lead with the lock that it has, and gives it back.
    call_one(idle, "dequeue_wait", queue_name=QUEUE, wait_seconds=2)
    assert leaders(server, [idle]) == []


@pytest.mark.parametrize("end", ["cancel", "drop"])
def test_a_wait_that_ends_with_an_error_leaves_no_lock(
    server: OracleServer, open_session: Open, end: str
) -> None:
    sessions = [open_session(), open_session()]
    waiters = [Waiter(session, QUEUE, 60) for session in sessions]
    leader = one_leads(server, sessions)
    if end == "drop":
        call(open_session(), "drop_queue", queue_name=QUEUE, force=True)
    else:
        leader.cancel()
        (first,) = (waiter for waiter in waiters if waiter.session is leader)
        first.join(20)
        assert first.error is not None
        one_leads(server, [session for session in sessions if session is not leader])
        enqueue(open_session(), QUEUE, "x")
    for waiter in waiters:
        waiter.join(20)
        assert not waiter.is_alive()
    assert leaders(server, sessions) == []


def test_a_right_that_is_taken_away_leaves_each_to_look_for_itself(
    server: OracleServer, empty_database: str, open_session: Open
) -> None:
    server.execute(f"revoke execute on sys.dbms_lock from {owner_in(empty_database)}")
    sessions = [open_session(), open_session()]
    waiters = [Waiter(session, QUEUE, 30) for session in sessions]
    other = open_session()
    before = looks(server, other)
    wait_until(lambda: looks(server, other) > before + 8, "both look again and again")
    assert leaders(server, sessions) == []
    enqueue(other, QUEUE, "a", "b")
    for waiter in waiters:
        waiter.join(20)
    assert sorted(body for waiter in waiters for body in waiter.got) == ["a", "b"]
    assert rows(other, "select o.object_name from user_objects o where o.status <> 'VALID'") == []


def test_a_refusal_comes_before_any_lock(server: OracleServer, open_session: Open) -> None:
    session = open_session()
    refused(session, "RQ701", "dequeue_wait", queue_name="none", wait_seconds=5)
    assert leaders(server, [session]) == []
