"""The ways to MariaDB and MySQL for the tests: a given URL, a container, or a private MariaDB."""

import secrets

import pymysql
from testcontainers.core.container import DockerContainer

from rowq.mysql.url import connection_parameters
from tests.engines.base import Control, Unavailable
from tests.engines.docker import DockerProvider, require_docker, run
from tests.engines.mysql import debian
from tests.engines.mysql.local import LocalMariaDB, all_programs, find_programs
from tests.engines.mysql.server import MysqlServer

# Processes are killed in the tests, machines are not: what was written survives without syncing.
# A time zone off by a quarter of an hour finds every place that forgets about time zones. The
# character set is left at the engine's default, so that forgetting it is found too.
SETTINGS = {
    "default-time-zone": "+05:45",
    "innodb-flush-log-at-trx-commit": "2",
    "log-bin": "binlog",
    "max-allowed-packet": "67108864",
    "max-connections": "300",
    "server-id": "1",
}
LOCAL_SETTINGS = {
    **SETTINGS,
    "debug-no-sync": "1",
    "innodb-buffer-pool-size": "256M",
    "innodb-doublewrite": "0",
    "innodb-log-file-size": "32M",
    "innodb-print-all-deadlocks": "1",
    "innodb-use-native-aio": "0",
    "plugin-load-add": "metadata_lock_info",
    "skip-name-resolve": "1",
}


class MysqlProvider(DockerProvider):
    """The ways to a MySQL server."""

    engine = "mysql"
    product = "mysql"
    versions: tuple[str, ...] = ("8.4", "9", "8.0")
    image = "mysql:{}"

    def from_url(self, url: str) -> MysqlServer:
        """Use a server that runs already; it must not have a database rowq."""
        try:
            return MysqlServer(url, "given URL,")
        except (pymysql.Error, OSError) as error:
            raise Unavailable(str(error)) from None

    def from_docker(self, version: str) -> MysqlServer:
        """Start the official image."""
        require_docker()
        password = secrets.token_hex(16)
        container = DockerContainer(self.image.format(version))
        container.with_env(f"{self.product.upper()}_ROOT_PASSWORD", password)
        container.with_command([f"--{name}={value}" for name, value in SETTINGS.items()])
        url, control = run(
            container,
            3306,
            url=lambda address: f"{self.product}://root:{password}@{address}/",
            accepts=accepts,
            seconds=90,
        )
        how = f"docker image {container.image},"
        return MysqlServer(url, how, control, spare=lambda: self.from_docker(version))


class MariaDBProvider(MysqlProvider):
    """The ways to a MariaDB server."""

    product = "mariadb"
    versions: tuple[str, ...] = ("10.11", "11.8", "10.6")
    image = "mariadb:{}"

    def at_hand(self) -> list[str]:
        """Return the versions that can be had: those of the local programs, all with Docker."""
        found = [programs.series for programs in all_programs()]
        return list(dict.fromkeys([*super().at_hand(), *found]))

    def outlook(self) -> list[str]:
        """Say what is here: a Docker daemon or not, and which programs."""
        found = [f"local programs {programs.version}" for programs in all_programs()]
        for look in (find_programs, debian.command):
            try:
                look()
            except Unavailable as reason:
                found.append(str(reason))
        return [*super().outlook(), *(f"mariadb: {line}" for line in found)]

    def from_local(self, version: str) -> MysqlServer:
        """Start the programs of a package in a directory of their own."""
        local = LocalMariaDB(find_programs(version), LOCAL_SETTINGS)
        control = Control(stop=local.stop, crash=local.kill, restart=local.restart, log=local.log)
        return MysqlServer(
            local.url, "local programs", control, spare=lambda: self.from_local(version)
        )


def accepts(url: str) -> bool:
    """Return whether the server takes a session."""
    try:
        pymysql.connect(**connection_parameters(url)).close()
    except (pymysql.Error, OSError):
        return False
    return True


PROVIDERS = (MariaDBProvider(), MysqlProvider())
