"""Fixtures of the tests for PostgreSQL."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from rowq.tools.local_postgres.server import LocalPostgres, LocalPostgresError
from rowq.tools.migrate import migrate
from tests.engines.base import Connection, Server
from tests.engines.postgres.server import PostgresServer
from tests.helpers.queues import CheckedQueue, new_queue

Open = Callable[..., Connection]


@pytest.fixture(autouse=True)
def _only_postgres(server: Server) -> None:
    if server.engine != "postgres":
        pytest.skip(f"about PostgreSQL, not about {server.engine}; to run it: --engine postgres18")


@pytest.fixture(scope="session")
def model(server: PostgresServer) -> Iterator[str]:
    """Return the URL of a template database with rowq."""
    url = server.fresh_database()
    migrate(url)
    yield url
    server.drop_database(url)


@pytest.fixture
def owner_url(request: pytest.FixtureRequest, server: PostgresServer) -> Iterator[str]:
    """Return the URL of a private database with rowq: `empty_database`, or a copy of the template.

    A copy takes a tenth of the time of a migration.
    """
    if "empty_database" in request.fixturenames:
        url = str(request.getfixturevalue("empty_database"))
        migrate(url)
        yield url
    else:
        url = server.copy_of(request.getfixturevalue("model"))
        yield url
        server.drop_database(url)


@pytest.fixture
def open_owner(owner_url: str) -> Iterator[Open]:
    """Return a function that opens sessions of the tables' owner in that database."""
    with ExitStack() as opened:

        def open_session() -> Connection:
            return opened.enter_context(psycopg.connect(owner_url, autocommit=True))

        yield open_session


@pytest.fixture
def owner(open_owner: Open) -> Connection:
    """Return a session of the tables' owner."""
    return open_owner()


@pytest.fixture
def own_queue(owner: Connection) -> CheckedQueue:
    """Return a queue in that database."""
    return new_queue(owner, "q")


@pytest.fixture(scope="session")
def notifying_url(server: Server) -> Iterator[str]:
    """Return a database with rowq on a server of that version without prepared transactions.

    Servers that allow prepared transactions do not notify.
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
    """Return a function that opens sessions in that database."""
    with ExitStack() as opened:

        def open_session() -> Connection:
            return opened.enter_context(psycopg.connect(notifying_url, autocommit=True))

        yield open_session
