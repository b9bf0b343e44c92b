"""Seed 004: a persistent scheduler as a queue, by optimistic picks or by lock and fetch."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks.harness.results import Results
from benchmarks.harness.targets import Target
from benchmarks.studies.seeds.base import Form, Seed, rowq_form, sql_form
from benchmarks.studies.seeds.seed_004.run import SchedulerClient, executions

FOLDER = Path(__file__).parent
_NAME = "executions"

WORDS = """
Four processes take executions that are due from one table, 50 at a time, and delete each when it
is done; each process has four executor threads with a session of their own, and a poller with a
fifth. There is nothing to do for an execution, so that the figures are those of the queue. By the
document, the optimistic strategy needs at worst 254 statements for a batch of 50, and lock and
fetch 51; how many there are was counted by the server, and the executions are those in the
processes' histories. rowq runs with the same processes and threads, each thread with claims of 50:
`rowq` completes a claim in one call, `rowq_single` message by message, each in a transaction.

Completed one by one, rowq commits as often as lock and fetch does, and spends more on each: a call
of `complete` runs several statements in the server, where the scheduler deletes a row by its key.
rowq's own worker therefore hands in what is done twice a second, or when its claim is through.
"""


def _forms(engine: str) -> list[Form]:
    table = sql_form("scheduler", "", FOLDER, engine, SchedulerClient)
    return [
        rowq_form(engine),
        replace(rowq_form(engine), name="rowq_single"),
        replace(
            table,
            name="optimistic",
            origin="a scheduler's table: executors pick by version what a poller has read",
        ),
        replace(
            table,
            name="lock_and_fetch",
            origin="the same table: a poller picks a batch under locks, passing over locked rows",
        ),
    ]


def _targets(_engine: str, results: Results) -> Iterator[Target]:
    for own, how in (("rowq", "a claim at a time"), ("rowq_single", "one by one")):
        for strategy, bound in (("optimistic", 4.0), ("lock_and_fetch", 1.0)):
            found = results.between(_NAME, "messages_per_second", own, strategy)
            yield Target(f"Executions/s, completed {how}: rowq / {strategy}", bound, True, found)


SEED = Seed(
    name="seed_004",
    title="Seed 004: two strategies of a scheduler",
    words=WORDS.strip(),
    folder=FOLDER,
    forms=_forms,
    kinds={_NAME: executions},
    columns={
        _NAME: {
            "messages_per_second": "executions/s",
            "server_cpu_us_per_message": "server CPU µs/execution",
            "statements_per_batch": "statements a batch of 50",
            "statements_per_execution": "statements/execution",
            "commits_per_execution": "commits that wrote/execution",
            "missed_picks_per_execution": "missed picks/execution",
            "log_bytes_per_execution": "log bytes/execution",
            "deadlocks": "deadlocks",
            "double_runs": "run twice",
        }
    },
    targets=_targets,
)
