"""The kinds of scenario on PostgreSQL."""

import contextlib
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import psycopg

from benchmarks.engines.postgres.lab import SETTINGS, open_lab
from benchmarks.harness.load import NO_END, NO_LIMIT, Crew, Report, Task, once_a_second
from benchmarks.harness.measure import Figures, Mark, work_figures
from benchmarks.harness.runner import Engine
from benchmarks.harness.scenarios import Scenario
from benchmarks.studies.queues.client import Client
from benchmarks.studies.queues.systems import System, bare, rowq

QUEUE = "bench"
_TOMORROW = 86400
_SAMPLE_SECONDS = 0.1
_BUFFERS_EACH = 3

Sample = tuple[int, int]
"""Messages handled so far, and buffers of a dequeue."""


def drain(url: str, system: System, scenario: Scenario) -> dict[str, Any]:
    """Empty a full queue; the clock runs from the first dequeue to the last complete."""
    with Client(url, system.statements, QUEUE, durable=False) as control:
        control.create()
        before = _mark(control)
        control.fill(scenario.messages)
        filled = _mark(control)
        control.connection.execute("vacuum (analyze)")
        task = _task(url, system, scenario, feed=False, seconds=NO_END)
        figures = _run(control, task, scenario.sessions)
    written = filled.wal_bytes - before.wal_bytes
    return figures | {"fill_wal_bytes_per_message": round(written / scenario.messages, 1)}


def one_by_one(url: str, system: System, scenario: Scenario) -> dict[str, Any]:
    """Let each session enqueue, dequeue and complete one message at a time."""
    with Client(url, system.statements, QUEUE, durable=False) as control:
        control.create()
        control.fill(scenario.preload)
        task = _task(url, system, scenario, feed=True, seconds=scenario.seconds)
        return dict(_run(control, task, scenario.sessions))


