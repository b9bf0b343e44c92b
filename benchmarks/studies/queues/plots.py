"""Draws the plots of RESULTS.md."""

from functools import partial
from typing import Any

from matplotlib.figure import Figure

from benchmarks.harness.drawing import (
    OTHER,
    OWN,
    THIRD,
    Plots,
    draw_grid,
    number_steps,
    write_plainly,
)
from benchmarks.harness.results import Results

RATES = "rates"
_COLORS = {"rowq": OWN, "pgmq": OTHER, "bare": THIRD}
_BARS = {
    "messages_per_second": "messages / s",
    "wal_bytes_per_message": "WAL bytes / message",
    "server_cpu_us_per_message": "server CPU µs / message",
}


def plots(data: dict[str, Any]) -> Plots:
    """Return the plots that the results have figures for."""
    results = Results(data)
    kinds = {name: scenario["kind"] for name, scenario in results.scenarios.items()}
    work = [name for name, kind in kinds.items() if kind in {"drain", "one_by_one"}]
    rates = {RATES: partial(draw_grid, results, work, _BARS, _COLORS)} if work else {}
    return rates | {
        name: partial(_draw_snapshot, results, name)
        for name, kind in kinds.items()
        if kind == "snapshot"
    }


def _draw_snapshot(results: Results, name: str) -> Figure:
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.subplots()
    for system in results.systems(name):
        for turn, figures in enumerate(results.rounds(name, system)):
            passed, buffers = zip(*figures["samples"], strict=True)
            label = system if turn == 0 else None
            axes.plot(passed, buffers, color=_COLORS[system], label=label)
    axes.set_yscale("log")
    number_steps(axes.yaxis, 1, 2, 5)
    write_plainly(axes.xaxis)
    axes.set_xlabel("messages passed since the snapshot was taken")
    axes.set_ylabel("buffers / dequeue")
    axes.set_title(results.scenarios[name]["title"])
    axes.legend()
    return figure
