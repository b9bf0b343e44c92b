"""The plots beside RESULTS-seeds.md, as SVG and PNG: one for each scenario and engine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.rowq_bench.plots import draw_bars, save
from benchmarks.rowq_bench.results import Results
from benchmarks.rowq_bench.seeds.all_seeds import seed_of

_COLORS = defaultdict(lambda: "#999999", rowq="#0072b2")


def plot_name(engine: str, scenario: str) -> str:
    """Return the name of a scenario's plot, without the format."""
    return f"seeds_{engine}_{scenario}"


def draw(engine: str, data: dict[str, Any], to: Path) -> None:
    """Draw every plot that the results have figures for."""
    mpl.rcParams["svg.hashsalt"] = "rowq"
    results = Results(data)
    for name, scenario in results.scenarios.items():
        bars = seed_of(scenario["kind"]).bars.get(scenario["kind"])
        if bars:
            save(_draw(results, name, bars), to, plot_name(engine, name))


def _draw(results: Results, name: str, bars: Mapping[str, str]) -> Figure:
    figure = Figure(figsize=(4 * len(bars), 3.6), layout="constrained")
    for axes, (key, label) in zip(
        figure.subplots(1, len(bars), squeeze=False)[0], bars.items(), strict=True
    ):
        draw_bars(axes, results, name, key, _COLORS)
        axes.set_ylabel(label)
        axes.tick_params(axis="x", labelsize=7, rotation=20)
    return figure
