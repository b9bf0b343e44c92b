"""Transactional workers: writes happen exactly once."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rowq
from tests.client import handlers
from tests.engines.base import Connection, Server, wait_until
from tests.helpers.dialects import dialect_of
from tests.helpers.worker_queue import MakeQueue, WorkerQueue

ROOT = Path(__file__).parents[2]


@pytest.fixture
def queue(connection: Connection, make_queue: MakeQueue) -> WorkerQueue:
    dialect_of(connection).make_table(connection, "effect", "queue_name varchar(100), place int")
    return make_queue(
        {"transactional": True}, lease_seconds=1, backoff_base_seconds=0, max_attempts=3
    )


def fill(queue: WorkerQueue, count: int) -> list[int]:
    new = [rowq.NewMessage(data={"queue_name": queue.name, "number": n}) for n in range(count)]
    return [message.message_id for message in queue.enqueue_batch(new)]


def effects(connection: Connection, queue_name: str) -> list[int]:
    query = "select place from effect where queue_name = %s order by place"
    rows = dialect_of(connection).execute(connection, query, [queue_name]).fetchall()
    return [place for (place,) in rows]


@pytest.mark.parametrize("per", ["message", "batch"])
def test_writes_and_completion_commit_together(
    connection: Connection, queue: WorkerQueue, per: Any
) -> None:
    fill(queue, 25)
    during: list[int] = []

    def handler(given: Any, own: Connection) -> None:
        for message in given if per == "batch" else [given]:
            handlers.insert(message, own)
        during.append(len(effects(connection, queue.name)))

    stats = queue.drain(handler, per=per, batch_size=10)
    assert stats.processed == 25
    assert effects(connection, queue.name) == list(range(25))
    assert set(during) == {0, 10, 20}


@pytest.mark.promise("P10")
def test_failed_handler_loses_only_its_writes(connection: Connection, queue: WorkerQueue) -> None:
    queue.alter_queue(lease_seconds=60)
    fill(queue, 5)

    def handler(message: rowq.Message, own: Connection) -> None:
        handlers.insert(message, own)
        if message.data["number"] == 2:
            own.cursor().execute("select nonsense")
        if message.data["number"] == 3:
            raise rowq.Fail("no")

    stats = queue.drain(handler)
    assert (stats.processed, stats.retried, stats.failed) == (3, 2, 2)
    assert effects(connection, queue.name) == [0, 1, 4]


@pytest.mark.promise("P08")
def test_writes_of_a_lost_claim_are_rolled_back(connection: Connection, queue: WorkerQueue) -> None:
    ids = fill(queue, 3)
    taken: list[int] = []

    def handler(message: rowq.Message, own: Connection) -> None:
        handlers.insert(message, own)
        if not taken and message.message_id == ids[1]:
            queue.release(message.claim_id)
            taken.append(message.message_id)

    stats = queue.drain(handler, batch_size=3)
    assert taken
    assert stats.processed == 3
    assert effects(connection, queue.name) == [0, 1, 2]


def test_message_breaking_its_transaction_harms_no_other(
    server: Server, connection: Connection, queue: WorkerQueue
) -> None:
    """Message 2 kills its session every time."""
    ids = fill(queue, 5)

    def handler(message: rowq.Message, own: Connection) -> None:
        handlers.insert(message, own)
        if message.data["number"] == 2:
            server.kill_session(server.session_id(own))

    stats = queue.drain(handler, batch_size=5, lease_seconds=60)
    assert (stats.processed, stats.retried, stats.failed) == (4, 2, 1)
    assert effects(connection, queue.name) == [0, 1, 3, 4]
    details = queue.get_message(ids[2])
    assert details
    assert details.state == "dead"


@pytest.mark.slow("kills a worker")
@pytest.mark.chaos
@pytest.mark.promise("P02", "P04")
def test_killed_transactional_worker_writes_exactly_once(
    database_url: str,
    connection: Connection,
    queue: WorkerQueue,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fill(queue, 20)
    monkeypatch.setenv("ROWQ_TEST_DIRECTORY", str(tmp_path))
    arguments = [database_url, queue.name, "tests.client.handlers:insert_and_die_once"]
    options = '{"transactional": true, "drain": true, "batch_size": 8}'
    program = [sys.executable, "-m", "tests.client.worker_program", *arguments, options]
    killed = subprocess.run(program, cwd=ROOT, env=os.environ, timeout=60, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert effects(connection, queue.name) == []
    stats = queue.drain(handlers.insert_and_die_once)
    assert stats.processed == 20
    assert effects(connection, queue.name) == list(range(20))


def test_stop_commits_done_and_releases_rest(connection: Connection, queue: WorkerQueue) -> None:
    fill(queue, 5)
    workers: list[rowq.Worker] = []

    def handler(message: rowq.Message, own: Connection) -> None:
        handlers.insert(message, own)
        if message.data["number"] == 1:
            workers[0].stop()

    workers.append(queue.worker(handler))
    stats = workers[0].run()
    assert (stats.processed, stats.released) == (2, 3)
    assert effects(connection, queue.name) == [0, 1]
    wait_until(lambda: queue.queue_stats()[0].ready == 3, "three are ready")
