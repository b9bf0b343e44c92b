"""A queue that the Python client has made, for tests of connections that it is given."""

import pytest

import rowq
from tests.engines.base import Connection


@pytest.fixture
def made(connection: Connection, queue_name: str) -> str:
    """Return the name of a new queue."""
    rowq.Queue(connection).create_queue(queue_name)
    return queue_name


def ready(connection: Connection, queue_name: str) -> int:
    """Return how many messages of a queue are ready, as this connection sees it."""
    return rowq.Queue(connection).queue_stats(queue_name)[0].ready
