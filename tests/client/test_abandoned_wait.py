"""dequeue_wait of a client that is gone."""

import subprocess
import sys
import time

import pytest

import rowq
from rowq.engines import engine_for_url
from tests.engines.base import Connection

WAITS = """
import sys, rowq
from rowq import session
session.SLICE_SECONDS = 0.5
with rowq.connect(sys.argv[1]) as queue:
    print("waits", flush=True)
    queue.dequeue_wait(sys.argv[2], wait_seconds=60)
"""


@pytest.mark.slow("waits for time limits")
@pytest.mark.pitfall("postgres 19")
@pytest.mark.promise("P02")
def test_killed_waiting_client_takes_no_message(
    database_url: str, connection: Connection, queue_name: str
) -> None:
    queue = rowq.Queue(connection)
    queue.create_queue(queue_name, max_attempts=1)
    command = [sys.executable, "-c", WAITS, database_url, queue_name]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as client:
        assert client.stdout is not None
        assert client.stdout.readline()
        time.sleep(1)
        client.kill()
    time.sleep(1)
    queue.enqueue(queue_name, 1)
    time.sleep(1)
    assert len(queue.peek(queue_name)) == 1


def test_calls_wait_at_most_five_seconds(
    database_url: str, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, asked = engine_for_url(database_url), []

    def wait(_connection: object, arguments: dict[str, float]) -> list[object]:
        asked.append(arguments["wait_seconds"])
        return [([],)] if len(asked) == 3 else [(None,)]

    with rowq.connect(database_url) as queue:
        monkeypatch.setattr(engine, "dequeue_wait", wait)
        monkeypatch.setattr(time, "monotonic", lambda: 1000.0 + 4 * len(asked))
        queue.dequeue_wait(queue_name, wait_seconds=12)
    assert asked == [5.0, 5.0, 4.0]
