"""Oracle for tests: at a URL, or in a container."""

import oracledb
from testcontainers.core.container import DockerContainer

from rowq.errors import RowqError
from tests.engines.base import Unavailable
from tests.engines.docker import DockerProvider, first_line, require_docker, run
from tests.engines.oracle.server import OracleServer
from tests.engines.oracle.session import accepts, new_password

_SERVICE = "FREEPDB1"


class OracleProvider(DockerProvider):
    """Starts Oracle Databases."""

    engine = "oracle"
    product = "oracle"
    versions: tuple[str, ...] = ("23",)
    is_large = True
    image = "gvenzl/oracle-free:{}-slim"

    def from_url(self, url: str) -> OracleServer:
        try:
            return OracleServer(url, "given URL,")
        except (RowqError, oracledb.Error) as error:
            raise Unavailable(first_line(error)) from None

    def from_docker(self, version: str) -> OracleServer:
        require_docker()
        password = new_password()
        container = DockerContainer(self.image.format(version))
        container.with_env("ORACLE_PASSWORD", password)
        url, control = run(
            container,
            1521,
            url=lambda address: f"oracle://system:{password}@{address}/{_SERVICE}",
            accepts=accepts,
            seconds=300,
        )
        return OracleServer(url, f"docker image {container.image},", control)


PROVIDERS = (OracleProvider(),)
