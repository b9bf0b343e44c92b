"""Runs a plan: every scenario, round and system, in fresh databases of one server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.rowq_bench.host import commit_of, host_facts
from benchmarks.rowq_bench.kinds import KINDS
from benchmarks.rowq_bench.scenarios import Scenario
from benchmarks.rowq_bench.server import SETTINGS, Lab, open_lab
from benchmarks.rowq_bench.systems import System, bare, rowq


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run.

    peers: the systems besides rowq and the bare table. url: of a server, None for a private one.
    home: the private server's directory. root: the checkout. command, note: for the report.
    """

    scenarios: list[Scenario]
    peers: list[System]
    url: str | None
    home: Path
    root: Path
    command: str
    note: str


def run_plan(plan: Plan) -> dict[str, Any]:
    """Run everything, and return the results as JSON data."""
    present = {system.name: system for system in [rowq(), bare(), *plan.peers]}
    scenarios = [
        replace(scenario, systems=[name for name in scenario.systems if name in present])
        for scenario in plan.scenarios
    ]
    began = time.monotonic()
    with open_lab(plan.url, plan.home, SETTINGS) as lab:
        facts = {
            "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "commit": commit_of(plan.root),
            "command": plan.command,
            "note": plan.note,
            "host": host_facts(plan.home if lab.local else None),
            "server": lab.facts(),
        }
        for system in present.values():
            lab.prepare(system)
        runs = [run for scenario in scenarios for run in _run_all(lab, present, scenario)]
    return facts | {
        "minutes": round((time.monotonic() - began) / 60, 1),
        "systems": [
            {"name": system.name, "version": system.version, "origin": system.origin}
            for system in present.values()
        ],
        "scenarios": [asdict(scenario) for scenario in scenarios],
        "runs": runs,
    }


def _run_all(lab: Lab, present: dict[str, System], scenario: Scenario) -> Iterator[dict[str, Any]]:
    for turn in range(scenario.rounds):
        for name in scenario.order(turn):
            began = time.monotonic()
            with lab.database(present[name]) as url:
                figures = KINDS[scenario.kind](url, present[name], scenario)
            where = f"{scenario.name}, round {turn + 1}, {name}"
            print(f"{where}: {_brief(figures)} [{time.monotonic() - began:.0f} s]", flush=True)
            yield {
                "scenario": scenario.name,
                "round": turn + 1,
                "system": name,
                "figures": figures,
            }


def _brief(figures: dict[str, Any]) -> str:
    shown = [f"{name}={value:g}" for name, value in figures.items() if name != "samples"]
    return " ".join(shown[:7])
