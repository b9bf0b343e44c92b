"""Writes the table into benchmarks/README.md, from the results and nothing else."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.harness.report import table
from benchmarks.studies.statements.count import FIGURES

PRODUCTS = {
    "postgres": "PostgreSQL",
    "mariadb": "MariaDB",
    "sqlserver": "SQL Server",
    "oracle": "Oracle",
}
SOURCES = {f"statements_{engine}": engine for engine in PRODUCTS}
"""Engines by the names of their files of results."""

README = Path(__file__).resolve().parents[2] / "README.md"
_BEGIN = "<!-- Generated from results/statements_*.json by make generate: do not edit. -->"
_END = "<!-- The end of what is generated. -->"
_HEAD = ("call", "engine", "statements", "kinds", "nested calls", "transaction", "reads")


def render(found: Mapping[str, dict[str, Any]]) -> str:
    """Return the whole README with the table of these results in its place."""
    page = README.read_text("utf-8")
    before, after = page[: page.index(_BEGIN)], page[page.index(_END) :]
    results = {SOURCES[name]: data for name, data in found.items()}
    return f"{before}{_BEGIN}\n\n{_table(results)}\n\n{_sources(results)}\n\n{after}"


def _table(results: Mapping[str, dict[str, Any]]) -> str:
    """Return a row for each call and engine; an engine counted by its text has a mark."""
    counts = {
        engine: {call["call"]: call for call in data["calls"]} for engine, data in results.items()
    }
    names = dict.fromkeys(name for calls in counts.values() for name in calls)
    rows = []
    for name in names:
        shown = f"`{name}`"
        for engine, calls in counts.items():
            mark = " (text)" if results[engine]["source"] == "text" else ""
            figures = [_figure(calls[name][figure]) for figure in FIGURES]
            rows.append([shown, PRODUCTS[engine] + mark, *figures])
            shown = ""
    return table(_HEAD, rows)


def _figure(value: int | None) -> str:
    return "not measured" if value is None else f"{value:,}"


def _sources(results: Mapping[str, dict[str, Any]]) -> str:
    """Return where the figures of each engine come from, as a list."""
    return "\n".join(
        f"- {PRODUCTS[engine]}: {_source(data)}, commit {data['commit']}, by `{data['command']}`"
        for engine, data in results.items()
    )


def _source(data: dict[str, Any]) -> str:
    if data["source"] == "text":
        return "**counted in the text of the SQL, not run on the engine**"
    return f"run on {data['server']['version']}"
