"""Fixtures of the contract tests."""

from collections.abc import Iterator

import pytest

from rowq.tools.migrate import migrate
from tests.engines.base import Connection, Server
from tests.helpers.queues import elsewhere, queue, second

__all__ = ["elsewhere", "queue", "second"]


@pytest.fixture
def owner(server: Server, empty_database: str) -> Iterator[Connection]:
    """Return a session, in autocommit, in a database with rowq that no other test uses."""
    migrate(empty_database)
    session = server.connect(empty_database)
    yield session
    session.close()
