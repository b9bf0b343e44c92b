"""Scenarios, read from the scenarios*.toml files."""

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

SCENARIOS = Path(__file__).parent.parent / "scenarios.toml"
_Name = TypeVar("_Name")
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
    batches: list[int]
    durable: bool
    messages: int = 0
    delayed: int = 0
    seconds: float = 0
    calm: float = 0
    preload: int = 0
    samples: int = 0
    engines: tuple[str, ...] = ()
    producers: int = 0
    body_bytes: int = 200

    @property
    def batch(self) -> int:
        """The batch size of a kind with only one."""
        (batch,) = self.batches
        return batch


def turned(names: Sequence[_Name], turn: int) -> list[_Name]:
    """Return names rotated by the number of the round, from 0."""
    first = turn % len(names) if names else 0
    return [*names[first:], *names[:first]]


def load_scenarios(*, quick: bool = False, path: Path = SCENARIOS) -> list[Scenario]:
    """Return all scenarios of a file in order, small ones for a quick run."""
    return [Scenario(**values) for values in scenario_values(path, "quick" if quick else "full")]


def scenario_values(path: Path, size: str) -> Iterator[dict[str, Any]]:
    """Yield the values of each scenario of a file for a run of one of SIZES.

    A table named after the size overrides values of its scenario, or of "defaults".
    """
    tables: dict[str, dict[str, Any]] = tomllib.loads(path.read_text("utf-8"))
    defaults = tables.pop("defaults", {})
    for name, table in tables.items():
        smaller = defaults.get(size, {}) | table.get(size, {})
        values = {"name": name} | defaults | table | smaller
        yield {key: value for key, value in values.items() if key not in SIZES}
