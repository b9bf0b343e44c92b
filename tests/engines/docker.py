"""What the engines share about containers, ports and reports."""

from __future__ import annotations

import functools
import socket

from docker.errors import DockerException
from testcontainers.core.docker_client import DockerClient


@functools.cache
def docker_answers() -> bool:
    """Return whether there is a Docker daemon to start containers."""
    try:
        return bool(DockerClient().client.ping())
    except DockerException:
        return False


def free_port() -> int:
    """Return a port of the loopback address that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text."""
    return str(error).strip().partition("\n")[0]
