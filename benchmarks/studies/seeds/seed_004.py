"""Two strategies of a scheduler.

How many statements does a scheduler need if its table is a queue? Four processes take 50 executions
at a time and delete each when it is done; the server counts the statements. The document (for
db-scheduler) estimates at most 254 statements for a batch of 50 with optimistic picks, and 51 with
lock and fetch. `rowq` completes a claim in one call; `rowq_single` completes each message, as lock
and fetch deletes each. rowq's own worker completes ended messages twice a second.
"""

from collections.abc import Iterator

from benchmarks.harness.measure import Target
from benchmarks.harness.results import Results
from benchmarks.harness.scenarios import Scenario
from benchmarks.studies.seeds import common

_TABLE = "scheduled_tasks"
_DUE = "where picked = false and execution_time <= now() order by execution_time limit %(batch)s"
_SQL = {
    "install": f"""
        create table {_TABLE} (
            task_name text not null default 'once',
            task_instance bigint generated always as identity,
            task_data text not null,
            execution_time timestamp with time zone not null default clock_timestamp(),
            picked boolean not null default false,
            last_heartbeat timestamp with time zone,
            version bigint not null default 1,
            priority smallint,
            primary key (task_name, task_instance)
        );
        create index on {_TABLE} (execution_time);
        create index on {_TABLE} (last_heartbeat);
        create index on {_TABLE} (priority desc, execution_time)""",
    "enqueue": f"insert into {_TABLE} (task_data) values (%(body)s)",
    "fetch": f"select task_instance, task_data from {_TABLE} {_DUE}",
    "pick": f"""
        update {_TABLE}
        set picked = true, last_heartbeat = now(), version = version + 1
        where picked = false and task_name = 'once' and task_instance = %(id)s and version = 1""",
    "remove": f"""
        delete from {_TABLE} where task_name = 'once' and task_instance = %(id)s and version = 2""",
    "lock_and_fetch": f"""
        update {_TABLE} one
        set picked = true, last_heartbeat = now(), version = version + 1
        where (one.task_name, one.task_instance) in (
            select two.task_name, two.task_instance from {_TABLE} two {_DUE} for update skip locked
        )
        returning one.task_instance, one.task_data""",
}
# Each statement is a transaction, and each that writes has its own transaction number.
_SERVED = """
    select xact_commit, pg_snapshot_xmax(pg_current_snapshot())::text::bigint
    from pg_stat_database
    where datname = current_database()
"""


class OptimisticClient(common.Client):
    """A scheduler that reads a batch and picks each execution by its version."""

    def take(self, batch: int) -> common.Ids:
        """Read due executions."""
        return [int(row[0]) for row in self.run(self.sql["fetch"], batch=batch)]

    def dequeue(self, batch: int) -> common.Ids:
        """Read due executions."""
        return self.take(batch)

    def complete(self, ids: common.Ids) -> common.Ids:
        """Pick each, and remove it if no other scheduler has picked it first."""
        return [number for number in ids if self._picked(number) and self._removed(number)]

    def _picked(self, number: int) -> bool:
        self.run(self.sql["pick"], id=number)
        return self.affected == 1

    def _removed(self, number: int) -> bool:
        self.run(self.sql["remove"], id=number)
        if self.affected != 1:
            raise RuntimeError(f"execution {number} was picked twice")
        return True


class LockAndFetchClient(OptimisticClient):
    """A scheduler that picks a batch under locks."""

    def take(self, batch: int) -> common.Ids:
        """Pick due executions."""
        return [int(row[0]) for row in self.run(self.sql["lock_and_fetch"], batch=batch)]

    def _picked(self, _number: int) -> bool:
        return True


class SingleClient(common.RowqClient):
    """A session of rowq that completes each message."""

    def complete(self, ids: common.Ids) -> common.Ids:
        """Complete each message."""
        for number in ids:
            self.queue.complete(common.QUEUE, self.claim, [number])
        return ids


def executions(url: str, form: common.Form, scenario: Scenario) -> common.Figures:
    """Let schedulers run due executions, which do no work."""
    with form.open(url) as client:
        client.fill([str(number).ljust(200, "x") for number in range(scenario.messages)])
        client.settle()
        before = _served(client)
        figures, _ = common.work(form, url, scenario, client)
        client.wait_for_others()
        after = _served(client)
    done = max(figures["messages"], 1)
    statements, commits = ((late - early) / done for late, early in zip(after, before, strict=True))
    return figures | {
        "statements_per_batch": round(scenario.batch * statements, 1),
        "commits_per_execution": round(commits, 3),
    }


def _served(client: common.Client) -> tuple[int, int]:
    """Return the server's counts of statements and of commits that wrote."""
    client.run("select pg_stat_force_next_flush()")
    ((statements, commits),) = client.run(_SERVED)
    return int(statements), int(commits)


def _forms(_engine: str) -> list[common.Form]:
    return [
        common.rowq_form(),
        common.rowq_form("rowq_single", SingleClient),
        common.Form(
            "optimistic", "a scheduler's table: each picks by version", _SQL, OptimisticClient
        ),
        common.Form(
            "lock_and_fetch", "the same table: picks under locks", _SQL, LockAndFetchClient
        ),
    ]


def _targets(results: Results) -> Iterator[Target]:
    for own, how in (("rowq", "a claim at a time"), ("rowq_single", "one by one")):
        for strategy, bound in (("optimistic", 4.0), ("lock_and_fetch", 1.0)):
            found = results.between("executions", "messages_per_second", own, strategy)
            what = f"004: executions/s, completed {how}: rowq / {strategy}"
            yield Target(what, bound, True, found)


SEED = common.Seed(
    words=__doc__,
    forms=_forms,
    kinds={"executions": executions},
    columns={
        "executions": {
            "statements_per_batch": "statements / batch of 50",
            "commits_per_execution": "commits that wrote / execution",
        }
    },
    targets=_targets,
)
