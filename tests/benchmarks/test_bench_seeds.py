"""The seeds' experiments run on every engine, and what they count is what has happened."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchmarks.harness.load import Report
from benchmarks.harness.observe import Counts
from benchmarks.harness.results import Results
from benchmarks.harness.runner import Lab
from benchmarks.harness.scenarios import Scenario
from benchmarks.studies import command
from benchmarks.studies.seeds import seed_000, seed_002
from benchmarks.studies.seeds.all_seeds import SEEDS, seeds_engine, seeds_scenarios
from benchmarks.studies.seeds.base import Form, rowq_form, sql_form
from benchmarks.studies.seeds.bodies import Bodies
from benchmarks.studies.seeds.dialects import DIALECTS
from benchmarks.studies.seeds.report import PRODUCTS, render
from benchmarks.studies.seeds.work import figures_of
from tests.benchmarks.runs import BENCHMARKS, run
from tests.dice import LENGTH, LENGTH_VARIABLE
from tests.engines.base import wait_until

STORED = sorted((BENCHMARKS / "results").glob("seeds_*.json"))
NONE_YET = Counts(0, 0, 0, 0, 0.0, 0, 0, 0.0)
JOBS = {
    "postgres": "seed.job",
    "mariadb": "rowq_bench.job",
    "sqlserver": "dbo.job",
    "oracle": "job",
}
# These forms promise to hand out each message once; `no_locks` is not one, it shows what happens
# otherwise.
CAREFUL = [
    (seed_000.FOLDER, "queue_slow"),
    (seed_000.FOLDER, "split_tables"),
    pytest.param(seed_000.FOLDER, "one_statement", marks=pytest.mark.genuine),
    (seed_002.FOLDER, "for_update"),
    (seed_002.FOLDER, "skip_locked"),
    (seed_002.FOLDER, "skip_locked_unindexed"),
]
# These seeds cannot run on a Babelfish: it has no output of a joined table's columns, and no update
# of a CTE.
NEEDS = {"seed_000": pytest.mark.genuine, "seed_004": pytest.mark.genuine}
LOCKING = {
    "postgres": "select body from seed.job where job_id = :id for update",
    "mariadb": "select body from rowq_bench.job where job_id = :id for update",
    "sqlserver": "select body from dbo.job with (rowlock, updlock) where job_id = :id",
    "oracle": "select body from job where job_id = :id for update",
}


def tiny(scenario: Scenario) -> Scenario:
    """Return a scenario that takes a second or two for each form."""
    return replace(
        scenario,
        rounds=1,
        sessions=min(scenario.sessions, 2),
        producers=min(scenario.producers, 1),
        messages=max(20 * scenario.batch, 1200) if scenario.messages else 0,
        body_bytes=min(scenario.body_bytes, 3000),
        seconds=0.3 if scenario.seconds else 0,
        samples=min(scenario.samples, 1),
    )


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=NEEDS.get(seed.name, ()), id=seed.name) for seed in SEEDS]
)
def test_every_form_of_every_scenario_is_measured_and_reported(
    seed: Any, engine: str, labs: Callable[[str], Lab], tmp_path: Path
) -> None:
    if seed.name != "seed_002" and LENGTH <= 1:
        pytest.skip(f"a minute for each seed; to run it: {LENGTH_VARIABLE}=2")
    scenarios: list[Scenario] = []
    for candidate in seeds_scenarios(engine):
        if candidate.kind in seed.kinds:
            is_known = candidate.kind in [scenario.kind for scenario in scenarios]
            chosen = replace(candidate, systems=candidate.systems[:2]) if is_known else candidate
            scenarios.append(tiny(chosen))
    lab = replace(seeds_engine(engine), open_lab=lambda _url, _home: nullcontext(labs(engine)))
    found = run(lab, scenarios, tmp_path / "server")
    results = Results(found)
    for scenario in scenarios:
        assert sorted(results.systems(scenario.name)) == sorted(scenario.systems)
        headings = seed.columns[scenario.kind]
        for form in scenario.systems:
            found_figures = results.rounds(scenario.name, form)[0]
            assert headings.keys() & found_figures.keys(), (scenario.name, form)
    assert all(target.is_met is not None for target in seed.targets(engine, results))
    report = render({engine: found})
    for scenario in scenarios:
        _, shown = report.split(f"### {scenario.title}\n")
        assert f"\n| {PRODUCTS[engine]} | {scenario.systems[0]} | " in shown.split("\n#")[0]
    assert "![" not in report


@pytest.mark.parametrize(("folder", "name"), CAREFUL, ids=lambda value: str(value).split("/")[-1])
def test_a_form_hands_out_each_message_once_with_its_body(
    folder: Path, name: str, engine: str, place: Callable[[Form], Any]
) -> None:
    form = sql_form(name, "", folder, engine)
    with (
        place(form) as url,
        form.open_client(url, 100) as first,
        form.open_client(url, 100) as second,
    ):
        first.create()
        first.fill(45)
        first.settle()
        first.enqueue(b"the last")
        bodies = Bodies(100)
        sent = [message["body"] for message in json.loads(bodies.messages(45))]
        taken = []
        for client in (first, second, first, second):
            rows = client.dequeue(20)
            taken += [(row[1] or b"").decode() for row in rows]
            client.complete(rows)
        assert sorted(taken) == sorted([*sent, "the last"])
        assert len(set(first.handled + second.handled)) == len(taken) == 46


def test_a_message_in_the_histories_of_two_sessions_is_a_double_run() -> None:
    first = Report(messages=3, ended=2.0, loops=[0.1, 0.1], handled=[1, 2, 3])
    second = Report(messages=2, ended=2.0, loops=[0.1, 0.1], handled=[3, 4])
    producer = Report(messages=8, ended=3.0, drains=False)
    figures = figures_of(1.0, NONE_YET, [first, second, producer])
    assert (figures["handled"], figures["double_runs"]) == (4, 1)
    assert (figures["messages_per_second"], figures["different_per_second"]) == (5, 4)
    assert figures["enqueued_per_second"] == 4


def test_a_form_whose_sessions_got_nothing_has_a_rate_of_zero() -> None:
    figures = figures_of(1.0, NONE_YET, [Report(empty=7), Report(empty=8)])
    assert (figures["messages_per_second"], figures["empty_dequeues"]) == (0, 15)


@pytest.mark.genuine
def test_rows_that_a_transaction_has_locked_are_counted(
    engine: str, place: Callable[[Form], Any]
) -> None:
    form = sql_form("skip_locked", "", seed_002.FOLDER, engine)
    dialect = DIALECTS[engine]
    with (
        place(form) as url,
        form.open_client(url, 100) as client,
        dialect.observe(url) as observer,
    ):
        client.fill(10)
        client.session.run("begin")
        for number in (2, 4, 6):
            client.session.run(LOCKING[engine], id=number)
        assert observer.rows_locked(client.session) == 3
        client.session.run("rollback")
        assert observer.rows_locked(client.session) == 0


def test_a_wait_for_a_lock_is_counted(engine: str, place: Callable[[Form], Any]) -> None:
    if engine == "sqlserver":
        pytest.skip("SQL Server counts a wait when it is over; to run it: test_seeds_sqlserver.py")
    form = sql_form("for_update", "", seed_002.FOLDER, engine)
    with (
        place(form) as url,
        form.open_client(url, 100) as holder,
        form.open_client(url, 100) as waiting,
        DIALECTS[engine].observe(url) as observer,
        ThreadPoolExecutor(1) as threads,
    ):
        holder.fill(3)
        before = observer.counts()
        holder.session.run("begin")
        holder.dequeue_held(1)
        taken = threads.submit(waiting.dequeue, 1)

        def has_waited() -> bool:
            observer.look()
            return observer.counts().since(before).lock_waits > 0

        wait_until(has_waited, "a wait is seen", 30)
        holder.session.run("commit")
        taken.result(30)
        assert observer.counts().since(before).lock_waits == 1


@pytest.mark.genuine
def test_reads_are_those_that_a_statement_makes(engine: str, place: Callable[[Form], Any]) -> None:
    form = sql_form("skip_locked", "", seed_002.FOLDER, engine)
    with (
        place(form) as url,
        form.open_client(url, 100) as client,
        DIALECTS[engine].observe(url) as observer,
    ):
        client.fill(50)
        client.settle()

        def reads(statement: str) -> int:
            before = observer.counts(client.session)
            client.session.run(statement)
            return observer.counts(client.session).since(before).reads

        def least_reads(statement: str) -> int:
            # MariaDB counts those of its own threads, too: purge and statistics come and go.
            return min(reads(statement) for _ in range(9))

        assert least_reads("select 1" + " from dual" * (engine == "oracle")) == 0
        assert 1 <= least_reads(f"select body from {JOBS[engine]} where job_id = 7") <= 3


@pytest.mark.genuine
def test_a_second_worker_gets_other_jobs_from_rowq(
    engine: str, place: Callable[[Form], Any]
) -> None:
    (scenario,) = (
        scenario for scenario in seeds_scenarios(engine) if scenario.name == "second_worker"
    )
    form = rowq_form(engine)
    with place(form) as url:
        figures = seed_002.second_worker(DIALECTS[engine], url, form, scenario)
    assert (figures["second_got"], figures["same_jobs"], figures["second_waited"]) == (2, 0, 0)


def test_bodies_are_the_same_in_every_run_and_of_many_lengths() -> None:
    make = partial(Bodies, 1000)
    one_run, another_run = make(), make()
    bodies = [one_run() for _ in range(200)]
    assert bodies == [another_run() for _ in range(200)]
    assert max(map(len, bodies)) > 900
    assert 1 <= min(map(len, bodies)) < 100
    assert json.loads(make().messages(1)) == [{"body": bodies[0].decode()}]


@pytest.mark.parametrize("quick", [False, True])
def test_scenarios_have_a_name_of_their_own_and_forms_that_exist(quick: bool) -> None:
    for engine in DIALECTS:
        names = [scenario.name for scenario in seeds_scenarios(engine, quick=quick)]
        assert len(names) == len(set(names))
        forms = {form.name for form in seeds_engine(engine).systems()}
        assert all(set(scenario.systems) <= forms for scenario in seeds_scenarios(engine))


@pytest.mark.parametrize("engine_at_a_url", ["sqlserver", "oracle"])
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "add --set seeds"),
        (["--set", "peers"], "add --set seeds"),
        (["--set", "seeds"], "needs a server of yours: --url {}://..."),
    ],
)
def test_the_command_says_what_it_lacks(
    engine_at_a_url: str, words: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(["--engine", engine_at_a_url, *words])
    assert ended.value.code == 2
    assert reason.format(engine_at_a_url) in capsys.readouterr().err


def test_the_committed_report_is_the_one_that_the_stored_results_give() -> None:
    found = {
        path.stem.removeprefix("seeds_"): json.loads(path.read_text("utf-8")) for path in STORED
    }
    report = BENCHMARKS / "RESULTS-seeds.md"
    assert report.exists() == bool(found)
    if found:
        ordered = {name: found[name] for name in PRODUCTS if name in found}
        assert report.read_text("utf-8") == render(ordered)
        assert not any("QUICK" in data["command"] for data in found.values())
        for name, data in ordered.items():
            targets = [target for seed in SEEDS for target in seed.targets(name, Results(data))]
            assert all(target.is_met is not None for target in targets)
