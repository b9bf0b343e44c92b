"""Marks of the tests of this directory."""

import pytest

from tests.run.slow import mark_slow


def pytest_itemcollected(item: pytest.Item) -> None:
    """Leave these tests to make test-all and to .ci/run."""
    mark_slow(item, "builds what a release has")
