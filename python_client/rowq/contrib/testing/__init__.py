"""What tests of an application use: a queue in memory, one that is rolled back, and two helpers.

With pytest, say `pytest_plugins = ["rowq.contrib.testing"]` in the conftest.py beside the tests'
settings, or `-p rowq.contrib.testing`; fixtures.py has the fixtures. It is no plugin that pytest
finds by itself, so that installing rowq changes no test run. With unittest import the names below;
pytest is imported by the fixtures only.

There is nothing to rewrite in it, whoever has imported it before pytest: PYTEST_DONT_REWRITE.
"""

from rowq.contrib.testing.assertions import assert_enqueued
from rowq.contrib.testing.drain import drain
from rowq.contrib.testing.memory import MemoryQueue

# pytest loads this along with the package.
pytest_plugins = ["rowq.contrib.testing.fixtures"]

__all__ = ["MemoryQueue", "assert_enqueued", "drain"]
