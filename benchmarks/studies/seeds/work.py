"""Lets sessions work on one form: how fast, at what cost, who waited, what ran twice."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from benchmarks.harness.load import (
    NO_END,
    NO_LIMIT,
    WARM_UP,
    Crew,
    Report,
    Task,
)
from benchmarks.harness.measure import Figures, Mark, work_figures
from benchmarks.harness.observe import Counts, Observer
from benchmarks.harness.pace import once_a_second
from benchmarks.harness.scenarios import Scenario
from benchmarks.studies.seeds.base import Form
from benchmarks.studies.seeds.bodies import Bodies
from benchmarks.studies.seeds.client import SqlClient
from benchmarks.studies.seeds.dialects import Dialect

_LOOK_SECONDS = 0.02


def fill(client: SqlClient, scenario: Scenario) -> None:
    """Create the queue, put the scenario's messages in, and settle."""
    client.create()
    client.fill(scenario.messages)
    client.settle()


def work(
    dialect: Dialect,
    url: str,
    form: Form,
    scenario: Scenario,
    control: SqlClient,
    *,
    tasks: Sequence[Task] | None = None,
) -> dict[str, Any]:
    """Let the sessions take and the producers add, for the scenario's seconds or until it is empty.

    control: a client for the housekeeping. tasks: other work than that, one for each session.
    """
    crew = Crew(tasks or _tasks(url, form, scenario))
    marks: list[Counts] = []
    with dialect.observe(url) as observer:
        keep_house = once_a_second(control.maintain, at_once=False)

        def tick() -> None:
            observer.look()
            keep_house()

        cpu = control.server_cpu
        began, reports = crew.work(lambda: marks.append(observer.counts()), tick, _LOOK_SECONDS)
        observer.settle()
        used = observer.counts().since(marks[0])
    return figures_of(began, replace(used, cpu=used.cpu + control.server_cpu - cpu), reports)


def figures_of(began: float, used: Counts, reports: Sequence[Report]) -> Figures:
    """Return the figures of a run from what its sessions and the server tell."""
    workers = [report for report in reports if report.drains]
    producers = [report for report in reports if not report.drains]
    cpu = used.cpu + sum(report.server_cpu for report in producers)
    figures: Figures = {"messages": 0, "messages_per_second": 0.0}
    # A form whose sessions got next to nothing has no costs of a message.
    if sum(len(report.loops) for report in workers) > 1:
        figures = work_figures(began, Mark(0, 0, 0.0), Mark(used.log_bytes, 0, cpu), workers)
        figures["log_bytes_per_message"] = figures.pop("wal_bytes_per_message")
        figures["commits_per_message"] = round(used.commits / figures["messages"], 3)
        del figures["wal_full_page_images"]
    handled = Counter(id_ for report in workers for id_ in report.handled)
    if producers:
        seconds = max(report.ended for report in producers) - began
        added = sum(report.messages for report in producers)
        figures["enqueued_per_second"] = round(added / seconds, 1)
    once = len(handled) / sum(handled.values()) if handled else 1.0
    return figures | {
        "different_per_second": round(figures["messages_per_second"] * once, 1),
        "empty_dequeues": sum(report.empty for report in workers),
        "deadlocks": used.deadlocks,
        "deadlocks_reached": sum(report.deadlocks for report in reports),
        "lock_waits": used.lock_waits,
        "lock_wait_seconds": round(used.lock_wait_seconds, 2),
        "handled": len(handled),
        "double_runs": sum(handled.values()) - len(handled),
    }


def rows_locked(client: SqlClient, observer: Observer, batch: int) -> int:
    """Return how many rows a dequeue in an open transaction locks."""
    client.session.run("begin")
    try:
        client.dequeue_held(batch)
        return observer.rows_locked(client.session)
    finally:
        client.session.run("rollback")


def _tasks(url: str, form: Form, scenario: Scenario) -> list[Task]:
    warm_up = WARM_UP * scenario.batch * scenario.sessions
    worker = Task(
        open=partial(form.open_client, url, scenario.body_bytes),
        batch=scenario.batch,
        feed=False,
        messages=NO_LIMIT if scenario.producers else scenario.messages - warm_up,
        seconds=scenario.seconds or NO_END,
        body=Bodies(scenario.body_bytes),
        patient=True,
    )
    producer = Task(
        open=worker.open,
        batch=1,
        feed=True,
        drain=False,
        messages=NO_LIMIT,
        seconds=worker.seconds,
        body=worker.body,
    )
    return [worker] * scenario.sessions + [producer] * scenario.producers
