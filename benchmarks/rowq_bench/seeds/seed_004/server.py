"""How many statements and commits a server has counted."""

from __future__ import annotations

import time
from dataclasses import dataclass

from benchmarks.rowq_bench.seeds.dialects import Dialect
from benchmarks.rowq_bench.seeds.session import Session

_WORKING = """
    select count(*)
    from pg_stat_activity a
    where a.datname = current_database()
      and a.backend_type = 'client backend'
      and a.pid <> pg_backend_pid()
      and a.backend_start > (
          select b.backend_start from pg_stat_activity b where b.pid = pg_backend_pid()
      )
"""
_COMMITS = "select d.xact_commit from pg_stat_database d where d.datname = current_database()"
_STATUS = "show global status where variable_name in ('Questions', 'Handler_commit')"
_PATIENCE = 10.0


@dataclass(frozen=True, slots=True)
class Served:
    """What the server has counted: statements sent by clients, and commits of transactions.

    PostgreSQL counts commits only; where every statement is a transaction, they are the statements.
    """

    statements: int
    commits: int


def read_served(dialect: Dialect, session: Session) -> Served:
    """Read the counters."""
    if dialect.name == "mariadb":
        status = {name: int(value or 0) for name, value in session.run(_STATUS)}
        return Served(status[b"Questions"], status[b"Handler_commit"])
    session.run("select pg_stat_force_next_flush()")
    commits = int(session.run(_COMMITS)[0][0] or 0)
    return Served(commits, commits)


def await_end(dialect: Dialect, session: Session) -> None:
    """Wait until the sessions that are younger than this one have ended and told their part."""
    until = time.monotonic() + _PATIENCE
    while dialect.name == "postgres" and int(session.run(_WORKING)[0][0] or 0):
        if time.monotonic() > until:
            raise RuntimeError("the sessions of the processes do not end")
        time.sleep(0.01)
