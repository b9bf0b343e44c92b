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
    """Lend a function that opens so many sessions of a database."""
    with contextlib.ExitStack() as opened:

        def open_sessions(count: int) -> list[Session]:
            made = [Session(server, server.connect(url)) for _ in range(count)]
            for session in made:
                opened.callback(session.close)
            return made

        yield open_sessions


@pytest.fixture
def sessions(server: Server, database_url: str) -> Iterator[Open]:
    """Return a function that opens so many sessions."""
    with opening(server, database_url) as open_sessions:
        yield open_sessions


@pytest.fixture
def sessions_apart(server: Server, empty_database: str) -> Iterator[Open]:
    """Return a function that opens so many sessions of a database that no other test uses."""
    migrate(empty_database)
    with opening(server, empty_database) as open_sessions:
        yield open_sessions


@pytest.fixture
def queue(sessions: Open, queue_name: str) -> str:
    """Return the name of a new queue, which waits five seconds before a second attempt."""
    (admin,) = sessions(1)
    admin.queue.create_queue(queue_name, max_attempts=3, backoff_jitter=0)
    return queue_name
