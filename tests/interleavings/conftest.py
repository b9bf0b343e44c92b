"""Fixtures for interleavings."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest

from tests.engines.base import Server
from tests.interleavings.sessions import Session

Open = Callable[[int], list[Session]]


@pytest.fixture
def sessions(server: Server, database_url: str) -> Iterator[Open]:
    """Return a function that opens so many sessions."""
    with contextlib.ExitStack() as opened:

        def open_sessions(count: int) -> list[Session]:
            made = [Session(server, server.connect(database_url)) for _ in range(count)]
            for session in made:
                opened.callback(session.close)
            return made

        yield open_sessions


@pytest.fixture
def queue(sessions: Open, queue_name: str) -> str:
    """Return the name of a new queue, which waits five seconds before a second attempt."""
    (admin,) = sessions(1)
    admin.queue.create_queue(queue_name, max_attempts=3, backoff_jitter=0)
    return queue_name
