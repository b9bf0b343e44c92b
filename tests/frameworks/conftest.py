"""Fixtures of the tests of frameworks."""

import pytest

from tests.helpers.client_queue import made
from tests.run.slow import mark_slow

__all__ = ["made"]


def pytest_itemcollected(item: pytest.Item) -> None:
    """Run these tests on PostgreSQL only, but for make test-all."""
    mark_slow(item, "about the framework, which PostgreSQL has run", on="mariadb")
