"""The peer benchmarks measure other queues, and the page shows their figures."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.harness.results import Results
from benchmarks.studies.page import render
from benchmarks.studies.peers.command import replaced
from benchmarks.studies.peers.figures import order
from benchmarks.studies.peers.peer import AbsentError, Peer
from benchmarks.studies.peers.python_peers import PEERS, PYTHON_PEERS
from benchmarks.studies.peers.report import check_peers
from benchmarks.studies.peers.results import PeerResults
from benchmarks.studies.peers.run import PeerPlan, run_peers
from benchmarks.studies.peers.runs import PeerScenario, load_peer_scenarios

COUNTS = {"steady": 100, "burst": 300, "drain": 400, "idle": 0}
OWN = [peer for peer in PYTHON_PEERS if peer.name in {"rowq", "bare"}]


def tiny(scenario: PeerScenario) -> PeerScenario:
    """Return a scenario of 1 to 2 seconds."""
    return replace(
        scenario,
        rounds=1,
        seconds=1.0,
        fill_seconds=2.0,
        messages=COUNTS[scenario.kind],
        bulk=min(scenario.bulk, 50),
        delayed=min(scenario.delayed, 100),
        target=min(scenario.target, 200),
        workers=min(scenario.workers, 4),
        processes=min(scenario.processes, 2),
        batch=min(scenario.batch, 10),
    )


def run(home: Path, names: set[str], peers: list[Peer]) -> dict[str, Any]:
    """Run scenarios and return the results as in a file."""
    scenarios = [tiny(scenario) for scenario in load_peer_scenarios() if scenario.name in names]
    plan = PeerPlan(
        scenarios, peers, url=None, home=home, root=home, size="full", command="make bench", note=""
    )
    found: dict[str, Any] = json.loads(json.dumps(run_peers(plan) | {"minutes": 1}))
    return found


def test_every_kind_of_peer_scenario_is_reported(home: Path) -> None:
    def find() -> str:
        raise AbsentError("its package is not installed")

    missing = replace(OWN[1], name="missing", find=find)
    names = {"steady", "burst", "idle", "snapshot", "delayed", "groups_10"}
    found = run(home, names, [*OWN, missing])
    results = PeerResults(found)
    steady = results.rounds("steady", "rowq")[1]
    assert 0 < steady["latency_ms_p50"] <= steady["latency_ms_p99"]
    assert results.rounds("burst", "rowq")[1]["messages"] == COUNTS["burst"]
    assert results.rounds("delayed", "rowq")[1]["delayed"] == 100
    assert results.rounds("groups_10", "rowq")[1]["out_of_order"] == 0
    assert results.rounds("idle", "rowq")[1]["connections"] > 0
    page = render({"peers": found})
    assert page.index("better than rowq") < page.index("rowq's rate divided by theirs")
    assert "| An open old snapshot the whole run | 400 | " in page
    assert "missing is absent: its package is not installed." in page
    assert "bare (a bare table has no due time): `delayed`" in page


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_available_peers_handle_each_message_once(home: Path, peer: Peer) -> None:
    try:
        peer.find()
    except AbsentError as error:
        pytest.skip(f"{error}; to run it: see benchmarks/README.md")
    found = run(home, {"steady" if "drain" in peer.cannot else "workers_1"}, [peer])
    if peer.name == "pgq" and not found["server"]["version"].startswith("15"):
        pytest.skip("no PostgreSQL 15 of Debian; to run it: apt-get install postgresql-15")
    assert found["not_run"] == []
    (figures,) = [run["figures"] for run in found["runs"]]
    assert figures.get("depth", 400) == 400
    assert figures["messages"] > 0


def test_worker_is_compared_with_a_loop_in_one_scenario(home: Path) -> None:
    own = [peer for peer in PYTHON_PEERS if peer.name in {"rowq", "rowq_loop"}]
    found = run(home, {"workers_1", "batch_1"}, own)
    assert found["not_run"] == []
    ran = {(one["scenario"], one["system"]) for one in found["runs"]}
    assert ran == {("workers_1", "rowq"), ("workers_1", "rowq_loop"), ("batch_1", "rowq")}
    (ratio, *_) = check_peers(Results(found))
    assert ratio.found is not None


def test_message_handled_out_of_group_order_is_counted() -> None:
    first = {"starts": [["a", 1, 1.0], ["b", 4, 1.1], ["a", 3, 1.4]]}
    second = {"starts": [["b", 2, 1.2], ["a", 5, 1.3]]}
    assert order([first, second]) == {"out_of_order": 2}
    assert order([first]) == {"out_of_order": 0}


def test_repeated_scenario_replaces_its_first_run() -> None:
    facts = {"made_at": "now", "commit": "b"}
    scenarios = [{"name": name} for name in ("batch_1", "batch_10")]
    first = {"scenario": "batch_1", "round": 1, "system": "rowq", "figures": {}}
    other = {"scenario": "batch_10", "round": 1, "system": "rowq", "reason": "it did not end"}
    whole = {"scenarios": scenarios, "runs": [first], "not_run": [other]}
    again = {"scenarios": scenarios[1:], "runs": [other | {"figures": {}}], "not_run": []}
    found = replaced(whole, facts | again)
    assert [run["scenario"] for run in found["runs"]] == ["batch_1", "batch_10"]
    assert found["not_run"] == []
    assert found["again"] == [{"scenarios": ["batch_10"]} | facts]
