"""Durable private servers that may be killed, one kind per product.

If a product has none, a given server is used for tests that kill no server.
"""

import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rowq.tools.local_postgres.server import LocalPostgres, LocalPostgresError
from tests.engines.base import Control, Server, Unavailable
from tests.engines.mysql.local import LocalMariaDB, find_programs
from tests.engines.mysql.providers import MysqlProvider
from tests.engines.mysql.server import MysqlServer
from tests.engines.oracle.providers import OracleProvider
from tests.engines.postgres.server import PostgresServer
from tests.engines.sqlserver.providers import SqlserverProvider

# These servers write durably, as the engines do by default.
POSTGRES = {"max_prepared_transactions": "10", "timezone": "Asia/Kathmandu"}
MARIADB = {"default-time-zone": "+05:45", "innodb-use-native-aio": "0", "log-bin": "binlog"}


@dataclass(frozen=True)
class KillableServer:
    """A private server, or a given one. It returns under the same URLs after a crash.

    crash: kill it like a power failure, and restart it. stop_at_once: stop it without grace.
    kill, restart: the two halves of crash, for a longer outage.
    can_die: whether it can be killed; such tests are marked `requires("restart")`.
    """

    server: Server
    crash: Callable[[], None]
    stop_at_once: Callable[[], None]
    kill: Callable[[], None]
    restart: Callable[[], None]
    can_die: bool = True

    @property
    def name(self) -> str:
        """The server's name."""
        return self.server.name

    @property
    def how(self) -> str:
        """Description of how the server runs."""
        return self.server.how

    @property
    def capabilities(self) -> frozenset[str]:
        """Capabilities that tests may rely on."""
        others = self.server.capabilities - {"restart"}
        return others | {"restart"} if self.can_die else others


@contextmanager
def killable_postgres(version: str) -> Iterator[KillableServer]:
    """Run a private PostgreSQL of a version; raises Unavailable."""
    home = Path(tempfile.mkdtemp(prefix="rowq-test-"))
    try:
        with LocalPostgres(home, int(version), settings=POSTGRES) as local:

            def die(kill: Callable[[], None]) -> None:
                kill()
                local.restart()

            how = f"to be killed, {local.origin}"
            server = PostgresServer(local.url, how, Control(log=local.log))
            with server.connect(local.url) as connection:
                assert connection.execute("show fsync").fetchone() == ("on",)
                assert connection.execute("show synchronous_commit").fetchone() == ("on",)
            yield KillableServer(
                server,
                crash=lambda: die(local.kill),
                stop_at_once=lambda: die(lambda: os.kill(local.pid, signal.SIGQUIT)),
                kill=local.kill,
                restart=local.restart,
            )
    except LocalPostgresError as reason:
        raise Unavailable(str(reason)) from None
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def killable_mariadb(version: str) -> Iterator[KillableServer]:
    """Run a private MariaDB of a version; raises Unavailable."""
    local = LocalMariaDB(find_programs(version), MARIADB)

    def die(how: signal.Signals) -> None:
        local.kill(how)
        local.restart()

    how = "to be killed, local programs"
    server = MysqlServer(local.url, how, Control(stop=local.stop, log=local.log))
    try:
        with server.connect(local.url) as connection:
            # MariaDB 11 returns ON, older versions 1.
            written = "select @@innodb_flush_log_at_trx_commit, @@innodb_doublewrite in ('1', 'ON')"
            assert connection.execute(written).fetchone() == (1, 1)
        yield KillableServer(
            server,
            crash=lambda: die(signal.SIGKILL),
            stop_at_once=lambda: die(signal.SIGTERM),
            kill=lambda: local.kill(signal.SIGKILL),
            restart=local.restart,
        )
    finally:
        server.close()


def given(server: Server) -> KillableServer:
    """Return a given server, which is not killed."""
    return KillableServer(
        server,
        crash=server.crash,
        stop_at_once=server.restart,
        kill=server.crash,
        restart=server.restart,
        can_die=False,
    )


@contextmanager
def in_container(
    provider: MysqlProvider | SqlserverProvider | OracleProvider,
) -> Iterator[KillableServer]:
    """Run a private server of the preferred version in a container; raises Unavailable."""
    server = provider.from_docker(provider.versions[0])

    def crash() -> None:
        server.crash()
        server.restart()

    try:
        yield KillableServer(
            server,
            crash=crash,
            stop_at_once=server.restart,
            kill=server.crash,
            restart=server.restart,
        )
    finally:
        server.close()


def no_way(_version: str) -> AbstractContextManager[KillableServer]:
    """Raise Unavailable: the tests cannot start this product."""
    raise Unavailable("none can be started")


WAYS: dict[str, Callable[[str], AbstractContextManager[KillableServer]]] = {
    "postgres": killable_postgres,
    "mariadb": killable_mariadb,
    "mysql": lambda _: in_container(MysqlProvider()),
    "sqlserver": lambda _: in_container(SqlserverProvider()),
    "oracle": lambda _: in_container(OracleProvider()),
}
MAY_BE_GIVEN = {
    **{product: product for product in ("postgres", "sqlserver", "oracle")},
    "babelfish": "sqlserver",
}
"""Products whose server may be given, and the product that names its URL."""
