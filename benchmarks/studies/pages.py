"""Writes the reports and their plots from files of results and nothing else."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness.drawing import Plots, save_plots
from benchmarks.harness.results import read_results
from benchmarks.studies.peers import plots as peers_plots
from benchmarks.studies.peers import report as peers_report
from benchmarks.studies.queues import plots, report
from benchmarks.studies.queues_mariadb import plots as mariadb_plots
from benchmarks.studies.queues_mariadb import report as mariadb_report
from benchmarks.studies.seeds import report as seeds_report

RESULTS = "results"
"""The directory of results and plots, beside the reports."""
_SEEDS = {f"seeds_{engine}": engine for engine in seeds_report.PRODUCTS}


@dataclass(frozen=True, slots=True)
class Page:
    """A report.

    file: its name. sources: the names of its files of results; it is of those that are there.
    render: takes what they hold, by their names. plots: takes what one of them holds.
    """

    file: str
    sources: tuple[str, ...]
    render: Callable[[Mapping[str, dict[str, Any]]], str]
    plots: Callable[[dict[str, Any]], Plots] = lambda _: {}

    def write(self, to: Path) -> None:
        """Write the report into a directory, and the plots beside the results below it."""
        paths = [to / RESULTS / f"{source}.json" for source in self.sources]
        found = {path.stem: read_results(path) for path in paths if path.exists()}
        (to / self.file).write_text(self.render(found), "utf-8")
        for source, data in found.items():
            save_plots(self.plots(data), to / RESULTS, f"{source}.json")


QUEUES = Page(
    "RESULTS.md", ("postgres",), lambda found: report.render(found["postgres"]), plots.plots
)
MARIADB = Page(
    "RESULTS-mariadb.md",
    ("mariadb",),
    lambda found: mariadb_report.render(found["mariadb"]),
    mariadb_plots.plots,
)
PEERS = Page(
    "RESULTS-peers.md",
    ("peers",),
    lambda found: peers_report.render_peers(found["peers"]),
    peers_plots.plots,
)
SEEDS = Page(
    "RESULTS-seeds.md",
    tuple(_SEEDS),
    lambda found: seeds_report.render({_SEEDS[name]: data for name, data in found.items()}),
)
PAGES = (QUEUES, MARIADB, PEERS, SEEDS)
