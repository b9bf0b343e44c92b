"""Fixtures for interleavings."""

import contextlib
from collections.abc import Callable, Iterator

import pytest

from rowq.tools.migrate import migrate
from tests.engines.base import Server
from tests.interleavings.sessions import Session

Open = Callable[[int], list[Session]]


@contextlib.contextmanager
def opening(server: Server, url: str) -> Iterator[Open]:
    """Yield a function that opens sessions of a database, and close them."""
    with contextlib.ExitStack() as opened:

        def open_sessions(count: int) -> list[Session]:
            new = [Session(server, server.connect(url)) for _ in range(count)]
            for session in new:
                opened.callback(session.close)
            return new

        yield open_sessions


@pytest.fixture
def sessions(server: Server, database_url: str) -> Iterator[Open]:
    """Return a function that opens sessions."""
    with opening(server, database_url) as open_sessions:
        yield open_sessions


@pytest.fixture
def sessions_apart(server: Server, empty_database: str) -> Iterator[Open]:
    """Return a function that opens sessions of a private database."""
    migrate(empty_database)
    with opening(server, empty_database) as open_sessions:
        yield open_sessions


@pytest.fixture
def queue(sessions: Open, queue_name: str) -> str:
    """Return the name of a new queue whose first retry is after 5 seconds."""
    (admin,) = sessions(1)
    admin.queue.create_queue(queue_name, max_attempts=3, backoff_jitter=0)
    return queue_name
