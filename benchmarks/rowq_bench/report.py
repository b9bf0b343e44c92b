"""RESULTS.md, written from the results and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks.rowq_bench.measure import Spread
from benchmarks.rowq_bench.plots import RATES, plots
from benchmarks.rowq_bench.results import Results
from benchmarks.rowq_bench.targets import Target, check_targets

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
        table(
            ["system", "version", "origin"],
            ([s["name"], s["version"], s["origin"]] for s in data["systems"]),
        ),
    ]
    return "\n\n".join(parts) + "\n"


def generated_from(*sources: str) -> str:
    """Return the first line of a report, which is not shown."""
    return f"<!-- Generated from {', '.join(sources)} by make generate. Do not edit. -->"


def picture(name: str) -> str:
    """Return what shows a plot."""
    return f"![{name.replace('_', ' ')}](results/{name}.svg)"


def notes(data: dict[str, Any], *more: str) -> list[str]:
    """Return the sentences at the head of a report, as paragraphs."""
    return [f"**{note}**" for note in [data["note"], *more] if note]


def _missing(data: dict[str, Any]) -> list[str]:
    if "pgmq" in {system["name"] for system in data["systems"]}:
        return []
    return ["pgmq was not at hand: no figure against it could be measured."]


def target_row(target: Target) -> list[str]:
    """Return what, bound, found, verdict, and what the peer reached."""
    verdict = {True: "met", False: "**not met**", None: "not measured"}[target.is_met]
    bound = f"{'≥' if target.at_least else '≤'} {target.bound:g}"
    return [target.what, bound, spread_text(target.found), verdict, spread_text(target.peer)]


def _scenario(results: Results, name: str) -> list[str]:
    scenario = results.scenarios[name]
    head = f"## {scenario['title']}"
    said = setting(scenario) + _durability(scenario)
    if scenario["kind"] == "depth":
        return [head, said, _depth_table(results, name)]
    columns = _SNAPSHOT_COLUMNS if scenario["kind"] == "snapshot" else _WORK_COLUMNS
    rows = [
        [system, *(spread_text(results.figure(name, system, key)) for key in columns)]
        for system in results.systems(name)
    ]
    parts = [head, said, table(["", *columns.values()], rows)]
    if scenario["kind"] == "snapshot":
        parts.append(picture(name))
    return parts


def setting(scenario: dict[str, Any]) -> str:
    """Say what the numbers of a scenario are."""
    words = {
        "sessions": "sessions",
        "rounds": "rounds",
        "messages": "messages",
        "delayed": "delayed",
        "calm": "seconds before the snapshot",
        "seconds": "seconds at most",
        "preload": "waiting all the time",
        "samples": "samples",
    }
    said = [f"{word}: {scenario[key]:,}" for key, word in words.items() if scenario[key]]
    return ", ".join(said)


def _durability(scenario: dict[str, Any]) -> str:
    return f"; synchronous_commit {'on' if scenario['durable'] else 'off'}."


def _depth_table(results: Results, name: str) -> str:
    rows = [
        [
            system,
            str(batch),
            *(
                _figure(results, name, system, f"{queue}_{batch}_{unit}")
                for unit in ("buffers", "ms")
                for queue in ("small", "delayed", "backlog")
            ),
        ]
        for batch in results.scenarios[name]["batches"]
        for system in results.systems(name)
    ]
    head = ["", "batch", "buffers, small", "delayed", "backlog", "ms, small", "delayed", "backlog"]
    return table(head, rows)


def _figure(results: Results, name: str, system: str, key: str) -> str:
    known = all(key in figures for figures in results.rounds(name, system))
    return spread_text(results.figure(name, system, key)) if known else ""


def facts(data: dict[str, Any], product: str, client: str) -> str:
    """Return the machine and the server as a table; client: how the sessions talk to it."""
    host, server = data["host"], dict(data["server"])
    sync = host["fdatasync_us"]
    lines = {
        "made at": data["made_at"],
        "commit": data["commit"],
        "command": f"`{data['command']}`, {data['minutes']} minutes",
        "processor": f"{host['cpu']}, {host['cores']} cores",
        "memory": f"{host['memory_gib']} GiB",
        "kernel": host["kernel"],
        "disk": "not measured" if sync is None else f"8 KiB write and fdatasync {sync:g} µs",
        "load average before": f"{host['load_average']:g}",
        "client": f"Python {host['python']}, {client}",
        product: f"{server.pop('version')}, {server.pop('origin')}",
        "settings": ", ".join(f"{name} {value}" for name, value in server.items()),
    }
    return table(["", ""], ([name, str(value)] for name, value in lines.items()))


def spread_text(values: Spread | None) -> str:
    """Return a median with its range, "" if nothing was measured."""
    if values is None:
        return ""
    if values.least == values.greatest:
        return _number(values.median)
    return f"{_number(values.median)} ({_number(values.least)} to {_number(values.greatest)})"


def _number(value: float) -> str:
    digits = 0 if value >= 100 or value == int(value) else 2 if value >= 1 else 3
    return f"{value:,.{digits}f}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
