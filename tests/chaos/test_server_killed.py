"""The server is killed: committed data survive, and work continues."""

from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

import rowq
from rowq import NewMessage, Queue
from rowq.engines import engine_for_connection
from tests.chaos.killable import KillableServer
from tests.concurrency.actors import Run
from tests.concurrency.history import Recorder
from tests.concurrency.judged_run import count, perform
from tests.dice import limit, times
from tests.engines.base import Connection, wait_until
from tests.helpers.dialects import dialect_of, preparing_dialect_of
from tests.stored_times import pass_seconds, tick

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.requires("restart"),
    pytest.mark.pitfall("mysql 17", "sqlserver 14"),
]


Die = Callable[[KillableServer], None]


def crash(killable: KillableServer) -> None:
    """Kill the server like a power failure, and restart it."""
    killable.crash()


def stop_at_once(killable: KillableServer) -> None:
    """Stop the server without grace, and restart it."""
    killable.stop_at_once()


each_death = pytest.mark.parametrize("die", [crash, stop_at_once])


@pytest.mark.slow("kills the server under ten sessions", ci="mariadb")
@each_death
@pytest.mark.timeout(limit(600))
@pytest.mark.promise("P01", "P02", "P03", "P04", "P07", "P08")
def test_ten_sessions_lose_and_repeat_nothing_if_the_server_dies(
    killable: KillableServer, url: str, tmp_path: Path, die: Die
) -> None:
    with rowq.connect(url) as queue:
        queue.create_queue("orders", backoff_base_seconds=0)
    run = Run(killable.server, url, "orders", Recorder())
    perform_while_it_dies(run, times(6000), killable, die, tmp_path)


@pytest.mark.timeout(limit(600))
@pytest.mark.requires("predecessors")
@pytest.mark.promise("P02", "P21", "P22", "P24", "P25", "P26", "P27")
@pytest.mark.parametrize(("groups", "waits"), [(10, False), (0, True), (10, True)])
def test_groups_and_predecessors_keep_order_if_the_server_dies(
    killable: KillableServer, url: str, tmp_path: Path, groups: int, waits: bool
) -> None:
    with rowq.connect(url) as queue:
        queue.create_queue("orders", backoff_base_seconds=0, max_attempts=10000, max_leased=300)
    # A claim whose dequeue was lost blocks its groups and successors until its lease expires.
    run = Run(
        killable.server,
        url,
        "orders",
        Recorder(),
        lease_seconds=10,
        groups=groups,
        waits=waits,
        stirs=True,
    )
    perform_while_it_dies(run, times(2000), killable, crash, tmp_path)


def perform_while_it_dies(
    run: Run, messages: int, killable: KillableServer, die: Die, tmp_path: Path
) -> None:
    """Let ten sessions work while the server dies, three times in CI."""
    deaths = times(3)

    def let_die() -> None:
        for death in range(1, deaths + 1):
            done = messages * death // (2 * deaths)
            wait_until(
                partial(has_done, run, done), f"{done} messages are done", seconds=limit(180)
            )
            die(killable)

    history = perform(run, messages, tmp_path, let_die)
    assert count(history, "enqueue") >= messages


def has_done(run: Run, messages: int) -> bool:
    """Return whether enough messages are completed, or the run has ended early."""
    return run.stop.is_set() or run.recorder.completed > messages


@each_death
@pytest.mark.promise("P01", "P02", "P04", "P09")
def test_every_message_state_survives_the_server(
    killable: KillableServer, url: str, connection: Connection, die: Die
) -> None:
    queue = Queue(connection)
    sent = [
        message.message_id for message in queue.enqueue_batch("orders", [NewMessage(data=0)] * 6)
    ]
    done, dead, retried, leased = (queue.dequeue_fast("orders")[0] for _ in range(4))
    queue.complete("orders", done.claim_id)
    queue.fail_now("orders", dead.claim_id, error="broken")
    queue.retry_later("orders", retried.claim_id, delay_seconds=600, error="later")
    with closing(killable.server.connect(url)) as other:
        dialect_of(other).begin(other)
        half_done = Queue(other).dequeue_fast("orders")[0]
        Queue(other).complete("orders", half_done.claim_id)
        never = Queue(other).enqueue("orders", 0).message_id
        die(killable)
        with pytest.raises(dialect_of(other).database_error) as lost:
            other.execute("commit")
        assert engine_for_connection(other).is_connection_lost(lost.value)

    with closing(killable.server.connect(url)) as again:
        queue = Queue(again)
        details = [queue.get_message("orders", message_id) for message_id in [*sent, never]]
        states = [detail.state if detail else None for detail in details]
        assert states == [None, "dead", "delayed", "leased", "ready", "ready", None]
        outcomes = queue.complete("orders", leased.claim_id)
        assert [outcome.outcome for outcome in outcomes] == ["completed"]
        pass_seconds(again, "orders", 700)
        assert queue.maintain("orders")[0].promoted == 1
        rest = queue.dequeue_fast("orders", 10)
        assert {(message.message_id, message.attempt) for message in rest} == {
            (sent[2], 2),
            (sent[4], 1),
            (sent[5], 1),
        }


@pytest.mark.pitfall("postgres 15")
@each_death
@pytest.mark.promise("P01", "P14")
def test_prepared_transaction_survives_the_server(
    killable: KillableServer, url: str, connection: Connection, die: Die
) -> None:
    dialect = preparing_dialect_of(connection)
    dialect.begin_prepared(connection, "order")
    sent = Queue(connection).enqueue("orders", "late").message_id
    dialect.prepare(connection, "order")
    die(killable)
    with closing(killable.server.connect(url)) as again:
        queue = Queue(again)
        for _ in range(3):
            queue.enqueue_batch("orders", [NewMessage(data=0)] * 1000)
            queue.complete("orders", queue.dequeue_fast("orders", 1000)[0].claim_id)
            tick(again, "orders")
            queue.maintain("orders")
        assert queue.dequeue_fast("orders") == []
        dialect.commit_prepared(again, "order")
        tick(again, "orders")
        queue.maintain("orders")
        assert [message.message_id for message in queue.dequeue_fast("orders", 5)] == [sent]


@pytest.mark.promise("P02")
def test_queue_with_its_own_connection_reconnects_after_a_crash(
    killable: KillableServer, url: str, connection: Connection
) -> None:
    Queue(connection).enqueue("orders", "before")
    with rowq.connect(url) as queue:
        message = queue.dequeue_fast("orders")[0]
        crash(killable)
        outcomes = queue.complete("orders", message.claim_id)
        assert [outcome.outcome for outcome in outcomes] == ["completed"]
        queue.enqueue("orders", "after")
        assert [message.data for message in queue.dequeue_fast("orders", 5)] == ["after"]
