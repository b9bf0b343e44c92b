"""Shared code of the seeds: forms of a queue, their sessions, workers and counters."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import psycopg
import pymysql

import rowq
from benchmarks.engines.mysql.observe import read_counts
from benchmarks.harness.host import Closing, cpu_seconds
from benchmarks.harness.load import once_a_second
from benchmarks.harness.measure import Target
from benchmarks.harness.results import Results
from benchmarks.harness.scenarios import Scenario
from benchmarks.harness.team import Gate, Team
from rowq.engines.mysql.url import connection_parameters
from rowq.tools.migrate import migrate

QUEUE = SCHEMA = "rowq_bench"
KEY = {
    "postgres": "bigint generated always as identity primary key",
    "mariadb": "bigint not null auto_increment primary key",
}
LEASE_SECONDS = 600
DRIVER_ERRORS = (psycopg.Error, pymysql.err.Error)
_RETRIES = ("40P01", "40001", "55P03", 1205, 1213, 1020)
_CHUNK = 1000
_READS = """
    select coalesce(sum(coalesce(x.heap_blks_read + x.heap_blks_hit, 0)
                            + coalesce(x.idx_blks_read + x.idx_blks_hit, 0)), 0)
               + (select coalesce(sum(s.blks_read + s.blks_hit), 0)
                  from pg_catalog.pg_statio_user_sequences s)
    from pg_catalog.pg_statio_user_tables x
"""
_OTHERS = """
    select count(*)
    from pg_catalog.pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()
      and backend_type = 'client backend'
"""

Ids = list[int]
Figures = dict[str, Any]


class Client(Closing):
    """A session of a form. sql: its statements by name, with parameters `%(name)s`.

    `enqueue` adds a body. A dequeue is the statement `take`, or `claim` and `own`, or in a
    transaction `find`, `mark` and optionally `read`. `complete` ends messages by id.
    """

    def __init__(self, sql: Mapping[str, str], url: str) -> None:
        self.sql = sql
        self.is_postgres = url.startswith("postgres")
        self.connection: Any = (
            psycopg.connect(url, autocommit=True)
            if self.is_postgres
            else pymysql.connect(**connection_parameters(url), autocommit=True)
        )
        self.affected = 0
        self.retries = 0
        if sql:
            self.run(f"set search_path = {SCHEMA}" if self.is_postgres else f"use {SCHEMA}")

    def close(self) -> None:
        """Close the session."""
        self.connection.close()

    def run(self, statement: str, **values: Any) -> list[Any]:
        """Run a statement and return its rows."""
        if self.is_postgres:
            statement = statement.replace("in %(ids)s", "= any(%(ids)s)")
        with self.connection.cursor() as cursor:
            cursor.execute(statement, values or None)
            self.affected = cursor.rowcount
            return list(cursor.fetchall()) if cursor.description else []

    def run_all(self, name: str, **values: Any) -> None:
        """Run all statements of a name."""
        for statement in self.sql[name].split(";\n"):
            used = {key: value for key, value in values.items() if f"%({key})s" in statement}
            self.run(statement, **used)

    def fill(self, bodies: Sequence[str]) -> None:
        """Add messages."""
        for first in range(0, len(bodies), _CHUNK):
            chunk = [{"body": body} for body in bodies[first : first + _CHUNK]]
            with self.connection.cursor() as cursor:
                cursor.executemany(self.sql["enqueue"], chunk)

    def settle(self) -> None:
        """Update statistics after filling a table."""
        if self.is_postgres:
            self.run("vacuum (analyze)")
            return
        known = "select table_name from information_schema.tables where table_schema = %(name)s"
        for (table,) in self.run(known, name=SCHEMA):
            self.run(f"analyze table {SCHEMA}.{table}")

    def take(self, batch: int) -> Ids:
        """Dequeue up to batch messages in the open transaction, if any."""
        if "take" in self.sql:
            return _ids(self.run(self.sql["take"], batch=batch))
        if "claim" in self.sql:
            self.run(self.sql["claim"], batch=batch)
            return _ids(self.run(self.sql["own"])) if self.affected else []
        found = _ids(self.run(self.sql["find"], batch=batch))
        if found:
            self.run(self.sql["mark"], ids=found)
            if "read" in self.sql:
                self.run(self.sql["read"], ids=found)
        return found

    def dequeue(self, batch: int) -> Ids:
        """Dequeue up to batch messages in a transaction."""
        if "find" not in self.sql:
            return self.take(batch)
        self.run("begin")
        taken = self.take(batch)
        self.run("commit")
        return taken

    def complete(self, ids: Ids) -> Ids:
        """Complete messages; return those that this session completed."""
        if ids:
            self.run(self.sql["complete"], ids=ids)
        return ids

    def maintain(self) -> None:
        """Run the form's maintenance, if it has any."""

    def reads(self) -> int:
        """Return the blocks read of tables, indexes and sequences, without TOAST."""
        self.run("select pg_stat_force_next_flush()")
        return int(self.run(_READS)[0][0])

    def wait_for_others(self) -> None:
        """Wait until the other sessions have ended, which report their counts then."""
        until = time.monotonic() + 10
        while self.is_postgres and self.run(_OTHERS)[0][0] and time.monotonic() < until:
            time.sleep(0.02)

    def server_cpu(self) -> float:
        """Return the CPU seconds of this session's server process."""
        return cpu_seconds(self.connection.info.backend_pid) if self.is_postgres else 0.0

    def roll_back(self, error: Exception) -> None:
        """Roll back after a deadlock or a lock timeout; raise any other error."""
        number = getattr(error, "sqlstate", None) if self.is_postgres else error.args[0]
        if number not in _RETRIES:
            raise error
        self.retries += 1
        self.run("rollback")


