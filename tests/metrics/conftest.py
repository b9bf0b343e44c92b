"""Fixtures of the tests of metrics."""

import pytest

from tests.cli.conftest import run, run_without_database
from tests.helpers.client_queue import made
from tests.helpers.worker_queue import make_queue
from tests.run.slow import mark_slow

__all__ = ["made", "make_queue", "run", "run_without_database"]


def pytest_itemcollected(item: pytest.Item) -> None:
    """Run these tests on PostgreSQL only, but for make test-all."""
    mark_slow(item, "about the exporter, which PostgreSQL has run", on="mariadb")
