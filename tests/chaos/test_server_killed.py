"""The server dies in the middle of the work: what was committed is there, and work goes on."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import rowq
from rowq import NewMessage, Queue
from rowq.demo.local_postgres import LocalPostgres
from tests.concurrency.actors import Run
from tests.concurrency.history import Recorder
from tests.concurrency.stage import count, perform
from tests.engines.base import Connection, wait_until
from tests.engines.postgres import PostgresServer
from tests.stored_times import pass_seconds, tick

pytestmark = pytest.mark.chaos


def crash(local: LocalPostgres) -> None:
    """Kill the server as a power failure would, and start it again."""
    local.kill()
    local.restart()


def stop_at_once(local: LocalPostgres) -> None:
    """Stop the server without letting anybody finish (`pg_ctl stop -m immediate`)."""
    os.kill(local.pid, signal.SIGQUIT)
    local.restart()


each_death = pytest.mark.parametrize("die", [crash, stop_at_once])


@each_death
@pytest.mark.slow
@pytest.mark.promise("P01", "P02", "P03", "P04", "P07", "P08")
def test_ten_sessions_lose_nothing_and_do_nothing_twice_when_the_server_dies_three_times(
    local: LocalPostgres,
    mortal: PostgresServer,
    url: str,
    tmp_path: Path,
    die: Callable[[LocalPostgres], None],
) -> None:
    with rowq.connect(url) as queue:
        queue.create_queue("orders", backoff_base_seconds=0)
    run = Run(mortal, url, "orders", Recorder())
    messages = 12_000

    def let_die() -> None:
        for done in (messages // 5, messages // 3, messages // 2):
            wait_until(partial(has_done, run, done), f"{done} messages are done", seconds=60)
            die(local)

    history = perform(run, messages, tmp_path, let_die)
    assert count(history, "enqueue") >= messages


def has_done(run: Run, messages: int) -> bool:
    """Return whether about so many messages were completed, or the run has ended early."""
    return run.stop.is_set() or count(run.recorder.history(), "complete") > messages


@each_death
@pytest.mark.promise("P01", "P02", "P04", "P09")
def test_every_state_of_a_message_outlives_the_server(
    local: LocalPostgres,
    mortal: PostgresServer,
    url: str,
    connection: Connection,
    die: Callable[[LocalPostgres], None],
) -> None:
    queue = Queue(connection)
    sent = [one.message_id for one in queue.enqueue_batch("orders", [NewMessage(data=0)] * 6)]
    done, dead, retried, leased = (queue.dequeue_fast("orders")[0] for _ in range(4))
    queue.complete("orders", done.claim_id)
    queue.fail_now("orders", dead.claim_id, error="broken")
    queue.retry_later("orders", retried.claim_id, delay_seconds=600, error="later")
    with mortal.connect(url) as other:
        other.execute("begin")
        half_done = Queue(other).dequeue_fast("orders")[0]
        Queue(other).complete("orders", half_done.claim_id)
        never = Queue(other).enqueue("orders", 0).message_id
        die(local)
        with pytest.raises(Exception, match=r"connection|terminat"):
            other.execute("commit")

    with mortal.connect(url) as again:
        queue = Queue(again)
        details = [queue.get_message("orders", one) for one in [*sent, never]]
        states = [one.state if one else None for one in details]
        assert states == [None, "dead", "delayed", "leased", "ready", "ready", None]
        outcomes = queue.complete("orders", leased.claim_id)
        assert [one.outcome for one in outcomes] == ["completed"]
        pass_seconds(again, "orders", 700)
        assert queue.maintain("orders")[0].promoted == 1
        rest = queue.dequeue_fast("orders", 10)
        assert {(one.message_id, one.attempt) for one in rest} == {
            (sent[2], 2),
            (sent[4], 1),
            (sent[5], 1),
        }


@each_death
@pytest.mark.promise("P01", "P14")
def test_a_prepared_transaction_outlives_the_server_and_is_delivered(
    local: LocalPostgres,
    mortal: PostgresServer,
    url: str,
    connection: Connection,
    die: Callable[[LocalPostgres], None],
) -> None:
    connection.execute("begin")
    sent = Queue(connection).enqueue("orders", "late").message_id
    connection.execute("prepare transaction 'order'")
    die(local)
    with mortal.connect(url) as again:
        queue = Queue(again)
        for _ in range(3):
            queue.enqueue_batch("orders", [NewMessage(data=0)] * 1000)
            queue.complete("orders", queue.dequeue_fast("orders", 1000)[0].claim_id)
            tick(again, "orders")
            queue.maintain("orders")
        assert queue.dequeue_fast("orders") == []
        again.execute("commit prepared 'order'")
        tick(again, "orders")
        queue.maintain("orders")
        assert [one.message_id for one in queue.dequeue_fast("orders", 5)] == [sent]


@pytest.mark.promise("P02")
def test_a_queue_with_its_own_connection_goes_on_by_itself_after_a_crash(
    local: LocalPostgres, url: str, connection: Connection
) -> None:
    Queue(connection).enqueue("orders", "before")
    with rowq.connect(url) as queue:
        message = queue.dequeue_fast("orders")[0]
        crash(local)
        outcomes = queue.complete("orders", message.claim_id)
        assert [one.outcome for one in outcomes] == ["completed"]
        queue.enqueue("orders", "after")
        assert [one.data for one in queue.dequeue_fast("orders", 5)] == ["after"]
