"""The engines that the seeds are run on: how to open a session and how to observe the server."""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.engines.mysql.observe import MariadbObserver
from benchmarks.engines.mysql.session import MariadbSession
from benchmarks.engines.mysql.wire import BARE
from benchmarks.engines.oracle.observe import OracleObserver
from benchmarks.engines.oracle.session import IMPATIENT, OracleSession
from benchmarks.engines.postgres.observe import PostgresObserver
from benchmarks.engines.postgres.session import PostgresSession
from benchmarks.engines.sqlserver.observe import SqlserverObserver
from benchmarks.engines.sqlserver.session import SqlserverSession
from benchmarks.harness.observe import Observer
from benchmarks.harness.session import OpenSession


@dataclass(frozen=True, slots=True)
class Dialect:
    """One engine.

    room: the script that makes the place for a form's tables, if the database is not that already.
    impatient: lets a session wait for a lock for a second at most.
    """

    name: str
    open: OpenSession
    observe: Callable[[str], Observer]
    room: str
    impatient: str


DIALECTS = {
    "postgres": Dialect(
        "postgres",
        PostgresSession,
        PostgresObserver,
        "create schema seed",
        "set lock_timeout = '1s'",
    ),
    "mariadb": Dialect(
        "mariadb",
        MariadbSession,
        MariadbObserver,
        f"create database {BARE} character set utf8mb4",
        "set session innodb_lock_wait_timeout = 1",
    ),
    "sqlserver": Dialect(
        "sqlserver",
        SqlserverSession,
        SqlserverObserver,
        "",
        "set lock_timeout 1000",
    ),
    "oracle": Dialect("oracle", OracleSession, OracleObserver, "", IMPATIENT),
}
