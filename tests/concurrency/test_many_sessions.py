"""Ten sessions work on one queue, and the checker judges their history.

Producers, consumers with batches of all sizes, retries, releases, failures, leases that run out
under slow workers, abandoned claims, transactions with effects, killed sessions and maintenance
all at once: no deadlock, no error, nothing lost or repeated.
"""

import os
from pathlib import Path

import pytest

from rowq import Queue
from tests.concurrency.actors import Producer, Run
from tests.concurrency.checker import check, check_order
from tests.concurrency.consumers import Consumer
from tests.concurrency.history import Recorder
from tests.concurrency.judged_run import count, drain, kill_now_and_then, perform
from tests.dice import SEED, limit, times
from tests.engines.base import Connection, Server

VARIABLE = "ROWQ_LONG_RUN_ON"
LONG_RUN_ON = os.environ.get(VARIABLE, "postgres18,mariadb,sqlserver,oracle").split(",")

# The limit is long for slow machines; hanging sessions are found because nothing is completed, see
# judged_run.py.
pytestmark = [
    pytest.mark.timeout(limit(1800)),
    pytest.mark.slow("ten sessions at many thousands of messages"),
]


@pytest.mark.pitfall("mysql 18", "oracle 16")
@pytest.mark.requires("genuine")
@pytest.mark.promise("P01", "P02", "P03", "P04", "P06", "P07", "P08", "P09", "P10", "P12")
@pytest.mark.parametrize("archive_days", [0, 7])
def test_ten_sessions_lose_and_repeat_nothing(
    server: Server,
    database_url: str,
    connection: Connection,
    queue_name: str,
    archive_days: int,
    tmp_path: Path,
) -> None:
    Queue(connection).create_queue(queue_name, archive_days=archive_days, backoff_base_seconds=0)
    run = Run(server, database_url, queue_name, Recorder())
    history = perform(run, times(10_000), tmp_path, kill_now_and_then(run))
    assert count(history, "enqueue") >= 10_000


@pytest.mark.requires("groups")
@pytest.mark.promise("P02", "P21", "P22", "P24")
@pytest.mark.parametrize(
    ("groups", "group_limits", "archive_days"),
    [(3, (1,), 0), (30, (1,), 7), (10, (3,), 0), (10, (1, 2, 3), 0)],
)
def test_ten_sessions_with_groups_keep_order_and_limits(
    server: Server,
    database_url: str,
    connection: Connection,
    queue_name: str,
    groups: int,
    group_limits: tuple[int, ...],
    archive_days: int,
    tmp_path: Path,
) -> None:
    Queue(connection).create_queue(
        queue_name,
        archive_days=archive_days,
        backoff_base_seconds=0,
        max_attempts=10000,
        group_limit=group_limits[0],
    )
    run = Run(
        server,
        database_url,
        queue_name,
        Recorder(),
        groups=groups,
        group_limits=group_limits,
        stirs=True,
    )
    history = perform(run, times(2_000), tmp_path, kill_now_and_then(run))
    assert count(history, "join") >= 1_000


@pytest.mark.requires("predecessors")
@pytest.mark.promise("P02", "P25", "P26", "P27")
@pytest.mark.parametrize(("groups", "archive_days"), [(0, 0), (0, 7), (10, 0)])
def test_ten_sessions_with_predecessors_keep_order(
    server: Server,
    database_url: str,
    connection: Connection,
    queue_name: str,
    groups: int,
    archive_days: int,
    tmp_path: Path,
) -> None:
    Queue(connection).create_queue(
        queue_name, archive_days=archive_days, backoff_base_seconds=0, max_attempts=10000
    )
    run = Run(server, database_url, queue_name, Recorder(), groups=groups, waits=True, stirs=True)
    history = perform(run, times(2_000), tmp_path, kill_now_and_then(run))
    assert count(history, "wait") >= 500


@pytest.mark.requires("expiry", "results")
@pytest.mark.promise("P02", "P32", "P36")
def test_ten_sessions_with_expiry_and_results_agree(
    server: Server, database_url: str, connection: Connection, queue_name: str, tmp_path: Path
) -> None:
    Queue(connection).create_queue(
        queue_name, backoff_base_seconds=0, max_attempts=10000, result_seconds=31536000
    )
    run = Run(
        server,
        database_url,
        queue_name,
        Recorder(),
        expires=True,
        has_results=True,
        waits=True,
        stirs=True,
    )
    history = perform(run, times(1_000), tmp_path, kill_now_and_then(run))
    assert count(history, "expiring") >= 200


@pytest.mark.pitfall("mysql 5")
@pytest.mark.requires("genuine")
@pytest.mark.promise("P01", "P02", "P03", "P04", "P06", "P07", "P08", "P09", "P10", "P12")
def test_ten_sessions_handle_10000_messages_each(
    server: Server, database_url: str, connection: Connection, queue_name: str, tmp_path: Path
) -> None:
    if not {server.name, server.product} & set(LONG_RUN_ON):
        pytest.skip(f"the long run is for others; to run it: {VARIABLE}={server.name}")
    Queue(connection).create_queue(queue_name, backoff_base_seconds=0)
    run = Run(server, database_url, queue_name, Recorder())
    history = perform(run, times(100_000), tmp_path, kill_now_and_then(run))
    assert count(history, "enqueue") >= 100_000


@pytest.mark.promise("P05")
def test_one_consumer_gets_messages_by_priority_and_order(
    server: Server, database_url: str, connection: Connection, queue_name: str
) -> None:
    Queue(connection).create_queue(queue_name)
    run = Run(server, database_url, queue_name, Recorder(), largest_batch=30)
    consumer = Consumer(run, "consumer", SEED)
    producer = Producer(run, "producer", SEED, times(2000))
    while not producer.finished():
        enqueue_at_once(producer)
        messages = consumer.dequeue()
        consumer.finish(
            "complete", messages[0].claim_id, [message.message_id for message in messages]
        )
    drain(run, connection)
    for actor in (consumer, producer):
        actor.connection.close()
    history = run.recorder.history()
    assert check(history) == []
    assert check_order(history) == []


def enqueue_at_once(producer: Producer) -> None:
    """Enqueue some messages of different priorities, and record them."""
    for _ in range(producer.seeded_random.randint(1, 60)):
        priority = producer.seeded_random.randint(0, 9)
        start = producer.now()
        sent = producer.queue.enqueue(producer.run.queue_name, 0, priority=priority)
        producer.log(start, "enqueue", None, [(sent.message_id, priority)])
        producer.left -= 1
