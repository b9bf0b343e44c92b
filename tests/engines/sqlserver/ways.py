"""The ways to SQL Server for the tests: a given URL, or a container."""

from __future__ import annotations

import secrets

from docker.errors import DockerException
from testcontainers.core.container import DockerContainer

from rowq.errors import DriverMissing, RowqError
from rowq.sqlserver.driver import load_driver
from tests.engines.base import Unavailable, free_port, url_variable, wait_until
from tests.engines.docker import docker_answers, first_line
from tests.engines.sqlserver.server import SqlserverServer, accepts

_IMAGE = "mcr.microsoft.com/mssql/server"
_SECONDS = 180.0


class SqlserverProvider:
    """The ways to a SQL Server. Babelfish can be given by its URL, and is told apart by itself."""

    engine = "sqlserver"
    product = "sqlserver"
    versions: tuple[str, ...] = ("2022", "2025", "2019")
    is_large = True

    def at_hand(self) -> list[str]:
        """Return the versions that can be had: all of them with Docker."""
        return list(self.versions) if docker_answers() else []

    def outlook(self) -> list[str]:
        """Say whether there is a Docker daemon, and a driver."""
        images = ", ".join(f"{_IMAGE}:{version}-latest" for version in self.versions)
        there = f"tried first, {images}" if docker_answers() else "no Docker daemon"
        lines = [f"sqlserver (docker): {there}; or give {url_variable(self.product)}"]
        try:
            load_driver()
        except DriverMissing as reason:
            lines.append(f"sqlserver: {reason}")
        return lines

    def from_url(self, url: str) -> SqlserverServer:
        """Use a server that runs already; databases are made in it and dropped."""
        try:
            return SqlserverServer(url, "given URL,")
        except RowqError as error:
            raise Unavailable(str(error)) from None

    def from_docker(self, version: str) -> SqlserverServer:
        """Start the official image on a port that stays the same when it restarts."""
        if not docker_answers():
            raise Unavailable("no Docker daemon")
        image, port = f"{_IMAGE}:{version}-latest", free_port()
        password = f"Aa1-{secrets.token_hex(16)}"  # the server asks for three kinds of characters
        container = DockerContainer(image)
        container.with_env("ACCEPT_EULA", "Y").with_env("MSSQL_PID", "Developer")
        container.with_env("MSSQL_SA_PASSWORD", password)
        container.with_bind_ports(1433, port)
        try:
            container.start()
        except (DockerException, TimeoutError) as error:
            container.stop()
            raise Unavailable(f"image {image} did not start: {first_line(error)}") from None
        wrapped = container.get_wrapped_container()
        host = container.get_container_host_ip()
        url = f"sqlserver://sa:{password}@{host}:{port}/?encrypt=yes&trust_server_certificate=yes"

        def restart() -> None:
            wrapped.restart()
            wait_until(lambda: accepts(url), f"{image} is back", _SECONDS)

        try:
            wait_until(lambda: accepts(url), f"{image} answers", _SECONDS)
        except (AssertionError, DriverMissing) as error:
            container.stop()
            raise Unavailable(first_line(error)) from None
        return SqlserverServer(
            url,
            f"docker image {image},",
            stop=container.stop,
            crash=wrapped.kill,
            restart=restart,
        )

    def from_local(self, version: str) -> SqlserverServer:
        """Say that there is no such way."""
        raise Unavailable(f"SQL Server {version} is run in Docker or at a given URL only")


PROVIDERS = (SqlserverProvider(),)