class RowqClient(Client):
    """A session of rowq through its Python client."""

    def __init__(self, sql: Mapping[str, str], url: str) -> None:
        super().__init__(sql, url)
        self.queue = rowq.Queue(self.connection)
        self.claim = 0

    def fill(self, bodies: Sequence[str]) -> None:
        """Create the queue and add messages."""
        self.queue.create_queue(QUEUE)
        for first in range(0, len(bodies), _CHUNK):
            chunk = [rowq.NewMessage(text=body) for body in bodies[first : first + _CHUNK]]
            self.queue.enqueue_batch(QUEUE, chunk)

    def take(self, batch: int) -> Ids:
        """Lease up to batch messages."""
        taken = self.queue.dequeue_fast(QUEUE, batch, lease_seconds=LEASE_SECONDS)
        self.claim = taken[0].claim_id if taken else 0
        return [message.message_id for message in taken]

    def dequeue(self, batch: int) -> Ids:
        """Lease up to batch messages."""
        return self.take(batch)

    def complete(self, ids: Ids) -> Ids:
        """Complete the last claim."""
        if ids:
            self.queue.complete(QUEUE, self.claim)
        return ids

    def maintain(self) -> None:
        """Run maintain, as a worker does once a second."""
        self.queue.maintain(QUEUE)


@dataclass(frozen=True, slots=True)
class Form:
    """A form of queue. origin: describes it. client: the class of its sessions."""

    name: str
    origin: str
    sql: Mapping[str, str]
    client: type[Client] = Client
    version: str = ""

    def open(self, url: str) -> Client:
        """Open a session."""
        return self.client(self.sql, url)

    def install(self, url: str) -> None:
        """Install the form in an empty database."""
        if not self.sql:
            migrate(url)
            return
        with Client({}, url) as client:
            client.run(f"create schema {SCHEMA}")
        with Client(self.sql, url) as client:
            client.run_all("install")


def rowq_form(name: str = "rowq", client: type[Client] = RowqClient) -> Form:
    """Return rowq."""
    return Form(name, "this checkout", {}, client, rowq.__version__)


