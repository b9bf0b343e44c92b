"""Fixtures of the tests of add-ons, which are no part of `make test`: those of tests/."""

import pytest

from tests.engine_only.postgres.conftest import model, open_owner, owner, owner_url

__all__ = ["model", "open_owner", "owner", "owner_url"]


def pytest_addoption(pluginmanager: pytest.PytestPluginManager) -> None:
    """Load the plugins of tests/conftest.py, unless the run has: only its first may name them."""
    for name in ("tests.engines.plugin", "tests.run.plugin"):
        pluginmanager.import_plugin(name)
