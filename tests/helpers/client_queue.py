"""A queue created by the Python client, for tests of borrowed connections."""

import pytest

import rowq
from tests.engines.base import Connection


@pytest.fixture
def made(connection: Connection, queue_name: str) -> str:
    """Return the name of a new queue."""
    rowq.Queue(connection).create_queue(queue_name)
    return queue_name


def ready(connection: Connection, queue_name: str) -> int:
    """Return the number of ready messages that this connection sees."""
    return rowq.Queue(connection).queue_stats(queue_name)[0].ready
