"""Fixtures of tests/ for the tests of add-ons, which `make test` does not run."""

import pytest

from tests.engine_only.postgres.conftest import model, open_owner, owner, owner_url

__all__ = ["model", "open_owner", "owner", "owner_url"]


def pytest_addoption(pluginmanager: pytest.PytestPluginManager) -> None:
    """Load the plugins of tests/conftest.py once: only the first conftest may name them."""
    for name in ("tests.engines.plugin", "tests.run.plugin"):
        pluginmanager.import_plugin(name)
