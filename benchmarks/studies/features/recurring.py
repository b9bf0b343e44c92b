"""Other queues where they have the like of a feature: schedules that fall due, jobs' outputs."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import psycopg

from benchmarks.harness.bodies import body
from benchmarks.studies.features import pg_boss
from benchmarks.studies.features.courses import PUT, TAKE, Course, SessionCourse, Steps
from benchmarks.studies.features.features import SCHEDULES
from benchmarks.studies.peers.peer import AbsentError
from benchmarks.studies.peers.python_peers import PYTHON_PEERS
from benchmarks.studies.queues.kinds import QUEUE
from benchmarks.studies.seeds.sections import read_sections
from benchmarks.studies.seeds.seed_004 import FOLDER

_PROCRASTINATE = next(peer for peer in PYTHON_PEERS if peer.name == "procrastinate")
_TASK = "handle"
_HISTORY = 20 * SCHEDULES
_SCHEDULER = FOLDER / "postgres" / "scheduler.sql"
_RESCHEDULE = """
    update seed.scheduled_tasks
    set picked = false, picked_by = null, last_heartbeat = null, last_success = now(),
        consecutive_failures = 0, execution_time = now() + interval '1 day', version = version + 1
    where task_name = 'once' and task_instance = :instance::text and version = :version::bigint
"""


@dataclass(frozen=True, slots=True)
class Other:
    """Another queue.

    name: a word. origin: where it comes from. find: returns its version, raises AbsentError.
    install: brings it into an empty database. courses: its courses by name, each from the URL.
    """

    name: str
    origin: str
    find: Callable[[], str]
    install: Callable[[str], object]
    courses: Sequence[Callable[[str], Course]]

    def facts(self) -> dict[str, Any]:
        """Return what the page says of it: its version, or why it is absent."""
        facts = {"name": self.name, "origin": self.origin, "version": ""}
        try:
            return facts | {"version": self.find()}
        except AbsentError as error:
            return facts | {"absent": str(error)}


class ProcrastinateCourse(SessionCourse):
    """procrastinate by its own SQL; a worker's program knows the schedules and their times."""

    def __init__(self, url: str) -> None:
        super().__init__("procrastinate", 1, "public", url)
        self.unit = SCHEDULES
        # Import it here and not at the top, because it may not be installed.
        from procrastinate.sql import queries

        self._sql = {name: _named(text) for name, text in queries.items()}
        ((worker,),) = self.session.run(self._sql["register_worker"])
        self._worker = int(worker or 0)
        self._times = count(1_800_000_000, 60)
        # Finished jobs stay, as by default, and the plans are made for a table that has some.
        for _, work in self.steps():
            work(_HISTORY)

    def steps(self) -> Steps:
        """Return the steps."""
        return [(PUT, self._defer), (TAKE, self._work)]

    def _defer(self, messages: int) -> None:
        with self.meter.running():
            for number in range(messages):
                if number % SCHEDULES == 0:
                    time = next(self._times)
                arguments = {"timestamp": time, "text": body(number).decode()}
                self.session.run(
                    self._sql["defer_periodic_job"],
                    queue=QUEUE,
                    task_name=_TASK,
                    priority=0,
                    periodic_id=f"{number % SCHEDULES}",
                    defer_timestamp=time,
                    args=json.dumps(arguments),
                )

    def _work(self, messages: int) -> None:
        with self.meter.running():
            for _ in range(messages):
                ((job, *_),) = self.session.run(
                    self._sql["fetch_job"], queues=f"{{{QUEUE}}}", worker_id=self._worker
                )
                self.session.run(
                    self._sql["finish_job"],
                    job_id=int(job or 0),
                    status="succeeded",
                    delete_job="false",
                )


class SchedulerCourse(SessionCourse):
    """The scheduler's table of seed 004, whose rows are at once the schedules and the work."""

    leftovers = ("update seed.scheduled_tasks set execution_time = now()",)

    def __init__(self, url: str) -> None:
        super().__init__("scheduler", SCHEDULES, "seed", url)
        self._sql = read_sections(_SCHEDULER)
        self.session.run(self._sql["fill"], first=1, last=SCHEDULES)

    def steps(self) -> Steps:
        """Return the only step: nothing is put in for a tick."""
        return [(TAKE, self._execute)]

    def _execute(self, messages: int) -> None:
        for _ in range(messages // SCHEDULES):
            self.control.execute(self.leftovers[0])
            with self.meter.running():
                picked = self.session.run(self._sql["lock_and_fetch"], who="bench", batch=SCHEDULES)
                for instance, version, _ in picked:
                    self.session.run(_RESCHEDULE, instance=instance or b"", version=version or b"")
            if len(picked) != SCHEDULES:
                raise RuntimeError(f"{len(picked)} of {SCHEDULES} executions were due")


def _install_procrastinate(url: str) -> None:
    from procrastinate.schema import SchemaManager

    with psycopg.connect(url) as connection:
        connection.execute(SchemaManager.get_schema())


def _install_scheduler(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("create schema seed")
        connection.execute(read_sections(_SCHEDULER)["install"].encode())


def _named(text: str) -> str:
    """Return a statement of procrastinate with its values as this harness names them, two null."""
    text = re.sub(r"%\((?:lock|queueing_lock)\)s", "null", text)
    return re.sub(r"%\((\w+)\)s", r":\1", text)


PG_BOSS_PLAIN, PG_BOSS_OUTPUT = "pg-boss, no output", "pg-boss, output"

OTHERS = (
    Other(
        "procrastinate",
        _PROCRASTINATE.origin,
        _PROCRASTINATE.find,
        _install_procrastinate,
        [ProcrastinateCourse],
    ),
    Other(
        "pg-boss",
        pg_boss.PEER.origin,
        pg_boss.PEER.find,
        pg_boss.install,
        [
            lambda url: pg_boss.PgBossCourse("pg-boss", url, ticks=True),
            lambda url: pg_boss.PgBossCourse(PG_BOSS_PLAIN, url),
            lambda url: pg_boss.PgBossCourse(PG_BOSS_OUTPUT, url, output=True),
        ],
    ),
    Other(
        "scheduler",
        "seed 004's table, lock and fetch",
        lambda: "",
        _install_scheduler,
        [SchedulerCourse],
    ),
)
