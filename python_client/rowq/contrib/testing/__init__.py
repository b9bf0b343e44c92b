"""Test helpers for applications: a queue in memory, a rolled-back queue, drain and assertions.

With pytest, set `pytest_plugins = ["rowq.contrib.testing"]` in the conftest.py beside the tests'
settings, or pass `-p rowq.contrib.testing`; fixtures.py has the fixtures. pytest does not load it
automatically, so installing rowq changes no test run. With unittest, import the names below; only
the fixtures import pytest.

PYTEST_DONT_REWRITE: there are no assertions to rewrite.
"""

from rowq.contrib.testing.assertions import assert_enqueued
from rowq.contrib.testing.drain import drain
from rowq.contrib.testing.memory import MemoryQueue

# pytest loads this with the package.
pytest_plugins = ["rowq.contrib.testing.fixtures"]

__all__ = ["MemoryQueue", "assert_enqueued", "drain"]
