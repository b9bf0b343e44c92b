"""The plots beside RESULTS.md, as SVG and PNG."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.rowq_bench.results import Results

_COLORS = {"rowq": "#0072b2", "pgmq": "#d55e00", "bare": "#999999"}
_BARS = {
    "messages_per_second": "messages / s",
    "wal_bytes_per_message": "WAL bytes / message",
    "server_cpu_us_per_message": "server CPU µs / message",
}


def draw_all(data: dict[str, Any], to: Path) -> None:
    """Draw every plot that the results have figures for."""
    mpl.rcParams["svg.hashsalt"] = "rowq"
    results = Results(data)
    work = [name for name, s in results.scenarios.items() if s["kind"] in {"drain", "one_by_one"}]
    if work:
        save(_draw_rates(results, work), to, "rates")
    for name, scenario in results.scenarios.items():
        if scenario["kind"] == "snapshot":
            save(_draw_snapshot(results, name), to, name)
        if scenario["kind"] == "depth":
            save(_draw_depth(results, name), to, name)


def _draw_rates(results: Results, names: list[str]) -> Figure:
    figure = Figure(figsize=(3.4 * len(names), 7), layout="constrained")
    grid = figure.subplots(len(_BARS), len(names), squeeze=False)
    for row, (key, label) in zip(grid, _BARS.items(), strict=True):
        row[0].set_ylabel(label)
        for axes, name in zip(row, names, strict=True):
            draw_bars(axes, results, name, key, _COLORS)
    for axes, name in zip(grid[0], names, strict=True):
        axes.set_title(name.replace("_", " "), fontsize=10)
    return figure


def draw_bars(axes: Axes, results: Results, name: str, key: str, colors: Mapping[str, str]) -> None:
    """Draw a bar for each system: the median, and a line from the least to the greatest."""
    for system in results.systems(name):
        found = results.figure(name, system, key)
        assert found is not None
        reach = [[found.median - found.least], [found.greatest - found.median]]
        axes.bar([system], [found.median], yerr=reach, color=colors[system], capsize=3)
    tidy(axes)


def _draw_snapshot(results: Results, name: str) -> Figure:
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.subplots()
    for system in results.systems(name):
        for turn, figures in enumerate(results.rounds(name, system)):
            passed, buffers = zip(*figures["samples"], strict=True)
            axes.plot(
                passed,
                buffers,
                color=_COLORS[system],
                marker=".",
                linewidth=1,
                label=system if turn == 0 else None,
            )
    axes.set_yscale("log")
    axes.set_xlabel("messages passed since the snapshot was taken")
    axes.set_ylabel("buffers / dequeue")
    axes.set_title(results.scenarios[name]["title"], fontsize=10)
    axes.legend(frameon=False)
    tidy(axes)
    return figure


def _draw_depth(results: Results, name: str) -> Figure:
    batches = results.scenarios[name]["batches"]
    figure = Figure(figsize=(5.5 * len(batches), 3.6), layout="constrained")
    panels = figure.subplots(1, len(batches), squeeze=False)[0]
    for axes, batch in zip(panels, batches, strict=True):
        bars = [
            (f"{system}\n{queue}", figures[key], _COLORS[system])
            for system in results.systems(name)
            for figures in results.rounds(name, system)[:1]
            for queue in ("small", "delayed", "backlog")
            if (key := f"{queue}_{batch}_ms") in figures
        ]
        axes.bar([bar[0] for bar in bars], [bar[1] for bar in bars], color=[bar[2] for bar in bars])
        axes.set_yscale("log")
        axes.set_ylabel(f"ms / dequeue of {batch}")
        axes.tick_params(axis="x", labelsize=8)
        tidy(axes)
    return figure


def tidy(axes: Axes) -> None:
    """Leave out what does not carry a figure."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", linewidth=0.3)


def save(figure: Figure, to: Path, name: str) -> None:
    """Write a plot in both formats; the same figures make the same file."""
    figure.savefig(to / f"{name}.svg", metadata={"Date": None})
    figure.savefig(to / f"{name}.png", dpi=120)
