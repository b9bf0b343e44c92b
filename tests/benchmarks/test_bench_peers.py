"""Programs of their own measure other people's queues, and the report has the figures they give."""

import json
import math
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.harness.drawing import save_plots
from benchmarks.harness.scenarios import SIZES, turned
from benchmarks.studies.peers.command import replaced
from benchmarks.studies.peers.figures import WrongCountError, check, order, rates_within
from benchmarks.studies.peers.peer import AbsentError, Peer
from benchmarks.studies.peers.plots import plots
from benchmarks.studies.peers.process import Program, ProgramError, start_together
from benchmarks.studies.peers.protocol import Histogram, percentile
from benchmarks.studies.peers.python_peers import PYTHON_PEERS
from benchmarks.studies.peers.registry import PEERS
from benchmarks.studies.peers.report import render_peers
from benchmarks.studies.peers.results import PeerResults
from benchmarks.studies.peers.run import PeerPlan, run_peers
from benchmarks.studies.peers.scenarios import PeerScenario, load_peer_scenarios
from tests.benchmarks.runs import BENCHMARKS

RESULTS = BENCHMARKS / "results" / "peers.json"
_SECONDS, _FILL_SECONDS = 1.0, 2.0
COUNTS = {"steady": 100, "burst": 300, "drain": 400, "idle": 0}
OWN = [peer for peer in PYTHON_PEERS if peer.name in {"rowq", "bare"}]


def tiny(scenario: PeerScenario) -> PeerScenario:
    """Return a scenario that takes a second or two."""
    return replace(
        scenario,
        rounds=1,
        seconds=_SECONDS,
        fill_seconds=_FILL_SECONDS,
        messages=COUNTS[scenario.kind],
        bulk=min(scenario.bulk, 50),
        delayed=min(scenario.delayed, 100),
        target=min(scenario.target, 200),
        workers=min(scenario.workers, 4),
        processes=min(scenario.processes, 2),
        batch=min(scenario.batch, 10),
    )


def run(home: Path, names: set[str], peers: list[Peer]) -> dict[str, Any]:
    """Run scenarios and return the results as they are read from a file."""
    scenarios = [tiny(scenario) for scenario in load_peer_scenarios() if scenario.name in names]
    plan = PeerPlan(
        scenarios, peers, url=None, home=home, root=home, size="full", command="make bench", note=""
    )
    found: dict[str, Any] = json.loads(json.dumps(run_peers(plan)))
    return found


def program(text: str) -> Peer:
    """Return a peer whose program is a Python text."""
    return Peer("made", "here", lambda: "1", (sys.executable, "-c", text))


def test_waiting_workers_are_measured_and_reported(home: Path) -> None:
    found = run(home, {"steady", "burst", "idle"}, OWN[:1])
    results = PeerResults(found)
    assert results.systems == ["rowq"]
    assert found["not_run"] == []
    steady = results.rounds("steady", "rowq")[1]
    assert 0 < steady["latency_ms_p50"] <= steady["latency_ms_p99"]
    assert results.rounds("burst", "rowq")[1]["messages"] == COUNTS["burst"]
    assert results.rounds("idle", "rowq")[1]["server_cpu_ms_per_second"] >= 0
    report = render_peers(found)
    assert report.index("better than rowq") < report.index("rowq's rate, divided by theirs")
    save_plots(plots(found), home.parent, "peers.json")
    assert (home.parent / "peers_latency.svg").exists()


def test_drains_are_measured_beside_a_snapshot_and_delayed_messages(home: Path) -> None:
    found = run(home, {"snapshot", "delayed"}, OWN[:1])
    results = PeerResults(found)
    assert found["not_run"] == []
    delayed, snapshot = (results.rounds(name, "rowq")[1] for name in ("delayed", "snapshot"))
    assert (delayed["delayed"], snapshot["delayed"]) == (100, 0)
    assert min(delayed["messages"], snapshot["messages"]) > 0
    assert min(delayed["wal_bytes_per_message"], snapshot["wal_bytes_per_message"]) > 0
    assert "last fifth" in render_peers(found)
    save_plots(plots(found), home.parent, "peers.json")
    assert (home.parent / "peers_rates.svg").exists()


