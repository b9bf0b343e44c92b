"""Every benchmark scenario runs on a small scale and is reported."""

from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from benchmarks.harness.results import Results
from benchmarks.harness.scenarios import Scenario, load_scenarios
from benchmarks.studies import command
from benchmarks.studies.page import render
from benchmarks.studies.queues.engine import POSTGRES
from benchmarks.studies.queues.systems import pgmq, rowq
from benchmarks.studies.queues.targets import check_targets
from benchmarks.studies.queues_mariadb import targets as mariadb_targets
from benchmarks.studies.queues_mariadb.engine import MARIADB, SCENARIOS
from benchmarks.studies.seeds.common import Report
from benchmarks.studies.seeds.report import SEEDS, seeds_engine, seeds_scenarios
from benchmarks.studies.seeds.seed_001 import broken_order
from tests.benchmarks.runs import BENCHMARKS, run

CALLS = 5
TINY = {"drain": 2000, "snapshot": 400, "depth": 500}


def tiny(scenario: Scenario) -> Scenario:
    """Return a scenario of 1 to 2 seconds."""
    messages = TINY.get(scenario.kind, 40 * scenario.batch) if scenario.messages else 0
    return replace(
        scenario,
        rounds=1,
        sessions=min(scenario.sessions, 2),
        messages=messages,
        delayed=min(scenario.delayed, 100),
        seconds=min(scenario.seconds, 0.3),
        calm=min(scenario.calm, 0.5),
        preload=min(scenario.preload, 60),
        samples=min(scenario.samples, CALLS - 3 if scenario.queues else 30),
        every=0,
        queues=min(scenario.queues, 20),
        schedules=min(scenario.schedules, 50),
        due=min(scenario.due, 10),
    )


def check(found: Results) -> None:
    """Check that every scenario has every system and a row on the page."""
    for name, scenario in found.scenarios.items():
        assert sorted(found.systems(name)) == sorted(scenario["systems"])
    assert all(run["figures"].get("messages", 1) > 0 for run in found.data["runs"])


def test_every_scenario_is_measured_and_reported(home: Path) -> None:
    peer = pgmq(None)
    assert peer is not None, "the extra dev installs the package pgmq"
    found = run(POSTGRES, [tiny(scenario) for scenario in load_scenarios()], home, [peer])
    results = Results(found)
    check(results)
    assert all(target.is_met is not None for target in check_targets(results))
    page = render({"postgres": found})
    assert all(f"| {name} | rowq | " in page for name in results.scenarios)


@pytest.mark.usefixtures("mariadb")
def test_every_mariadb_scenario_is_measured_and_reported(tmp_path: Path) -> None:
    scenarios = [tiny(scenario) for scenario in load_scenarios(path=SCENARIOS)]
    found = run(MARIADB, scenarios, tmp_path)
    results = Results(found)
    check(results)
    assert all(target.is_met is not None for target in mariadb_targets.check_targets(results))
    page = render({"mariadb": found})
    assert all(f"| {name} | rowq | " in page for name in results.scenarios)
    assert "innodb_flush_log_at_trx_commit 1" in page


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("number", "engine"),
    [
        (number, engine)
        for number, seed in enumerate(SEEDS)
        for engine in ("postgres", "mariadb")
        if engine == "postgres" or any(s.kind in seed.kinds for s in seeds_scenarios(engine))
    ],
)
def test_seeded_experiment_runs_and_is_reported(
    number: int, engine: str, home: Path, request: pytest.FixtureRequest
) -> None:
    kinds = SEEDS[number].kinds
    known = seeds_scenarios(engine, quick=True)
    # One scenario of each kind, for rowq and its closest variant, runs all code.
    firsts = {s.kind: s for s in reversed(known) if s.kind in kinds}
    scenarios = [replace(s, sessions=2, systems=s.systems[:2]) for s in firsts.values()]
    assert scenarios
    if engine == "mariadb":
        request.getfixturevalue("mariadb")
    results = Results(run(seeds_engine(engine), scenarios, home))
    check(results)
    for name in results.scenarios:
        (own,) = results.rounds(name, "rowq")
        assert own.get("double_runs", 0) == own.get("broken_order", 0) == 0
        assert own.get("killed_back", 5) == 5
        assert own.get("slow_twice", 0) == own.get("cut_off_twice", 0) == 0
    page = render({f"seeds_{engine}": results.data})
    assert all(f"| {name} | rowq | " in page for name in results.scenarios)


