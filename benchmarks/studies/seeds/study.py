"""The seeds in their order, as the harness runs them."""

from functools import partial

from benchmarks.harness.runner import Engine
from benchmarks.harness.scenarios import SCENARIOS, Scenario, load_scenarios
from benchmarks.studies.queues.engine import POSTGRES
from benchmarks.studies.queues_mariadb.engine import MARIADB
from benchmarks.studies.seeds import seed_000, seed_001, seed_002, seed_003, seed_004
from benchmarks.studies.seeds.common import Figures, Form, Seed

SEEDS: list[Seed] = [module.SEED for module in (seed_000, seed_001, seed_002, seed_003, seed_004)]
_LABS = {"postgres": POSTGRES.open_lab, "mariadb": MARIADB.open_lab}


def seeds_engine(name: str) -> Engine:
    """Return an engine whose systems are the forms of all seeds, on its usual server."""
    forms = {form.name: form for seed in SEEDS for form in seed.forms(name)}
    kinds = {kind: partial(_run, name, seed, kind) for seed in SEEDS for kind in seed.kinds}
    return Engine(name, lambda: list(forms.values()), kinds, _LABS[name])


def seeds_scenarios(engine: str, *, quick: bool = False) -> list[Scenario]:
    """Return the scenarios of all seeds that run on an engine."""
    path = SCENARIOS.with_name("scenarios_seeds.toml")
    found = load_scenarios(quick=quick, path=path)
    return [scenario for scenario in found if engine in (scenario.engines or [engine])]


def _run(engine: str, seed: Seed, kind: str, url: str, form: Form, scenario: Scenario) -> Figures:
    """Run a scenario with the seed's own form of a name: rowq's session differs between seeds."""
    (own,) = (known for known in seed.forms(engine) if known.name == form.name)
    return seed.kinds[kind](url, own, scenario)
