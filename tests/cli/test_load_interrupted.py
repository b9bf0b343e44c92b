"""rowq load reports its progress when it is interrupted."""

import array
import fcntl
import os
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import rowq
from rowq.tools.console.exit_codes import ExitCode
from tests.engines.base import Server, wait_until
from tests.helpers.queues import Connect

PROGRAM = str(Path(sys.executable).with_name("rowq"))


@pytest.fixture
def load(database_url: str, made: str) -> Iterator[subprocess.Popen[str]]:
    """Run a load of standard input in batches of two, until the block ends."""
    command = [PROGRAM, "load", made, "-", "--format", "jsonl", "--batch-size", "2"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command,
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        text=True,
        env=os.environ | {"ROWQ_URL": database_url},
    ) as process:
        yield process
        process.kill()


def send(load: subprocess.Popen[str], text: str) -> None:
    """Write to the load's standard input."""
    assert load.stdin is not None
    load.stdin.write(text)
    load.stdin.flush()


def unread(load: subprocess.Popen[str]) -> int:
    """Return the number of unread bytes of standard input."""
    assert load.stdin is not None
    count = array.array("i", [0])
    fcntl.ioctl(load.stdin.fileno(), termios.FIONREAD, count)
    return count[0]


def is_in(queue: rowq.Queue, queue_name: str, count: int) -> Callable[[], bool]:
    """Return a condition: `count` messages are ready."""
    return lambda: queue.queue_stats(queue_name)[0].ready == count


def test_interrupted_load_reports_where_to_continue(
    load: subprocess.Popen[str], queue: rowq.Queue, made: str
) -> None:
    send(load, "1\n2\n3\n4\n")
    wait_until(is_in(queue, made, 4), "two batches are in")
    # A batch is committed before the call returns; the next line is read afterwards.
    send(load, "5\n")
    wait_until(lambda: unread(load) == 0, "the next line is read")
    load.send_signal(signal.SIGINT)
    _, err = load.communicate()
    assert load.returncode == ExitCode.INTERRUPTED
    assert err == ("rowq: interrupted. 4 messages were enqueued; continue with --from-line 5\n")
    assert is_in(queue, made, 4)()


def test_load_reports_connection_lost_during_batch(
    load: subprocess.Popen[str], queue: rowq.Queue, made: str, connect: Connect, server: Server
) -> None:
    send(load, "1\n2\n")
    wait_until(is_in(queue, made, 2), "the first batch is in")
    dropper = connect(autocommit=False)
    rowq.Queue(dropper).drop_queue(made, force=True)
    send(load, "3\n4\n")
    me = server.session_id(dropper)

    def blocked() -> list[int]:
        waiting = server.waiting_sessions()
        return [session for session, blockers in waiting.items() if me in blockers]

    wait_until(lambda: bool(blocked()), "the second batch waits for the drop")
    server.kill_session(blocked()[0])
    _, err = load.communicate()
    dropper.rollback()
    assert load.returncode == ExitCode.NO_CONNECTION
    assert "2 messages were enqueued before it; lines 3 to 4 of standard input may or may" in err
    assert err.count("\n") == 1
    assert is_in(queue, made, 2)()
