"""Worker sessions, each in its own process, on numbered bodies of equal length."""

import multiprocessing
import resource
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from benchmarks.harness.team import Gate, Team

BODY_BYTES = 200

_HEAD, _MIDDLE, _TAIL = '{"n":"', '","pad":"', '"}'
_PAD = "x" * (BODY_BYTES - 10 - len(_HEAD + _MIDDLE + _TAIL))
BODY_SQL = f"'{_HEAD}' || lpad(g::text, 10, '0') || '{_MIDDLE}{_PAD}{_TAIL}'"

WARM_UP = 5
NO_END = 3600.0
NO_LIMIT = 10**12
"""Values of a task's `seconds` and `messages` that no run reaches."""

_EMPTY_ENOUGH = 3


def body(number: int) -> bytes:
    """Return a message's text, a JSON object of exactly BODY_BYTES characters."""
    return f"{_HEAD}{number:010}{_MIDDLE}{_PAD}{_TAIL}".encode()


class Worker(Protocol):
    """A session's client of one system; complete takes the result of dequeue."""

    @property
    def server_cpu(self) -> float:
        """CPU seconds of the server for this client; 0 if unknown."""

    @property
    def deadlocks(self) -> int:
        """The number of statements retried after a deadlock or lock timeout."""

    def enqueue(self, body: bytes) -> None:
        """Add one message."""

    def enqueue_batch(self, count: int) -> None:
        """Add several messages in one call."""

    def dequeue(self, batch: int) -> Any:
        """Dequeue up to batch messages."""

    def complete(self, taken: Any) -> int:
        """Complete dequeued messages; return their number."""

    def advance(self, batch: int) -> int:
        """Complete the messages of the last advance, and dequeue the next; return the completed.

        In one call, if the system has one.
        """


@dataclass(frozen=True, slots=True)
class Task:
    """The work of each session.

    open: returns a context manager with the session's client; must be picklable.
    batch: messages per dequeue. feed: whether each loop first enqueues a batch.
    drain: whether each loop dequeues; if not, it only enqueues.
    combined: whether each loop completes the last batch with the dequeue of the next.
    messages: stop after this many messages in all sessions. seconds: stop after this time.
    """

    open: Callable[[], AbstractContextManager[Worker]]
    batch: int
    feed: bool
    messages: int
    seconds: float
    drain: bool = True
    combined: bool = False


@dataclass(slots=True)
class Report:
    """The work of one session.

    ended: end by the monotonic clock. server_cpu, client_cpu: seconds.
    deadlocks: statements retried after a deadlock or lock timeout.
    loops: seconds of each loop. dequeues: total messages handled after each one, and its seconds.
    """

    messages: int = 0
    ended: float = 0
    server_cpu: float = 0
    client_cpu: float = 0
    deadlocks: int = 0
    loops: list[float] = field(default_factory=list)
    dequeues: list[tuple[int, float]] = field(default_factory=list)


class Crew:
    """The sessions of one run, started together; tasks: one per session."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._passed = multiprocessing.get_context("spawn").Value("q", 0)
        self._team = Team(
            [partial(_session, number, task, self._passed) for number, task in enumerate(tasks)]
        )

    @property
    def passed(self) -> int:
        """The number of messages handled since the start."""
        return int(self._passed.value)

    def work(
        self, before: Callable[[], object], tick: Callable[[], object], every: float = 1
    ) -> tuple[float, list[Report]]:
        """Warm up and run all sessions; return the start time and their reports.

        before: called after the warm-up. tick: called every `every` seconds. Raises TeamError.
        """
        return self._team.run(before, tick, every)


def _session(number: int, task: Task, passed: Any, gate: Gate) -> Report:
    with task.open() as client:
        for _ in range(WARM_UP):
            _loop(client, task, number)
        gate.wait()
        return _work(client, task, number, passed)


def _work(client: Worker, task: Task, number: int, passed: Any) -> Report:
    report = Report()
    server, own, deadlocks = client.server_cpu, _own_cpu(), client.deadlocks
    end = time.monotonic() + task.seconds
    empty = 0
    while empty < _EMPTY_ENOUGH and passed.value < task.messages and time.monotonic() < end:
        started = time.monotonic()
        count, seconds = _loop(client, task, number)
        if count == 0:
            empty += 1
            continue
        empty = 0
        with passed.get_lock():
            passed.value += count
            so_far = passed.value
        report.ended = time.monotonic()
        report.loops.append(report.ended - started)
        report.dequeues.append((so_far, seconds))
        report.messages += count
    report.server_cpu = client.server_cpu - server
    report.client_cpu = _own_cpu() - own
    report.deadlocks = client.deadlocks - deadlocks
    return report


def _loop(client: Worker, task: Task, number: int) -> tuple[int, float]:
    """Enqueue if feeding, dequeue, complete; return the messages and the dequeue's seconds."""
    if task.feed and task.batch == 1:
        client.enqueue(body(number))
    elif task.feed:
        client.enqueue_batch(task.batch)
    if not task.drain:
        return task.batch, 0.0
    started = time.perf_counter()
    if task.combined:
        return client.advance(task.batch), time.perf_counter() - started
    taken = client.dequeue(task.batch)
    seconds = time.perf_counter() - started
    return client.complete(taken), seconds


def _own_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def once_a_second(act: Callable[[], object], *, at_once: bool) -> Callable[[], None]:
    """Return a function that calls `act` at most once a second.

    at_once: whether the first call acts; otherwise the first second starts now.
    """
    last = -1.0 if at_once else time.monotonic()

    def maybe() -> None:
        nonlocal last
        if time.monotonic() - last >= 1:
            act()
            last = time.monotonic()

    return maybe
