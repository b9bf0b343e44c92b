"""Fixtures of the attacks by session settings."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.engines.base import Connection, Server
from tests.helpers.queues import Connect
from tests.security.life import live


@pytest.fixture(scope="module")
def in_a_clean_session() -> dict[str, list[tuple[Any, ...]]]:
    """Cache the answers of a session without settings, by server."""
    return {}


@pytest.fixture
def lives_as_in_a_clean_session(
    server: Server,
    connection: Connection,
    connect: Connect,
    queue_name: str,
    in_a_clean_session: dict[str, list[tuple[Any, ...]]],
) -> Callable[[Connection], None]:
    """Return a function that runs all routines in a session and compares the answers."""
    if server.name not in in_a_clean_session:
        in_a_clean_session[server.name] = live(connect(), connection, f"{queue_name} clean")

    def compare(session: Connection) -> None:
        told = live(session, connection, queue_name)
        for found, wanted in zip(told, in_a_clean_session[server.name], strict=True):
            assert found == wanted

    return compare
