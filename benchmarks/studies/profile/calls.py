"""Runs the calls of a course and notes what each kind of call costs from outside."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from psycopg.pq.abc import PGresult

from benchmarks.engines.postgres.session import Libpq, checked
from benchmarks.harness.host import running_seconds
from benchmarks.studies.profile.actions import Action, Course, Parameters

_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one call of an action: seconds of the clock, the median, and the server's CPU.

    start, end: the places in the log before the first call and after the last.
    """

    seconds: float
    cpu: float
    start: str
    end: str


class Session(Libpq):
    """One session, with the actions of a course prepared."""

    def __init__(self, url: str, course: Course) -> None:
        super().__init__(url)
        self._course = course
        self._taken: list[PGresult] = []
        for action in course.actions:
            if not action.copy:
                self.prepare(action.name, action.sql)

    def run(self, action: Action, calls: int) -> list[float]:
        """Make calls of one action, return the seconds of each.

        complete finishes what the last calls of dequeue returned.
        """
        lengths, found = [], []
        for number in range(calls):
            taken = self._taken[number] if action.name == "complete" else None
            values = action.parameters(number, taken)
            began = time.perf_counter()
            found.append(self._call(action, values))
            lengths.append(time.perf_counter() - began)
        self._taken = found if action.name == "dequeue" else []
        for result in self._taken:
            if result.ntuples != self._course.batch:
                raise RuntimeError(f"a dequeue returned {result.ntuples} messages")
        return lengths

    def cost(self, action: Action, calls: int) -> Cost:
        """Make calls and return what one of them took."""
        start, cpu = self._log(), self._cpu()
        lengths = self.run(action, calls)
        return Cost(statistics.median(lengths), (self._cpu() - cpu) / calls, start, self._log())

    def pass_through(self, each: Callable[[Action], _Found]) -> dict[str, _Found]:
        """Let the actions take turns, with marks set and dead rows gone in between."""
        found = {}
        for action in self._course.actions:
            found[action.name] = each(action)
            self.connection.execute("vacuum (analyze)")
        return found

    def _call(self, action: Action, values: Parameters) -> PGresult:
        if not action.copy:
            return self.call(action.name, values)
        pgconn = self.connection.pgconn
        pgconn.exec_(action.sql.encode())
        pgconn.put_copy_data(values[0])
        pgconn.put_copy_end()
        result = pgconn.get_result()
        assert result is not None
        pgconn.get_result()
        return checked(result)

    def _log(self) -> str:
        row = self.connection.execute("select pg_current_wal_insert_lsn()::text").fetchone()
        assert row is not None
        return str(row[0])

    def _cpu(self) -> float:
        """Return the seconds that the server process has had a processor."""
        return running_seconds(self.backend)
