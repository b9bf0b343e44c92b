"""Programs that a worker runs, each in its own session.

So Ctrl-C stops only the worker, which lets the program finish, and a signal to the process group
also reaches the program's children.
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
_POLL_SECONDS = 0.2

# $1 is the grace in seconds, $2 the prefix of the files' paths. Each line lists the groups that run
# now. End of input means that the worker is gone. If it has just started another program, Linux
# finds it by its environment, which names its file.
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
    """Running programs, and a guard process that ends them if this process dies.

    The guard is a shell that reads the running groups. When this process is gone, even by SIGKILL,
    it sends SIGTERM, after a grace period SIGKILL, and removes the files of `new_file`. A program's
    environment should name its file.
    """

    def __init__(self, grace_seconds: float = _GRACE_SECONDS) -> None:
        """Set the time between SIGTERM and SIGKILL."""
        self._grace_seconds = grace_seconds
        self._prefix = f"rowq-{secrets.token_hex(8)}-"
        self._groups: set[int] = set()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        """Start the guard; raise OSError."""
        self._guard = self._start_guard()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Wait until the guard has ended the programs."""
        self._guard.communicate()

    @contextmanager
    def new_file(self, content: bytes) -> Iterator[Path]:
        """Create a temporary file that only this user can read; raise OSError."""
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
        """Start a program; the caller must wait for it. Raise OSError."""
        program = subprocess.Popen(
            arguments,
            stdin=standard_input,
            stderr=standard_error,
            env=environment,
            start_new_session=True,
        )
        with self._lock:
            self._groups.add(program.pid)
            self._update_guard()
        return program

    def wait(self, program: "subprocess.Popen[bytes]", is_lost: Callable[[], bool]) -> int:
        """Return a program's exit status, negative for a signal; end its group once `is_lost`."""
        while not _ends(program, _POLL_SECONDS):
            if is_lost():
                self._end(program)
        with self._lock:
            self._groups.remove(program.pid)
            self._update_guard()
        return program.wait()

    def _end(self, program: "subprocess.Popen[bytes]") -> None:
        _signal_group(program.pid, signal.SIGTERM)
        _ends(program, self._grace_seconds)
        _signal_group(program.pid, signal.SIGKILL)

    def _update_guard(self) -> None:
        """Send all running groups to the guard; start another guard if it was killed."""
        line = b" ".join(b"%d" % group for group in self._groups) + b"\n"
        try:
            _write(self._guard, line)
        except OSError:
            try:
                self._guard.communicate()
                self._guard = self._start_guard()
                _write(self._guard, line)
            except OSError as error:
                log.warning("cannot guard the programs: %s", error)

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
    """Return whether a program ends within `seconds`."""
    try:
        descriptor = os.pidfd_open(program.pid)
    except (AttributeError, OSError):
        # Without pidfd_open, which only Linux has, the end is detected up to 50 ms late.
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
