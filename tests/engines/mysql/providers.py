"""MariaDB and MySQL for tests: at a URL, in a container, or as a private server."""

import secrets
from contextlib import closing

import pymysql
from testcontainers.core.container import DockerContainer

from rowq.engines.mysql.url import connection_parameters
from tests.engines.base import Control, Unavailable
from tests.engines.docker import DockerProvider, require_docker, run
from tests.engines.mysql import debian, zones
from tests.engines.mysql.local import (
    LocalMariaDB,
    LocalMySQL,
    LocalServer,
    all_programs,
    find_mysql,
    find_programs,
)
from tests.engines.mysql.server import MysqlServer, Session

# Tests kill processes, not machines: writes survive without syncing. An odd time zone and the
# engine's default character set reveal code that forgets them.
SETTINGS = {
    "default-time-zone": "+05:45",
    "innodb-flush-log-at-trx-commit": "2",
    "log-bin": "binlog",
    "max-allowed-packet": "67108864",
    "max-connections": "300",
    "server-id": "1",
}
_PRIVATE_SETTINGS = {
    **SETTINGS,
    "innodb-buffer-pool-size": "256M",
    "innodb-doublewrite": "0",
    "innodb-print-all-deadlocks": "1",
    "innodb-use-native-aio": "0",
    "skip-name-resolve": "1",
}
LOCAL_SETTINGS = {
    **_PRIVATE_SETTINGS,
    "debug-no-sync": "1",
    "innodb-log-file-size": "32M",
    "plugin-load-add": "metadata_lock_info",
}
# Debian's MySQL needs a system folder for files and opens a second port.
MYSQL_FILES = {"mysqlx": "0", "secure-file-priv": ""}
LOCAL_MYSQL_SETTINGS = {
    **_PRIVATE_SETTINGS,
    **MYSQL_FILES,
    "innodb-redo-log-capacity": "128M",
    "performance-schema-max-sql-text-length": "8192",
    "sync-binlog": "0",
}


class MysqlProvider(DockerProvider):
    """Starts MySQL servers."""

    engine = "mysql"
    product = "mysql"
    versions: tuple[str, ...] = ("8.4", "9", "8.0")
    image = "mysql:{}"

    def at_hand(self) -> list[str]:
        return super().at_hand() or self._local_series()

    def outlook(self) -> list[str]:
        try:
            found = f"local programs {find_mysql().version}"
        except Unavailable as reason:
            found = str(reason)
        return [*super().outlook(), f"mysql: {found}"]

    def from_url(self, url: str) -> MysqlServer:
        try:
            return MysqlServer(url, "given URL,")
        except (pymysql.Error, OSError) as error:
            raise Unavailable(str(error)) from None

    def from_docker(self, version: str) -> MysqlServer:
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

    def from_local(self, version: str) -> MysqlServer:
        local = self._start_local(version)
        with closing(Session(**connection_parameters(local.url), autocommit=True)) as admin:
            zones.fill(admin)
        control = Control(stop=local.stop, crash=local.kill, restart=local.restart, log=local.log)
        return MysqlServer(
            local.url, "local programs", control, spare=lambda: self.from_local(version)
        )

    def _local_series(self) -> list[str]:
        try:
            return [find_mysql().series]
        except Unavailable:
            return []

    def _start_local(self, version: str) -> LocalServer:
        return LocalMySQL(find_mysql(version), LOCAL_MYSQL_SETTINGS)


class MariaDBProvider(MysqlProvider):
    """Starts MariaDB servers."""

    product = "mariadb"
    versions: tuple[str, ...] = ("10.11", "11.8", "10.6")
    image = "mariadb:{}"

    def at_hand(self) -> list[str]:
        return list(dict.fromkeys([*DockerProvider.at_hand(self), *self._local_series()]))

    def outlook(self) -> list[str]:
        found = [f"local programs {programs.version}" for programs in all_programs()]
        for find in (find_programs, debian.MARIADB.command):
            try:
                find()
            except Unavailable as reason:
                found.append(str(reason))
        return [*DockerProvider.outlook(self), *(f"mariadb: {line}" for line in found)]

    def _local_series(self) -> list[str]:
        return [programs.series for programs in all_programs()]

    def _start_local(self, version: str) -> LocalServer:
        return LocalMariaDB(find_programs(version), LOCAL_SETTINGS)


def accepts(url: str) -> bool:
    """Return whether the server accepts a session."""
    try:
        pymysql.connect(**connection_parameters(url)).close()
    except (pymysql.Error, OSError):
        return False
    return True


PROVIDERS = (MariaDBProvider(), MysqlProvider())
