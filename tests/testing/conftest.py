"""The fixtures of rowq.contrib.testing, on the servers of this run."""

from collections.abc import Iterator

import pytest

from rowq.contrib.testing import MemoryQueue
from rowq.contrib.testing.fixtures import rowq_connection, rowq_queue
from tests.run.slow import mark_slow

__all__ = ["rowq_connection", "rowq_queue"]


@pytest.fixture
def rowq_url(database_url: str) -> str:
    return database_url


@pytest.fixture
def memory() -> Iterator[MemoryQueue]:
    with MemoryQueue() as queue:
        yield queue


def pytest_itemcollected(item: pytest.Item) -> None:
    """Run these tests on PostgreSQL only, but for make test-all."""
    mark_slow(item, "about rowq.contrib.testing, which PostgreSQL has run", on="mariadb")
