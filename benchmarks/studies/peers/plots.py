"""Draws the plots of RESULTS-peers.md."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.harness.drawing import OTHER, OWN, THIRD, Plots, number_steps, reach
from benchmarks.studies.peers import results as peers
from benchmarks.studies.peers.results import PeerResults

_COLUMNS = 4


def plots(data: Mapping[str, Any]) -> Plots:
    """Return the plots that the results have figures for."""
    results = PeerResults(data)
    kinds = {name: scenario["kind"] for name, scenario in results.scenarios.items()}
    rates = [name for name, kind in kinds.items() if kind in {"drain", "burst"}]
    waits = [name for name, kind in kinds.items() if kind in {"steady", "burst"}]
    shown = {
        "peers_rates": (rates, "messages_per_second", "messages / s"),
        "peers_latency": (waits, "latency_ms_p99", "latency p99, ms"),
    }
    return {
        plot: partial(_draw, results, names, key, label)
        for plot, (names, key, label) in shown.items()
        if names
    }


def _draw(results: PeerResults, names: Sequence[str], key: str, label: str) -> Figure:
    columns = min(_COLUMNS, len(names))
    rows = -(-len(names) // columns)
    figure = Figure(figsize=(3 * columns + 1, 2.3 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for axes, name in zip(grid.flatten(), names, strict=False):
        _draw_bars(axes, results, name, key)
        axes.set_title(name.replace("_", " "))
    for axes in grid.flatten()[len(names) :]:
        axes.set_visible(False)
    systems = results.systems
    grid[0, 0].set_yticks(range(len(systems)), systems)
    grid[0, 0].invert_yaxis()
    grid[0, 0].set_xscale("log")
    number_steps(grid[0, 0].xaxis, 1)
    figure.supxlabel(label, fontsize=10)
    return figure


def _draw_bars(axes: Axes, results: PeerResults, name: str, key: str) -> None:
    """Draw a bar for each system: the median, and a line from the least to the greatest."""
    figures = {
        place: found
        for place, system in enumerate(results.systems)
        if (found := results.figure(name, system, key))
    }
    axes.barh(
        list(figures),
        [found.median for found in figures.values()],
        xerr=reach(figures.values()),
        color=[_color(results, results.systems[place]) for place in figures],
    )
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x")
    axes.tick_params(labelsize=8)


def _color(results: PeerResults, system: str) -> str:
    if system in {peers.OWN, *results.variants}:
        return OWN
    return THIRD if system == peers.FLOOR else OTHER
