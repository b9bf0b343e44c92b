"""One worker process: the parent's side of it, and what runs inside."""

import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any, Literal

from rowq.backoff import Backoff
from rowq.errors import RowqError, WorkerFailed
from rowq.worker.context import Context
from rowq.worker.log import LogSettings, log
from rowq.worker.settings import Settings
from rowq.worker.signals import StopSignals
from rowq.worker.stats import WorkerStats
from rowq.worker.team import Team, described

_REPORT_SECONDS = 0.25
# A child that dies so soon after its start, so often in a row, will not live.
_QUICK_SECONDS = 5.0
_QUICK_DEATHS = 5

_Report = tuple[Literal["stats"], WorkerStats] | tuple[Literal["failed"], str]


class Child:
    """The parent's side: a process that is running, waiting for its restart, or done."""

    def __init__(self, context: SpawnContext, settings: Settings) -> None:
        """Start nothing yet."""
        self._context = context
        self._settings = settings
        self._backoff = Backoff(first=0.5, cap=15.0)
        self._quick_deaths = 0
        self._restart_at = 0.0
        self._past = WorkerStats()
        self._stats = WorkerStats()
        self._failure: str | None = None
        self._process: SpawnProcess | None = None
        self._pipe: Connection[Any, Any] | None = None
        self._is_restart = False
        self._was_asked_to_stop = False
        self.done = False

    @property
    def stats(self) -> WorkerStats:
        """What this child and those before it have done, as far as they could tell."""
        return self._past.plus(self._stats)

    @property
    def sentinels(self) -> list[int]:
        """What becomes ready when the process ends; empty when there is none."""
        return [self._process.sentinel] if self._process else []

    def start(self) -> None:
        """Start the process; raises OSError when the system does not give one."""
        pipe, other_end = self._context.Pipe()
        given = (self._settings, LogSettings.of_this_process(), self._is_restart, other_end)
        try:
            process = self._context.Process(target=work_in_child, args=given)
            process.start()
        except BaseException:
            pipe.close()
            raise
        finally:
            other_end.close()
        self._pipe, self._process = pipe, process
        self._is_restart, self._was_asked_to_stop = True, False
        self._started_at = time.monotonic()

    def look(self, stopping: bool) -> None:
        """Read what the process reports; when it has ended, start another if there is need.

        A restart that the system does not allow is tried again. Raises WorkerFailed when the
        process says that going on makes no sense, or keeps dying.
        """
        if self._process is not None:
            ended = self._process.exitcode is not None
            self._read()
            if ended:
                self._after_end(self._process.exitcode or 0, stopping)
        elif stopping:
            self.done = True
        elif not self.done and time.monotonic() >= self._restart_at:
            self._restart()

    def ask_to_stop(self) -> None:
        """Ask the process, once, to finish its message and end."""
        if self._pipe is not None and not self._was_asked_to_stop:
            self._was_asked_to_stop = True
            with suppress(OSError):
                self._pipe.send("stop")

    def kill(self) -> None:
        """Kill the process; its claims run out."""
        if self._process is not None:
            self._process.kill()

    def join(self) -> None:
        """Wait for the end of the process and for its last report."""
        if self._process is not None:
            self._process.join()
            self._read()

    def _restart(self) -> None:
        try:
            self.start()
        except OSError as error:
            delay = self._backoff.next()
            self._restart_at = time.monotonic() + delay
            log.warning("a worker process cannot be started, again in %.1f s: %s", delay, error)

    def _read(self) -> None:
        with suppress(EOFError, OSError):
            while self._pipe is not None and self._pipe.poll():
                report: _Report = self._pipe.recv()
                if report[0] == "stats":
                    self._stats = report[1]
                else:
                    self._failure = report[1]

    def _after_end(self, status: int, stopping: bool) -> None:
        lived = time.monotonic() - self._started_at
        self._past, self._stats = self.stats, WorkerStats()
        self._process = self._pipe = None
        if self._failure is not None:
            raise WorkerFailed(self._failure)
        if stopping or (status == 0 and self._settings.drain):
            self.done = True
            return
        if lived < _QUICK_SECONDS:
            self._quick_deaths += 1
        else:
            self._quick_deaths = 0
            self._backoff.reset()
        if self._quick_deaths >= _QUICK_DEATHS:
            raise WorkerFailed(
                f"a worker process ended {self._quick_deaths} times in a row within"
                f" {_QUICK_SECONDS:g} s of its start, the last time with exit status {status}"
            )
        delay = self._backoff.next()
        self._restart_at = time.monotonic() + delay
        log.warning("a worker process ended with exit status %d, restart in %.1f s", status, delay)


def work_in_child(
    settings: Settings,
    log_settings: LogSettings,
    is_restart: bool,
    pipe: "Connection[Any, Any]",
) -> None:
    """Be a worker until stopped by a signal, by the parent, or by the parent's end."""
    log_settings.apply()
    context = Context(settings, is_patient=is_restart)
    send_lock = threading.Lock()

    def report(kind: str, what: object) -> None:
        with send_lock, suppress(OSError):
            pipe.send((kind, what))

    reporter = threading.Thread(target=_obey, args=(context, pipe, report), daemon=True)
    reporter.start()
    try:
        with StopSignals() as signals:
            Team(context).run(None, signals)
    except RowqError as error:
        log.exception("the worker gives up")
        report("failed", described(error))
        sys.exit(1)
    finally:
        report("stats", context.counter.snapshot())


def _obey(
    context: Context, pipe: "Connection[Any, Any]", report: Callable[[str, object], None]
) -> None:
    """Report the counts until the end; stop at the parent's word, or at its end."""
    try:
        while True:
            if pipe.poll(_REPORT_SECONDS):
                pipe.recv()
                context.stop()
            report("stats", context.counter.snapshot())
    except (EOFError, OSError):
        log.warning("the parent process is gone")
        context.stop()
