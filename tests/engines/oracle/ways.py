"""The ways to an Oracle Database for the tests: a given URL, or a container."""

from __future__ import annotations

import oracledb
from docker.errors import DockerException
from testcontainers.core.container import DockerContainer

from rowq.errors import RowqError
from tests.engines.base import Unavailable, free_port, url_variable, wait_until
from tests.engines.docker import docker_answers, first_line
from tests.engines.oracle.server import OracleServer
from tests.engines.oracle.session import accepts, new_password

_IMAGE = "gvenzl/oracle-free:{}-slim"
_SERVICE = "FREEPDB1"
_SECONDS = 300.0


class OracleProvider:
    """The ways to an Oracle Database."""

    engine = "oracle"
    product = "oracle"
    versions: tuple[str, ...] = ("23",)
    is_large = True

    def at_hand(self) -> list[str]:
        """Return the versions that can be had: what has an image, with Docker."""
        return list(self.versions) if docker_answers() else []

    def outlook(self) -> list[str]:
        """Say whether there is a Docker daemon, and how else to give a server."""
        images = ", ".join(_IMAGE.format(version) for version in self.versions)
        there = f"tried first, {images}" if docker_answers() else "no Docker daemon"
        return [f"oracle (docker): {there}; or give {url_variable(self.product)}"]

    def from_url(self, url: str) -> OracleServer:
        """Use a server that runs already; accounts are made in it and dropped."""
        try:
            return OracleServer(url, "given URL,")
        except (RowqError, oracledb.Error) as error:
            raise Unavailable(first_line(error)) from None

    def from_docker(self, version: str) -> OracleServer:
        """Start the image on a port that stays the same when it restarts."""
        if not docker_answers():
            raise Unavailable(
                f"no Docker daemon; give {url_variable(self.product)}="
                "oracle://system:password@host:1521/service"
            )
        image, port, password = _IMAGE.format(version), free_port(), new_password()
        container = DockerContainer(image)
        container.with_env("ORACLE_PASSWORD", password)
        container.with_bind_ports(1521, port)
        try:
            container.start()
        except (DockerException, TimeoutError) as error:
            container.stop()
            raise Unavailable(f"image {image} did not start: {first_line(error)}") from None
        wrapped = container.get_wrapped_container()
        host = container.get_container_host_ip()
        url = f"oracle://system:{password}@{host}:{port}/{_SERVICE}"

        def restart() -> None:
            wrapped.restart()
            wait_until(lambda: accepts(url), f"{image} is back", _SECONDS)

        try:
            wait_until(lambda: accepts(url), f"{image} answers", _SECONDS)
        except AssertionError as error:
            container.stop()
            raise Unavailable(first_line(error)) from None
        return OracleServer(
            url,
            f"docker image {image},",
            stop=container.stop,
            crash=wrapped.kill,
            restart=restart,
        )

    def from_local(self, version: str) -> OracleServer:
        """Say that there is no such way."""
        raise Unavailable(f"Oracle {version} is run in Docker or at a given URL only")


PROVIDERS = (OracleProvider(),)
