"""Handlers that worker processes import; each process lists what it handled in a file of its own.

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
    """Return the directory that the test reads."""
    return Path(os.environ["ROWQ_TEST_DIRECTORY"])


def note(message: rowq.Message) -> None:
    """Write down that the message was handled, in one write that a crash cannot tear."""
    with (directory() / f"handled-{os.getpid()}").open("ab", buffering=0) as file:
        file.write(f"{message.message_id}\n".encode())


def note_then_wait(message: rowq.Message) -> None:
    """Write it down and wait until the test says go."""
    note(message)
    while not (directory() / "go").exists():
        threading.Event().wait(0.01)  # A faked clock breaks time.sleep.


def leave_off_when_lost(message: Any) -> None:
    """Write down that it is being handled; leave off as soon as the lease is over."""
    note(message)
    while not message.lost:
        threading.Event().wait(0.01)
    (directory() / "lost").touch()


def hang_once(message: rowq.Message) -> None:
    """Hang at the first message that any process gets, where no exception comes through."""
    note(message)
    if first_to("hung"):
        threading.Event().wait()


def die_once(message: rowq.Message) -> None:
    """Kill the own process, without a word, at the first message that any process gets."""
    if first_to("died"):
        os.kill(os.getpid(), signal.SIGKILL)
    note(message)


def die_when_told(message: rowq.Message) -> None:
    """Write it down and wait until the test says die; then kill the first process that hears it."""
    note(message)
    while not (directory() / "die").exists():
        threading.Event().wait(0.01)
    if first_to("died"):
        os.kill(os.getpid(), signal.SIGKILL)


def die(_message: rowq.Message) -> None:
    """Kill the own process at every message."""
    os.kill(os.getpid(), signal.SIGKILL)


def interrupt(_message: rowq.Message) -> None:
    """End the worker, as nothing else that a handler raises does."""
    raise KeyboardInterrupt("enough")


def fail_once(message: rowq.Message) -> None:
    """Fail at the first message that any process gets."""
    if first_to("failed"):
        raise ValueError("a fault of the handler's")
    note(message)


def terminate_a_fork(message: rowq.Message) -> None:
    """Fork a process that sleeps, terminate it, and write down the message when that ends it."""
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
    """Yield, and so do nothing when called."""
    yield message.message_id


def insert(message: rowq.Message, connection: Any) -> None:
    """Write the message into the table `effect` through the worker's transaction."""
    dialect_of(connection).execute(
        connection,
        "insert into effect (queue_name, place) values (%s, %s)",
        [message.data["queue_name"], message.data["number"]],
    )


def insert_and_die_once(message: rowq.Message, connection: Any) -> None:
    """Write it, then kill the own process at the third message that any process gets."""
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
