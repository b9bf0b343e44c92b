"""Handlers for worker processes; each process writes its messages to its own file.

ROWQ_TEST_DIRECTORY names the directory they write in.
"""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import rowq
from tests.helpers.dialects import dialect_of


def directory() -> Path:
    return Path(os.environ["ROWQ_TEST_DIRECTORY"])


def note(message: rowq.Message) -> None:
    """Record the message in a single write, which a crash cannot split."""
    with (directory() / f"handled-{os.getpid()}").open("ab", buffering=0) as file:
        file.write(f"{message.message_id}\n".encode())


def note_then_wait(message: rowq.Message) -> None:
    """Record the message and wait for the file `go`."""
    note(message)
    while not (directory() / "go").exists():
        threading.Event().wait(0.01)  # A faked clock breaks time.sleep.


def leave_off_when_lost(message: Any) -> None:
    """Record the message; end when the lease is lost."""
    note(message)
    while not message.lost:
        threading.Event().wait(0.01)
    (directory() / "lost").touch()


def hang_once(message: rowq.Message) -> None:
    """Hang in C code at the first message of any process."""
    note(message)
    if first_to("hung"):
        threading.Event().wait()


def die_once(message: rowq.Message) -> None:
    """Kill this process at the first message of any process."""
    if first_to("died"):
        os.kill(os.getpid(), signal.SIGKILL)
    note(message)


def die_when_told(message: rowq.Message) -> None:
    """Record the message and wait for the file `die`; then kill one process."""
    note(message)
    while not (directory() / "die").exists():
        threading.Event().wait(0.01)
    if first_to("died"):
        os.kill(os.getpid(), signal.SIGKILL)


def die(_message: rowq.Message) -> None:
    """Kill this process at every message."""
    os.kill(os.getpid(), signal.SIGKILL)


def interrupt(_message: rowq.Message) -> None:
    """End the worker by KeyboardInterrupt."""
    raise KeyboardInterrupt("enough")


def fail_once(message: rowq.Message) -> None:
    """Fail at the first message of any process."""
    if first_to("failed"):
        raise ValueError("a fault of the handler's")
    note(message)


def terminate_a_fork(message: rowq.Message) -> None:
    """Fork a sleeping process, terminate it, and record the message when it ends."""
    process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(30,))
    process.start()
    process.terminate()
    process.join(10)
    if process.exitcode == -signal.SIGTERM:
        note(message)
    process.kill()


def nothing(_message: rowq.Message) -> None:
    """Do nothing."""


def generate(message: rowq.Message) -> Iterator[int]:
    """Be a generator, whose body never runs."""
    yield message.message_id


def insert(message: rowq.Message, connection: Any) -> None:
    """Write the message to the table `effect` in the worker's transaction."""
    dialect_of(connection).execute(
        connection,
        "insert into effect (queue_name, place) values (%s, %s)",
        [message.data["queue_name"], message.data["number"]],
    )


def insert_and_die_once(message: rowq.Message, connection: Any) -> None:
    """Write the message, then kill this process at the third message of any process."""
    insert(message, connection)
    if message.data["number"] == 2 and first_to("died"):
        os.kill(os.getpid(), signal.SIGKILL)


def first_to(name: str) -> bool:
    """Whether this process is the first to make the file `name`."""
    try:
        (directory() / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
