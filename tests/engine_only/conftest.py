"""Fixtures of the tests for one engine only."""

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import call
from tests.helpers.client_queue import made
from tests.helpers.worker_queue import make_queue

__all__ = ["made", "make_queue"]


@pytest.fixture
def queue(connection: Connection, queue_name: str) -> str:
    """Return the name of a new queue with the default settings."""
    call(connection, "create_queue", queue_name=queue_name)
    return queue_name
