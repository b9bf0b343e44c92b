"""A peer's program as a process: the harness' side of the protocol."""

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.host import Closing, children_of, cpu_seconds
from benchmarks.studies.peers.peer import Peer

ROOT = Path(__file__).resolve().parents[3]
_PATIENCE = 60.0
_ENDING = 20.0


class ProgramError(RuntimeError):
    """A program failed or broke the protocol."""


class Program(Closing):
    """One process of a peer, started at once; killed on exit if it still runs."""

    def __init__(self, peer: Peer, role: str, config: dict[str, Any]) -> None:
        self.name = f"{peer.name} {role}"
        self.handled, self.handled_at = 0, 0.0
        self.result: dict[str, Any] | None = None
        self.cpu = 0.0
        self._cpu_at_go = 0.0
        self._ready = threading.Event()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close
        self._process = subprocess.Popen(
            [*peer.program, role],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            encoding="utf-8",
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._send({"role": role} | config)

    def close(self) -> None:
        """Kill the process if it still runs."""
        if self._process.returncode is None:
            # Not Popen.kill, which reaps an ended process and loses its CPU time.
            os.kill(self._process.pid, signal.SIGKILL)
            self._wait()
        self._errors.close()

    def wait_ready(self) -> None:
        """Wait until the program is ready."""
        end = time.monotonic() + _PATIENCE
        while not self._ready.wait(0.05):
            if not self._reader.is_alive() or time.monotonic() > end:
                raise self._failure("did not get ready")

    def go(self) -> None:
        """Order it to start; its CPU time counts from here."""
        self._cpu_at_go = _tree_cpu(self._process.pid)
        self._send({"go": True})

    def cpu_so_far(self) -> float:
        """Return the CPU seconds since go of a running program."""
        return _tree_cpu(self._process.pid) - self._cpu_at_go

    @property
    def ended(self) -> bool:
        """Whether its output has ended."""
        return not self._reader.is_alive()

    def mark(self) -> None:
        """Order it to discard the latencies so far."""
        self._send({"mark": True})

    def stop(self) -> None:
        """Order it to stop, and return at once."""
        with contextlib.suppress(BrokenPipeError):
            self._send({"stop": True})

    def finish(self, at_work: float = 0.0) -> dict[str, Any]:
        """Wait for the result and the end of the process; set `cpu`, the seconds since go.

        at_work: seconds that it may work before it stops.
        """
        self._reader.join(_PATIENCE if self.name.endswith("prepare") else at_work + _ENDING)
        if self._reader.is_alive():
            raise self._failure("did not end")
        self._wait()
        if self.result is None or self._process.returncode != 0:
            raise self._failure(f"ended with status {self._process.returncode}")
        return self.result

    def _wait(self) -> None:
        """Reap the process, which makes its and its children's CPU time known."""
        _, status, used = os.wait4(self._process.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        self.cpu = used.ru_utime + used.ru_stime - self._cpu_at_go
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def _send(self, line: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(line) + "\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for text in self._process.stdout:
            line = json.loads(text)
            if "ready" in line:
                self._ready.set()
            elif "handled" in line:
                self.handled, self.handled_at = int(line["handled"]), time.time()
            else:
                self.result = line

    def _failure(self, what: str) -> ProgramError:
        self._errors.seek(0)
        text = self._errors.read().decode(errors="replace").strip()[-2000:]
        return ProgramError(f"{self.name} {what}: {text or 'no error output'}")


def run_program(peer: Peer, role: str, config: dict[str, Any]) -> dict[str, Any]:
    """Run a program without further orders, and return its result."""
    with Program(peer, role, config) as program:
        return program.finish()


def start_together(programs: Sequence[Program]) -> None:
    """Wait until all programs are ready, then start them."""
    for program in programs:
        program.wait_ready()
    for program in programs:
        program.go()


def _tree_cpu(pid: int) -> float:
    """Return the CPU seconds of a process and its live children."""
    return cpu_seconds(pid) + sum(map(_tree_cpu, children_of(pid)))
