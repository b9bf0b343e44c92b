"""Runs the calls of a course and notes what each kind of call costs from outside."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import psycopg
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

from benchmarks.harness.host import cpu_seconds
from benchmarks.studies.profile.actions import Action, Course, Parameters

_Found = TypeVar("_Found")
_GOOD = {ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK}


@dataclass(frozen=True, slots=True)
class Cost:
    """What one call of an action took: seconds of the clock, the median, and the server's CPU.

    start, end: the places in the log before the first call and after the last.
    """

    seconds: float
    cpu: float
    start: str
    end: str


class Session:
    """One session, with the actions of a course prepared."""

    def __init__(self, url: str, course: Course) -> None:
        self.connection = psycopg.connect(url, autocommit=True)
        self._course = course
        self._taken: list[PGresult] = []
        for action in course.actions:
            if not action.copy:
                prepared = self.connection.pgconn.prepare(action.name.encode(), action.sql.encode())
                _check(prepared)

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
        for one in self._taken:
            if one.ntuples != self._course.batch:
                raise RuntimeError(f"a dequeue returned {one.ntuples} messages")
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
        pgconn = self.connection.pgconn
        if not action.copy:
            return _check(pgconn.exec_prepared(action.name.encode(), values))
        pgconn.exec_(action.sql.encode())
        pgconn.put_copy_data(values[0])
        pgconn.put_copy_end()
        result = _check(pgconn.get_result())
        pgconn.get_result()
        return result

    def _log(self) -> str:
        row = self.connection.execute("select pg_current_wal_insert_lsn()::text").fetchone()
        assert row is not None
        return str(row[0])

    def _cpu(self) -> float:
        """Return the server process's seconds on a processor, to the microsecond if it can."""
        pid = self.connection.info.backend_pid
        try:
            return int(Path(f"/proc/{pid}/schedstat").read_text("ascii").split()[0]) / 1e9
        except (OSError, ValueError, IndexError):
            return cpu_seconds(pid)


def _check(result: PGresult | None) -> PGresult:
    assert result is not None
    if result.status not in _GOOD:
        raise RuntimeError(result.error_message.decode(errors="replace"))
    return result
