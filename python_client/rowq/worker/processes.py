"""Worker processes and their parent, which restarts processes that die."""

import logging
import multiprocessing
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any, Literal

from rowq.backoff import Backoff
from rowq.errors import RowqError, WorkerFailed
from rowq.worker.context import Context, Settings, StopSignals, log
from rowq.worker.meter import Measures, WorkerStats
from rowq.worker.threads import OnProgress, WorkerThreads, described
from rowq.worker.timeouts import HandlerHung

_TICK_SECONDS = 0.2
_REPORT_SECONDS = 0.25
# The worker fails if a child dies within 5 seconds of its start, 5 times in a row.
_QUICK_SECONDS = 5.0
_QUICK_DEATHS = 5

# A child that has not reported for this long is stuck: it should report 4 times a second.
_SILENT_SECONDS = 3.0
_NOT_YET = "a process has not reported yet"

_Report = tuple[Literal["measures"], Measures] | tuple[Literal["failed", "hung"], str]
_LOGGERS = ("rowq", "rowq.worker")


class WorkerProcesses:
    """The parent of settings.processes child processes, each of which is a worker.

    It stops them through a pipe, not by a signal: a terminal or service manager already signals the
    whole group, and a second signal stops at once.
    """

    def __init__(self, settings: Settings) -> None:
        self._start = WorkerStats()
        self._stopping = False
        context = multiprocessing.get_context("spawn")
        name, first = settings.worker_name, settings.first_thread_stripe()
        self._children = [
            WorkerProcess(
                context,
                replace(
                    settings,
                    processes=0,
                    worker_name=name and f"{name}-{number + 1}",
                    first_stripe=None if first is None else first + number * settings.threads,
                ),
            )
            for number in range(settings.processes)
        ]

    def stop(self) -> None:
        """Stop every child."""
        self._stopping = True

    def kill(self) -> None:
        """Kill every child at once; their leases expire."""
        for child in self._children:
            child.kill()

    def run(self, on_progress: OnProgress | None, signals: StopSignals) -> WorkerStats:
        """Work until every child is done; raises WorkerFailed if one cannot continue."""
        try:
            for child in self._children:
                child.start()
            while not all(child.done for child in self._children):
                wait(
                    [sentinel for child in self._children for sentinel in child.sentinels],
                    _TICK_SECONDS,
                )
                if signals.asked:
                    self.stop()
                self._supervise()
                if on_progress:
                    on_progress(self.stats())
        finally:
            for child in self._children:
                child.ask_to_stop()
            for child in self._children:
                child.join()
        return self.stats()

    def stats(self) -> WorkerStats:
        """Return the counts of all children, by their last reports."""
        total = self._start
        for child in self._children:
            total = total.plus(child.stats)
        return total

    def measures(self) -> Measures:
        """Return the counts and state of all children, by their last reports."""
        total = Measures(why_not_ready="the worker is stopping" if self._stopping else "")
        for child in self._children:
            total = total.plus(child.measures)
        return total

    def _supervise(self) -> None:
        for child in self._children:
            if self._stopping:
                child.ask_to_stop()
            child.supervise(self._stopping)


