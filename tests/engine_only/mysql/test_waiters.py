"""dequeue_wait: many waiters of a queue cost little more than one, and none is left behind."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack

import pymysql
import pytest

from tests.engines.base import Connection, Server, wait_until
from tests.helpers.calls import call, one, send

Connect = Callable[..., Connection]

WAITERS = 20
LOOKS_A_SECOND = 40
"""The leader looks ten times a second; each of the others once."""


class Waiter(threading.Thread):
    """A session that waits for one message."""

    def __init__(self, connection: Connection, queue: str, seconds: float) -> None:
        super().__init__(daemon=True)
        self._connection, self._queue, self._seconds = connection, queue, seconds
        self.got: list[str] = []
        self.error: Exception | None = None
        self.ended_at = 0.0
        self.start()

    def run(self) -> None:
        try:
            row = one(
                self._connection, "dequeue_wait", queue_name=self._queue, wait_seconds=self._seconds
            )
            self.got = [message["body"] for message in row.messages or ()]
        except pymysql.Error as error:
            self.error = error
        self.ended_at = time.monotonic()


def commits(connection: Connection) -> int:
    """Return how many transactions the server has committed; each look is some of them."""
    row = connection.execute("show global status like 'Com_commit'").fetchone()
    assert row is not None
    return int(row[1])


def leader(connection: Connection, queue: str) -> int | None:
    """Return the session that waits for all."""
    row = connection.execute(
        "select is_used_lock(concat('rowq.wait.', part_id)) from rowq.queue where queue_name = %s",
        [queue],
    ).fetchone()
    return None if row is None or row[0] is None else int(row[0])


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
        send(connection, queue_name, *bodies)
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
    send(connection, queue_name, "late")
    following.join(10)
    assert following.got == ["late"]


@pytest.mark.promise("P17")
def test_a_lock_that_was_left_behind_delays_others_by_a_second_at_most(
    connection: Connection, connect: Connect, queue_name: str
) -> None:
    call(connection, "create_queue", queue_name=queue_name)
    idle = connect()
    name = "concat('rowq.wait.', (select part_id from rowq.queue where queue_name = %s))"
    idle.execute(f"do get_lock({name}, 0)", [queue_name])
    waiter = Waiter(connect(), queue_name, 20)
    time.sleep(0.5)
    send(connection, queue_name, "a")
    sent_at = time.monotonic()
    waiter.join(10)
    assert waiter.got == ["a"]
    assert waiter.ended_at - sent_at < 3
    # Its own session puts it right with the next wait.
    one(idle, "dequeue_wait", queue_name=queue_name, wait_seconds=0.1)
    assert leader(connection, queue_name) is None


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
        # The first looks of all are over after a second.
        time.sleep(1)
        before, began_at = commits(connection), time.monotonic()
        time.sleep(3)
        looks = (commits(connection) - before) / a_look

        assert looks / (time.monotonic() - began_at) < LOOKS_A_SECOND
        for waiter in waiters:
            waiter.join(15)
        assert [waiter.got for waiter in waiters] == [[]] * WAITERS
