"""Draws the plots of RESULTS-mariadb.md."""

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

_COLORS = {"rowq": OWN, "select_update": OTHER, "update_limit": THIRD}
_BARS = {
    "messages_per_second": "messages / s",
    "redo_bytes_per_message": "redo bytes / message",
    "server_cpu_us_per_message": "server CPU µs / message",
}
_WORK = {"drain", "enqueue"}
_FLAT = {"flat": "-", "flat_free": ":"}


def plots(data: dict[str, Any]) -> Plots:
    """Return the plots that the results have figures for."""
    results = Results(data)
    kinds = {name: scenario["kind"] for name, scenario in results.scenarios.items()}
    work = [name for name, kind in kinds.items() if kind in _WORK]
    view = [
        name
        for name, kind in kinds.items()
        if kind in _FLAT and "samples" in results.rounds(name, "rowq")[0]
    ]
    rates = {"mariadb_rates": partial(draw_grid, results, work, _BARS, _COLORS)} if work else {}
    return rates | ({"mariadb_view": partial(_draw_view, results, view)} if view else {})


def _draw_view(results: Results, names: list[str]) -> Figure:
    """Draw how long a dequeue takes while a queue is drained, by the part that has passed."""
    batches = sorted({results.scenarios[name]["batches"][0] for name in names}, reverse=True)
    figure = Figure(figsize=(5.5 * len(batches), 3.6), layout="constrained")
    panels = figure.subplots(1, len(batches), squeeze=False)[0]
    for axes, batch in zip(panels, batches, strict=True):
        for name in (name for name in names if results.scenarios[name]["batches"] == [batch]):
            dashes = _FLAT[results.scenarios[name]["kind"]]
            for system in results.systems(name):
                passed, lengths = zip(*results.rounds(name, system)[0]["samples"], strict=True)
                label = system + (", no view" if dashes == ":" else "")
                axes.plot(passed, lengths, dashes, color=_COLORS[system], label=label)
        axes.set_yscale("log")
        number_steps(axes.yaxis, 1, 2, 3, 5, 7)
        write_plainly(axes.xaxis)
        axes.set_title(f"batches of {batch} beside an old read view")
        axes.set_xlabel("messages passed")
        axes.set_ylabel(f"ms / dequeue of {batch}, median")
        axes.legend()
    return figure
