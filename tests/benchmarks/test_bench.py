"""The benchmarks run, and the committed report is the one that its results give."""

import json
from pathlib import Path

import pytest

from benchmarks.harness.bodies import BODY_BYTES, body
from benchmarks.harness.drawing import save_plots
from benchmarks.harness.results import Results
from benchmarks.harness.scenarios import Scenario, load_scenarios, turned
from benchmarks.studies import before, command
from benchmarks.studies.queues.engine import POSTGRES
from benchmarks.studies.queues.plots import plots
from benchmarks.studies.queues.report import render
from benchmarks.studies.queues.systems import pgmq, rowq
from benchmarks.studies.queues.targets import check_targets
from tests.benchmarks.runs import BENCHMARKS, run

RESULTS = BENCHMARKS / "results" / "postgres.json"
TINY = {"drain": 2000, "one_by_one": 0, "snapshot": 400, "depth": 500}


def tiny(scenario: Scenario) -> Scenario:
    """Return a scenario that takes a second or two."""
    return Scenario(
        name=scenario.name,
        kind=scenario.kind,
        title=scenario.title,
        systems=scenario.systems,
        rounds=1,
        sessions=min(scenario.sessions, 2),
        batches=scenario.batches,
        durable=scenario.durable,
        messages=TINY[scenario.kind],
        delayed=100 if scenario.delayed else 0,
        seconds=1,
        calm=0.5,
        preload=60 if scenario.preload else 0,
        samples=3 if scenario.samples else 0,
    )


def test_every_scenario_of_every_system_is_measured_and_reported(home: Path) -> None:
    peer = pgmq(None)
    assert peer is not None, "the extra dev installs the package pgmq"
    found = run(POSTGRES, [tiny(scenario) for scenario in load_scenarios()], home, [peer])
    results = Results(found)
    for name, scenario in results.scenarios.items():
        assert sorted(results.systems(name)) == sorted(scenario["systems"])
    assert all(
        run["figures"]["messages"] > 0 for run in found["runs"] if run["scenario"] != "depth"
    )
    report = render(found)
    assert all(f"## {scenario['title']}" in report for scenario in results.scenarios.values())
    save_plots(plots(found), home.parent, "postgres.json")
    drawn = {path.name for path in home.parent.glob("*.*")}
    assert drawn == {"rates.svg", "snapshot_1.svg", "snapshot_50.svg"}


def test_without_a_peer_rowq_is_measured_alone_and_the_report_says_so(home: Path) -> None:
    found = run(POSTGRES, [tiny(scenario) for scenario in load_scenarios()[:1]], home)
    assert "pgmq was not at hand" in render(found)
    assert Results(found).systems("drain_durable") == ["rowq", "bare"]
    assert all(target.is_met is None for target in check_targets(Results(found)))


def test_rowq_is_measured_beside_rowq_of_another_commit(home: Path, tmp_path: Path) -> None:
    root = BENCHMARKS.parent
    if not (root / ".git").exists():
        pytest.skip("this is no checkout of git; to run it: clone the repository")
    scenarios = before.beside([tiny(load_scenarios()[0])])
    other = before.rowq_before(rowq(), root, "HEAD", tmp_path)
    found = run(POSTGRES, scenarios, home, [other])
    lines = list(before.ratios(found))
    assert [line.partition(":")[0] for line in lines] == ["drain_durable"] * 3
    assert all(float(line.rpartition(" ")[2]) > 0 for line in lines)


@pytest.mark.parametrize("words", [["--rounds", "0"], ["--rounds", "3", "--set", "profile"]])
def test_rounds_that_cannot_be_run_are_refused(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(words)
    assert ended.value.code == 2
    assert "--rounds takes a number from 1" in capsys.readouterr().err


def test_the_committed_report_is_fresh_and_measured_every_target() -> None:
    found = json.loads(RESULTS.read_text("utf-8"))
    assert (BENCHMARKS / "RESULTS.md").read_text("utf-8") == render(found)
    assert all(target.is_met is not None for target in check_targets(Results(found)))
    assert not found["command"].count("QUICK")


def test_a_body_is_a_json_object_of_the_length_that_the_readme_says() -> None:
    assert len(body(7)) == BODY_BYTES == 200
    assert json.loads(body(7))["n"] == "0000000007"


@pytest.mark.parametrize("quick", [False, True])
def test_scenarios_give_each_system_a_first_turn(quick: bool) -> None:
    for scenario in load_scenarios(quick=quick):
        firsts = {turned(scenario.systems, turn)[0] for turn in range(len(scenario.systems))}
        assert firsts == set(scenario.systems)
