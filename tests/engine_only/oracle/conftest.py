"""Fixtures of the tests for Oracle only."""

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import call


@pytest.fixture
def queue(connection: Connection, queue_name: str) -> str:
    """Return the name of a new queue with the default settings."""
    call(connection, "create_queue", queue_name=queue_name)
    return queue_name
