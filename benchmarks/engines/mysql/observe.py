"""Counters of a MariaDB server: deadlocks, lock waits, log, CPU time."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, fields
from pathlib import Path

import pymysql

from benchmarks.harness.host import cpu_seconds
from rowq.engines.mysql.url import connection_parameters


@dataclass(frozen=True, slots=True)
class Counts:
    """Counters of the whole server at one time. lock_waits: for rows. cpu: seconds."""

    deadlocks: int
    lock_waits: int
    lock_wait_seconds: float
    log_bytes: int
    cpu: float

    def since(self, before: Counts) -> Counts:
        """Return the increase of each counter."""
        names = [field.name for field in fields(self)]
        return Counts(**{name: getattr(self, name) - getattr(before, name) for name in names})


def read_counts(url: str) -> Counts:
    """Read the counters; cpu is 0 if the server is on another machine."""
    with (
        pymysql.connect(**connection_parameters(url), autocommit=True) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("show global status like 'Innodb%'")
        status = dict(cursor.fetchall())
        cursor.execute("select @@pid_file")
        ((pid_file,),) = cursor.fetchall()
    cpu = 0.0
    with contextlib.suppress(OSError, ValueError):
        cpu = cpu_seconds(int(Path(pid_file).read_text("ascii")))
    return Counts(
        deadlocks=int(status["Innodb_deadlocks"]),
        lock_waits=int(status["Innodb_row_lock_waits"]),
        lock_wait_seconds=int(status["Innodb_row_lock_time"]) / 1e3,
        log_bytes=int(status["Innodb_lsn_current"]),
        cpu=cpu,
    )
