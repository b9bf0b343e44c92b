"""The plots of RESULTS-peers.md, as SVG and PNG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.rowq_bench.peers.results import FLOOR, OWN, PeerResults
from benchmarks.rowq_bench.plots import save, tidy

_COLUMNS = 4
_COLORS = {OWN: "#0072b2", FLOOR: "#bbbbbb"}
_OTHERS = "#d55e00"


def draw_peers(data: dict[str, Any], to: Path) -> None:
    """Draw every plot that the results have figures for."""
    mpl.rcParams["svg.hashsalt"] = "rowq"
    results = PeerResults(data)
    kinds = {name: scenario["kind"] for name, scenario in results.scenarios.items()}
    rates = [name for name, kind in kinds.items() if kind in {"drain", "burst"}]
    waits = [name for name, kind in kinds.items() if kind in {"steady", "burst"}]
    if rates:
        save(_draw(results, rates, "messages_per_second", "messages / s"), to, "peers_rates")
    if waits:
        save(_draw(results, waits, "latency_ms_p99", "latency p99, ms"), to, "peers_latency")


def _draw(results: PeerResults, names: Sequence[str], key: str, label: str) -> Figure:
    columns = min(_COLUMNS, len(names))
    rows = -(-len(names) // columns)
    figure = Figure(figsize=(3.2 * columns, 2.6 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).flatten()
    for axes, name in zip(grid, names, strict=False):
        _bars(axes, results, name, key)
        axes.set_title(name.replace("_", " "), fontsize=10)
    for axes in grid[len(names) :]:
        axes.set_visible(False)
    figure.supylabel(label, fontsize=10)
    return figure


def _bars(axes: Axes, results: PeerResults, name: str, key: str) -> None:
    """Draw a bar for each system: the median, and a line from the least to the greatest."""
    for system in results.systems:
        found = results.figure(name, system, key)
        if found is None:
            continue
        reach = [[found.median - found.least], [found.greatest - found.median]]
        color = _COLORS.get(OWN if system in results.variants else system, _OTHERS)
        axes.bar([system], [found.median], yerr=reach, color=color, capsize=2)
    axes.set_yscale("log")
    axes.tick_params(axis="x", labelsize=7, rotation=60)
    tidy(axes)
