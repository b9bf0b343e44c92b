"""Misbehaving program that a worker of `rowq work --exec` runs in these tests.

A copy in the run's directory is run, so it uses only the standard library. The message's headers
name the deed of each delivery: {"deeds": [name, ...], "length": of the body}. Before or after the
deed it writes a line to the file `ledger`.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

LEASE_SECONDS = 2
WORKER = "ROWQ_TEST_WORKER"
"""Variable with the worker's process id."""

ROOM = Path(__file__).parent
_NO_DATA = 65
_MUCH = bytes(range(256)) * 4096
# The facts of a message are in a file; the worker's guard finds its programs by the variable with
# its name.
_FACTS = "ROWQ_MESSAGE_FILE"

Facts = dict[str, Any]
Deed = Callable[[Facts], None]


def append(name: str, number: int) -> None:
    """Append a number to a file of the run."""
    with (ROOM / name).open("ab", buffering=0) as file:
        file.write(f"{number}\n".encode())


def is_first(facts: Facts) -> bool:
    """Return whether a message does this for the first time, for deeds done only once."""
    with suppress(FileExistsError):
        (ROOM / f"done-{facts['message_id']}").touch(exist_ok=False)
        return True
    return False


def apart(*command: str) -> None:
    """Start a process that the worker does not treat as its own."""
    subprocess.Popen(command, env={"PATH": os.defpath}, start_new_session=True)


def ignore_signals() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def signal_worker(number: signal.Signals) -> None:
    worker = int(os.environ[WORKER])
    if os.getppid() == worker:
        os.kill(worker, number)


def leave_a_child(*, in_a_session: bool) -> None:
    """Leave a child that has inherited all streams, and writes to them later."""
    if os.fork() == 0:
        if in_a_session:
            os.setsid()
        ignore_signals()
        time.sleep(1)
        with suppress(OSError):
            os.write(2, b"still there\n")
        time.sleep(4)
        os._exit(1)


def fails(_facts: Facts) -> None:
    sys.exit(random.choice([1, 2, 64, 75, 126, 127, 130, 143, 255]))


def gives_up(_facts: Facts) -> None:
    sys.exit(_NO_DATA)


def raises(_facts: Facts) -> None:
    raise ValueError("\0 and \udc80")


def is_killed(_facts: Facts) -> None:
    os.kill(os.getpid(), random.choice([signal.SIGTERM, signal.SIGKILL, signal.SIGHUP]))
    time.sleep(60)


def kills_its_group(_facts: Facts) -> None:
    os.killpg(os.getpid(), signal.SIGKILL)


def says_much(_facts: Facts) -> None:
    os.write(2, _MUCH)
    sys.exit(random.choice([1, _NO_DATA]))


def prints_much(_facts: Facts) -> None:
    os.write(1, _MUCH)
    os.write(2, _MUCH)


def closes_its_streams(_facts: Facts) -> None:
    os.closerange(0, 3)


def oversleeps(_facts: Facts) -> None:
    time.sleep(1.5 * LEASE_SECONDS)


def ignores_all_signals(facts: Facts) -> None:
    ignore_signals()
    oversleeps(facts)


def leaves_a_child(_facts: Facts) -> None:
    leave_a_child(in_a_session=False)


def leaves_a_session(_facts: Facts) -> None:
    leave_a_child(in_a_session=True)


def loses_its_lease(facts: Facts) -> None:
    """Let another session release the claim, and ignore the resulting signals."""
    if is_first(facts):
        ignore_signals()
        environment = {name: value for name, value in os.environ.items() if name != _FACTS}
        release = "from tests.chaos import unruly; unruly.release()"
        command = [os.environ["ROWQ_TEST_PYTHON"], "-c", release, str(facts["claim_id"])]
        subprocess.run(command, env=environment, start_new_session=True, check=False)
        time.sleep(60)


def stops_its_worker(facts: Facts) -> None:
    """Suspend the worker until it has lost all leases."""
    if is_first(facts):
        apart("sh", "-c", f"sleep {1.5 * LEASE_SECONDS}; kill -CONT {os.environ[WORKER]}")
        signal_worker(signal.SIGSTOP)


def ends_with_its_worker(facts: Facts) -> None:
    """End together with the worker, as a service manager does."""
    if is_first(facts):
        signal_worker(signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)


def kills_its_worker(facts: Facts) -> None:
    if is_first(facts):
        signal_worker(signal.SIGKILL)
        time.sleep(60)


def is_replaced(_facts: Facts) -> None:
    """Be missing for 0.6 seconds, as in a two-step deployment."""
    with suppress(FileNotFoundError):
        Path(__file__).rename(ROOM / "next")
        apart("sh", "-c", f"sleep 0.6; mv '{ROOM}/next' '{__file__}'")


DEEDS: dict[str, Deed] = {
    deed.__name__: deed
    for deed in (
        *(fails, gives_up, raises, is_killed, kills_its_group, says_much, prints_much),
        *(closes_its_streams, oversleeps, ignores_all_signals, leaves_a_child, leaves_a_session),
        *(loses_its_lease, stops_its_worker, ends_with_its_worker, kills_its_worker, is_replaced),
    )
}
"""Deeds that a program may do at any time."""

HURTING = frozenset({"loses_its_lease", "stops_its_worker", "kills_its_worker"})
"""Deeds that also cost other messages an attempt."""


def main() -> None:
    """Handle one message."""
    append("programs", os.getpid())
    facts: Facts = json.loads(Path(os.environ[_FACTS]).read_bytes())
    headers, number = facts["headers"], facts["message_id"]
    deeds = headers["deeds"][facts["attempt"] - 1 :][:1]
    is_before = number % 2 == 0
    for deed in deeds * is_before:
        DEEDS[deed](facts)
    if "closes_its_streams" not in deeds and len(sys.stdin.buffer.read()) != headers["length"]:
        sys.exit(_NO_DATA)
    append("ledger", number)
    for deed in deeds * (not is_before):
        DEEDS[deed](facts)


if __name__ == "__main__":
    main()
