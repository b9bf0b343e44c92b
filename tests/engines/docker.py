"""Servers in containers: the parts that all engines share."""

import functools
from collections.abc import Callable
from typing import Any

from docker.errors import DockerException
from testcontainers.core.container import DockerContainer
from testcontainers.core.docker_client import DockerClient

from tests.engines.base import Control, Unavailable, free_port, url_variable, wait_until


@functools.cache
def docker_answers() -> bool:
    """Return whether a Docker daemon runs."""
    try:
        return bool(DockerClient().client.ping())
    except DockerException:
        return False


def require_docker() -> None:
    """Raise Unavailable if no Docker daemon runs."""
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
    """Start a container on a port that survives restarts, and wait for its server.

    Args:
        container: the container.
        port: the port inside it.
        url: returns the server's URL for a host and port.
        accepts: returns whether the server accepts a session.
        seconds: the timeout.

    Raises:
        Unavailable: it does not start, or does not answer in time.
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
    """A provider of servers in Docker or at a URL; `image` is a format for the version."""

    engine: str
    product: str
    versions: tuple[str, ...]
    is_large = False
    image: str

    def at_hand(self) -> list[str]:
        return list(self.versions) if docker_answers() else []

    def outlook(self) -> list[str]:
        images = ", ".join(self.image.format(version) for version in self.versions)
        found = f"tried first, {images}" if docker_answers() else "no Docker daemon"
        return [f"{self.product} (docker): {found}; or set {url_variable(self.product)}"]

    def from_local(self, version: str) -> Any:
        variable = url_variable(self.product)
        raise Unavailable(f"{self.product} {version} runs only in Docker or at a URL in {variable}")
