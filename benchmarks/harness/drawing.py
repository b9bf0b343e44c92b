"""Draws plots: one style, one way to draw bars, one way to write a file."""

import io
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from xml.etree import ElementTree as ET

from matplotlib import style, ticker
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure

from benchmarks.harness.measure import Spread
from benchmarks.harness.results import Results

Plots = Mapping[str, Callable[[], Figure]]
"""The plots of a report: a name and what draws it."""

OWN, OTHER, THIRD = "#0072b2", "#d55e00", "#999999"

_STYLE = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    # matplotlib brings the first font and measures by it; the second is as wide.
    "font.sans-serif": ["DejaVu Sans", "Verdana"],
    "grid.linewidth": 0.3,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1,
    # These two keep text as text, and make the same file of the same figures.
    "svg.fonttype": "none",
    "svg.hashsalt": "rowq",
}
_NO_METADATA = dict.fromkeys(["Creator", "Date", "Format", "Type"])
_HEAD = '<?xml version="1.0" encoding="utf-8"?>'
_SVG = "http://www.w3.org/2000/svg"
_GROUP = f"{{{_SVG}}}g"
_ID = re.compile(r"\b[pm][0-9a-f]{10}\b")
_DECIMAL = re.compile(r"\d+\.\d+")


def draw_bars(axes: Axes, figures: Mapping[str, Spread | None], colors: Mapping[str, str]) -> None:
    """Draw a bar for each system: the median, and a line from the least to the greatest."""
    found = {system: spread for system, spread in figures.items() if spread is not None}
    axes.bar(
        list(found),
        [spread.median for spread in found.values()],
        yerr=reach(found.values()),
        color=[colors[system] for system in found],
    )


def reach(spreads: Iterable[Spread]) -> list[tuple[float, ...]]:
    """Return how far from the medians the least are, and the greatest."""
    ends = [(spread.median - spread.least, spread.greatest - spread.median) for spread in spreads]
    return list(zip(*ends, strict=True))


def draw_grid(
    results: Results, names: list[str], labels: Mapping[str, str], colors: Mapping[str, str]
) -> Figure:
    """Draw the bars of several scenarios: a column for each, and a row for each figure.

    names: the scenarios. labels: the figures and what is written beside them.
    """
    figure = Figure(figsize=(3 * len(names), 7), layout="constrained")
    grid = figure.subplots(len(labels), len(names), squeeze=False)
    for row, (key, label) in zip(grid, labels.items(), strict=True):
        row[0].set_ylabel(label)
        for axes, name in zip(row, names, strict=True):
            systems = results.systems(name)
            figures = {system: results.figure(name, system, key) for system in systems}
            draw_bars(axes, figures, colors)
            write_plainly(axes.yaxis)
            axes.tick_params(axis="x", labelsize=7)
    for axes, name in zip(grid[0], names, strict=True):
        axes.set_title(name.replace("_", " "))
    return figure


def write_plainly(axis: Axis) -> None:
    """Write the numbers of an axis in full, as 100,000."""
    axis.set_major_formatter("{x:,.10g}")


def number_steps(axis: Axis, *digits: int) -> None:
    """Put a number beside a logarithmic axis wherever it begins with one of these digits."""
    axis.set_major_locator(ticker.LogLocator(subs=digits))
    axis.set_minor_locator(ticker.NullLocator())
    write_plainly(axis)


def save_plots(plots: Plots, to: Path, source: str) -> None:
    """Draw plots into a directory; the same figures make the same files.

    source: the file of results, which the head of each plot names.
    """
    note = f"<!-- Generated from {source} by make generate. Do not edit. -->"
    for name, draw in plots.items():
        svg = io.StringIO()
        with style.context(["default", _STYLE]):
            draw().savefig(svg, format="svg", metadata=_NO_METADATA)
        (to / f"{name}.svg").write_text(f"{_HEAD}{note}\n{_small(svg.getvalue())}\n", "utf-8")


def _small(svg: str) -> str:
    """Return a drawing with a line for each of its axes, and with a digit behind points."""
    ET.register_namespace("", _SVG)
    ET.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    root = ET.fromstring(svg)  # noqa: S314 - matplotlib wrote it
    for element in root.iter():
        element[:] = _ungrouped(element)
        element.text = (element.text or "").strip()
        element.tail = "\n" if element in root[:] else ""
        for name, value in element.attrib.items():
            element.set(name, _DECIMAL.sub(_rounded, " ".join(value.split())))
    root.text = "\n"
    return _numbered(ET.tostring(root, "unicode"))


def _numbered(svg: str) -> str:
    """Return a drawing with numbers for its ids.

    matplotlib makes ids of coordinates, whose last digits differ between processors.
    """
    ids = {name: f"i{number}" for number, name in enumerate(dict.fromkeys(_ID.findall(svg)))}
    return _ID.sub(lambda found: ids[found[0]], svg)


def _ungrouped(element: ET.Element) -> list[ET.Element]:
    """Return the elements inside of one; of a group that only has a name, what is in it.

    The groups of whole axes stay, and so each is a line of the file.
    """
    return [
        inner
        for child in element
        for inner in (_ungrouped(child) if _only_names(child) else [child])
    ]


def _only_names(element: ET.Element) -> bool:
    if element.tag != _GROUP or element.keys() not in ([], ["id"]):
        return False
    return not element.get("id", "").startswith("axes_")


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.1f}".removesuffix(".0")
