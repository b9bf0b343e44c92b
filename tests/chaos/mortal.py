"""Servers that write as in production and may be killed; one way for each product."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rowq.demo.local_postgres import LocalPostgres, LocalPostgresError
from tests.engines.base import Server, Unavailable
from tests.engines.local_mariadb import LocalMariaDB, find_programs
from tests.engines.mysql import MysqlServer
from tests.engines.oracle_ways import OracleProvider
from tests.engines.postgres import PostgresServer
from tests.engines.sqlserver_ways import SqlserverProvider

# Unlike the other tests' servers these write safely, as the engines do by default.
POSTGRES = {"max_prepared_transactions": "10", "timezone": "Asia/Kathmandu"}
MARIADB = {"default-time-zone": "+05:45", "innodb-use-native-aio": "0", "log-bin": "binlog"}


@dataclass(frozen=True)
class Mortal:
    """A private server. Both deaths bring it back under the same URLs.

    crash: kills it as a power failure would. stop_at_once: stops it without letting anybody finish.
    """

    server: Server
    crash: Callable[[], None]
    stop_at_once: Callable[[], None]


@contextmanager
def mortal_postgres() -> Iterator[Mortal]:
    """Run a private PostgreSQL of the preferred version; raises Unavailable."""
    home = Path(tempfile.mkdtemp(prefix="rowq-test-"))
    try:
        with LocalPostgres(home, settings=POSTGRES) as local:

            def die(kill: Callable[[], None]) -> None:
                kill()
                local.restart()

            server = PostgresServer(local.url, f"to be killed, {local.origin}")
            with server.connect(local.url) as connection:
                assert connection.execute("show fsync").fetchone() == ("on",)
                assert connection.execute("show synchronous_commit").fetchone() == ("on",)
            yield Mortal(
                server,
                crash=lambda: die(local.kill),
                stop_at_once=lambda: die(lambda: os.kill(local.pid, signal.SIGQUIT)),
            )
    except LocalPostgresError as reason:
        raise Unavailable(str(reason)) from None
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def mortal_mariadb() -> Iterator[Mortal]:
    """Run a private MariaDB; raises Unavailable."""
    local = LocalMariaDB(find_programs(), MARIADB)

    def die(how: signal.Signals) -> None:
        local.kill(how)
        local.restart()

    server = MysqlServer(local.url, "to be killed, local programs", stop=local.stop)
    try:
        with server.connect(local.url) as connection:
            written = "select @@innodb_flush_log_at_trx_commit, @@innodb_doublewrite"
            assert connection.execute(written).fetchone() == (1, 1)
        yield Mortal(
            server,
            crash=lambda: die(signal.SIGKILL),
            stop_at_once=lambda: die(signal.SIGTERM),
        )
    finally:
        server.close()


@contextmanager
def in_container(provider: SqlserverProvider | OracleProvider) -> Iterator[Mortal]:
    """Run a private server of the preferred version in a container; raises Unavailable."""
    server = provider.from_docker(provider.versions[0])

    def crash() -> None:
        server.crash()
        server.restart()

    try:
        yield Mortal(server, crash=crash, stop_at_once=server.restart)
    finally:
        server.close()


WAYS: dict[str, Callable[[], AbstractContextManager[Mortal]]] = {
    "postgres": mortal_postgres,
    "mariadb": mortal_mariadb,
    "sqlserver": lambda: in_container(SqlserverProvider()),
    "oracle": lambda: in_container(OracleProvider()),
}
