"""Writes RESULTS-mariadb.md from the results and nothing else."""

from typing import Any

from benchmarks.harness.report import (
    facts,
    figures_table,
    generated_from,
    notes,
    picture,
    setting,
    spread_text,
    systems_table,
    table,
    target_row,
)
from benchmarks.harness.results import Results
from benchmarks.studies.queues_mariadb.plots import plots
from benchmarks.studies.queues_mariadb.targets import PEERS, better, check_targets

_WORK = {
    "messages_per_second": "messages/s",
    "redo_bytes_per_message": "redo bytes / message",
    "server_cpu_us_per_message": "server CPU µs / message",
    "client_cpu_us_per_message": "client CPU µs / message",
    "loop_ms_p50": "loop p50 ms",
    "loop_ms_p99": "p99 ms",
}
_LOCKS = {
    "deadlocks": "deadlocks",
    "deadlocks_reached": "seen by a caller",
    "lock_waits": "lock waits",
    "lock_wait_seconds": "seconds waited, all sessions",
}
_FLAT = {
    "dequeue_ms_start": "ms / dequeue, median, start",
    "dequeue_ms_end": "end",
    "dequeue_ms_start_mean": "mean, start",
    "dequeue_ms_end_mean": "end",
}
_IDLE = {
    "dequeue_ms": "ms / dequeue, median",
    "dequeue_ms_p95": "p95",
    "server_cpu_us": "server CPU µs",
    "redo_bytes": "redo bytes",
}
_DEAD = {
    f"{call}_ms{when}": f"ms / {call}{words}"
    for call in ("dequeue", "promote", "reap", "maintain")
    for when, words in (("_free", ", no dead rows"), ("", ", beside them"))
} | {"rescan_ms": "ms / the maintain that walks them all"}
_COLUMNS = {
    "drain": _WORK | _LOCKS,
    "flat": _WORK | _FLAT | _LOCKS,
    "flat_free": _WORK | _FLAT | _LOCKS,
    "enqueue": _WORK,
    "idle": _IDLE,
    "dead": _DEAD,
}


def render(data: dict[str, Any]) -> str:
    """Return the whole report."""
    results = Results(data)
    targets = (target_row(target)[:4] for target in check_targets(results))
    parts = [
        generated_from("results/mariadb.json"),
        "# Results on MariaDB",
        'Made by `make bench ARGS="--engine mariadb"` from'
        " [results/mariadb.json](results/mariadb.json)."
        " What is measured and what is not: [README.md](README.md).",
        *notes(data),
        "## Ratios and targets",
        "Median over the rounds, with the least and the greatest in brackets.",
        table(["", "target", "rowq", ""], targets),
        "Rates divided by those of the others, without a target:",
        table(["", *(f"rowq / {peer}" for peer in PEERS), "rowq / the better"], _ratios(results)),
        *map(picture, plots(data)),
        *(part for name in results.scenarios for part in _scenario(results, name)),
        "## Machine, server, systems",
        facts(data, "MariaDB", "plain texts by the C library libmariadb"),
        systems_table(data),
    ]
    return "\n\n".join(parts) + "\n"


def _ratios(results: Results) -> list[list[str]]:
    return [
        [
            scenario["title"],
            *(
                spread_text(results.between(name, "messages_per_second", "rowq", peer))
                for peer in PEERS
            ),
            spread_text(better(results, name)),
        ]
        for name, scenario in results.scenarios.items()
        if scenario["kind"] not in {"idle", "dead"} and len(results.systems(name)) > 1
    ]


def _scenario(results: Results, name: str) -> list[str]:
    scenario = results.scenarios[name]
    return [
        f"## {scenario['title']}",
        f"{setting(scenario)}.",
        figures_table(results, name, _COLUMNS[scenario["kind"]]),
    ]
