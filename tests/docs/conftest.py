"""Marks of the tests of this directory."""

import pytest

from tests.run.slow import mark_slow


def pytest_itemcollected(item: pytest.Item) -> None:
    """Run these tests on PostgreSQL only, but for make test-all."""
    mark_slow(item, "executes pages", on="mariadb")
