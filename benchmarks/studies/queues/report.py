"""Writes RESULTS.md from the results and nothing else."""

from typing import Any

from benchmarks.harness.report import (
    facts,
    figures_row,
    figures_table,
    generated_from,
    notes,
    picture,
    setting,
    systems_table,
    table,
    target_row,
)
from benchmarks.harness.results import Results
from benchmarks.studies.queues.plots import RATES, plots
from benchmarks.studies.queues.targets import check_targets

_WORK_COLUMNS = {
    "messages_per_second": "messages/s",
    "wal_bytes_per_message": "WAL bytes / message",
    "server_cpu_us_per_message": "server CPU µs / message",
    "client_cpu_us_per_message": "client CPU µs / message",
    "loop_ms_p50": "loop p50 ms",
    "loop_ms_p95": "p95 ms",
    "loop_ms_p99": "p99 ms",
}
_SNAPSHOT_COLUMNS = {
    "messages": "messages passed",
    "seconds": "seconds",
    "buffers_start": "buffers / dequeue, start",
    "buffers_end": "end",
    "dequeue_ms_start": "ms / dequeue, start",
    "dequeue_ms_end": "end",
}


def render(data: dict[str, Any]) -> str:
    """Return the whole report."""
    results = Results(data)
    parts = [
        generated_from("results/postgres.json"),
        "# Results",
        "Made by `make bench` from [results/postgres.json](results/postgres.json)."
        " What is measured and what is not: [README.md](README.md).",
        *notes(data, *_missing(data)),
        "## Ratios and targets",
        "Median over the rounds, with the least and the greatest in brackets.",
        table(["", "target", "rowq", "", "pgmq"], map(target_row, check_targets(results))),
        *(picture(name) for name in plots(data) if name == RATES),
        *(part for name in results.scenarios for part in _scenario(results, name)),
        "## Machine, server, systems",
        facts(data, "PostgreSQL", "prepared statements by psycopg's libpq calls"),
        systems_table(data),
    ]
    return "\n\n".join(parts) + "\n"


def _missing(data: dict[str, Any]) -> list[str]:
    if "pgmq" in {system["name"] for system in data["systems"]}:
        return []
    return ["pgmq was not at hand: no figure against it could be measured."]


def _scenario(results: Results, name: str) -> list[str]:
    scenario = results.scenarios[name]
    head = f"## {scenario['title']}"
    said = setting(scenario) + _durability(scenario)
    if scenario["kind"] == "depth":
        return [head, said, _depth_table(results, name)]
    columns = _SNAPSHOT_COLUMNS if scenario["kind"] == "snapshot" else _WORK_COLUMNS
    parts = [head, said, figures_table(results, name, columns)]
    if scenario["kind"] == "snapshot":
        parts.append(picture(name))
    return parts


def _durability(scenario: dict[str, Any]) -> str:
    return f"; synchronous_commit {'on' if scenario['durable'] else 'off'}."


def _depth_table(results: Results, name: str) -> str:
    rows = []
    for batch in results.scenarios[name]["batches"]:
        columns = {
            f"{queue}_{batch}_{unit}": queue
            for unit in ("buffers", "ms")
            for queue in ("small", "delayed", "backlog")
        }
        for system in results.systems(name):
            _, *figures = figures_row(results, name, system, columns)
            rows.append([system, str(batch), *figures])
    head = ["", "batch", "buffers, small", "delayed", "backlog", "ms, small", "delayed", "backlog"]
    return table(head, rows)
