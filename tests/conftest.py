"""Fixtures and reports for all tests; see README.md in this directory."""

import pytest

pytest_plugins = ["tests.engines.plugin", "tests.run.plugin"]


def pytest_configure(config: pytest.Config) -> None:
    """Let fixtures close connections in the middle of transactions."""
    config.addinivalue_line("filterwarnings", "ignore::rowq.UncommittedWarning")
