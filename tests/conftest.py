"""Fixtures and reports for all tests; see README.md in this directory."""

pytest_plugins = ["tests.engines.plugin", "tests.run.plugin"]
