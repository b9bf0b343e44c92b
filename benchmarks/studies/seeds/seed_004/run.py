"""Runs the processes of a form, and counts what they did and what the server served."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.harness.observe import Counts
from benchmarks.harness.scenarios import Scenario
from benchmarks.harness.team import Gate, Team
from benchmarks.studies.seeds.base import Form
from benchmarks.studies.seeds.client import SqlClient
from benchmarks.studies.seeds.dialects import Dialect
from benchmarks.studies.seeds.seed_004.consumers import consume
from benchmarks.studies.seeds.seed_004.schedulers import schedule
from benchmarks.studies.seeds.seed_004.server import Served, counting, read_served
from benchmarks.studies.seeds.seed_004.tally import Size, Tally

THREADS = 4
_MAINTAIN_SECONDS = 1.0


class SchedulerClient(SqlClient):
    """A session on the scheduler's table."""

    def fill(self, count: int) -> None:
        """Add executions that are due."""
        self.session.run(self.sections["fill"], first=1, last=count)


def executions(dialect: Dialect, url: str, form: Form, scenario: Scenario) -> dict[str, Any]:
    """Let the scenario's sessions, each a process with executors, execute what is due."""
    size = Size(scenario.batch, THREADS, scenario.seconds)
    team = Team(
        [work_of(dialect, url, form.name, size, number) for number in range(scenario.sessions)]
    )
    served: list[Served] = []
    counts: list[Counts] = []
    with (
        form.open_client(url, scenario.body_bytes) as control,
        dialect.open(url) as counter,
        counting(dialect, counter),
        dialect.observe(url) as observer,
    ):

        def read() -> None:
            counts.append(observer.counts())
            served.append(read_served(dialect, counter))

        control.create()
        control.fill(scenario.messages)
        control.settle()
        began, tallies = team.run(read, control.maintain, _MAINTAIN_SECONDS)
        observer.settle()
        read()
    total = Tally()
    for tally in tallies:
        total.add(tally)
    if not total.handled:
        raise RuntimeError(f"{form.name} has executed nothing")
    used = counts[1].since(counts[0])
    return _figures(began, total, served[0], served[1], scenario.batch) | {
        "server_cpu_us_per_message": round(
            (used.cpu + total.server_cpu) / len(total.handled) * 1e6, 1
        ),
        "log_bytes_per_execution": round(used.log_bytes / len(total.handled), 1),
        "deadlocks": used.deadlocks,
        "retries": total.retries,
    }


def work_of(
    dialect: Dialect, url: str, name: str, size: Size, number: int
) -> Callable[[Gate], Tally]:
    """Return what a process of a form does."""
    if name.startswith("rowq"):
        return partial(consume, dialect, url, size, name == "rowq_single")
    return partial(schedule, dialect, url, size, name == "optimistic", f"scheduler {number}")


def _figures(
    began: float, total: Tally, before: Served, after: Served, batch: int
) -> dict[str, float]:
    done = len(total.handled)
    seconds = total.last - began
    statements = (after.statements - before.statements) / done
    return {
        "messages": done,
        "seconds": round(seconds, 3),
        "messages_per_second": round(done / seconds, 1),
        "statements_per_batch": round(batch * statements, 1),
        "statements_per_execution": round(statements, 3),
        "commits_per_execution": round((after.commits - before.commits) / done, 3),
        "missed_picks_per_execution": round(total.misses / done, 3),
        "fetches_per_batch": round(batch * total.fetches / done, 2),
        "stale_per_execution": round(total.stale / done, 3),
        "double_runs": sum(Counter(total.handled).values()) - len(set(total.handled)),
    }