def snapshot(url: str, system: System, scenario: Scenario) -> dict[str, Any]:
    """Handle messages, first without and then with an open snapshot that prevents all cleanup.

    The session that counts buffers has planned its statements while the tables were empty.
    """
    batch = scenario.batch
    seconds = NO_END if system.name == "rowq" else scenario.seconds
    with (
        Client(url, system.statements, QUEUE, durable=False) as control,
        psycopg.connect(url) as holder,
    ):
        control.create()
        control.complete(control.dequeue(batch))
        control.fill(scenario.preload)
        held = _task(url, system, scenario, feed=True, seconds=seconds)
        calm = replace(held, messages=NO_LIMIT, seconds=scenario.calm)
        free_reports, free_samples = _watch(control, calm, scenario.sessions)
        holder.execute("set transaction isolation level repeatable read")
        holder.execute("select 1")
        began = time.monotonic()
        reports, samples = _watch(control, held, scenario.sessions)
    passed = samples[-1][0]
    late = [buffers for at, buffers in samples if at > 0.8 * passed]
    window = max(passed // 50, 20 * batch)
    return {
        "messages": passed,
        "seconds": round(max(report.ended for report in reports) - began, 3),
        "buffers_start": round(statistics.mean(buffers for _, buffers in free_samples), 1),
        "buffers_end": round(statistics.mean(late), 1),
        "buffers_end_greatest": max(late),
        "dequeue_ms_start": _dequeue_ms(free_reports, 0),
        "dequeue_ms_end": _dequeue_ms(reports, passed - window),
    }


def _watch(control: Client, task: Task, sessions: int) -> tuple[list[Report], list[Sample]]:
    """Let sessions work, run maintenance, and sample the buffers of a dequeue."""
    samples: list[Sample] = []
    crew = Crew([task] * sessions)
    maintain = once_a_second(control.maintain, at_once=True)

    def tick() -> None:
        maintain()
        samples.append((crew.passed, control.buffers(task.batch)))

    _, reports = crew.work(lambda: None, tick, _SAMPLE_SECONDS)
    tick()
    return reports, samples


def depth(url: str, system: System, scenario: Scenario) -> dict[str, Any]:
    """Dequeue in turn from a small queue, one with delayed messages, and one with a backlog.

    Each queue has a session that was opened while it was empty. Each turn dequeues and completes a
    batch and adds as many messages, so that the depth stays constant.
    """
    names = ["small"] if system.name == "bare" else ["small", "delayed", "backlog"]
    figures: dict[str, Any] = {}
    with contextlib.ExitStack() as stack:
        clients = {
            name: stack.enter_context(Client(url, system.statements, name, durable=False))
            for name in names
        }
        for client in clients.values():
            client.create()
            client.complete(client.dequeue(1))
        for name, client in clients.items():
            if name == "delayed":
                client.fill(scenario.delayed, delay=_TOMORROW)
            client.fill(scenario.messages if name == "backlog" else scenario.preload)
        clients["small"].connection.execute("vacuum (analyze)")
        for batch in scenario.batches:
            figures |= _depth_figures(clients, batch, scenario.samples)
    return figures


def _depth_figures(clients: dict[str, Client], batch: int, samples: int) -> Figures:
    """Return the median milliseconds and the mean buffers of a dequeue from each queue."""
    lengths: dict[str, list[float]] = {name: [] for name in clients}
    buffers: dict[str, list[int]] = {name: [] for name in clients}
    maintenance = [once_a_second(client.maintain, at_once=True) for client in clients.values()]
    for turn in range(samples):
        for maintain in maintenance:
            maintain()
        for name, client in clients.items():
            lengths[name].append(_replace(client, batch))
            if turn % _BUFFERS_EACH == 0:
                buffers[name].append(client.buffers(batch))
    figures = {}
    for name in clients:
        figures[f"{name}_{batch}_buffers"] = round(statistics.mean(buffers[name]), 1)
        figures[f"{name}_{batch}_ms"] = round(statistics.median(lengths[name]) * 1e3, 4)
    return figures


KINDS: dict[str, Callable[[str, System, Scenario], dict[str, Any]]] = {
    "drain": drain,
    "one_by_one": one_by_one,
    "snapshot": snapshot,
    "depth": depth,
}


def _task(url: str, system: System, scenario: Scenario, *, feed: bool, seconds: float) -> Task:
    return Task(
        open=partial(Client, url, system.statements, QUEUE, durable=scenario.durable),
        batch=scenario.batch,
        feed=feed,
        messages=scenario.messages or NO_LIMIT,
        seconds=seconds,
    )


def _run(control: Client, task: Task, sessions: int) -> Figures:
    """Let the sessions work, run maintenance once a second, and return the figures."""
    marks: list[Mark] = []
    crew = Crew([task] * sessions)
    began, reports = crew.work(lambda: marks.append(_mark(control)), control.maintain)
    return work_figures(began, marks[0], _mark(control), reports)


def _dequeue_ms(reports: Sequence[Report], after: int) -> float:
    """Return the median milliseconds of the dequeues after the first `after` messages."""
    chosen = [seconds for report in reports for at, seconds in report.dequeues if at > after]
    return round(statistics.median(chosen) * 1e3, 4)


def _replace(client: Client, batch: int) -> float:
    """Dequeue and complete a batch, add as many messages; return the dequeue's seconds."""
    started = time.perf_counter()
    taken = client.dequeue(batch)
    length = time.perf_counter() - started
    client.fill(client.complete(taken))
    return length


def _mark(control: Client) -> Mark:
    """Read the server's counters."""
    row = control.connection.execute(
        "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint, wal_fpi"
        " from pg_stat_wal"
    ).fetchone()
    assert row is not None
    return Mark(row[0], row[1], control.server_cpu)


POSTGRES = Engine(
    "postgres",
    lambda: [rowq(), bare()],
    KINDS,
    lambda url, home: open_lab(url, home, SETTINGS),
)
