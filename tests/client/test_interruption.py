"""Calls interrupted by an exception of a signal handler."""

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

import rowq
from tests.client.proxy import relay
from tests.client.signals import HardLimit, SoftLimit, interrupted
from tests.dice import AGAIN, dice, times
from tests.engines.base import Connection, Server, wait_until
from tests.helpers.queues import Connect

pytestmark = [
    pytest.mark.skipif(
        not hasattr(signal, "SIGUSR1") or sys.platform == "win32",
        reason="no signals of Unix; to run it: Linux or macOS",
    ),
    pytest.mark.pitfall("postgres 22", "mysql 19"),
]

ERRORS = [SoftLimit(), HardLimit(), TimeoutError("too long"), KeyboardInterrupt()]


@pytest.fixture
def queue(database_url: str, queue_name: str) -> Iterator[rowq.Queue]:
    with rowq.connect(database_url) as queue:
        queue.create_queue(queue_name)
        yield queue


@pytest.mark.promise("P01")
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_next_call_works_after_an_interrupted_one(
    queue: rowq.Queue, queue_name: str, error: BaseException
) -> None:
    began = time.monotonic()
    with pytest.raises(type(error)) as raised, interrupted(0.3, error):
        queue.dequeue_wait(queue_name, wait_seconds=20)
    assert raised.value is error
    # pyodbc handles a signal after the server's answer, at most 5 seconds later.
    assert time.monotonic() - began < 10
    assert queue.enqueue(queue_name, 1).outcome == "enqueued"
    assert queue.version().schema_version >= 1


@pytest.mark.parametrize("kind", [SoftLimit, TimeoutError, OSError])
def test_handler_exception_during_connect_passes_through(
    database_url: str, kind: type[Exception]
) -> None:
    with relay(database_url) as stalled:
        stalled.stall()
        with (
            pytest.raises(kind, match="soft limit") as raised,
            interrupted(0.3, kind("soft limit")),
        ):
            rowq.connect(stalled.url)
        assert type(raised.value) is kind


def test_interrupted_wait_takes_no_message(
    server: Server, queue: rowq.Queue, queue_name: str, connection: Connection
) -> None:
    if server.engine != "postgres":
        pytest.skip(
            "only PostgreSQL's driver can cancel without a second login"
            "; to run it: --engine postgres18"
        )
    with suppress(SoftLimit), interrupted(0.3, SoftLimit()):
        queue.dequeue_wait(queue_name, wait_seconds=20)
    asleep = "select from pg_stat_activity where query like %s and wait_event = 'PgSleep'"
    mine = f"%{queue_name}%"
    wait_until(lambda: connection.execute(asleep, [mine]).fetchone() is None, "it sleeps no more")
    queue.enqueue(queue_name, 1)
    time.sleep(0.5)
    assert len(queue.peek(queue_name)) == 1


@pytest.mark.promise("P01")
def test_call_never_gets_the_answer_of_an_interrupted_one(
    queue: rowq.Queue, queue_name: str, connect: Connect
) -> None:
    """Interrupt calls at many times; each answer belongs to its call."""
    drawn = dice("moment of an interruption")
    told: dict[int, Any] = {}
    kinds = [SoftLimit, HardLimit, TimeoutError, OSError]
    for number in range(times(150)):
        # A new error each time: a kept one would keep its connection alive.
        error = kinds[number % len(kinds)]("over")
        with suppress(type(error)), interrupted(drawn.uniform(0, 0.004), error):
            for repeat in range(3):
                data = {"number": number, "repeat": repeat}
                told[queue.enqueue(queue_name, data).message_id] = data
                queue.peek(queue_name, max_messages=3)
    watching = rowq.Queue(connect())
    there: dict[int, Any] = {}
    while messages := watching.dequeue_fast(queue_name, 100):
        there |= {message.message_id: message.data for message in messages}
    assert {message_id: there[message_id] for message_id in told} == told, AGAIN
