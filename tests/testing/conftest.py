"""The fixtures of rowq.contrib.testing, on the servers of this run."""

from collections.abc import Iterator

import pytest

from rowq.contrib.testing import MemoryQueue
from rowq.contrib.testing.fixtures import rowq_connection, rowq_queue

__all__ = ["rowq_connection", "rowq_queue"]


@pytest.fixture
def rowq_url(database_url: str) -> str:
    return database_url


@pytest.fixture
def memory() -> Iterator[MemoryQueue]:
    with MemoryQueue() as queue:
        yield queue
