"""Ten sessions at one queue, and a judge who reads their history.

Producers, consumers with batches of all sizes, retries, releases, failures, leases that run out
under slow workers, abandoned claims, transactions with effects, killed sessions and housekeepers
all at once: no deadlock, no error, nothing lost, nothing done twice.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from rowq import Queue
from tests.concurrency import looks
from tests.concurrency.actors import (
    LEASE_SECONDS,
    Actor,
    Consumer,
    Housekeeper,
    Killer,
    Producer,
    Run,
    TransactionalConsumer,
)
from tests.concurrency.checker import check, check_order
from tests.concurrency.history import Event, Recorder, read, write
from tests.engines.base import Connection, Server, wait_until
from tests.stored_times import pass_seconds

SEED = 20261121
VARIABLE = "ROWQ_LONG_RUN_ON"
LONG_RUN_ON = os.environ.get(VARIABLE, "postgres18").split(",")


@pytest.fixture
def connection(connect: Callable[[], Connection]) -> Connection:
    """Return the judge's session, with a table for effects."""
    session = connect()
    session.execute(
        "create table if not exists effect (queue_name text not null, message_id bigint not null)"
    )
    return session


def cast(run: Run, messages: int, seed: int) -> list[Actor]:
    """Return ten sessions that enqueue so many messages in all, and one that kills."""
    return [
        *(Producer(run, f"producer {one}", seed, messages // 3 + 1) for one in range(3)),
        *(Consumer(run, f"consumer {one}", seed) for one in range(4)),
        *(TransactionalConsumer(run, f"transaction {one}", seed) for one in range(2)),
        Housekeeper(run, "housekeeper", seed),
        Killer(run, "killer", seed),
    ]


def perform(run: Run, actors: list[Actor], connection: Connection) -> None:
    """Let everybody act until all is produced and most of it done; raise what went wrong."""
    for actor in actors:
        actor.thread.start()
    producers = [actor.thread for actor in actors if isinstance(actor, Producer)]
    queue = Queue(connection)

    def nearly_done() -> bool:
        stats = queue.queue_stats(run.queue_name)[0]
        producing = any(thread.is_alive() for thread in producers)
        return run.stop.is_set() or (not producing and stats.ready < 1000)

    wait_until(nearly_done, "the work is nearly done", seconds=100)
    run.stop.set()
    for actor in actors:
        actor.thread.join(30)
        assert not actor.thread.is_alive(), f"{actor.name} does not end"
    if run.errors:
        raise run.errors[0]


def take_census(run: Run, connection: Connection) -> Counter[str]:
    """Write down where every message is; nobody else is at work."""
    start = run.recorder.clock()
    found = looks.census(connection, run.queue_name)
    run.recorder.record(start, "judge", "census", None, found)
    assert {message for message, _ in found} == looks.bodies(connection, run.queue_name) - {
        message for message, _ in looks.finished(connection, run.queue_name)
    }
    return Counter(state for _, state in found)


def drain(run: Run, connection: Connection) -> None:
    """Let everything come due and run out, and complete all that is left."""
    judge = Consumer(run, "judge", SEED)
    idle = 0
    while idle < 3:
        start = run.recorder.clock()
        pass_seconds(connection, run.queue_name, 2 * LEASE_SECONDS)
        run.recorder.record(start, "judge", "expire", None)
        judge.queue.maintain(run.queue_name, 10000)
        idle += 1
        while messages := judge.dequeue():
            judge.finish("complete", messages[0].claim_id, [one.message_id for one in messages])
            idle = 0
    judge.connection.close()


def judge_run(
    server: Server, url: str, connection: Connection, queue: str, messages: int, tmp_path: Path
) -> list[Event]:
    """Let ten sessions work, and drain the rest; return the history, found without fault."""
    deadlocks = looks.deadlocks(connection)
    run = Run(server, url, queue, Recorder())
    perform(run, cast(run, messages, SEED), connection)
    left = take_census(run, connection)
    drain(run, connection)
    assert set(take_census(run, connection)) <= {"dead"}
    assert looks.held_keys(connection, queue) == 0

    path = tmp_path / "history.jsonl"
    write(run.recorder.history(), path)
    history = read(path)
    faults = check(history)
    assert not faults, f"{len(faults)} faults, of which {faults[:10]}; the history is in {path}"
    check_effects(history, connection, queue)
    connect_again = server.connect(url)
    assert looks.deadlocks(connect_again) == deadlocks
    connect_again.close()
    print(summary(history, left))
    return history


def check_effects(history: list[Event], connection: Connection, queue: str) -> None:
    """Judge the transactions: what they did and what they completed is the same, and once."""
    query = "select message_id from effect where queue_name = %s"
    effects = Counter(int(one) for (one,) in connection.execute(query, [queue]))
    calls = [one for one in history if one.action == "complete" and "transaction" in one.session]
    sure = {message for one in calls if one.known for message, _ in one.results}
    possible = {message for one in calls for message, _ in one.results}
    assert sure <= set(effects) <= possible
    assert set(effects.values()) <= {1}


def summary(history: list[Event], left: Counter[str]) -> str:
    """Say what happened, for people to read."""
    counts: Counter[str] = Counter()
    for event in history:
        if event.action != "census":
            counts[f"{event.action}{'' if event.known else ' lost'}"] += len(event.results) or 1
        counts["stale"] += sum(outcome == "stale" for _, outcome in event.results)
    seconds = history[-1].end - history[0].start
    return f"{seconds:.1f} s; {dict(counts)}; left before the drain: {dict(left)}"


def count(history: list[Event], action: str) -> int:
    """Return how many messages a kind of call was about."""
    return sum(len(event.results) for event in history if event.action == action)


@pytest.mark.promise("P01", "P02", "P03", "P04", "P06", "P07", "P08", "P09", "P10", "P12")
@pytest.mark.parametrize("archive_days", [0, 7])
def test_ten_sessions_at_one_queue_lose_nothing_and_do_nothing_twice(
    server: Server,
    database_url: str,
    connection: Connection,
    queue_name: str,
    archive_days: int,
    tmp_path: Path,
) -> None:
    Queue(connection).create_queue(queue_name, archive_days=archive_days, backoff_base_seconds=0)
    history = judge_run(server, database_url, connection, queue_name, 10_000, tmp_path)
    assert count(history, "enqueue") >= 10_000


@pytest.mark.slow
@pytest.mark.promise("P01", "P02", "P03", "P04", "P06", "P07", "P08", "P09", "P10", "P12")
def test_ten_sessions_times_ten_thousand_messages_without_deadlock_loss_or_double(
    server: Server, database_url: str, connection: Connection, queue_name: str, tmp_path: Path
) -> None:
    if server.name not in LONG_RUN_ON:
        pytest.skip(f"the long run is for {LONG_RUN_ON}; to have it here: {VARIABLE}={server.name}")
    Queue(connection).create_queue(queue_name, backoff_base_seconds=0)
    started = time.monotonic()
    history = judge_run(server, database_url, connection, queue_name, 100_000, tmp_path)
    assert count(history, "enqueue") >= 100_000
    assert time.monotonic() - started < 110


@pytest.mark.promise("P05")
def test_one_consumer_gets_everything_by_priority_and_in_the_order_it_came(
    server: Server, database_url: str, connection: Connection, queue_name: str
) -> None:
    Queue(connection).create_queue(queue_name)
    run = Run(server, database_url, queue_name, Recorder(), largest_batch=30)
    consumer = Consumer(run, "consumer", SEED)
    producer = Producer(run, "producer", SEED, 2000)
    while not producer.finished():
        enqueue_at_once(producer)
        messages = consumer.dequeue()
        consumer.finish("complete", messages[0].claim_id, [one.message_id for one in messages])
    drain(run, connection)
    for actor in (consumer, producer):
        actor.connection.close()
    history = run.recorder.history()
    assert check(history) == []
    assert check_order(history) == []


def enqueue_at_once(producer: Producer) -> None:
    """Enqueue a few messages of different priorities without delay, and write it down."""
    for _ in range(producer.dice.randint(1, 60)):
        priority = producer.dice.randint(0, 9)
        start = producer.now()
        sent = producer.queue.enqueue(producer.run.queue_name, 0, priority=priority)
        producer.note(start, "enqueue", None, [(sent.message_id, priority)])
        producer.left -= 1
