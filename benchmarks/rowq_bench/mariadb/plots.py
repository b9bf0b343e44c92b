"""The plots beside RESULTS-mariadb.md, as SVG and PNG."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.rowq_bench.plots import draw_bars, save, tidy
from benchmarks.rowq_bench.results import Results

COLORS = {"rowq": "#0072b2", "select_update": "#d55e00", "update_limit": "#999999"}
RATES, VIEW = "mariadb_rates", "mariadb_view"
_BARS = {
    "messages_per_second": "messages / s",
    "redo_bytes_per_message": "redo bytes / message",
    "server_cpu_us_per_message": "server CPU µs / message",
}
_WORK = {"drain", "enqueue"}
_FLAT = {"flat": "-", "flat_free": ":"}


def plots(results: Results) -> dict[str, list[str]]:
    """Return the plots that there are figures for: name, and the scenarios in it."""
    work = [name for name, one in results.scenarios.items() if one["kind"] in _WORK]
    view = [
        name
        for name, one in results.scenarios.items()
        if one["kind"] in _FLAT and "samples" in results.rounds(name, "rowq")[0]
    ]
    return {name: shown for name, shown in ((RATES, work), (VIEW, view)) if shown}


def draw(data: dict[str, Any], to: Path) -> None:
    """Draw every plot that the results have figures for."""
    mpl.rcParams["svg.hashsalt"] = "rowq"
    results = Results(data)
    draw_one = {RATES: _draw_rates, VIEW: _draw_view}
    for name, shown in plots(results).items():
        save(draw_one[name](results, shown), to, name)


def _draw_rates(results: Results, names: list[str]) -> Figure:
    figure = Figure(figsize=(2.8 * len(names), 7), layout="constrained")
    grid = figure.subplots(len(_BARS), len(names), squeeze=False)
    for row, (key, label) in zip(grid, _BARS.items(), strict=True):
        row[0].set_ylabel(label)
        for axes, name in zip(row, names, strict=True):
            draw_bars(axes, results, name, key, COLORS)
            axes.tick_params(axis="x", labelsize=7)
    for axes, name in zip(grid[0], names, strict=True):
        axes.set_title(name.replace("_", " "), fontsize=10)
    return figure


def _draw_view(results: Results, names: list[str]) -> Figure:
    """Draw how long a dequeue takes while a queue is drained, by the part that has passed."""
    batches = sorted({results.scenarios[name]["batches"][0] for name in names}, reverse=True)
    figure = Figure(figsize=(5.5 * len(batches), 3.6), layout="constrained")
    for axes, batch in zip(
        figure.subplots(1, len(batches), squeeze=False)[0], batches, strict=True
    ):
        for name in (one for one in names if results.scenarios[one]["batches"] == [batch]):
            scenario = results.scenarios[name]
            for system in results.systems(name):
                passed, lengths = zip(*results.rounds(name, system)[0]["samples"], strict=True)
                style = _FLAT[scenario["kind"]]
                label = system + (", no view" if style == ":" else "")
                axes.plot(passed, lengths, style, color=COLORS[system], label=label)
        axes.set_yscale("log")
        axes.set_title(f"batches of {batch} beside an old read view", fontsize=10)
        axes.set_xlabel("messages passed")
        axes.set_ylabel(f"ms / dequeue of {batch}, median")
        axes.legend(frameon=False, fontsize=8)
        tidy(axes)
    return figure
