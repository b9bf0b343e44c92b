"""Runs programs for a worker, and ends them with their message's lease or with the worker.

A program is the leader of a session, so of a process group, of its own: Ctrl-C in the terminal
stops the worker, which lets the program finish, and a signal to the group reaches what the program
has started.
"""

import os
import secrets
import select
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from rowq.worker.context import log

_GRACE_SECONDS = 5.0
_LOOK_SECONDS = 0.2

# $1 is the grace in seconds, and the files' paths begin with $2. Every line that is read names the
# groups that run now; after the last line, the process that wrote them is gone. It may have started
# another program just before: on Linux that is found by its environment, which names its file.
_GUARD = """
trap '' HUP INT TERM
grace=$1
files=$2
groups=
signal_all() {
    for group in $groups; do kill -s "$1" -- "-$group"; done
    for file in "$files"*; do
        for process in $(grep -lsF "=$file" /proc/[0-9]*/environ | cut -d / -f 3); do
            kill -s "$1" -- "-$process" "$process"
        done
    done
}
while read -r line; do groups=$line; done
set -- "$files"*
if [ -n "$groups" ] || [ -e "$1" ]; then
    signal_all TERM
    sleep "$grace"
    signal_all KILL
fi
rm -f -- "$files"*
"""


class Programs:
    """Programs that run now. While it is entered, a guard watches over this process.

    The guard is a shell that is told which groups run. When this process is gone, were it by
    SIGKILL, the guard ends what still runs: by SIGTERM, and after a grace by SIGKILL. It also
    removes the files of `new_file`. A program's environment should name its file.
    """

    def __init__(self, grace_seconds: float = _GRACE_SECONDS) -> None:
        """Give a program `grace_seconds` to end before it is killed."""
        self._grace_seconds = grace_seconds
        self._prefix = f"rowq-{secrets.token_hex(8)}-"
        self._groups: set[int] = set()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        """Start the guard; raises OSError."""
        self._guard = self._start_guard()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Let the guard do its work, and wait for its end."""
        self._guard.communicate()

    @contextmanager
    def new_file(self, content: bytes) -> Iterator[Path]:
        """Keep a file that only this user can read for the length of a block; raises OSError."""
        descriptor, name = tempfile.mkstemp(prefix=self._prefix)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            yield Path(name)
        finally:
            with suppress(OSError):
                Path(name).unlink()

    def start(
        self,
        arguments: Sequence[str],
        environment: Mapping[bytes, bytes],
        standard_input: BinaryIO,
        standard_error: BinaryIO,
    ) -> subprocess.Popen[bytes]:
        """Start a program, which must be waited for; raises OSError when it cannot be."""
        program = subprocess.Popen(
            arguments,
            stdin=standard_input,
            stderr=standard_error,
            env=environment,
            start_new_session=True,
        )
        with self._lock:
            self._groups.add(program.pid)
            self._name_groups_to_guard()
        return program

    def wait(self, program: "subprocess.Popen[bytes]", is_lost: Callable[[], bool]) -> int:
        """Return a program's exit status, negative for a signal.

        As soon as `is_lost`, the program is ended, and all of its group with it.
        """
        while not _ends(program, _LOOK_SECONDS):
            if is_lost():
                self._end(program)
        with self._lock:
            self._groups.remove(program.pid)
            self._name_groups_to_guard()
        return program.wait()

    def _end(self, program: "subprocess.Popen[bytes]") -> None:
        _signal_group(program.pid, signal.SIGTERM)
        _ends(program, self._grace_seconds)
        _signal_group(program.pid, signal.SIGKILL)

    def _name_groups_to_guard(self) -> None:
        """Tell the guard all groups that run; start another guard where it was killed."""
        line = b" ".join(b"%d" % group for group in self._groups) + b"\n"
        try:
            _write(self._guard, line)
        except OSError:
            try:
                self._guard.communicate()
                self._guard = self._start_guard()
                _write(self._guard, line)
            except OSError as error:
                log.warning("no guard watches over the programs: %s", error)

    def _start_guard(self) -> "subprocess.Popen[bytes]":
        facts = (f"{self._grace_seconds:g}", str(Path(tempfile.gettempdir()) / self._prefix))
        return subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "rowq-guard", *facts],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={"PATH": os.defpath},
            start_new_session=True,
        )


def _write(guard: "subprocess.Popen[bytes]", line: bytes) -> None:
    if guard.stdin is not None:
        guard.stdin.write(line)


def _ends(program: "subprocess.Popen[bytes]", seconds: float) -> bool:
    """Whether a program ends within so many seconds."""
    try:
        descriptor = os.pidfd_open(program.pid)
    except (AttributeError, OSError):
        # Only Linux has pidfd_open; elsewhere the end is noticed a twentieth of a second late.
        with suppress(subprocess.TimeoutExpired):
            program.wait(seconds)
        return program.returncode is not None
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(seconds * 1000))
    finally:
        os.close(descriptor)


def _signal_group(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
