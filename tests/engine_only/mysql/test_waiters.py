"""dequeue_wait: many waiters cost little more than one, and none starves."""

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
POLLS_A_SECOND = 40
"""The poller polls 10 times a second; each other waiter once."""


def has_taken(waiters: list[Waiter], body: str) -> bool:
    """Return whether a waiter has a message."""
    return any(body in waiter.got for waiter in waiters)


def commits(connection: Connection) -> int:
    """Return how many transactions the server has committed; each poll is some of them."""
    row = connection.execute("show global status like 'Com_commit'").fetchone()
    assert row is not None
    return int(row[1])


def poller(connection: Connection, queue: str) -> int | None:
    """Return the poller: the session that sleeps while it holds lane -20."""
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
    """Return it on MySQL, which shows locks, and statements without values."""
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
def test_each_waiter_receives_a_message(
    connection: Connection, connect: Connect, queue_name: str
) -> None:
    call(connection, "create_queue", queue_name=queue_name)
    with ExitStack() as stack:
        sessions = [stack.enter_context(connect()) for _ in range(WAITERS)]
        waiters = [Waiter(session, queue_name, 20) for session in sessions]
        wait_until(lambda: poller(connection, queue_name) is not None, "one waiter leads")
        bodies = [str(number) for number in range(WAITERS)]
        enqueue(connection, queue_name, *bodies)
        for waiter in waiters:
            waiter.join(15)
        assert [waiter.error for waiter in waiters if waiter.error] == []
        assert sorted(body for waiter in waiters for body in waiter.got) == sorted(bodies)
    assert poller(connection, queue_name) is None


@pytest.mark.promise("P17")
def test_killed_poller_is_replaced(
    server: Server, connection: Connection, connect: Connect, queue_name: str
) -> None:
    call(connection, "create_queue", queue_name=queue_name)
    first, second = connect(), connect()
    number = server.session_id(first)
    thread = first.thread_id()
    leading = Waiter(first, queue_name, 30)
    wait_until(lambda: poller(connection, queue_name) == thread, "the first leads")
    following = Waiter(second, queue_name, 30)
    server.kill_session(number)
    leading.join(10)
    assert leading.error is not None
    wait_until(lambda: poller(connection, queue_name) is not None, "the second leads")
    enqueue(connection, queue_name, "late")
    following.join(10)
    assert following.got == ["late"]


@pytest.mark.promise("P17")
@pytest.mark.parametrize("killed", ["poller", "follower"])
def test_interrupted_wait_raises_and_leaves_no_lock(
    connection: Connection, connect: Connect, queue_name: str, killed: str
) -> None:
    call(connection, "create_queue", queue_name=queue_name)
    first, second = connect(), connect()
    thread = first.thread_id()
    waiter = Waiter(first, queue_name, 30)
    wait_until(lambda: poller(connection, queue_name) == thread, "the first leads")
    other = Waiter(second, queue_name, 30)
    interrupted, going_on = (waiter, other) if killed == "poller" else (other, waiter)
    number = thread if killed == "poller" else second.thread_id()
    time.sleep(0.3)  # The second has polled by then, and sleeps.
    connection.execute(f"kill query {number}")
    interrupted.join(10)
    assert isinstance(interrupted.error, pymysql.Error)
    assert interrupted.error.args[0] == INTERRUPTED
    enqueue(connection, queue_name, "late")
    going_on.join(10)
    assert going_on.got == ["late"]
    assert poller(connection, queue_name) is None


@pytest.mark.promise("P17")
def test_next_poller_starts_when_the_first_has_a_message(
    connection: Connection, connect: Connect, queue_name: str
) -> None:
    call(connection, "create_queue", queue_name=queue_name)
    waiters = [Waiter(connect(), queue_name, 20) for _ in range(2)]
    wait_until(lambda: poller(connection, queue_name) is not None, "one waiter leads")
    for body in ("a", "b"):
        sent_at = time.monotonic()
        enqueue(connection, queue_name, body)
        wait_until(partial(has_taken, waiters, body), f"{body} is taken")
        assert time.monotonic() - sent_at < 0.8
    for waiter in waiters:
        waiter.join(10)
        assert waiter.error is None


@pytest.mark.promise("P17")
def test_twenty_waiters_poll_little_more_than_one(
    connection: Connection, connect: Connect, queue_name: str
) -> None:
    call(connection, "create_queue", queue_name=queue_name)
    before = commits(connection)
    call(connection, "dequeue_fast", queue_name=queue_name)
    one_poll = commits(connection) - before
    assert one_poll > 0
    with ExitStack() as stack:
        sessions = [stack.enter_context(connect()) for _ in range(WAITERS)]
        waiters = [Waiter(session, queue_name, 6) for session in sessions]
        wait_until(lambda: poller(connection, queue_name) is not None, "one waiter leads")
        # Wait until the first polls of all are over, which takes a second.
        time.sleep(1)
        before, began_at = commits(connection), time.monotonic()
        time.sleep(3)
        polls = (commits(connection) - before) / one_poll

        assert polls / (time.monotonic() - began_at) < POLLS_A_SECOND
        for waiter in waiters:
            waiter.join(15)
        assert [waiter.got for waiter in waiters] == [[]] * WAITERS
