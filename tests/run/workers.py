"""Distribute tests to worker processes, each with private servers.

One worker runs a test file on a server, so that its fixtures run once. A shared server is used by
one worker only.
"""

import os
import re
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.engines.provide import Servers

WORKERS_PER_PROCESSOR = 2
"""Tests wait about as long as they compute."""

FIRST = (
    "tests/chaos/",
    "tests/client/test_worker",
    "tests/concurrency/",
    "tests/contract/test_hostile_arguments.py",
    "tests/contract/test_predecessors.py",
    "tests/demo/",
    "tests/docs/",
    "tests/interleavings/test_groups.py",
    "tests/interleavings/test_predecessors.py",
    "tests/static/test_plsql",
    "tests/static/test_tsql.py",
)
"""Long files, which begin first so that no worker waits for them at the end."""


class FileAndServerScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Assigns all tests of a file on a server, or of a shared server, to one worker."""

    def __init__(self, config: pytest.Config, log: Any, servers: Servers) -> None:
        super().__init__(config, log)
        self._shared = servers.shared
        names = sorted(servers.names, key=len, reverse=True)
        self._server = re.compile(rf"[\[-]({'|'.join(map(re.escape, names))})[\]-]")

    def _split_scope(self, nodeid: str) -> str:
        found = self._server.search(nodeid)
        server = found[1] if found else ""
        return server if server in self._shared else f"{nodeid.partition('::')[0]} {server}"


def workers_for(processors: int) -> int:
    """Return the number of workers for a number of processors."""
    return processors * WORKERS_PER_PROCESSOR


def processors() -> int:
    """Return the number of available processors."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def printable(data: Any) -> Any:
    """Return a report's data with escaped unpaired surrogates, which cannot be sent."""
    match data:
        case str():
            return data if data.isascii() else data.encode("utf-8", "backslashreplace").decode()
        case dict():
            return {key: printable(value) for key, value in data.items()}
        case list() | tuple():
            return type(data)(printable(value) for value in data)
    return data
