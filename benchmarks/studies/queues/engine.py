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
from benchmarks.harness.load import BODY_SQL, NO_END, NO_LIMIT, Crew, Report, Task, once_a_second
from benchmarks.harness.measure import Figures, Mark, work_figures
from benchmarks.harness.runner import Engine
from benchmarks.harness.scenarios import Scenario
from benchmarks.studies.queues.client import Client
from benchmarks.studies.queues.systems import System, bare, rowq

QUEUE = "bench"
_TOMORROW = 86400
_SAMPLE_SECONDS = 0.1
_BUFFERS_EACH = 3
_UNCOUNTED = 3
_DUE_SECONDS = 0.3
# Each queue has its own transaction, as if its producer had added it.
_SET_UP = """
    do $$
    begin
        for q in 0 .. {scenario.queues} - 1 loop
            perform rowq.create_queue('q' || q);
            perform rowq.enqueue_batch('q' || q, b.messages)
            from (
                select jsonb_agg(jsonb_build_object('body', {body})) as messages
                from generate_series(1, {scenario.preload}) g
            ) b
            where b.messages is not null;
            commit;
        end loop;
        for s in 1 .. {scenario.schedules} loop
            perform rowq.create_schedule(
                'q' || s % {scenario.queues}, 's' || s, p_interval_seconds => 86400,
                p_starts_at => clock_timestamp() + interval '1 day'
            );
            if s % 1000 = 0 then
                commit;
            end if;
        end loop;
    end;
    $$
"""
_WAITING = "select sum(ready)::bigint from rowq.queue_stats()"
_ADD_DUE = """
    select count(*)
    from generate_series(1, {scenario.due}) s
    cross join lateral rowq.create_schedule(
        'q' || s % {scenario.queues}, 'due {turn} ' || s, p_interval_seconds => 86400,
        p_starts_at => clock_timestamp() + interval '{seconds} seconds'
    ) c
"""

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


def feed(url: str, system: System, scenario: Scenario, *, drain: bool) -> dict[str, Any]:
    """Let each session enqueue a batch; drain: then dequeue and complete one."""
    with Client(url, system.statements, QUEUE, durable=False) as control:
        control.create()
        control.fill(scenario.preload)
        task = _task(url, system, scenario, feed=True, seconds=scenario.seconds)
        return dict(_run(control, replace(task, drain=drain), scenario.sessions))


def calls(url: str, system: System, scenario: Scenario, *, routine: str) -> dict[str, Any]:
    """Call a routine of rowq that reads all queues; the first calls do not count."""
    lengths, cpu = [], []
    with Client(url, system.statements, QUEUE, durable=False) as control:
        run = control.connection.execute
        run(_SET_UP.format(scenario=scenario, body=BODY_SQL))
        run("vacuum (analyze)")
        waiting = [run(_WAITING).fetchone()]
        for turn in range(_UNCOUNTED + scenario.samples):
            if scenario.due:
                run(_ADD_DUE.format(scenario=scenario, turn=turn, seconds=_DUE_SECONDS))
                time.sleep(_DUE_SECONDS)
            spent, started = control.server_cpu, time.perf_counter()
            (rows,) = run(f"select count(*) from rowq.{routine}()").fetchone() or (0,)
            lengths.append(time.perf_counter() - started)
            cpu.append(control.server_cpu - spent)
            time.sleep(max(scenario.every - lengths[-1], 0))
        waiting.append(run(_WAITING).fetchone())
    (before,), (after,) = (row or (0,) for row in waiting)
    return {
        "rows": rows,
        "ms": round(statistics.median(lengths[_UNCOUNTED:]) * 1e3, 2),
        "ms_worst": round(max(lengths[_UNCOUNTED:]) * 1e3, 2),
        "server_cpu_ms": round(statistics.median(cpu[_UNCOUNTED:]) * 1e3, 2),
        "server_cpu_ms_worst": round(max(cpu[_UNCOUNTED:]) * 1e3, 2),
        "waiting_start": before,
        "waiting_end": after,
    }


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
    "one_by_one": partial(feed, drain=True),
    "enqueue": partial(feed, drain=False),
    "snapshot": snapshot,
    "depth": depth,
    "maintain": partial(calls, routine="maintain"),
    "queue_stats": partial(calls, routine="queue_stats"),
}


def _task(url: str, system: System, scenario: Scenario, *, feed: bool, seconds: float) -> Task:
    return Task(
        open=partial(Client, url, system.statements, QUEUE, durable=scenario.durable),
        batch=scenario.batch,
        feed=feed,
        messages=scenario.messages or NO_LIMIT,
        seconds=seconds,
        combined=scenario.combined,
    )


def _run(control: Client, task: Task, sessions: int) -> Figures:
    """Let the sessions work, run maintenance once a second, and return the figures."""
    waiting: list[int] = []
    marks: list[Mark] = []

    def before() -> None:
        waiting.append(control.waiting())
        marks.append(_mark(control))

    began, reports = Crew([task] * sessions).work(before, control.maintain)
    return work_figures(began, marks[0], _mark(control), reports) | {
        "calls": control.calls(combined=task.combined) * task.drain + task.feed,
        "waiting_start": waiting[0],
        "waiting_end": control.waiting(),
    }


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
