"""One peer in one database, and its programs."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from benchmarks.harness.scenarios import SCENARIOS as POSTGRES_SCENARIOS
from benchmarks.harness.scenarios import scenario_values
from benchmarks.studies.peers.peer import Peer
from benchmarks.studies.peers.process import Program, start_together
from benchmarks.studies.peers.watch import Watch

SCENARIOS = POSTGRES_SCENARIOS.with_name("scenarios_peers.toml")

QUEUE = "bench"
_PREPARED_WORKERS = 64
_LONGEST_FILL = 60


@dataclass(frozen=True, slots=True)
class PeerScenario:
    """One scenario."""

    name: str
    kind: str
    title: str
    rounds: int
    processes: int
    workers: int
    batch: int
    seconds: float
    bodies: list[list[int]]
    needs: list[str] = field(default_factory=list)
    messages: int = 0
    target: int = 0
    rate: float = 0
    bulk: int = 1
    fill_seconds: float = 0
    delayed: int = 0
    keys: int = 0
    holder: str = ""

    def shares(self) -> list[int]:
        """Return the number of workers of each process that has any."""
        each, more = divmod(self.workers, self.processes)
        shares = [each + (number < more) for number in range(self.processes)]
        return [share for share in shares if share]


def load_peer_scenarios(size: str = "full") -> list[PeerScenario]:
    """Return all scenarios in the order of the file; size: one of SIZES."""
    return [PeerScenario(**values) for values in scenario_values(SCENARIOS, size)]


@dataclass(frozen=True, slots=True)
class Run:
    """One peer in one database. postmaster: the server's main process, None if remote."""

    peer: Peer
    scenario: PeerScenario
    url: str
    admin_url: str
    postmaster: int | None

    @property
    def config(self) -> dict[str, Any]:
        """The configuration of every program."""
        scenario = self.scenario
        return config_of(self.url, scenario.workers, scenario.batch) | {"keys": scenario.keys}

    @property
    def is_cut(self) -> bool:
        """Whether the peer runs with one worker only."""
        return "workers" in self.peer.cannot

    def producer(self, **more: Any) -> Program:
        """Start a program that adds the scenario's messages; more: changes to it."""
        scenario = self.scenario
        work = {
            "messages": scenario.messages,
            "rate": scenario.rate,
            "bulk": scenario.bulk,
            "first": 0,
            "delay_seconds": 0,
            "bodies": scenario.bodies,
            "seconds": scenario.seconds,
        }
        return Program(self.peer, "produce", self.config | work | more)

    def consumers(self, stack: contextlib.ExitStack) -> list[Program]:
        """Start the consuming programs."""
        shares = [1] if self.is_cut else self.scenario.shares()
        return [
            stack.enter_context(
                Program(
                    self.peer, "consume", self.config | {"workers": share, "worker_number": number}
                )
            )
            for number, share in enumerate(shares)
        ]

    @contextlib.contextmanager
    def maintenance(self) -> Iterator[list[Program]]:
        """Run the peer's maintenance process, if it has one."""
        if not self.peer.has_maintenance:
            yield []
            return
        with Program(self.peer, "maintain", self.config) as program:
            start_together([program])
            yield [program]

    def watch(self) -> contextlib.closing[Watch]:
        """Return a context manager for the counters of the database."""
        database = str(conninfo_to_dict(self.url)["dbname"])
        return contextlib.closing(Watch(self.admin_url, database, self.postmaster))

    def fill(self, **more: Any) -> dict[str, Any]:
        """Add messages as fast as one client can; return its result."""
        longest = self.scenario.fill_seconds or _LONGEST_FILL
        with self.producer(rate=0, seconds=longest, **more) as program:
            start_together([program])
            return program.finish(longest)

    def vacuum(self) -> None:
        """Vacuum all tables, as autovacuum would within a minute."""
        with psycopg.connect(make_conninfo(self.url), autocommit=True) as connection:
            connection.execute("vacuum (analyze)")

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the scenario's open transaction, if it has one."""
        if not self.scenario.holder:
            yield
            return
        with psycopg.connect(make_conninfo(self.url)) as connection:
            if self.scenario.holder == "snapshot":
                connection.execute("set transaction isolation level repeatable read, read only")
                connection.execute("select count(*) from pg_class")
            else:
                connection.execute("create temporary table written as select 1 as number")
            yield
            connection.rollback()


def config_of(url: str, workers: int = _PREPARED_WORKERS, batch: int = 1) -> dict[str, Any]:
    """Return the configuration of a program for a database."""
    parts = conninfo_to_dict(url)
    return {
        "url": url,
        "pg": {
            "host": parts["host"],
            "port": int(parts.get("port") or 5432),
            "user": parts["user"],
            "database": parts["dbname"],
        },
        "queue": QUEUE,
        "workers": workers,
        "batch": batch,
        "keys": 0,
        "worker_number": 0,
    }
