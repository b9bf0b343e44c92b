"""A release adds columns to all hot tables while producers and consumers call."""

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

import rowq
from rowq.tools import migrate
from tests.engines.base import Connection
from tests.helpers.releases import begin_next
from tests.stored_times import tick

BATCH = 8
ROUNDS = 3
SECONDS = 1.0
"""Seconds of load before each change of release."""

ORDER = ("claim", "message", "blocked")
"""The tables in the lock order of docs/contributing.md."""


@pytest.fixture
def wider_release(releases: Path) -> None:
    """Add a migration that adds a nullable column to each of these tables."""
    apply = [f"alter table rowq.{table} add column if not exists note text;" for table in ORDER]
    undo = [f"alter table rowq.{table} drop column if exists note;" for table in ORDER]
    begin_next(releases, "wider", "0.2.0", (" ".join(apply), " ".join(undo)))


def messages(numbers: Iterator[int]) -> list[rowq.NewMessage]:
    """Return a batch of messages with keys, groups, delays, expiry and predecessors."""
    each = [next(numbers) for _ in range(BATCH)]
    kinds: list[dict[str, Any]] = [
        {"dedup_key": f"key {each[0]}"},
        {"group_key": f"group {each[1] % 5}"},
        {"predecessor_positions": [1, 2]},
        {"predecessor_positions": [1], "group_key": "group 1", "dedup_key": f"key {each[3]}"},
        {"delay_seconds": 0.01},
        {"expire_seconds": 3600, "dedup_key": f"key {each[5]}"},
        {},
        {"headers": {"a": each[7]}, "message_type": "x"},
    ]
    return [rowq.NewMessage(data=number, **kind) for number, kind in zip(each, kinds, strict=True)]


def produce(own: rowq.Queue, numbers: Iterator[int], sent: list[int]) -> None:
    """Send a batch and single messages."""
    batch = messages(numbers)
    rows = own.enqueue_batch("q", batch)
    assert {row.outcome for row in rows} == {"enqueued"}
    sent += [message.data for message in batch]
    number = next(numbers)
    own.enqueue("q", number, dedup_key=f"key {number}", group_key="group 2")
    sent.append(number)


def consume(own: rowq.Queue, done: list[int], batch_size: int = 5) -> None:
    """Complete some messages, release others with a delay, and run maintain."""
    if leased := own.dequeue_fast("q", batch_size):
        claim, ids = leased[0].claim_id, [message.message_id for message in leased]
        if leased[0].attempt == 1 and leased[0].data % 7 == 0:
            own.retry_later("q", claim, ids[:1], delay_seconds=0.01)
            leased = leased[1:]
        if leased:
            own.complete("q", claim, [message.message_id for message in leased])
        done += [message.data for message in leased]
    own.maintain("q")


@pytest.mark.timeout(300)
@pytest.mark.promise("P01", "P02", "P04")
@pytest.mark.usefixtures("wider_release")
def test_calls_succeed_while_a_release_adds_columns(
    empty_database: str, session: Connection
) -> None:
    migrate.migrate(empty_database, to=1)
    own = rowq.Queue(session)
    own.create_queue("q", backoff_base_seconds=0, max_attempts=100)
    numbers, stop = itertools.count(), threading.Event()
    sent: list[int] = []
    done: list[int] = []
    faults: list[str] = []

    def call(work: Callable[[rowq.Queue], None]) -> None:
        with psycopg.connect(empty_database, autocommit=True) as connection:
            while not stop.is_set():
                try:
                    work(rowq.Queue(connection))
                except Exception as error:
                    faults.append(f"{type(error).__name__}: {error}")

    with ThreadPoolExecutor(6) as pool:
        calling: list[Future[None]] = [
            pool.submit(call, lambda own: produce(own, numbers, sent)) for _ in range(2)
        ] + [pool.submit(call, lambda own: consume(own, done)) for _ in range(3)]
        try:
            for _ in range(ROUNDS):
                stop.wait(SECONDS)
                assert migrate.migrate(empty_database).applied == (2,)
                stop.wait(SECONDS)
                assert migrate.rollback(empty_database, to=1).rolled_back == (2,)
        finally:
            stop.set()
        for one in calling:
            one.result()
    assert faults == []

    idle = 0
    while len(done) < len(sent) and idle < 20:
        before = len(done)
        tick(session, "q")
        consume(own, done, 1000)
        idle = 0 if len(done) > before else idle + 1
        if idle:  # A retry is due 10 ms later, and holds its group until then.
            time.sleep(0.01)
    assert sorted(done) == sorted(sent)
    assert len(sent) > 100
