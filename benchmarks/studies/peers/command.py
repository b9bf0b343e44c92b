"""Run of the set peers: `make bench ARGS="--set peers"`."""

import argparse
from pathlib import Path
from typing import Any

from benchmarks.harness.results import read_results, write_results
from benchmarks.studies.page import PAGE, RESULTS, write
from benchmarks.studies.peers.process import ROOT
from benchmarks.studies.peers.python_peers import PEERS
from benchmarks.studies.peers.run import PeerPlan, run_peers
from benchmarks.studies.peers.runs import load_peer_scenarios


def run_set(asked: argparse.Namespace, size: str, to: Path, home: Path, command: str) -> None:
    """Run the set and write the results and the page.

    asked: the parsed command line. size: of the scenarios. to: directory of the page, above that
    of the results. home: directory of a private server. command: for the report.
    """
    results = to / RESULTS / "peers.json"
    plan = PeerPlan(
        scenarios=[s for s in load_peer_scenarios(size) if s.name in (asked.only or [s.name])],
        peers=[peer for peer in PEERS if peer.name in (asked.peers or [peer.name])],
        url=asked.url,
        home=home,
        root=ROOT,
        size=size,
        command=command,
        note=asked.note,
    )
    data = run_peers(plan)
    if asked.again:
        data = replaced(read_results(results), data)
    write_results(results, data)
    write(to)
    print(f"Wrote {to / PAGE}")


def replaced(whole: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """Return a run's results with some scenarios replaced by those of a later run."""
    names = {scenario["name"]: scenario for scenario in part["scenarios"]}
    kept = {
        key: [entry for entry in whole[key] if entry["scenario"] not in names]
        for key in ("runs", "not_run")
    }
    return (
        whole
        | {key: [*kept[key], *part[key]] for key in kept}
        | {"scenarios": [names.get(scenario["name"], scenario) for scenario in whole["scenarios"]]}
        | {
            "again": [
                *whole.get("again", []),
                {"scenarios": list(names)} | {key: part[key] for key in ("made_at", "commit")},
            ]
        }
    )
