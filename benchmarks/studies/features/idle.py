"""Calls maintain where nothing is due, and measures what the server does for it."""

import contextlib
import time
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.engines.mysql.lab import Lab as MariadbLab
from benchmarks.engines.mysql.observe import MariadbObserver
from benchmarks.engines.mysql.session import MariadbSession
from benchmarks.engines.postgres.lab import Lab as PostgresLab
from benchmarks.engines.postgres.session import PostgresSession
from benchmarks.harness.closing import Closing
from benchmarks.harness.host import running_seconds
from benchmarks.harness.scenarios import turned
from benchmarks.harness.session import Session
from benchmarks.studies.features.houses import AT_ONCE, EACH_SECOND, HOUSES, House, build
from benchmarks.studies.features.meter import TRACK, Meter
from rowq.migrate import migrate

_WARM_UP = 5

Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class IdlePlan:
    """How often maintain is called in each house.

    rounds: of the houses. length: of a round of one house, in seconds of calls one after the other.
    seconds: for how many of them it is called once a second.
    """

    rounds: int
    length: float
    seconds: int
    houses: Sequence[House] = HOUSES


class Keeper(Closing):
    """A session that keeps one house."""

    maintain: str

    def __init__(self, house: House, session: Session) -> None:
        self.house = house
        self.session = session

    def close(self) -> None:
        """Close the session."""
        self.session.close()

    def call(self, times: int) -> None:
        """Keep house so often."""
        for _ in range(times):
            if len(self.session.run(self.maintain)) != self.house.queues:
                raise RuntimeError("maintain did not come to every queue")

    @abstractmethod
    def cost(self, times: int) -> Figures:
        """Keep house so often, and return what that cost, with the µs of a processor."""

    def record(self, pace: str, times: int) -> dict[str, Any]:
        """Keep house so often in a row, and return what one call cost."""
        house = {"queues": self.house.queues, "schedules": self.house.schedules}
        each = {name: round(value / times, 3) for name, value in self.cost(times).items()}
        return house | {"pace": pace, "calls": times} | each


class PostgresKeeper(Keeper):
    """Knows the work of the session's own process."""

    maintain = "select queue_name from rowq.maintain()"

    def __init__(self, house: House, url: str) -> None:
        super().__init__(house, PostgresSession(url))
        self._control = psycopg.connect(url, autocommit=True)
        self._meter = Meter(self._control, self.session.backend)
        build(house, url, self.session)
        self._control.execute("vacuum (analyze)")

    def close(self) -> None:
        """Close both sessions."""
        self._control.close()
        super().close()

    def cost(self, times: int) -> Figures:
        """Keep house."""
        self._meter.start()
        with self._meter.running():
            self.call(times)
        wal_bytes, cpu_us = self._meter.used()
        return {"wal_bytes": wal_bytes, "cpu_us": cpu_us}

    def counted(self) -> Figures:
        """Keep house once, and return what the server counts meanwhile."""
        self._meter.start()
        self.session.script(TRACK[True])
        self.call(1)
        self.session.script(TRACK[False])
        statements, buffers = self._meter.counted()
        return {"statements": statements, "buffers": buffers}


class MariadbKeeper(Keeper):
    """Knows the work of the whole server, on which nobody else is at work."""

    maintain = "call rowq.maintain(null, null)"

    def __init__(self, house: House, url: str) -> None:
        super().__init__(house, MariadbSession(url))
        self._observer = MariadbObserver(url)
        ((pid_file,),) = self.session.run("select @@pid_file")
        self._server = int(Path((pid_file or b"").decode()).read_text("ascii"))
        build(house, url, self.session)
        self.session.script("analyze table rowq.schedule")

    def close(self) -> None:
        """Close both sessions."""
        self._observer.close()
        super().close()

    def cost(self, times: int) -> Figures:
        """Keep house."""
        before, cpu = self._observer.counts(), running_seconds(self._server)
        self.call(times)
        cpu = running_seconds(self._server) - cpu
        used = self._observer.counts().since(before)
        return {"buffers": used.reads, "wal_bytes": used.log_bytes, "cpu_us": cpu * 1e6}


def keep_postgres(lab: PostgresLab, plan: IdlePlan) -> list[dict[str, Any]]:
    """Keep houses by turns, each in a database of its own, and return a record of each turn."""
    with contextlib.ExitStack() as stack:
        keepers = []
        for house in plan.houses:
            system = _System(house.name)
            lab.prepare(system)
            url = stack.enter_context(lab.database(system))
            keepers.append(stack.enter_context(PostgresKeeper(house, url)))
        records = list(_keep(keepers, plan))
        counts = {keeper.house: keeper.counted() for keeper in keepers}
    return [record | counts[House(record["queues"], record["schedules"])] for record in records]


def keep_mariadb(lab: MariadbLab, plan: IdlePlan) -> list[dict[str, Any]]:
    """Keep houses one after the other, as all have their tables in the same database."""
    records: list[dict[str, Any]] = []
    for house in plan.houses:
        with lab.database(_System(house.name)) as url, MariadbKeeper(house, url) as keeper:
            records += _keep([keeper], plan)
    return records


@dataclass(frozen=True, slots=True)
class _System:
    """rowq, for the database of one house."""

    name: str

    def install(self, url: str) -> None:
        """Bring rowq into an empty database."""
        migrate(url)


def _keep(keepers: Sequence[Keeper], plan: IdlePlan) -> Iterator[dict[str, Any]]:
    times = {keeper.house: _calls_within(plan.length, keeper) for keeper in keepers}
    for turn in range(plan.rounds):
        for keeper in turned(keepers, turn):
            yield keeper.record(AT_ONCE, times[keeper.house])
    began = time.monotonic()
    for second in range(plan.seconds):
        time.sleep(max(began + second - time.monotonic(), 0))
        for keeper in turned(keepers, second):
            yield keeper.record(EACH_SECOND, 1)
    for keeper in keepers:
        houses = f"{keeper.house.queues} queues, {keeper.house.schedules} schedules each"
        print(f"kept {houses}", flush=True)


def _calls_within(seconds: float, keeper: Keeper) -> int:
    """Warm a keeper up, and return how many calls take about so long."""
    keeper.call(_WARM_UP - 1)
    began = time.monotonic()
    keeper.call(1)
    return max(int(seconds / (time.monotonic() - began)), 1)
