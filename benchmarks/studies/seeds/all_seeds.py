"""Lists the seeds in their order, and gives the runner their scenarios and its engine."""

from dataclasses import replace
from functools import partial

from benchmarks.engines.oracle import lab as oracle
from benchmarks.engines.sqlserver import lab as sqlserver
from benchmarks.harness.runner import Engine
from benchmarks.harness.scenarios import Scenario, load_scenarios
from benchmarks.studies.queues.engine import POSTGRES
from benchmarks.studies.queues_mariadb.engine import MARIADB
from benchmarks.studies.seeds import seed_000, seed_001, seed_002, seed_003, seed_004
from benchmarks.studies.seeds.base import Form, Seed
from benchmarks.studies.seeds.dialects import DIALECTS

SEEDS: list[Seed] = [
    seed_000.SEED,
    seed_001.SEED,
    seed_002.SEED,
    seed_003.SEED,
    seed_004.SEED,
]
_LABS = {
    "postgres": POSTGRES.open_lab,
    "mariadb": MARIADB.open_lab,
    "sqlserver": sqlserver.open_lab,
    "oracle": oracle.open_lab,
}
# A letter takes so many bytes where it is more than one, so that bodies have as many bytes on every
# engine.
_LETTER_BYTES = {"sqlserver": 2}


def seeds_engine(name: str) -> Engine:
    """Return an engine whose systems are the forms of all seeds, on its usual server."""
    kinds = {
        kind: partial(run, DIALECTS[name]) for seed in SEEDS for kind, run in seed.kinds.items()
    }
    return Engine(name, lambda: [*_forms(name)], kinds, _LABS[name])


def seeds_scenarios(engine: str, *, quick: bool = False) -> list[Scenario]:
    """Return the scenarios of all seeds that run on an engine."""
    letter = _LETTER_BYTES.get(engine, 1)
    return [
        replace(scenario, body_bytes=scenario.body_bytes // letter)
        for seed in SEEDS
        for scenario in load_scenarios(quick=quick, path=seed.folder / "scenarios.toml")
        if not scenario.engines or engine in scenario.engines
    ]


def seed_of(kind: str) -> Seed:
    """Return the seed that a kind of scenario belongs to."""
    (seed,) = (seed for seed in SEEDS if kind in seed.kinds)
    return seed


def _forms(engine: str) -> list[Form]:
    """Return every form once; rowq takes part in several seeds."""
    return list({form.name: form for seed in SEEDS for form in seed.forms(engine)}.values())
