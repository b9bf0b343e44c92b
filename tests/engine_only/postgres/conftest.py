"""Fixtures of the tests for PostgreSQL only."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from rowq.tools.local_postgres.server import LocalPostgres, LocalPostgresError
from rowq.tools.migrate import migrate
from tests.engines.base import Connection, Server
from tests.helpers.queues import CheckedQueue, new_queue

Open = Callable[..., Connection]


@pytest.fixture(autouse=True)
def _only_postgres(server: Server) -> None:
    if server.engine != "postgres":
        pytest.skip(f"about PostgreSQL, not about {server.engine}; to run it: --engine postgres18")


@pytest.fixture
def open_owner(empty_database: str) -> Iterator[Open]:
    """Return a function that opens sessions of the owner in a database that no other test uses."""
    migrate(empty_database)
    with ExitStack() as opened:

        def open_session() -> Connection:
            return opened.enter_context(psycopg.connect(empty_database, autocommit=True))

        yield open_session


@pytest.fixture
def owner(open_owner: Open) -> Connection:
    """Return such a session, as the tables' owner."""
    return open_owner()


@pytest.fixture
def own_queue(owner: Connection) -> CheckedQueue:
    """Return a queue in that database."""
    return new_queue(owner, "q")


@pytest.fixture(scope="session")
def notifying_url(server: Server) -> Iterator[str]:
    """Return a database with rowq on a server of that version that prepares no transactions.

    Those of the other tests may prepare them, and therefore notify nobody.
    """
    with tempfile.TemporaryDirectory(prefix="rowq-test-") as room:
        major = int(server.name.removeprefix("postgres"))
        local = LocalPostgres(Path(room), major, {"fsync": "off"})
        try:
            local.__enter__()
        except LocalPostgresError as error:
            pytest.skip(f"no private server of that version: {error}; to run it: make install")
        try:
            migrate(local.url)
            yield local.url
        finally:
            local.__exit__(None, None, None)


@pytest.fixture
def open_notifying(notifying_url: str) -> Iterator[Open]:
    """Return a function that opens sessions there."""
    with ExitStack() as opened:

        def open_session() -> Connection:
            return opened.enter_context(psycopg.connect(notifying_url, autocommit=True))

        yield open_session
