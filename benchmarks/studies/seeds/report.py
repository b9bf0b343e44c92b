"""The section of RESULTS.md about the seeds."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from benchmarks.harness.measure import Target
from benchmarks.harness.report import figures_rows, settings, table
from benchmarks.harness.results import Results
from benchmarks.harness.runner import Engine
from benchmarks.harness.scenarios import SCENARIOS, Scenario, load_scenarios
from benchmarks.studies.queues.engine import POSTGRES
from benchmarks.studies.queues_mariadb.engine import MARIADB
from benchmarks.studies.seeds import seed_000, seed_001, seed_002, seed_003, seed_004
from benchmarks.studies.seeds.common import Figures, Form, Seed

SEEDS: list[Seed] = [module.SEED for module in (seed_000, seed_001, seed_002, seed_003, seed_004)]
_LABS = {"postgres": POSTGRES.open_lab, "mariadb": MARIADB.open_lab}

_WORKED = {
    "messages_per_second": "messages/s",
    "server_cpu_us_per_message": "server CPU µs / message",
    "retries": "deadlocks",
    "double_runs": "run twice",
}


def seeds_engine(name: str) -> Engine:
    """Return an engine with the forms of all seeds as systems."""
    forms = {form.name: form for seed in SEEDS for form in seed.forms(name)}
    kinds = {kind: partial(_run, name, seed, kind) for seed in SEEDS for kind in seed.kinds}
    return Engine(name, lambda: list(forms.values()), kinds, _LABS[name])


def seeds_scenarios(engine: str, *, quick: bool = False) -> list[Scenario]:
    """Return the scenarios of all seeds that run on an engine."""
    path = SCENARIOS.with_name("scenarios_seeds.toml")
    found = load_scenarios(quick=quick, path=path)
    return [scenario for scenario in found if engine in (scenario.engines or [engine])]


def _run(engine: str, seed: Seed, kind: str, url: str, form: Form, scenario: Scenario) -> Figures:
    """Run a scenario with this seed's form; rowq's session differs between seeds."""
    (own,) = (known for known in seed.forms(engine) if known.name == form.name)
    return seed.kinds[kind](url, own, scenario)


def check_seeds(results: Results) -> list[Target]:
    """Return all measured targets."""
    return [
        target for seed in SEEDS for target in seed.targets(results) if target.found is not None
    ]


def seeds_section(found: Mapping[str, dict[str, Any]]) -> Iterator[str]:
    """Yield the section; found: results by product."""
    if not found:
        return
    results = {product: Results(data) for product, data in found.items()}
    yield "## The seeds' questions"
    yield (
        "Five documents describe queues in a database. An experiment for each in"
        " [studies/seeds](studies/seeds) compares the document's forms of a queue with rowq."
        f" rowq is slower in these cases, with its rate divided by the form's: {_slower(results)}."
    )
    for seed in SEEDS:
        yield from _seed(results, seed)


def _slower(results: Mapping[str, Results]) -> str:
    ratios = {
        f"`{name}`, `{form}` on {product}": ratio.median
        for product, known in results.items()
        for name in known.scenarios
        for form in known.systems(name)
        if "messages_per_second" in known.rounds(name, form)[0]
        and (ratio := known.between(name, "messages_per_second", "rowq", form)) is not None
    }
    slower = sorted((ratio, words) for words, ratio in ratios.items() if ratio < 1)
    return "; ".join(f"{words} {ratio:.2f}" for ratio, words in slower) or "none"


def _seed(results: Mapping[str, Results], seed: Seed) -> Iterator[str]:
    origins = [f"`{form.name}`: {form.origin}." for form in seed.forms("postgres") if form.sql]
    title, _, words = seed.words.partition("\n\n")
    yield f"### Seed {SEEDS.index(seed):03}: {title.strip('.').lower()}"
    yield " ".join(
        [" ".join(words.split()), *origins, *settings(next(iter(results.values())), seed.kinds)]
    )
    for kind, own in seed.columns.items():
        columns = own if "first_got" in own or "killed_back" in own else own | _WORKED
        yield from _table(results, kind, columns)


def _table(results: Mapping[str, Results], kind: str, columns: Mapping[str, str]) -> Iterator[str]:
    """Yield a kind's table with the engines side by side."""
    cells = {
        product: {(name, form): row for name, form, *row in figures_rows(known, (kind,), columns)}
        for product, known in results.items()
    }
    shown = [product for product, rows in cells.items() if rows]
    heads = [f"{product}: {word}" for product in shown for word in columns.values()]
    keys = dict.fromkeys(key for product in shown for key in cells[product])
    if keys:
        yield table(
            ["scenario", "form", *heads],
            ([*key, *(cell for product in shown for cell in cells[product][key])] for key in keys),
        )
