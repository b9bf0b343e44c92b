"""dequeue_wait: many waiters of a queue cost little more than one, and none is left behind."""

import time
from contextlib import ExitStack
from functools import partial

import pymysql
import pytest

from tests.engines.base import Connection, Server, wait_until
from tests.helpers.calls import call, enqueue
from tests.helpers.queues import Connect
from tests.helpers.waiter import Waiter

WAITERS = 20
INTERRUPTED = 1317
LOOKS_A_SECOND = 40
"""The leader looks ten times a second; each of the others once."""


def has_taken(waiters: list[Waiter], body: str) -> bool:
    """Return whether one of the waiters has a message."""
    return any(body in waiter.got for waiter in waiters)


def commits(connection: Connection) -> int:
    """Return how many transactions the server has committed; each look is some of them."""
    row = connection.execute("show global status like 'Com_commit'").fetchone()
    assert row is not None
    return int(row[1])


def leader(connection: Connection, queue: str) -> int | None:
    """Return the session that waits for all: it sleeps on the row of the queue's waiters."""
    if "mariadb" not in connection.server_version.lower():
        return _holder(connection, queue)
    row = connection.execute(
        "select p.id from information_schema.processlist p"
        " join rowq.queue q on q.queue_name = %s"
        " where p.info like concat("
        "     'select sleep(%%''p_queue_id'',', q.queue_id, ')%%for update skip locked%%'"
        " )",
        [queue],
    ).fetchone()
    return None if row is None else int(row[0])


def _holder(connection: Connection, queue: str) -> int | None:
    """Return the same on MySQL, which shows locks, and statements without their values."""
    row = connection.execute(
        "select t.processlist_id from rowq.queue q"
        " join performance_schema.data_locks k on k.object_schema = 'rowq'"
        " and k.object_name = 'lane' and k.lock_data = concat(q.queue_id, ', -20')"
        " join performance_schema.threads t on t.thread_id = k.thread_id"
        " where q.queue_name = %s",
        [queue],
    ).fetchone()
    return None if row is None else int(row[0])


@pytest.mark.promise("P17")
def test_each_of_many_waiters_gets_a_message(
    connection: Connection, connect: Connect, queue_name: str
) -> None:
    call(connection, "create_queue", queue_name=queue_name)
    with ExitStack() as stack:
        sessions = [stack.enter_context(connect()) for _ in range(WAITERS)]
        waiters = [Waiter(session, queue_name, 20) for session in sessions]
        wait_until(lambda: leader(connection, queue_name) is not None, "one waiter leads")
        bodies = [str(number) for number in range(WAITERS)]
        enqueue(connection, queue_name, *bodies)
        for waiter in waiters:
            waiter.join(15)
        assert [waiter.error for waiter in waiters if waiter.error] == []
        assert sorted(body for waiter in waiters for body in waiter.got) == sorted(bodies)
    assert leader(connection, queue_name) is None


@pytest.mark.promise("P17")
def test_a_waiter_that_is_killed_while_it_leads_is_followed(
    server: Server, connection: Connection, connect: Connect, queue_name: str
) -> None:
    call(connection, "create_queue", queue_name=queue_name)
    first, second = connect(), connect()
    number = server.session_id(first)
    thread = first.thread_id()
    leading = Waiter(first, queue_name, 30)
    wait_until(lambda: leader(connection, queue_name) == thread, "the first leads")
    following = Waiter(second, queue_name, 30)
    server.kill_session(number)
    leading.join(10)
    assert leading.error is not None
    wait_until(lambda: leader(connection, queue_name) is not None, "the second leads")
    enqueue(connection, queue_name, "late")
    following.join(10)
    assert following.got == ["late"]


@pytest.mark.promise("P17")
@pytest.mark.parametrize("killed", ["leader", "follower"])
def test_a_wait_that_is_interrupted_says_so_and_leaves_nothing_behind(
    connection: Connection, connect: Connect, queue_name: str, killed: str
) -> None:
    call(connection, "create_queue", queue_name=queue_name)
    first, second = connect(), connect()
    thread = first.thread_id()
    waiter = Waiter(first, queue_name, 30)
    wait_until(lambda: leader(connection, queue_name) == thread, "the first leads")
    other = Waiter(second, queue_name, 30)
    interrupted, going_on = (waiter, other) if killed == "leader" else (other, waiter)
    number = thread if killed == "leader" else second.thread_id()
    time.sleep(0.3)  # The second has looked by then, and only sleeps.
    connection.execute(f"kill query {number}")
    interrupted.join(10)
    assert isinstance(interrupted.error, pymysql.Error)
    assert interrupted.error.args[0] == INTERRUPTED
    enqueue(connection, queue_name, "late")
    going_on.join(10)
    assert going_on.got == ["late"]
    assert leader(connection, queue_name) is None


@pytest.mark.promise("P17")
def test_when_the_leader_has_a_message_the_next_one_leads_at_once(
    connection: Connection, connect: Connect, queue_name: str
) -> None:
    call(connection, "create_queue", queue_name=queue_name)
    waiters = [Waiter(connect(), queue_name, 20) for _ in range(2)]
    wait_until(lambda: leader(connection, queue_name) is not None, "one waiter leads")
    for body in ("a", "b"):
        sent_at = time.monotonic()
        enqueue(connection, queue_name, body)
        wait_until(partial(has_taken, waiters, body), f"{body} is taken")
        assert time.monotonic() - sent_at < 0.8
    for waiter in waiters:
        waiter.join(10)
        assert waiter.error is None


@pytest.mark.promise("P17")
def test_twenty_waiters_look_seldom(
    connection: Connection, connect: Connect, queue_name: str
) -> None:
    call(connection, "create_queue", queue_name=queue_name)
    before = commits(connection)
    call(connection, "dequeue_fast", queue_name=queue_name)
    a_look = commits(connection) - before
    assert a_look > 0
    with ExitStack() as stack:
        sessions = [stack.enter_context(connect()) for _ in range(WAITERS)]
        waiters = [Waiter(session, queue_name, 6) for session in sessions]
        wait_until(lambda: leader(connection, queue_name) is not None, "one waiter leads")
        # Wait until everybody's first looks are over, which takes a second.
        time.sleep(1)
        before, began_at = commits(connection), time.monotonic()
        time.sleep(3)
        looks = (commits(connection) - before) / a_look

        assert looks / (time.monotonic() - began_at) < LOOKS_A_SECOND
        for waiter in waiters:
            waiter.join(15)
        assert [waiter.got for waiter in waiters] == [[]] * WAITERS
