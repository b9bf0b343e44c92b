"""The plots beside RESULTS.md, as SVG and PNG."""

from __future__ import annotations

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
        _save(_draw_rates(results, work), to, "rates")
    for name, scenario in results.scenarios.items():
        if scenario["kind"] == "snapshot":
            _save(_draw_snapshot(results, name), to, name)
        if scenario["kind"] == "depth":
            _save(_draw_depth(results, name), to, name)


def _draw_rates(results: Results, names: list[str]) -> Figure:
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    for axes, (key, label) in zip(figure.subplots(1, len(_BARS)), _BARS.items(), strict=True):
        systems = results.systems(names[0])
        for place, system in enumerate(systems):
            found = [results.figure(name, system, key) for name in names]
            values = [
                (0.0, 0.0, 0.0) if s is None else (s.median, s.least, s.greatest) for s in found
            ]
            spots = [row + 0.8 * (place + 0.5) / len(systems) - 0.4 for row in range(len(names))]
            middles = [middle for middle, _, _ in values]
            errors = [[m - least for m, least, _ in values], [most - m for m, _, most in values]]
            axes.bar(
                spots,
                middles,
                0.75 / len(systems),
                yerr=errors,
                label=system,
                color=_COLORS[system],
                capsize=2,
            )
        axes.set_xticks(range(len(names)), [name.replace("_", " ") for name in names])
        axes.set_ylabel(label)
        _tidy(axes)
    figure.axes[0].legend(frameon=False)
    return figure


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
    _tidy(axes)
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
        _tidy(axes)
    return figure


def _tidy(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", linewidth=0.3)


def _save(figure: Figure, to: Path, name: str) -> None:
    figure.savefig(to / f"{name}.svg", metadata={"Date": None})
    figure.savefig(to / f"{name}.png", dpi=120)
