"""Seed 002: jobs selected and marked without locks, for update, and passing over locked ones."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.harness.results import Results
from benchmarks.harness.scenarios import Scenario
from benchmarks.harness.session import RetryError
from benchmarks.harness.targets import Target
from benchmarks.studies.seeds.base import Form, Seed, rowq_form, sql_forms
from benchmarks.studies.seeds.dialects import Dialect
from benchmarks.studies.seeds.work import fill, work

FOLDER = Path(__file__).parent
_ORIGINS = {
    "no_locks": "select, then update, no lock on what was selected",
    "for_update": "select for update, then update",
    "skip_locked": "select for update skip locked, then update; the index has the order",
    "skip_locked_unindexed": "the same; the index has the state only",
}
_RACES = {"race_1": "one by one", "race_10": "in batches of 10"}


def race(dialect: Dialect, url: str, form: Form, scenario: Scenario) -> dict[str, Any]:
    """Let sessions take jobs from the same queue, and count what was done twice."""
    with form.open_client(url, scenario.body_bytes) as client:
        fill(client, scenario)
        return work(dialect, url, form, scenario, client)


def second_worker(dialect: Dialect, url: str, form: Form, scenario: Scenario) -> dict[str, Any]:
    """Hold a batch in an open transaction, and see what another session gets meanwhile."""
    with (
        form.open_client(url, scenario.body_bytes) as first,
        form.open_client(url, scenario.body_bytes) as second,
        dialect.observe(url) as observer,
    ):
        fill(first, scenario)
        for client in (first, second):
            client.complete(client.dequeue(scenario.batch))
        first.session.run("begin")
        held = first.dequeue_held(scenario.batch)
        locked = observer.rows_locked(first.session)
        second.session.run(dialect.impatient)
        second.session.run("begin")
        try:
            got = second.dequeue_held(scenario.batch)
            waited = 0
        except RetryError:
            got, waited = [], 1
        for client in (second, first):
            client.session.run("rollback")
    ids = {row[0] for row in held}
    return {
        "first_got": len(held),
        "rows_locked": locked,
        "second_got": len(got),
        "second_waited": waited,
        "same_jobs": len([row for row in got if row[0] in ids]),
    }


def _forms(engine: str) -> list[Form]:
    return [rowq_form(engine), *sql_forms(_ORIGINS, FOLDER, engine)]


def _targets(_engine: str, results: Results) -> Iterator[Target]:
    for name, words in _RACES.items():
        twice = results.figure(name, "rowq", "double_runs")
        yield Target(f"Jobs taken {words} that rowq ran twice", 0, False, twice)
        reached = results.figure(name, "rowq", "deadlocks_reached")
        yield Target(f"Jobs taken {words}: deadlocks that reached a session", 0, False, reached)
    got = results.figure("second_worker", "rowq", "second_got")
    yield Target("Jobs for a second worker that asks for two, of rowq", 2, True, got)


_RACE_COLUMNS = {
    "messages_per_second": "jobs run/s",
    "different_per_second": "different jobs/s",
    "double_runs": "double runs",
    "empty_dequeues": "dequeues that found nothing",
    "lock_waits": "lock waits",
    "lock_wait_seconds": "seconds waited",
    "deadlocks": "deadlocks",
    "server_cpu_us_per_message": "server CPU µs / job",
    "loop_ms_p50": "loop p50 ms",
    "loop_ms_p99": "p99 ms",
}
_SECOND_COLUMNS = {
    "first_got": "jobs of the first",
    "rows_locked": "rows it locked",
    "second_got": "jobs of the second",
    "second_waited": "had to wait",
    "same_jobs": "the same as the first's",
}

SEED = Seed(
    name="seed_002",
    title="Seed 002: who takes which job",
    words=(
        "The document's rule is that no job may run twice, and its best answer `skip locked`. Here"
        " a job has run twice when the histories of the sessions hold its id twice."
    ),
    folder=FOLDER,
    forms=_forms,
    kinds={"race": race, "second_worker": second_worker},
    columns={"race": _RACE_COLUMNS, "second_worker": _SECOND_COLUMNS},
    targets=_targets,
)
