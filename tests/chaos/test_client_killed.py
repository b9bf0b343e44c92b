"""A client is killed with SIGKILL: nothing that it confirmed is lost."""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import rowq
from rowq import NewMessage, Queue
from tests.chaos.client_program import HANDLED
from tests.dice import dice, limit, times
from tests.engines.base import Connection, wait_until
from tests.helpers.dialects import dialect_of
from tests.stored_times import pass_seconds

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(limit(120))]
PROGRAM = Path(__file__).with_name("client_program.py")


@contextmanager
def client(what: str, url: str) -> Iterator[subprocess.Popen[str]]:
    """Run a client, and kill it at the end if it is alive."""
    pipe = subprocess.PIPE
    command = [sys.executable, str(PROGRAM), what, url]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def ids_until_killed(process: subprocess.Popen[str], after: int) -> list[int]:
    """Read `after` ids, kill the client, and return all ids that it printed."""
    assert process.stdout is not None
    printed = [process.stdout.readline() for _ in range(after)]
    process.kill()
    printed += process.stdout.readlines()
    return [int(line) for line in printed if line.endswith("\n")]


def wait_until_alone(connection: Connection) -> None:
    """Wait until the server has closed a killed client's sessions."""
    wait_until(
        lambda: dialect_of(connection).other_sessions(connection) == 0,
        "the server has closed the sessions",
    )


def kill_points(what: str) -> list[int]:
    """Return the numbers of messages after which to kill a client."""
    drawn = dice(what)
    return [HANDLED, *(drawn.randint(1, HANDLED) for _ in range(times(1) - 1))]


def fill(queue: Queue, messages: int) -> set[int]:
    """Enqueue messages and return their ids."""
    return {
        message.message_id for message in queue.enqueue_batch("orders", [NewMessage()] * messages)
    }


def drain(url: str, handle: Callable[..., None], **options: Any) -> None:
    """Let a second worker handle the remaining messages."""
    rowq.Worker(url, "orders", handle, drain=True, **options).run()


@pytest.mark.promise("P01", "P02")
def test_killed_producer_leaves_at_most_one_unconfirmed_message(
    url: str, connection: Connection
) -> None:
    drawn = dice("killed producer")
    for _ in range(times(1)):
        with client("enqueue", url) as producer:
            printed = ids_until_killed(producer, drawn.randint(1, 200))
        wait_until_alone(connection)
        there = [message.message_id for message in Queue(connection).dequeue_fast("orders", 1000)]
        assert there[: len(printed)] == printed
        assert len(there) <= len(printed) + 1


@pytest.mark.promise("P01", "P12")
def test_producer_killed_in_its_transaction_enqueues_nothing(
    url: str, connection: Connection
) -> None:
    queue = Queue(connection)
    with client("hold", url) as producer:
        (held,) = ids_until_killed(producer, 1)
    sent = queue.enqueue("orders", 0, dedup_key="held")
    assert sent.outcome == "enqueued"
    assert queue.get_message("orders", held) is None
    assert [message.message_id for message in queue.dequeue_fast("orders", 5)] == [sent.message_id]


@pytest.mark.promise("P02", "P03", "P09")
def test_killed_workers_messages_go_to_another_after_the_lease(
    url: str, connection: Connection
) -> None:
    queue = Queue(connection)
    for after in kill_points("killed worker"):
        sent = fill(queue, 200)
        with client("work", url) as worker:
            first = ids_until_killed(worker, after)
        wait_until_alone(connection)
        held = queue.queue_stats("orders")[0].leased
        assert held <= 40
        assert held > 0 or after < HANDLED
        pass_seconds(connection, "orders", 60)

        second: list[int] = []
        drain(url, lambda message: second.append(message.message_id))  # noqa: B023 - ends here
        assert set(first) | set(second) == sent
        assert len(second) == len(set(second))
        assert len(set(first) & set(second)) <= held
        stats = queue.queue_stats("orders")[0]
        assert (stats.ready, stats.delayed, stats.leased, stats.dead) == (0, 0, 0, 0)


@pytest.mark.promise("P09", "P37")
def test_killed_workers_messages_have_a_lease_expired_attempt(
    url: str, connection: Connection
) -> None:
    queue = Queue(connection)
    queue.alter_queue("orders", history_days=1)
    sent = fill(queue, 200)
    with client("work", url) as worker:
        ids_until_killed(worker, HANDLED)
    wait_until_alone(connection)
    held = queue.queue_stats("orders")[0].leased
    pass_seconds(connection, "orders", 60)
    drain(url, lambda _: None)
    seen = Counter(
        tuple((attempt.attempt, attempt.outcome) for attempt in queue.get_history("orders", one))
        for one in sent
    )
    once, twice = ((1, "completed"),), ((1, "lease_expired"), (2, "completed"))
    assert seen == {once: len(sent) - held, twice: held}


@pytest.mark.promise("P02", "P07")
def test_killed_transactional_workers_effects_happen_once(url: str, connection: Connection) -> None:
    dialect_of(connection).make_table(connection, "effect", "message_id bigint not null")
    sent: set[int] = set()
    for after in kill_points("killed transactional worker"):
        sent |= fill(Queue(connection), 200)
        with client("transactions", url) as worker:
            ids_until_killed(worker, after)
        wait_until_alone(connection)
        pass_seconds(connection, "orders", 60)

        def handle(message: rowq.Message, own: Any) -> None:
            own.cursor().execute(f"insert into effect values ({message.message_id})")

        drain(url, handle, transactional=True)
        rows = connection.execute("select * from effect").fetchall()
        effects = Counter(int(message_id) for (message_id,) in rows)
        assert set(effects) == sent
        assert set(effects.values()) == {1}
