"""Concurrent workers.

Can several workers take jobs from one table so that no job runs twice and no worker waits? A job
ran twice if its id is twice in the workers' histories. In `second_worker` the first worker holds
two jobs in an open transaction, and the second requests two. The document recommends `skip locked`.
"""

from collections.abc import Iterator
from functools import partial

from benchmarks.harness.measure import Target
from benchmarks.harness.results import Results
from benchmarks.harness.scenarios import Scenario
from benchmarks.studies.seeds import common

_ORIGINS = {
    "skip_locked": "select for update skip locked, then update; the index has the order",
    "skip_locked_unindexed": "the same; the index has the state only",
    "for_update": "select for update, then update",
    "no_locks": "select, then update, in one transaction",
}
_LOCKS = {"for_update": "for update", "no_locks": ""}
_LOCK_TIMEOUT = {
    "postgres": "set lock_timeout = '1s'",
    "mariadb": "set session innodb_lock_wait_timeout = 1",
}


def _sql(name: str, engine: str) -> dict[str, str]:
    index = "state" if name.endswith("unindexed") else "state, create_time, job_id"
    return {
        "install": f"""
            create table job (
                job_id      {common.KEY[engine]},
                state       char(1) not null default 'N',
                create_time timestamp(6) not null default current_timestamp(6),
                body        varchar(255) not null
            );
            create index job_ix on job ({index})""",
        "enqueue": "insert into job (body) values (%(body)s)",
        "find": f"""
            select job_id, body
            from job
            where state = 'N'
            order by create_time, job_id
            limit %(batch)s
            {_LOCKS.get(name, "for update skip locked")}""",
        "mark": "update job set state = 'A' where job_id in %(ids)s",
        "complete": "update job set state = 'C' where job_id in %(ids)s",
    }


def race(url: str, form: common.Form, scenario: Scenario) -> common.Figures:
    """Let sessions take jobs from one queue and count the jobs run twice."""
    figures = common.drain(url, form, scenario)
    once = 1 - figures["double_runs"] / max(figures["messages"], 1)
    return figures | {"different_per_second": round(figures["messages_per_second"] * once, 1)}


def second_worker(url: str, form: common.Form, scenario: Scenario) -> common.Figures:
    """Hold a batch in an open transaction while another session dequeues."""
    waited = 0
    with form.open(url) as first, form.open(url) as second:
        first.fill(["x" * 200] * scenario.messages)
        first.settle()
        for client in (first, second):
            client.run(_LOCK_TIMEOUT["postgres" if client.is_postgres else "mariadb"])
            client.complete(client.dequeue(scenario.batch))
            client.run("begin")
        held = first.take(scenario.batch)
        try:
            got = second.take(scenario.batch)
        except common.DRIVER_ERRORS as error:
            second.roll_back(error)
            got, waited = [], 1
        for client in (second, first):
            client.run("rollback")
    return {
        "first_got": len(held),
        "second_got": len(got),
        "second_waited": waited,
        "same_jobs": len(set(held) & set(got)),
    }


def _targets(results: Results) -> Iterator[Target]:
    for name, words in (("race_1", "one by one"), ("race_10", "ten at a time")):
        twice = results.figure(name, "rowq", "double_runs")
        yield Target(f"002: jobs that rowq ran twice, taken {words}", 0, False, twice)
    got = results.figure("second_worker", "rowq", "second_got")
    yield Target("002: jobs that rowq returns to a second worker, of two", 2, True, got)


SEED = common.Seed(
    words=__doc__,
    forms=partial(common.forms, _ORIGINS, _sql),
    kinds={"race": race, "second_worker": second_worker},
    columns={
        "race": {"different_per_second": "different jobs/s"},
        "second_worker": {
            "first_got": "jobs of the first",
            "second_got": "jobs of the second",
            "second_waited": "had to wait",
            "same_jobs": "the same jobs",
        },
    },
    targets=_targets,
)