def test_message_begun_before_its_predecessor_breaks_order() -> None:
    first = Report(done=[(1, 0.0, 1.0), (3, 2.0, 3.0)])
    second = Report(done=[(2, 0.5, 1.5), (5, 4.0, 5.0)])
    assert broken_order([first, second], {1: 0, 2: 1, 3: 2, 5: 4}) == 2


def test_rowq_is_compared_with_another_commit(home: Path, tmp_path: Path) -> None:
    root = BENCHMARKS.parent
    if not (root / ".git").exists():
        pytest.skip("this is not a git checkout; to run it: clone the repository")
    scenarios = command.beside([tiny(load_scenarios()[0])])
    other = command.rowq_before(rowq(), root, "HEAD", tmp_path)
    found = run(POSTGRES, scenarios, home, [other])
    lines = list(command.ratios(found))
    assert [line.partition(":")[0] for line in lines] == ["drain_durable"] * 3
    assert all(float(line.rpartition(" ")[2]) > 0 for line in lines)


def test_commit_without_complete_and_dequeue_uses_two_calls(home: Path) -> None:
    def install(url: str) -> None:
        rowq().install(url)
        with psycopg.connect(url) as connection:
            connection.execute("drop function rowq.complete_and_dequeue")

    known = {scenario.name: tiny(scenario) for scenario in load_scenarios()}
    scenarios = command.beside([known["combined_1"], known["schedules_20"]])
    found = run(POSTGRES, scenarios, home, [replace(rowq(), name=command.NAME, install=install)])
    (combined,) = Results(found).rounds("combined_1", "rowq")
    (before,) = Results(found).rounds("combined_1", command.NAME)
    assert (combined["calls"], before["calls"]) == (2, 3)
    lines = list(command.ratios(found))
    assert lines[0].startswith("combined_1: rowq_before lacks complete_and_dequeue")
    assert sum("call, rowq" in line for line in lines) == 4
    (due,) = Results(found).rounds("schedules_20", "rowq")
    assert due["rows"] == 20
    assert due["waiting_start"] == 0
    assert due["waiting_end"] == 10 * CALLS


def test_report_states_how_many_messages_wait(home: Path) -> None:
    known = {scenario.name: tiny(scenario) for scenario in load_scenarios()}
    names = ("drain_durable", "one_by_one", "enqueue_async_1", "maintain_1000")
    results = Results(run(POSTGRES, [known[name] for name in names], home, [pgmq(None)]))
    for system in ("rowq", "pgmq", "bare"):
        (drain,), (one,), (enqueue,) = (results.rounds(name, system) for name in names[:3])
        assert 0 == drain["waiting_end"] < drain["waiting_start"] <= 2000
        assert one["waiting_start"] == one["waiting_end"] == 60
        assert enqueue["waiting_end"] == enqueue["waiting_start"] + enqueue["messages"]
    (maintain,) = results.rounds("maintain_1000", "rowq")
    assert maintain["waiting_start"] == maintain["waiting_end"] == 20 * 20


def test_scenario_is_varied_by_the_values_of_a_key() -> None:
    batches = {s.batch: s for s in load_scenarios() if s.name.startswith("enqueue_batch_")}
    assert [*batches] == [10, 100]
    assert batches[10].name == "enqueue_batch_10"
    assert "batches of 10," in batches[10].title


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--rounds", "0"], "--rounds expects a number from 1"),
        (["--rounds", "3", "--set", "peers"], "requires --set queues or seeds"),
        (["--before", "HEAD", "--set", "seeds"], "--before requires --set queues"),
    ],
)
def test_incompatible_options_are_refused(
    words: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(words)
    assert ended.value.code == 2
    assert reason in capsys.readouterr().err
