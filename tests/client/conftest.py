"""Fixtures of the tests of the client."""

import pytest

from tests.helpers.client_queue import made
from tests.helpers.worker_queue import make_queue
from tests.run.slow import mark_slow

CORE = {
    "test_connection_loss.py",
    "test_error_classes.py",
    "test_lent_connections.py",
    "test_queue.py",
    "test_savepoint.py",
    "test_uncommitted.py",
    "test_worker.py",
    "test_worker_outcomes.py",
}
"""Files that make test runs on MariaDB, too."""

__all__ = ["made", "make_queue"]


def pytest_itemcollected(item: pytest.Item) -> None:
    """Leave the other files to make test-all and to .ci/run."""
    if item.path.name not in CORE:
        mark_slow(item, "about the client, which PostgreSQL has run", on="mariadb")
