"""Runs of a plan: every scenario, round and system, each in a fresh database."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from benchmarks.harness.host import commit_of, host_facts
from benchmarks.harness.scenarios import Scenario, turned


class System(Protocol):
    """A system as the report describes it; its engine defines further attributes."""

    @property
    def name(self) -> str:
        """Its name, one word."""

    @property
    def version(self) -> str:
        """Its version, or an empty string."""

    @property
    def origin(self) -> str:
        """Where it comes from, in words."""


class Lab(Protocol):
    """A server under test."""

    @property
    def directory(self) -> Path | None:
        """A directory on the server's disk, None if it is remote."""

    def facts(self) -> dict[str, str]:
        """Return the server's version, origin and settings."""

    def prepare(self, system: Any) -> None:
        """Prepare the server for the runs of a system."""

    def database(self, system: Any) -> AbstractContextManager[str]:
        """Install a system in a fresh database; the context is its URL."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A database product: its systems, its kinds of scenario and its server.

    open_lab: takes a URL, or None and the directory of a private server.
    """

    name: str
    systems: Callable[[], list[System]]
    kinds: Mapping[str, Callable[[str, Any, Scenario], dict[str, Any]]]
    open_lab: Callable[[str | None, Path], AbstractContextManager[Lab]]


@dataclass(frozen=True, slots=True)
class Plan:
    """The scenarios and systems to run, and how.

    peers: systems in addition to the engine's. url: of a server, None for a private one.
    home: the private server's directory. root: the checkout. command, note: for the report.
    """

    engine: Engine
    scenarios: list[Scenario]
    peers: Sequence[System]
    url: str | None
    home: Path
    root: Path
    command: str
    note: str


def run_facts(lab: Lab, root: Path, command: str, note: str) -> dict[str, Any]:
    """Return the time, commit, machine and server of a run that starts now."""
    return {
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit_of(root),
        "command": command,
        "note": note,
        "host": host_facts(lab.directory),
        "server": lab.facts(),
    }


def run_plan(plan: Plan) -> dict[str, Any]:
    """Run all scenarios and return the results as JSON data."""
    present = {system.name: system for system in [*plan.engine.systems(), *plan.peers]}
    scenarios = [
        replace(scenario, systems=[name for name in scenario.systems if name in present])
        for scenario in plan.scenarios
    ]
    began = time.monotonic()
    with plan.engine.open_lab(plan.url, plan.home) as lab:
        facts = run_facts(lab, plan.root, plan.command, plan.note)
        for name in dict.fromkeys(name for scenario in scenarios for name in scenario.systems):
            lab.prepare(present[name])
        runs = [
            run for scenario in scenarios for run in _run_all(lab, plan.engine, present, scenario)
        ]
    return facts | {
        "minutes": round((time.monotonic() - began) / 60, 1),
        "systems": [
            {"name": system.name, "version": system.version, "origin": system.origin}
            for system in present.values()
        ],
        "scenarios": [asdict(scenario) for scenario in scenarios],
        "runs": runs,
    }


def _run_all(
    lab: Lab, engine: Engine, present: dict[str, System], scenario: Scenario
) -> Iterator[dict[str, Any]]:
    for turn in range(scenario.rounds):
        for name in turned(scenario.systems, turn):
            began = time.monotonic()
            with lab.database(present[name]) as url:
                figures = engine.kinds[scenario.kind](url, present[name], scenario)
            where = f"{scenario.name}, round {turn + 1}, {name}"
            print(f"{where}: {_brief(figures)} [{time.monotonic() - began:.0f} s]", flush=True)
            yield {
                "scenario": scenario.name,
                "round": turn + 1,
                "system": name,
                "figures": figures,
            }


def _brief(figures: dict[str, Any]) -> str:
    shown = [f"{name}={value:g}" for name, value in figures.items()]
    return " ".join(shown[:7])


class Installed(Protocol):
    """A system that a lab can install."""

    @property
    def name(self) -> str:
        """Its name, one word."""

    @property
    def install(self) -> Callable[[str], object]:
        """A function that installs it in the empty database at a URL."""
