"""Queues after a fork: each process uses its own connection."""

import asyncio
import json
import os
import subprocess
import sys

import pytest

import rowq
from tests.client.fork_program import CALLS
from tests.engines.base import Connection

pytestmark = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="this system has no fork; to run it: Linux or macOS"
)


@pytest.mark.promise("P01")
def test_forked_child_does_not_use_parents_connection(
    database_url: str, connection: Connection, queue_name: str
) -> None:
    queue = rowq.Queue(connection)
    queue.create_queue(queue_name)
    command = [sys.executable, "-m", "tests.client.fork_program", database_url, queue_name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    answer = sorted(json.loads(line)["connections"] for line in done.stdout.splitlines())
    assert answer == [2, 3], "the parent kept its connections, and the child made one"
    assert queue.queue_stats(queue_name)[0].ready == 2 * CALLS


@pytest.mark.requires("async")
def test_async_queue_works_in_both_processes_after_fork(
    database_url: str, connection: Connection, queue_name: str
) -> None:
    rowq.Queue(connection).create_queue(queue_name)
    queue = asyncio.run(rowq.connect_async(database_url))

    async def enqueue() -> None:
        for number in range(CALLS):
            await queue.enqueue(queue_name, number)

    asyncio.run(enqueue())
    child = os.fork()
    if not child:
        try:
            asyncio.run(enqueue())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    asyncio.run(enqueue())
    asyncio.run(queue.close())
    assert rowq.Queue(connection).queue_stats(queue_name)[0].ready == 3 * CALLS


def test_kept_object_is_not_finalized_at_exit() -> None:
    program = """
from rowq.forks import keep_forever
class Connection:
    def __del__(self): print("logs off")
keep_forever(Connection())
kept = Connection()
keep_forever(kept)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout == b""
