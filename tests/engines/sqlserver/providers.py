"""SQL Server for tests: at a URL, or in a container."""

import secrets
from urllib.parse import quote

from testcontainers.core.container import DockerContainer

from rowq.engines.sqlserver.driver import load_driver
from rowq.errors import DriverMissing, RowqError
from tests.engines.base import Unavailable
from tests.engines.docker import DockerProvider, require_docker, run
from tests.engines.sqlserver import odbc
from tests.engines.sqlserver.server import SETTINGS, SqlserverServer, accepts


class SqlserverProvider(DockerProvider):
    """Starts SQL Servers; a Babelfish at a URL is recognized."""

    engine = "sqlserver"
    product = "sqlserver"
    versions: tuple[str, ...] = ("2022", "2025", "2019", "2017")
    setting = ""
    is_large = True
    image = "mcr.microsoft.com/mssql/server:{}-latest"

    def outlook(self) -> list[str]:
        lines = super().outlook()
        try:
            load_driver()
        except DriverMissing as reason:
            lines.append(f"sqlserver: {reason}")
        return lines

    def from_url(self, url: str) -> SqlserverServer:
        try:
            return SqlserverServer(url, "given URL,", setting=self.setting)
        except RowqError as error:
            raise Unavailable(str(error)) from None

    def from_docker(self, version: str) -> SqlserverServer:
        require_docker()
        password = f"Aa1-{secrets.token_hex(16)}"  # three kinds of characters are required
        container = DockerContainer(self.image.format(version))
        container.with_env("ACCEPT_EULA", "Y").with_env("MSSQL_PID", "Developer")
        container.with_env("MSSQL_SA_PASSWORD", password)
        options = f"encrypt=yes&trust_server_certificate=yes{_driver()}"
        url, control = run(
            container,
            1433,
            url=lambda address: f"sqlserver://sa:{password}@{address}/?{options}",
            accepts=accepts,
            seconds=180,
        )
        return SqlserverServer(url, f"docker image {container.image},", control, self.setting)


def _driver() -> str:
    """Return the URL option for the driver of .venv if the system has none."""
    driver = odbc.library()
    if driver is None or any("SQL Server" in name for name in load_driver().drivers()):
        return ""
    return f"&driver={quote(str(driver), safe='')}"


class SettingProvider(SqlserverProvider):
    """Starts servers whose databases have a setting, only if named: sqlserver_turkish2022."""

    versions: tuple[str, ...] = ("2022",)

    def __init__(self, setting: str) -> None:
        self.setting = setting
        self.product = f"sqlserver_{setting}"

    def at_hand(self) -> list[str]:
        return []

    def outlook(self) -> list[str]:
        return []


SETTING_PROVIDERS = tuple(map(SettingProvider, SETTINGS))
PROVIDERS = (SqlserverProvider(), *SETTING_PROVIDERS)
