"""Writes RESULTS-seeds.md from the results of each engine and nothing else."""

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.harness.report import (
    facts,
    figures_row,
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
    products = [PRODUCTS[engine] for engine in found]
    parts = [
        generated_from(*(f"results/seeds_{name}.json" for name in found)),
        "# Results of the seeds' experiments",
        f'Made by `make bench ARGS="--set seeds"` from {sources}.'
        " What is measured and what is not: [README.md](README.md#seeds).",
        *(f"**{PRODUCTS[name]}: {data['note']}**" for name, data in found.items() if data["note"]),
        "## Ratios and targets",
        "Median over the rounds, with the least and the greatest in brackets.",
        table(["", "target", *products], _targets(results)),
        "Rates and processor time of rowq divided by those of each other form, without a target:",
        table(
            [
                "",
                "form",
                *(f"{product}: {word}" for product in products for word in _RATIOS.values()),
            ],
            _ratios(results),
        ),
        *(part for seed in SEEDS for part in _seed(results, seed)),
        "## Machines, servers, forms",
        *(facts(data, PRODUCTS[name], _CLIENTS[name]) for name, data in found.items()),
        table(["form", "version", "what it is"], _systems(found)),
    ]
    return "\n\n".join(parts) + "\n"


def _targets(results: Mapping[str, Results]) -> list[list[str]]:
    """Return a row for each target, with what was found on each engine and whether that is met."""
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for seed in SEEDS:
        for engine, found in results.items():
            for target in seed.targets(engine, found):
                what, bound, ratio, verdict, _ = target_row(target)
                key = f"{seed.name[-3:]}: {what}", bound
                rows.setdefault(key, {})[engine] = f"{ratio} {verdict}".strip()
    return [[*key, *(row.get(engine, "") for engine in results)] for key, row in rows.items()]


def _ratios(results: Mapping[str, Results]) -> list[list[str]]:
    """Return a row for each other form of a scenario, with rowq's ratios to it on each engine."""
    rows: dict[tuple[str, str], dict[str, list[str]]] = {}
    for engine, found in results.items():
        for name, scenario in found.scenarios.items():
            for form in found.systems(name):
                if form == "rowq" or not _has_rates(found, name, form):
                    continue
                ratios = [spread_text(found.between(name, key, "rowq", form)) for key in _RATIOS]
                key = f"{_number(scenario)}: {scenario['title']}", form
                rows.setdefault(key, {})[engine] = ratios
    none = [""] * len(_RATIOS)
    return [
        [*key, *(ratio for engine in results for ratio in row.get(engine, none))]
        for key, row in rows.items()
    ]


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
    names = dict.fromkeys(
        name
        for found in results.values()
        for name, scenario in found.scenarios.items()
        if scenario["kind"] in seed.kinds
    )
    for name in names:
        measured = {engine: found for engine, found in results.items() if name in found.scenarios}
        yield from _scenario(measured, name, seed)


def _scenario(results: Mapping[str, Results], name: str, seed: Seed) -> list[str]:
    """Return a scenario's heading, its numbers, and a table with a row for each engine's forms."""
    scenarios = {engine: found.scenarios[name] for engine, found in results.items()}
    first, *_ = scenarios.values()
    settings = {PRODUCTS[engine]: setting(scenario) for engine, scenario in scenarios.items()}
    if len(set(settings.values())) == 1:
        said = setting(first)
    else:
        said = "; ".join(f"{product}: {words}" for product, words in settings.items())
    columns = seed.columns[first["kind"]]
    rows = [
        [PRODUCTS[engine], *figures_row(found, name, form, columns)]
        for engine, found in results.items()
        for form in found.systems(name)
    ]
    return [f"### {first['title']}", f"{said}.", table(["", "", *columns.values()], rows)]


def _systems(found: Mapping[str, dict[str, Any]]) -> list[list[str]]:
    known = {system["name"]: system for data in found.values() for system in data["systems"]}
    return [[system["name"], system["version"], system["origin"]] for system in known.values()]
