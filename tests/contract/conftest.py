"""Fixtures of the contract tests."""

from collections.abc import Iterator

import pytest

from rowq.tools.migrate import migrate
from tests.engines.base import Connection, Server
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import elsewhere, queue, second

__all__ = ["elsewhere", "queue", "second"]

SHARING = {"postgres", "mysql"}
"""Engines whose tests share a session, because a new one compiles every routine it calls."""


@pytest.fixture
def owner(server: Server, empty_database: str) -> Iterator[Connection]:
    """Return a session, in autocommit, in a database with rowq that no other test uses."""
    migrate(empty_database)
    session = server.connect(empty_database)
    yield session
    session.close()


@pytest.fixture(scope="module")
def sessions_of_file() -> Iterator[dict[str, Connection]]:
    """Return the session that the tests of a file share, by server."""
    kept: dict[str, Connection] = {}
    yield kept
    for session in kept.values():
        session.close()


@pytest.fixture
def connection(
    server: Server, database_url: str, sessions_of_file: dict[str, Connection]
) -> Iterator[Connection]:
    """Return a session in autocommit, new per file or per test."""
    session = sessions_of_file.pop(server.name, None) or server.connect(database_url)
    yield session
    if server.engine in SHARING and _is_usable(session):
        sessions_of_file[server.name] = session
    elif not getattr(session, "closed", False):
        session.close()


def _is_usable(session: Connection) -> bool:
    """End open transactions; return whether the next test can use the session."""
    try:
        dialect_of(session).reset(session)
    except dialect_of(session).database_error:
        return False
    return True
