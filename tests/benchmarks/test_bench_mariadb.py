"""The benchmarks run on MariaDB, and the committed report is the one that its results give."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.engines.mysql.lab import open_lab
from benchmarks.engines.mysql.wire import BARE, Connection
from benchmarks.harness.results import Results
from benchmarks.harness.scenarios import Scenario, load_scenarios
from benchmarks.studies.queues_mariadb.engine import MARIADB, SCENARIOS
from benchmarks.studies.queues_mariadb.report import render
from benchmarks.studies.queues_mariadb.systems import all_systems
from benchmarks.studies.queues_mariadb.targets import check_targets
from tests.benchmarks.runs import BENCHMARKS, run
from tests.engines.base import Unavailable, wait_until
from tests.engines.mysql.local import find_programs

RESULTS = BENCHMARKS / "results" / "mariadb.json"


@pytest.fixture(scope="module", autouse=True)
def programs() -> None:
    """Skip without MariaDB's programs, which everything here starts."""
    try:
        find_programs()
    except Unavailable as error:
        pytest.skip(f"{error}; to run it: apt-get install mariadb-server-core")


def tiny(scenario: Scenario) -> Scenario:
    """Return a scenario that takes a second or two."""
    return replace(
        scenario,
        rounds=1,
        sessions=min(scenario.sessions, 2),
        messages=40 * scenario.batch if scenario.messages else 0,
        seconds=0.3 if scenario.seconds else 0,
        samples=min(scenario.samples, 30),
    )


@pytest.mark.timeout(300)
def test_every_scenario_is_measured_with_every_system_and_reported(tmp_path: Path) -> None:
    scenarios = [tiny(scenario) for scenario in load_scenarios(path=SCENARIOS)]
    found = run(MARIADB, scenarios, tmp_path)
    results = Results(found)
    for name, scenario in results.scenarios.items():
        assert sorted(results.systems(name)) == sorted(scenario["systems"])
    assert all(run["figures"].get("messages", 1) > 0 for run in found["runs"])
    assert all(target.is_met is not None for target in check_targets(results))
    report = render(found)
    assert all(f"## {scenario['title']}" in report for scenario in results.scenarios.values())
    assert all(setting in report for setting in ("innodb_flush_log_at_trx_commit 1", "log_bin"))


def test_every_system_hands_out_each_message_once() -> None:
    with open_lab(None) as lab:
        for system in all_systems():
            with (
                lab.database(system) as url,
                system.client(url) as first,
                system.client(url) as second,
            ):
                first.create()
                first.fill(45)
                first.enqueue(b'{"n":"single"}')
                turns = (first, second, first, second)
                counts = [client.complete(client.dequeue(20)) for client in turns]
                assert counts == [20, 20, 6, 0], system.name


def test_a_statement_that_waits_too_long_for_a_lock_is_counted_and_tried_again() -> None:
    (system,) = (candidate for candidate in all_systems() if candidate.name == "update_limit")
    with (
        open_lab(None) as lab,
        lab.database(system) as url,
        system.client(url) as client,
        Connection(url) as holder,
        ThreadPoolExecutor(1) as threads,
    ):
        client.create()
        client.fill(3)
        client.dequeue(1)
        holder.run(b"begin")
        holder.run(f"update {BARE}.job set taken_at = null".encode())
        holder.run(b"set global innodb_lock_wait_timeout = 1")
        with system.client(url) as waiting:
            taken = threads.submit(waiting.dequeue, 2)
            wait_until(lambda: waiting.deadlocks > 0, "a wait is given up", 30)
            holder.run(b"rollback")
            assert len(taken.result(30)) == 2


def test_the_committed_report_is_fresh_and_measured_every_target() -> None:
    found = json.loads(RESULTS.read_text("utf-8"))
    assert (BENCHMARKS / "RESULTS-mariadb.md").read_text("utf-8") == render(found)
    assert all(target.is_met is not None for target in check_targets(Results(found)))
    assert not found["command"].count("QUICK")
