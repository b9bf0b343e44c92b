"""How the tests of a run are shared out to worker processes, each with private servers of its own.

A file of tests is run by one worker for each server, so that what its fixtures make is made once. A
server that the workers cannot each have for themselves is used by one of them only.
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
"""Files that take long. They begin first, or at the end all workers would wait for the last one."""


class FileAndServerScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Gives a worker all tests of a file on a server, or all of a server that is shared."""

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
    """Return how many workers keep so many processors busy."""
    return processors * WORKERS_PER_PROCESSOR


def processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def printable(data: Any) -> Any:
    """Return data of a report; halves of characters, which no channel takes, are spelled out."""
    match data:
        case str():
            return data if data.isascii() else data.encode("utf-8", "backslashreplace").decode()
        case dict():
            return {key: printable(value) for key, value in data.items()}
        case list() | tuple():
            return type(data)(printable(value) for value in data)
    return data
