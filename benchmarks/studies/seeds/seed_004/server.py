"""Reads how many statements, and commits of transactions that wrote, a server has counted."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.engines.oracle.observe import SERVED
from benchmarks.engines.sqlserver.observe import read_counters
from benchmarks.harness.session import Session
from benchmarks.studies.seeds.dialects import Dialect

# Each statement here is a transaction, and a transaction gets a number of its own only when it
# writes.
_POSTGRES = """
    select d.xact_commit, pg_snapshot_xmax(pg_current_snapshot())
    from pg_stat_database d
    where d.datname = current_database()
"""
_IS_COUNTING = (
    "select count(*) from information_schema.innodb_metrics"
    " where name = 'trx_rw_commits' and enabled = 1"
)
_COUNT = "set global innodb_monitor_enable = 'trx_rw_commits'"
_COUNT_NO_MORE = "set global innodb_monitor_disable = 'trx_rw_commits'"
_STATEMENTS = "show global status where variable_name = 'Questions'"
_COMMITS = "select count from information_schema.innodb_metrics where name = 'trx_rw_commits'"


@dataclass(frozen=True, slots=True)
class Served:
    """Counters of the server: statements sent by clients, and commits that wrote.

    PostgreSQL counts transactions; where each statement is one, they are the statements. Oracle
    counts calls, and a call that hands back a cursor is two.
    """

    statements: int
    commits: int


@contextlib.contextmanager
def counting(dialect: Dialect, session: Session) -> Iterator[None]:
    """Have MariaDB count commits, which it usually does not."""
    if dialect.name != "mariadb" or session.run(_IS_COUNTING) == [(b"1",)]:
        yield
        return
    session.run(_COUNT)
    try:
        yield
    finally:
        session.run(_COUNT_NO_MORE)


def read_served(dialect: Dialect, session: Session) -> Served:
    """Read the counters, inside of `counting`."""
    if dialect.name == "sqlserver":
        counters = read_counters(session)
        return Served(counters["Batch Requests/sec"], counters["Write Transactions/sec"])
    if dialect.name == "mariadb":
        ((_, statements),) = session.run(_STATEMENTS)
        ((commits,),) = session.run(_COMMITS)
    elif dialect.name == "oracle":
        ((statements, commits),) = session.run(SERVED)
    else:
        session.run("select pg_stat_force_next_flush()")
        ((statements, commits),) = session.run(_POSTGRES)
    return Served(int(statements or 0), int(commits or 0))