class WorkerProcess:
    """One child process as seen by its parent: running, waiting for restart, or done."""

    def __init__(self, context: SpawnContext, settings: Settings) -> None:
        self._context = context
        self._settings = settings
        self._backoff = Backoff(first=0.5, cap=15.0)
        self._quick_deaths = 0
        self._restart_at = 0.0
        # Replaced together: another thread may add them up at any time, and must not count one
        # twice or not at all.
        self._measures = (Measures(), Measures(why_not_ready=_NOT_YET))
        self._reported_at = 0.0
        self._failure: str | None = None
        self._hung: str | None = None
        self._process: SpawnProcess | None = None
        self._pipe: Connection[Any, Any] | None = None
        self._is_restart = False
        self._was_asked_to_stop = False
        self.done = False

    @property
    def stats(self) -> WorkerStats:
        """Counts of this process and those that it replaced, by their last reports."""
        past, last = self._measures
        return past.stats.plus(last.stats)

    @property
    def measures(self) -> Measures:
        """Counts of this process and those that it replaced, and the state of this one."""
        past, last = self._measures
        if not last.why_not_ready and time.monotonic() > self._reported_at + _SILENT_SECONDS:
            last = replace(last, why_not_ready="a process does not report")
        return past.plus(last)

    @property
    def sentinels(self) -> list[int]:
        """The sentinel of the process, which becomes ready at its end, or an empty list."""
        return [self._process.sentinel] if self._process else []

    def start(self) -> None:
        """Start the process; raises OSError if the system refuses."""
        pipe, other_end = self._context.Pipe()
        arguments = (self._settings, LogSettings.of_this_process(), self._is_restart, other_end)
        try:
            process = self._context.Process(target=work_in_child, args=arguments)
            process.start()
        except BaseException:
            pipe.close()
            raise
        finally:
            other_end.close()
        self._pipe, self._process = pipe, process
        self._is_restart, self._was_asked_to_stop = True, False
        self._started_at = time.monotonic()

    def supervise(self, stopping: bool) -> None:
        """Read the reports of the process; if it has ended, restart it unless done.

        A restart that the system refuses is retried. Raises WorkerFailed if the process reports
        that it cannot continue, or keeps dying.
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
        """Send the process, once, the request to finish its messages and end."""
        if self._pipe is not None and not self._was_asked_to_stop:
            self._was_asked_to_stop = True
            with suppress(OSError):
                self._pipe.send("stop")

    def kill(self) -> None:
        """Kill the process; its leases expire."""
        if self._process is not None:
            self._process.kill()

    def join(self) -> None:
        """Wait for the end of the process and for its last report."""
        if self._process is not None:
            # A process waits until its reports are read.
            while self._process.is_alive():
                self._process.join(_TICK_SECONDS)
                self._read()
            self._read()

    def _restart(self) -> None:
        try:
            self.start()
        except OSError as error:
            delay = self._backoff.next()
            self._restart_at = time.monotonic() + delay
            log.warning("cannot start a worker process, retrying in %.1f s: %s", delay, error)

    def _read(self) -> None:
        with suppress(EOFError, OSError):
            while self._pipe is not None and self._pipe.poll():
                report: _Report = self._pipe.recv()
                if report[0] == "measures":
                    self._reported_at = time.monotonic()
                    self._measures = (self._measures[0], report[1])
                elif report[0] == "hung":
                    self._hung = report[1]
                else:
                    self._failure = report[1]

    def _after_end(self, status: int, stopping: bool) -> None:
        lived = time.monotonic() - self._started_at
        waiting = Measures(why_not_ready="a process has ended and will be restarted")
        self._measures = (self.measures.ended(), waiting)
        self._process = self._pipe = None
        if self._failure is not None:
            raise WorkerFailed(self._failure)
        if stopping or (status == 0 and self._settings.drain):
            self.done = True
            return
        if self._hung is not None:
            log.warning("worker process ended and is replaced: %s", self._hung)
            self._hung, self._restart_at = None, 0.0
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


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The logging settings that a child process takes over from its parent.

    is_wanted: whether the parent has set up logging. level: of the root logger, levels: of rowq's
    loggers. formatter: of the parent's first handler with one.
    """

    is_wanted: bool
    level: int
    levels: tuple[int, ...]
    formatter: logging.Formatter | None

    @classmethod
    def of_this_process(cls) -> "LogSettings":
        """Return the settings of this process."""
        root = logging.getLogger()
        formatters = [
            handler.formatter for handler in root.handlers if _can_be_sent(handler.formatter)
        ]
        return cls(
            is_wanted=bool(root.handlers),
            level=root.level,
            levels=tuple(logging.getLogger(name).level for name in _LOGGERS),
            formatter=formatters[0] if formatters else None,
        )

    def apply(self) -> None:
        """Log to standard error in the parent's format, unless a module has set up logging."""
        root = logging.getLogger()
        if not self.is_wanted or root.handlers:
            return
        handler = logging.StreamHandler()
        handler.setFormatter(self.formatter)
        root.addHandler(handler)
        root.setLevel(self.level)
        for name, level in zip(_LOGGERS, self.levels, strict=True):
            logging.getLogger(name).setLevel(level)


def _can_be_sent(formatter: logging.Formatter | None) -> bool:
    """Whether a formatter can be sent to another process."""
    try:
        pickle.dumps(formatter)
    except Exception:
        return False
    return formatter is not None


def work_in_child(
    settings: Settings,
    log_settings: LogSettings,
    is_restart: bool,
    pipe: "Connection[Any, Any]",
) -> None:
    """Run a worker in the child until a signal, the parent, or the parent's end stops it."""
    log_settings.apply()
    context = Context(settings, is_restart=is_restart)
    send_lock = threading.Lock()

    def report(kind: str, what: object) -> None:
        with send_lock, suppress(OSError):
            pipe.send((kind, what))

    def report_measures() -> None:
        report("measures", workers[0].measures() if workers else Measures(why_not_ready=_NOT_YET))

    workers: list[WorkerThreads] = []
    reporter = threading.Thread(
        target=_talk_to_parent, args=(context, pipe, report_measures), daemon=True
    )
    reporter.start()
    try:
        with StopSignals() as signals:
            workers.append(WorkerThreads(context))
            workers[0].run(None, signals)
    except RowqError as error:
        log.exception("the worker has failed")
        if isinstance(error.__cause__, HandlerHung):
            report_measures()
            report("hung", str(error))
            # The handler's thread would prevent the process from ending.
            os._exit(1)
        report("failed", described(error))
        sys.exit(1)
    finally:
        report_measures()


def _talk_to_parent(
    context: Context, pipe: "Connection[Any, Any]", report: Callable[[], None]
) -> None:
    """Report the measures until the end; stop at the parent's request or end."""
    try:
        while True:
            if pipe.poll(_REPORT_SECONDS):
                pipe.recv()
                context.stop()
            report()
    except (EOFError, OSError):
        log.warning("the parent process has ended")
        context.stop()
