"""Scenarios, read from the scenarios*.toml files."""

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

SCENARIOS = Path(__file__).parent.parent / "scenarios.toml"
_Item = TypeVar("_Item")
SIZES = ("full", "middle", "quick")


@dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario; scenarios.toml describes the fields."""

    name: str
    kind: str
    title: str
    systems: list[str]
    rounds: int
    sessions: int
    durable: bool
    batch: int = 1
    batches: list[int] = field(default_factory=list)
    combined: bool = False
    queues: int = 0
    schedules: int = 0
    due: int = 0
    every: float = 0
    messages: int = 0
    delayed: int = 0
    seconds: float = 0
    calm: float = 0
    preload: int = 0
    samples: int = 0
    engines: tuple[str, ...] = ()
    producers: int = 0
    body_bytes: int = 200


def turned(items: Sequence[_Item], turn: int) -> list[_Item]:
    """Return items rotated by the number of the round, from 0."""
    first = turn % len(items) if items else 0
    return [*items[first:], *items[:first]]


def load_scenarios(*, quick: bool = False, path: Path = SCENARIOS) -> list[Scenario]:
    """Return all scenarios of a file in order, small ones for a quick run."""
    return [Scenario(**values) for values in scenario_values(path, "quick" if quick else "full")]


def scenario_values(path: Path, size: str) -> Iterator[dict[str, Any]]:
    """Yield the values of each scenario of a file for a run of one of SIZES.

    A table named after the size overrides values of its scenario, or of "defaults". The lists of
    the table `vary` make a scenario of each combination, with the values at the end of its name.
    A title may name other keys in braces.
    """
    tables: dict[str, dict[str, Any]] = tomllib.loads(path.read_text("utf-8"))
    defaults = tables.pop("defaults", {})
    for name, table in tables.items():
        smaller = defaults.get(size, {}) | table.get(size, {})
        values = defaults | table | smaller
        vary = values.pop("vary", {})
        shared = {key: value for key, value in values.items() if key not in SIZES}
        for chosen in product(*vary.values()):
            own = dict(zip(vary, chosen, strict=True))
            made = shared | own
            names = {"name": "_".join([name, *map(str, chosen)])}
            yield made | names | {"title": made["title"].format_map(made)}
