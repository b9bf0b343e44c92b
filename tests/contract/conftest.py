"""Fixtures of the contract tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rowq.migrate import migrate
from tests.engines.base import Connection, Server
from tests.helpers.calls import call


@pytest.fixture
def queue(connection: Connection, queue_name: str) -> str:
    """Return the name of a new queue with the default settings."""
    call(connection, "create_queue", queue_name=queue_name)
    return queue_name


@pytest.fixture
def owner(server: Server, empty_database: str) -> Iterator[Connection]:
    """Return a session, in autocommit, in a database with rowq that no other test uses."""
    migrate(empty_database)
    session = server.connect(empty_database)
    yield session
    session.close()
