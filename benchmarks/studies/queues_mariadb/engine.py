"""The kinds of scenario on MariaDB."""

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pymysql

from benchmarks.engines.mysql.lab import open_lab
from benchmarks.engines.mysql.observe import Counts, read_counts
from benchmarks.harness.load import NO_END, NO_LIMIT, Crew, Report, Task
from benchmarks.harness.measure import Figures, Mark, work_figures
from benchmarks.harness.runner import Engine
from benchmarks.harness.scenarios import SCENARIOS as POSTGRES_SCENARIOS
from benchmarks.harness.scenarios import Scenario
from benchmarks.studies.queues_mariadb.client import Client
from benchmarks.studies.queues_mariadb.systems import System, all_systems
from rowq.engines.mysql.url import connection_parameters

_PART = 20
"""The start and the end of a drain are the first and last 1/20 of its messages."""

SCENARIOS = POSTGRES_SCENARIOS.with_name("scenarios_mariadb.toml")


def drain(url: str, system: System, scenario: Scenario) -> Figures:
    """Drain a full queue, for up to the scenario's seconds."""
    with system.client(url) as control:
        control.create()
        control.fill(scenario.messages)
        control.settle()
        figures, _ = _work(control, url, system, scenario)
    return figures


def flat(url: str, system: System, scenario: Scenario, *, viewed: bool) -> dict[str, Any]:
    """Drain a full queue; viewed: with an open read view older than all its messages."""
    with system.client(url) as control, _view(url) if viewed else contextlib.nullcontext():
        control.create()
        control.fill(scenario.messages)
        control.settle()
        figures, reports = _work(control, url, system, scenario)
    passed = int(figures["messages"])
    window = max(passed // _PART, scenario.batch)
    start = _dequeue_ms(reports, 0, window)
    end = _dequeue_ms(reports, passed - window, passed)
    return figures | {
        "dequeue_ms_start": _median(start),
        "dequeue_ms_end": _median(end),
        "dequeue_ms_start_mean": round(statistics.mean(start), 4),
        "dequeue_ms_end_mean": round(statistics.mean(end), 4),
    }


def enqueue(url: str, system: System, scenario: Scenario) -> Figures:
    """Let all sessions enqueue batches for a fixed time."""
    with system.client(url) as control:
        control.create()
        figures, _ = _work(control, url, system, scenario, feed=True)
    return figures


def idle(url: str, system: System, scenario: Scenario) -> Figures:
    """Dequeue repeatedly from an empty queue."""
    with system.client(url) as control:
        control.create()
        control.settle()
        lengths = []
        before = read_counts(url)
        for _ in range(scenario.samples):
            started = time.perf_counter()
            taken = control.dequeue(scenario.batch)
            lengths.append((time.perf_counter() - started) * 1e3)
            assert not taken
        used = read_counts(url).since(before)
    return {
        "dequeue_ms": _median(lengths),
        "dequeue_ms_p95": round(statistics.quantiles(lengths, n=20)[18], 4),
        "server_cpu_us": round(used.cpu / scenario.samples * 1e6, 1),
        "redo_bytes": round(used.log_bytes / scenario.samples, 1),
    }


KINDS: dict[str, Callable[[str, System, Scenario], dict[str, Any]]] = {
    "drain": drain,
    "flat": partial(flat, viewed=True),
    "flat_free": partial(flat, viewed=False),
    "enqueue": enqueue,
    "idle": idle,
}


def _work(
    control: Client, url: str, system: System, scenario: Scenario, *, feed: bool = False
) -> tuple[Figures, list[Report]]:
    """Let the sessions work, run maintenance once a second; return figures and reports."""
    task = Task(
        open=partial(system.client, url),
        batch=scenario.batch,
        feed=feed,
        drain=not feed,
        messages=NO_LIMIT,
        seconds=scenario.seconds or NO_END,
        combined=scenario.combined,
    )
    waiting: list[int] = []
    marks: list[Counts] = []

    def before() -> None:
        waiting.append(control.waiting())
        marks.append(read_counts(url))

    began, reports = Crew([task] * scenario.sessions).work(before, control.maintain)
    used = read_counts(url).since(marks[0])
    figures = work_figures(began, Mark(0, 0, 0.0), Mark(used.log_bytes, 0, used.cpu), reports)
    figures["redo_bytes_per_message"] = figures.pop("wal_bytes_per_message")
    del figures["wal_full_page_images"]
    return figures | {
        "calls": 1 if feed else control.advance_calls() if scenario.combined else 2,
        "waiting_start": waiting[0],
        "waiting_end": control.waiting(),
        "deadlocks": used.deadlocks,
        "deadlocks_reached": sum(report.deadlocks for report in reports),
        "lock_waits": used.lock_waits,
        "lock_wait_seconds": round(used.lock_wait_seconds, 2),
    }, reports


@contextlib.contextmanager
def _view(url: str) -> Iterator[None]:
    """Hold a read view of the current tables."""
    with pymysql.connect(**connection_parameters(url)) as holder, holder.cursor() as cursor:
        cursor.execute("set transaction isolation level repeatable read")
        cursor.execute("start transaction with consistent snapshot")
        yield


def _dequeue_ms(reports: Sequence[Report], after: int, until: int) -> list[float]:
    """Return the milliseconds of the dequeues of these messages."""
    return [
        seconds * 1e3
        for report in reports
        for at, seconds in report.dequeues
        if after < at <= until
    ]


def _median(lengths: Sequence[float]) -> float:
    return round(statistics.median(lengths), 4)


MARIADB = Engine("mariadb", lambda: [*all_systems()], KINDS, lambda url, _: open_lab(url))
