"""A worker process in another language, whose output is read while it runs."""

import contextlib
import os
import re
import signal
import subprocess
import threading
from pathlib import Path
from typing import Self

from tests.engines.base import wait_until
from tests.examples.programs import Programs

LEASE_SECONDS = 2
_TIMEOUT = 60
"""Timeout in seconds for a worker on a busy machine."""
_DONE = re.compile(r"done (\S+) (\d+) (\d+)")


class OutsideWorker:
    """A worker process, killed at the end of the block.

    done: the printed messages and attempts, in order.
    """

    def __init__(self, programs: Programs, queue_name: str, log: Path) -> None:
        self.done: list[tuple[int, int]] = []
        self._queue_name = queue_name
        self._log = log
        with log.open("a") as errors:
            self._process = subprocess.Popen(
                [*programs.worker, queue_name],
                cwd=programs.directory,
                env={
                    **os.environ,
                    **programs.environment,
                    "LEASE_SECONDS": str(LEASE_SECONDS),
                },
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._end()

    def wait_until_done(self, count: int) -> None:
        """Wait until it has completed `count` messages."""

        def is_enough() -> bool:
            assert self._process.poll() is None, "the worker has ended"
            return len(self.done) >= count

        try:
            wait_until(is_enough, f"the worker completes {count} messages", _TIMEOUT)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self._log.read_text()}") from None

    def pause(self) -> None:
        """Suspend it."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume it."""
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill it without its child processes, which must end by themselves."""
        self._process.kill()
        self._end()

    def stop(self) -> None:
        """Terminate it, as a service manager does; it must exit with 0."""
        self._process.terminate()
        code = self._process.wait(_TIMEOUT)
        self._end()
        assert code == 0, f"exit status {code}\n{self._log.read_text()}"

    def _end(self) -> None:
        self._process.wait()
        self._reader.join(_TIMEOUT)
        assert not self._reader.is_alive(), "a child process still writes"

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                found = _DONE.fullmatch(line.rstrip()) if line.endswith("\n") else None
                if found and found[1] == self._queue_name:
                    self.done.append((int(found[2]), int(found[3])))
