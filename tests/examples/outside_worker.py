"""A worker in another language: a process whose lines are read while it works."""

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
_PATIENCE = 60
"""The seconds that a worker may take for what it does, on a machine that is busy with much else."""
_DONE = re.compile(r"done (\S+) (\d+) (\d+)")


class OutsideWorker:
    """A worker process; it is killed at the end of the block unless it has ended before.

    done: the messages that it says it has completed, each with the attempt, in their order.
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
        self.kill()

    def wait_until_done(self, count: int) -> None:
        """Wait until it has completed so many messages."""
        wait_until(
            lambda: len(self.done) >= count or self._process.poll() is not None,
            f"the worker completes {count} messages\n{self._log.read_text()}",
            _PATIENCE,
        )
        assert self._process.poll() is None, f"the worker has ended\n{self._log.read_text()}"

    def pause(self) -> None:
        """Stop it in the middle of what it does."""
        os.killpg(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        os.killpg(self._process.pid, signal.SIGCONT)

    def kill(self) -> None:
        """Kill it, and what it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._end()

    def stop(self) -> None:
        """Tell it to end, as a service manager does; it must end well."""
        self._process.terminate()
        try:
            code = self._process.wait(_PATIENCE)
        finally:
            self.kill()
        assert code == 0, f"exit status {code}\n{self._log.read_text()}"

    def _end(self) -> None:
        self._process.wait()
        self._reader.join()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            found = _DONE.fullmatch(line.rstrip()) if line.endswith("\n") else None
            if found and found[1] == self._queue_name:
                self.done.append((int(found[2]), int(found[3])))