def forms(
    origins: Mapping[str, str], sql: Callable[[str, str], Mapping[str, str]], engine: str
) -> list[Form]:
    """Return rowq and the named forms; sql: takes a name and the engine."""
    return [rowq_form(), *(Form(name, what, sql(name, engine)) for name, what in origins.items())]


@dataclass(frozen=True, slots=True)
class Seed:
    """One document's experiment.

    words: its title, an empty line, the question and the method.
    forms: the forms on an engine, rowq first.
    kinds: functions of a URL, a form and a scenario. columns: figures and headings by kind.
    targets: ratios to reach.
    """

    words: str
    forms: Callable[[str], Sequence[Form]]
    kinds: Mapping[str, Callable[[str, Any, Scenario], Figures]]
    columns: Mapping[str, dict[str, str]]
    targets: Callable[[Results], Iterable[Target]] = lambda _: ()


@dataclass(slots=True)
class Report:
    """The work of a session: (id, begun, ended) of each message, and the last complete's time.

    added: predecessors by id.
    """

    done: list[tuple[int, float, float]] = field(default_factory=list)
    last: float = 0.0
    added: dict[int, int] = field(default_factory=dict)
    retries: int = 0
    server_cpu: float = 0.0


def work(
    form: Form,
    url: str,
    scenario: Scenario,
    control: Client,
    producers: Sequence[Callable[[Gate], Report]] = (),
    pause: float = 0.0,
) -> tuple[Figures, list[Report]]:
    """Let sessions handle messages; return the figures and each session's report.

    control: the session that runs maintenance. pause: seconds of work per batch.
    """
    consume = partial(_consume, form, url, scenario.batch, scenario.seconds, pause)
    before: list[float] = []
    team: Team[Report] = Team([*[consume] * scenario.sessions, *producers])
    began, reports = team.run(
        lambda: before.append(_whole_cpu(url)),
        once_a_second(control.maintain, at_once=False),
        0.1,
    )
    cpu = _whole_cpu(url) - before[0] + sum(report.server_cpu for report in reports)
    runs = Counter(number for report in reports for number, _, _ in report.done)
    count = sum(begun > began for report in reports for _, begun, _ in report.done)
    last = max(report.last for report in reports) if count else began + 1
    figures = {
        "messages": count,
        "messages_per_second": round(count / (last - began), 1),
        "server_cpu_us_per_message": round(cpu / max(count, 1) * 1e6, 1),
        "retries": sum(report.retries for report in reports),
        "double_runs": sum(runs.values()) - len(runs),
    }
    return figures, reports


def drain(url: str, form: Form, scenario: Scenario) -> Figures:
    """Fill a queue and let sessions handle its messages."""
    with form.open(url) as client:
        client.fill([str(number).ljust(200, "x") for number in range(scenario.messages)])
        client.settle()
        return work(form, url, scenario, client)[0]


def _consume(form: Form, url: str, batch: int, seconds: float, pause: float, gate: Gate) -> Report:
    report = Report()
    with form.open(url) as client:
        taken, now = client.dequeue(batch), time.monotonic()
        report.done = [(number, now, now) for number in client.complete(taken)]
        end = gate.wait() + seconds
        cpu = client.server_cpu()
        while time.monotonic() < end:
            try:
                taken = client.dequeue(batch)
                begun = time.monotonic()
                time.sleep(pause if taken else 0.002)
                ended = time.monotonic()
                done = client.complete(taken) if taken else []
            except DRIVER_ERRORS as error:
                client.roll_back(error)
                continue
            if done:
                report.done += [(number, begun, ended) for number in done]
                report.last = time.monotonic()
        report.server_cpu = client.server_cpu() - cpu
        report.retries = client.retries
    return report


def _whole_cpu(url: str) -> float:
    """Return the CPU seconds of MariaDB's process; 0 on PostgreSQL."""
    return 0.0 if url.startswith("postgres") else read_counts(url).cpu


def _ids(rows: Sequence[Sequence[Any]]) -> Ids:
    return [int(row[0]) for row in rows]