def test_groups_are_handled_in_their_order(home: Path) -> None:
    found = run(home, {"groups_10"}, OWN[:1])
    assert found["not_run"] == []
    (figures,) = [run["figures"] for run in found["runs"]]
    assert (figures["depth"], figures["out_of_order"]) == (COUNTS["drain"], 0)
    assert "| out of order |" in render_peers(found)


def test_a_message_handled_after_a_later_one_of_its_group_is_counted() -> None:
    first = {"starts": [["a", 1, 1.0], ["b", 4, 1.1], ["a", 3, 1.4]]}
    second = {"starts": [["b", 2, 1.2], ["a", 5, 1.3]]}
    assert order([first, second]) == {"out_of_order": 2}
    assert order([first]) == {"out_of_order": 0}


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_every_peer_that_is_here_handles_each_message_once(home: Path, peer: Peer) -> None:
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


def test_a_peer_that_is_not_here_or_cannot_is_shown_with_the_reason(home: Path) -> None:
    def find() -> str:
        raise AbsentError("its package is not installed")

    missing = replace(OWN[1], name="missing", find=find)
    found = run(home, {"workers_1", "delayed"}, [OWN[1], missing])
    assert [run["system"] for run in found["runs"]] == ["bare"]
    report = render_peers(found)
    assert "**missing is absent: its package is not installed.**" in report
    assert "| bare | a bare table has no due time | Behind delayed messages |" in report


def test_a_program_that_fails_is_reported_with_its_last_words() -> None:
    with (
        Program(program("import sys; sys.exit('no such queue')"), "consume", {}) as broken,
        pytest.raises(ProgramError, match="no such queue"),
    ):
        broken.wait_ready()


def test_a_program_is_let_go_stopped_and_heard() -> None:
    text = """
import json, sys
say = lambda line: print(json.dumps(line), flush=True)
config = json.loads(sys.stdin.readline())
say({"ready": True})
orders = [json.loads(sys.stdin.readline()) for _ in range(3)]
say({"handled": 3})
say({"role": config["role"], "orders": orders})
"""
    with Program(program(text), "consume", {"workers": 1}) as talking:
        start_together([talking])
        talking.mark()
        talking.stop()
        result = talking.finish()
    assert result == {"role": "consume", "orders": [{"go": True}, {"mark": True}, {"stop": True}]}
    assert talking.handled == 3
    assert talking.cpu >= 0


def test_a_program_that_does_not_end_is_killed_on_leaving() -> None:
    with Program(program("import time; time.sleep(600)"), "consume", {}) as sleeping:
        assert not sleeping.ended
    assert sleeping.ended


@pytest.mark.parametrize(
    ("messages", "numbers", "fault"),
    [(5, 10, None), (4, 6, None), (6, 15, "handled twice"), (5, 11, "lost"), (0, 0, "no message")],
)
def test_lost_and_doubled_messages_are_found(
    messages: int, numbers: int, fault: str | None
) -> None:
    results = [{"messages": messages, "sum": numbers}]
    if fault is None:
        check(results, 5, 10)
        return
    with pytest.raises(WrongCountError, match=fault):
        check(results, 5, 10)


def test_a_percentile_is_within_two_per_cent_of_the_value() -> None:
    histogram = Histogram()
    for value in range(1, 10001):
        histogram.add(value / 1e6)
    for share in (0.5, 0.99, 1.0):
        assert math.isclose(percentile(histogram.counts, share), share * 10000, rel_tol=0.03)
    assert histogram.greatest == pytest.approx(10000)


