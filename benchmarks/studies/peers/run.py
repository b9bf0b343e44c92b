"""Runs of the set: every scenario, round and peer, each in a fresh database."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from benchmarks.engines.postgres.lab import SETTINGS, Lab, open_lab
from benchmarks.harness.runner import run_facts
from benchmarks.harness.scenarios import turned
from benchmarks.studies.peers.figures import WrongCountError
from benchmarks.studies.peers.kinds import KINDS
from benchmarks.studies.peers.peer import AbsentError, Peer
from benchmarks.studies.peers.process import ProgramError, run_program
from benchmarks.studies.peers.runs import PeerScenario, Run, config_of
from rowq.tools.local_postgres.directory import choose_binaries
from rowq.tools.local_postgres.server import LocalPostgresError

# PgQ is packaged for Debian's PostgreSQL 15; the others run on 18 as well.
_MAJORS = (15, 18)
_SETTINGS = {
    **SETTINGS,
    "max_connections": "200",
    "shared_preload_libraries": "pg_stat_statements",
}


@dataclass(frozen=True, slots=True)
class PeerPlan:
    """The scenarios and peers to run, and how.

    url: of a server, None for a private one. home: the private server's directory, to which
    its major version is appended. root: the checkout.
    size: of the scenarios, command, note: for the report.
    """

    scenarios: list[PeerScenario]
    peers: Sequence[Peer]
    url: str | None
    home: Path
    root: Path
    size: str
    command: str
    note: str


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A peer that a lab can install."""

    name: str
    install: Callable[[str], object]


def run_peers(plan: PeerPlan) -> dict[str, Any]:
    """Run all scenarios and return the results as JSON data."""
    began = time.monotonic()
    major = _major()
    found: list[dict[str, Any]] = []
    with open_lab(
        plan.url, plan.home.with_name(f"{plan.home.name}{major}"), _SETTINGS, major
    ) as lab:
        facts = run_facts(lab, plan.root, plan.command, plan.note) | {"size": plan.size}
        _count_statements(lab)
        present = {peer.name: peer for peer in plan.peers if _prepare(lab, peer, found)}
        runs = [run for scenario in plan.scenarios for run in _run_all(lab, present, scenario)]
    return facts | {
        "minutes": round((time.monotonic() - began) / 60, 1),
        "systems": found,
        "scenarios": [asdict(scenario) | {"systems": list(present)} for scenario in plan.scenarios],
        "runs": [run for run in runs if "figures" in run],
        "not_run": [run for run in runs if "figures" not in run],
    }


def _major() -> int:
    """Return the first installed version of PostgreSQL."""
    for major in _MAJORS:
        with contextlib.suppress(LocalPostgresError):
            return choose_binaries(major).major
    return _MAJORS[-1]


def _count_statements(lab: Lab) -> None:
    """Install pg_stat_statements, if available."""
    with (
        psycopg.connect(make_conninfo(lab.url), autocommit=True) as connection,
        contextlib.suppress(psycopg.Error),
    ):
        connection.execute("create extension if not exists pg_stat_statements")


def _prepare(lab: Lab, peer: Peer, found: list[dict[str, Any]]) -> bool:
    """Make a peer's template, add its facts to `found`, and return whether it can run."""
    system = {"name": peer.name, "origin": peer.origin, "settings": peer.settings}
    try:
        version = peer.find()
        lab.prepare(_Prepared(peer.name, lambda url: run_program(peer, "prepare", config_of(url))))
    except (AbsentError, ProgramError) as error:
        print(f"{peer.name} is absent: {error}", flush=True)
        found.append(system | {"version": "", "absent": str(error).splitlines()[-1]})
        return False
    found.append(system | {"version": version, "floor": peer.floor, "own": peer.own})
    return True


def _run_all(
    lab: Lab, present: dict[str, Peer], scenario: PeerScenario
) -> Iterator[dict[str, Any]]:
    peers = [p for p in present.values() if scenario.name in (p.only or [scenario.name])]
    for turn in range(scenario.rounds):
        for peer in turned(peers, turn):
            where = {"scenario": scenario.name, "round": turn + 1, "system": peer.name}
            began = time.monotonic()
            needs = [*scenario.needs, scenario.kind]
            why = [peer.cannot[need] for need in needs if need in peer.cannot]
            if why:
                yield where | {"reason": why[0]}
                continue
            outcome = _run_one(lab, peer, scenario)
            print(
                f"{scenario.name}, round {turn + 1}, {peer.name}: {_brief(outcome)}"
                f" [{time.monotonic() - began:.1f} s]",
                flush=True,
            )
            yield where | outcome


def _run_one(lab: Lab, peer: Peer, scenario: PeerScenario) -> dict[str, Any]:
    postmaster = lab.local.pid if lab.local else None
    with lab.database(_Prepared(peer.name, lambda _: None)) as url:
        run = Run(peer, scenario, url, lab.url, postmaster)
        try:
            return {"figures": KINDS[scenario.kind](run) | {"one_worker": run.is_cut}}
        except (ProgramError, WrongCountError) as error:
            return {"reason": str(error).splitlines()[-1]}


def _brief(outcome: dict[str, Any]) -> str:
    if "reason" in outcome:
        return str(outcome["reason"])
    figures: dict[str, Any] = outcome["figures"]
    shown = [f"{name}={value:g}" for name, value in figures.items() if value is not None]
    return " ".join(shown[:9])
