"""Files of results: figures by scenario, system and round, and ratios."""

import json
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks.harness.measure import Spread, spread


class Results:
    """The results of one run."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.scenarios: dict[str, dict[str, Any]] = {s["name"]: s for s in data["scenarios"]}

    def rounds(self, scenario: str, system: str) -> list[dict[str, Any]]:
        """Return a system's figures, a dict per round; empty if it did not run."""
        return [
            run["figures"]
            for run in sorted(self.data["runs"], key=lambda run: int(run["round"]))
            if (run["scenario"], run["system"]) == (scenario, system)
        ]

    def systems(self, scenario: str) -> list[str]:
        """Return the systems that ran a scenario, in its order."""
        names: list[str] = self.scenarios.get(scenario, {}).get("systems", [])
        return [name for name in names if self.rounds(scenario, name)]

    def figure(self, scenario: str, system: str, name: str) -> Spread | None:
        """Return one figure over the rounds."""
        values = [figures[name] for figures in self.rounds(scenario, system)]
        return spread(values) if values else None

    def between(self, scenario: str, name: str, system: str, other: str) -> Spread | None:
        """Return a figure of one system divided by another's, round by round."""
        pairs = zip(self.rounds(scenario, system), self.rounds(scenario, other), strict=False)
        values = [mine[name] / theirs[name] for mine, theirs in pairs]
        return spread(values) if values else None

    def within(self, scenario: str, system: str, name: str, base: str) -> Spread | None:
        """Return a figure of a system divided by another of its figures, round by round."""
        values = [figures[name] / figures[base] for figures in self.rounds(scenario, system)]
        return spread(values) if values else None


def read_results(path: Path) -> dict[str, Any]:
    """Read a file of results."""
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def write_results(path: Path, data: dict[str, Any]) -> None:
    """Write a file of results as JSON, a line per record or scenario."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_json(data, "") + "\n", "utf-8")


def _json(value: Any, margin: str) -> str:
    """Return a value as JSON, on one line unless it contains a list of objects."""
    if not _has_records(value):
        return json.dumps(value)
    inside = f"{margin} "
    if isinstance(value, list):
        opening, closing = "[]"
        # The runs of a scenario share a line.
        by_scenario = groupby(enumerate(value), lambda item: item[1].get("scenario", item[0]))
        lines = [", ".join(_json(item, inside) for _, item in group) for _, group in by_scenario]
    else:
        opening, closing = "{}"
        lines = [f"{json.dumps(key)}: {_json(item, inside)}" for key, item in value.items()]
    text = ",\n".join(inside + line for line in lines)
    return f"{opening}\n{text}\n{margin}{closing}"


def _has_records(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_records, value.values()))
    return isinstance(value, list) and any(
        isinstance(item, dict) or _has_records(item) for item in value
    )