def test_a_slowing_rate_shows_between_the_first_and_the_last_fifth() -> None:
    samples = [(0.0, 0), *((step / 10, 100 * min(step, 5)) for step in range(1, 10)), (1.0, 510)]
    found = rates_within(samples)
    assert found["rate_start"] == 1000
    assert found["rate_end"] < 100


@pytest.mark.parametrize("size", SIZES)
def test_every_scenario_can_be_run_in_each_size(size: str) -> None:
    scenarios = load_peer_scenarios(size)
    assert [s.name for s in scenarios] == [s.name for s in load_peer_scenarios()]
    for scenario in scenarios:
        assert sum(scenario.shares()) == scenario.workers
        assert scenario.seconds > 0
        assert set(scenario.needs) <= {"batch", "workers", "delay", "group"}


def test_what_a_peer_cannot_do_is_something_that_a_scenario_needs() -> None:
    for peer in PEERS:
        assert set(peer.cannot) <= {"batch", "workers", "delay", "group", *COUNTS}


def test_each_peer_has_its_turn_first() -> None:
    assert [turned(["a", "b", "c"], turn)[0] for turn in range(4)] == ["a", "b", "c", "a"]


def figures_of(system: str, rate: float, turn: int = 1) -> Mapping[str, Any]:
    """Return a run of a drain with a rate."""
    figures = {"messages": 10, "messages_per_second": rate, "wal_bytes_per_message": 100.0}
    return {"scenario": "batch_1", "round": turn, "system": system, "figures": figures}


def test_a_queue_that_is_better_is_named_and_a_little_better_is_not() -> None:
    scenario = {"name": "batch_1", "kind": "drain"}
    runs = [
        *(figures_of("rowq", rate, turn) for turn, rate in enumerate((100.0, 110.0, 120.0))),
        *(figures_of("fast", rate, turn) for turn, rate in enumerate((200.0, 220.0, 240.0))),
        *(figures_of("same", rate, turn) for turn, rate in enumerate((101.0, 111.0, 121.0))),
        *(figures_of("bare", rate, turn) for turn, rate in enumerate((400.0, 440.0, 480.0))),
        *(figures_of("tuned", rate, turn) for turn, rate in enumerate((300.0, 330.0, 360.0))),
    ]
    systems = [{"name": name} for name in ("rowq", "fast", "same", "bare")]
    results = PeerResults(
        {
            "scenarios": [scenario],
            "systems": [*systems, {"name": "tuned", "own": True}],
            "runs": runs,
            "not_run": [],
        }
    )
    (beaten,) = results.beaten()
    assert (beaten.system, beaten.measure.key) == ("fast", "messages_per_second")
    assert beaten.ratio.median == pytest.approx(0.5)


def test_a_scenario_that_is_run_again_takes_the_place_of_its_first_run() -> None:
    facts = {"made_at": "now", "commit": "b"}
    scenarios = [{"name": name, "kind": "drain", "seconds": 1} for name in ("batch_1", "batch_10")]
    other = {"scenario": "batch_10", "round": 1, "system": "rowq", "reason": "it did not end"}
    first = {"scenarios": scenarios, "runs": [figures_of("rowq", 1.0)], "not_run": [other]}
    again = {"scenarios": scenarios[1:], "runs": [other | {"figures": {}}], "not_run": []}
    found = replaced(first, facts | again)
    assert [run["scenario"] for run in found["runs"]] == ["batch_1", "batch_10"]
    assert found["not_run"] == []
    assert found["again"] == [{"scenarios": ["batch_10"]} | facts]


@pytest.mark.skipif(not RESULTS.exists(), reason="no run has been committed; to run it: make bench")
def test_the_committed_report_is_fresh() -> None:
    found = json.loads(RESULTS.read_text("utf-8"))
    assert (BENCHMARKS / "RESULTS-peers.md").read_text("utf-8") == render_peers(found)
    assert found["size"] in {"full", "middle"}
