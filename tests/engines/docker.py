"""What the engines share about containers and reports."""

from __future__ import annotations

import functools

from docker.errors import DockerException
from testcontainers.core.docker_client import DockerClient


@functools.cache
def docker_answers() -> bool:
    """Return whether there is a Docker daemon to start containers."""
    try:
        return bool(DockerClient().client.ping())
    except DockerException:
        return False


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text."""
    return str(error).strip().partition("\n")[0]
