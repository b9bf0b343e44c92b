"""Workers with a wrong clock, or one that is set while they run.

libfaketime gives a worker process another time of day; the server and the tests keep theirs.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import rowq
from tests.engines.base import Connection, wait_until

ROOT = Path(__file__).parents[2]
LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
LEASE_SECONDS = 1
HOUR = 3600

pytestmark = pytest.mark.skipif(
    LIBRARY is None, reason="there is no libfaketime; to run it: apt-get install libfaketime"
)


class Clock:
    """The wall clock of a process, which can be set while it runs."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.set(0)

    def set(self, seconds: int) -> None:
        """Set its difference from the true time."""
        draft = self._path.with_suffix(".new")
        draft.write_text(f"{seconds:+d}\n")
        draft.rename(self._path)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a process with this clock; monotonic time is correct."""
        return {
            **os.environ,
            "LD_PRELOAD": str(LIBRARY),
            "FAKETIME_TIMESTAMP_FILE": str(self._path),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "ROWQ_TEST_DIRECTORY": str(self._path.parent),
        }


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    return Clock(tmp_path / "clock")


@pytest.fixture
def queue(connection: Connection, queue_name: str) -> rowq.Queue:
    queue = rowq.Queue(connection)
    queue.create_queue(queue_name, lease_seconds=LEASE_SECONDS, backoff_base_seconds=0)
    return queue


@pytest.fixture
def run(clock: Clock) -> Callable[..., str]:
    """Return a function that runs Python code with that clock, and returns its output."""

    def run_code(code: str, *arguments: str) -> str:
        command = [sys.executable, "-c", code, *arguments]
        return subprocess.run(
            command, env=clock.environment, cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout

    return run_code


@contextmanager
def worker(url: str, queue_name: str, clock: Clock) -> Iterator[subprocess.Popen[str]]:
    """Run a worker with that clock; its handler waits for the file `go`."""
    options = json.dumps({"drain": True, "batch_size": 1})
    handler = "tests.client.handlers:note_then_wait"
    command = [sys.executable, "-m", "tests.client.worker_program", url, queue_name, handler]
    with subprocess.Popen(
        [*command, options], env=clock.environment, cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_processes_have_the_wrong_clock(run: Callable[..., str], clock: Clock) -> None:
    clock.set(-HOUR)
    code = "import time, datetime; print(time.time(), datetime.datetime.now().timestamp())"
    times = [float(word) for word in run(code).split()]
    own = [float(word) for word in subprocess.check_output([sys.executable, "-c", code]).split()]
    assert all(1800 < mine - theirs < 5400 for mine, theirs in zip(own, times, strict=True))


@pytest.mark.slow("waits for time limits")
@pytest.mark.promise("P03", "P04", "P08")
@pytest.mark.parametrize("changes", [(-HOUR,), (HOUR, -HOUR)], ids=["behind", "set back"])
def test_worker_keeps_its_lease_with_a_wrong_clock(
    database_url: str,
    queue: rowq.Queue,
    queue_name: str,
    clock: Clock,
    tmp_path: Path,
    changes: tuple[int, ...],
) -> None:
    message_id = queue.enqueue(queue_name, 1).message_id
    first, *later = changes
    clock.set(first)
    with worker(database_url, queue_name, clock) as process:
        wait_until(lambda: any(tmp_path.glob("handled-*")), "the message is being handled", 60)
        for change in (first, *later):
            clock.set(change)
            outlive_the_lease(queue, queue_name, message_id)
        (tmp_path / "go").touch()
        assert process.stdout is not None
        stats = json.loads(process.stdout.read())
    assert (stats["processed"], stats["stale"]) == (1, 0)


def outlive_the_lease(queue: rowq.Queue, queue_name: str, message_id: int) -> None:
    """Call maintain until the current lease has passed; the first attempt must hold the message."""

    def until() -> datetime:
        queue.maintain(queue_name)
        message = queue.get_message(queue_name, message_id)
        assert message is not None
        assert (message.state, message.attempt) == ("leased", 1)
        assert message.lease_until is not None
        return message.lease_until

    over_at = until() + timedelta(seconds=0.5)
    wait_until(lambda: until() > over_at, "the lease is extended past its end")


_SEND_AND_TAKE = """
import sys, rowq
with rowq.connect(sys.argv[1]) as queue:
    print(queue.enqueue(sys.argv[2], 1).message_id)
    print(queue.enqueue(sys.argv[2], 2, delay_seconds=60).message_id)
    queue.dequeue_fast(sys.argv[2], 2, lease_seconds=600)
"""


@pytest.mark.promise("P11")
def test_delays_and_leases_use_the_servers_clock(
    database_url: str, queue: rowq.Queue, queue_name: str, clock: Clock, run: Callable[..., str]
) -> None:
    clock.set(HOUR)
    before = datetime.now(UTC)
    expected = run(_SEND_AND_TAKE, database_url, queue_name)
    leased, delayed = (queue.get_message(queue_name, int(word)) for word in expected.split())
    after = datetime.now(UTC)
    assert leased is not None
    assert delayed is not None
    assert (leased.state, delayed.state) == ("leased", "delayed")
    for timestamp, seconds in ((leased.lease_until, 600), (delayed.due_at, 60)):
        assert timestamp is not None
        given_at, slack = timestamp - timedelta(seconds=seconds), timedelta(seconds=1)
        assert before - slack <= given_at <= after + slack
