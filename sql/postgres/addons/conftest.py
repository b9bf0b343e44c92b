"""Fixtures of the tests of add-ons, which are no part of `make test`: those of tests/."""

import pytest

from tests.engine_only.postgres.conftest import model, open_owner, owner, owner_url

pytest_plugins = ["tests.engines.plugin", "tests.run.plugin"]

__all__ = ["model", "open_owner", "owner", "owner_url"]


def pytest_configure(config: pytest.Config) -> None:
    """Let fixtures close connections in the middle of transactions."""
    config.addinivalue_line("filterwarnings", "ignore::rowq.UncommittedWarning")
