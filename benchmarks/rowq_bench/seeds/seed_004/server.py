"""How many statements and commits a server has counted."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.rowq_bench.seeds.dialects import Dialect
from benchmarks.rowq_bench.seeds.session import Session

_COMMITS = "select d.xact_commit from pg_stat_database d where d.datname = current_database()"
_STATUS = "show global status where variable_name in ('Questions', 'Handler_commit')"


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
