"""RESULTS-seeds.md, written from the results of each engine and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.harness.report import (
    facts,
    generated_from,
    setting,
    spread_text,
    table,
    target_row,
)
from benchmarks.harness.results import Results
from benchmarks.studies.seeds.all_seeds import SEEDS, seed_of
from benchmarks.studies.seeds.base import Seed

PRODUCTS = {
    "postgres": "PostgreSQL",
    "mariadb": "MariaDB",
    "sqlserver": "SQL Server",
    "oracle": "Oracle",
}
_CLIENTS = {
    "postgres": "prepared statements by psycopg's libpq calls",
    "mariadb": "plain texts by the C library libmariadb",
    "sqlserver": "prepared statements by pyodbc",
    "oracle": "statements with named values by python-oracledb's thin mode",
}
_RATIOS = {"messages_per_second": "rate", "server_cpu_us_per_message": "server CPU per message"}


def render(found: Mapping[str, dict[str, Any]]) -> str:
    """Return the whole report; found: the results of each engine, by its name."""
    results = {engine: Results(data) for engine, data in found.items()}
    sources = ", ".join(f"[{name}](results/seeds_{name}.json)" for name in found)
    parts = [
        generated_from(*(f"results/seeds_{name}.json" for name in found)),
        "# Results of the seeds' experiments",
        f'Made by `make bench ARGS="--set seeds"` from {sources}.'
        " What is measured and what is not: [README.md](README.md#seeds).",
        *(f"**{PRODUCTS[name]}: {data['note']}**" for name, data in found.items() if data["note"]),
        "## Ratios and targets",
        "Median over the rounds, with the least and the greatest in brackets.",
        table(["", "engine", "target", "rowq", ""], _targets(results)),
        "Rates and processor time of rowq divided by those of each other form, without a target:",
        table(
            ["", "engine", "form", *(f"{w}, rowq / it" for w in _RATIOS.values())], _ratios(results)
        ),
        *(part for seed in SEEDS for part in _seed(results, seed)),
        "## Machines, servers, forms",
        *(facts(data, PRODUCTS[name], _CLIENTS[name]) for name, data in found.items()),
        table(["form", "version", "what it is"], _systems(found)),
    ]
    return "\n\n".join(parts) + "\n"


def _targets(results: Mapping[str, Results]) -> Iterator[list[str]]:
    for seed in SEEDS:
        for engine, one in results.items():
            for target in seed.targets(engine, one):
                what, *rest = target_row(target)[:4]
                yield [f"{seed.name[-3:]}: {what}", PRODUCTS[engine], *rest]


def _ratios(results: Mapping[str, Results]) -> Iterator[list[str]]:
    for engine, one in results.items():
        for name, scenario in one.scenarios.items():
            for form in one.systems(name):
                if form == "rowq" or not _has_rates(one, name, form):
                    continue
                ratios = (spread_text(one.between(name, key, "rowq", form)) for key in _RATIOS)
                yield [f"{_number(scenario)}: {scenario['title']}", PRODUCTS[engine], form, *ratios]


def _has_rates(results: Results, scenario: str, form: str) -> bool:
    return all(
        figures.get(key)
        for system in ("rowq", form)
        for figures in results.rounds(scenario, system)
        for key in _RATIOS
    )


def _number(scenario: Mapping[str, Any]) -> str:
    return seed_of(scenario["kind"]).name[-3:]


def _seed(results: Mapping[str, Results], seed: Seed) -> Iterator[str]:
    yield f"## {seed.title}"
    yield seed.words
    for engine, one in results.items():
        for name, scenario in one.scenarios.items():
            if scenario["kind"] in seed.kinds:
                yield f"### {scenario['title']}: {PRODUCTS[engine]}"
                yield f"{setting(scenario)}."
                yield _table(one, name, seed.columns[scenario["kind"]])


def _table(results: Results, name: str, columns: Mapping[str, str]) -> str:
    """Return a table with a column for each form: the figures are more than the forms."""
    forms = results.systems(name)
    rows = (
        [heading, *(_cell(results, name, form, key) for form in forms)]
        for key, heading in columns.items()
    )
    return table(["", *forms], [row for row in rows if any(row[1:])])


def _cell(results: Results, name: str, form: str, key: str) -> str:
    """Return a figure, "" where the engine or the form has none."""
    if any(key not in figures for figures in results.rounds(name, form)):
        return ""
    return spread_text(results.figure(name, form, key))


def _systems(found: Mapping[str, dict[str, Any]]) -> list[list[str]]:
    known = {one["name"]: one for data in found.values() for one in data["systems"]}
    return [[one["name"], one["version"], one["origin"]] for one in known.values()]
