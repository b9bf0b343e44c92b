"""The ways to a server that all engines have: a container, as far as they agree about it."""

import functools
from collections.abc import Callable
from typing import Any

from docker.errors import DockerException
from testcontainers.core.container import DockerContainer
from testcontainers.core.docker_client import DockerClient

from tests.engines.base import Control, Unavailable, free_port, url_variable, wait_until


@functools.cache
def docker_answers() -> bool:
    """Return whether there is a Docker daemon to start containers."""
    try:
        return bool(DockerClient().client.ping())
    except DockerException:
        return False


def require_docker() -> None:
    """Raise Unavailable where there is no Docker daemon."""
    if not docker_answers():
        raise Unavailable("no Docker daemon")


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text."""
    return str(error).strip().partition("\n")[0]


def run(
    container: DockerContainer,
    port: int,
    *,
    url: Callable[[str], str],
    accepts: Callable[[str], bool],
    seconds: float,
) -> tuple[str, Control]:
    """Start a container on a port that stays the same when it restarts; wait for its server.

    Args:
        container: What is to be started.
        port: The port inside of it.
        url: Gives the server's URL from host and port.
        accepts: Tells whether the server takes a session.
        seconds: How long it may take to do so.

    Raises:
        Unavailable: It does not start, or does not answer in time.
    """
    image, outside = container.image, free_port()
    container.with_bind_ports(port, outside)
    try:
        container.start()
    except (DockerException, TimeoutError) as error:
        container.stop()
        raise Unavailable(f"image {image} did not start: {first_line(error)}") from None
    wrapped = container.get_wrapped_container()
    found = url(f"{container.get_container_host_ip()}:{outside}")

    def restart() -> None:
        wrapped.restart()
        wait_until(lambda: accepts(found), f"{image} is back", seconds)

    try:
        wait_until(lambda: accepts(found), f"{image} answers", seconds)
    except AssertionError as error:
        container.stop()
        raise Unavailable(first_line(error)) from None
    return found, Control(stop=container.stop, crash=wrapped.kill, restart=restart)


class DockerProvider:
    """The ways to the servers of a product that is run in Docker, or given.

    image: its name, with the place of the version. The other attributes: base.EngineProvider.
    """

    engine: str
    product: str
    versions: tuple[str, ...]
    is_large = False
    image: str

    def at_hand(self) -> list[str]:
        """Return the versions that can be had: all of them with Docker."""
        return list(self.versions) if docker_answers() else []

    def outlook(self) -> list[str]:
        """Say whether there is a Docker daemon, and how else to give a server."""
        images = ", ".join(self.image.format(version) for version in self.versions)
        there = f"tried first, {images}" if docker_answers() else "no Docker daemon"
        return [f"{self.product} (docker): {there}; or give {url_variable(self.product)}"]

    def from_local(self, version: str) -> Any:
        """Say that there is no such way."""
        given = url_variable(self.product)
        raise Unavailable(f"{self.product} {version} is run in Docker or at a URL in {given} only")
