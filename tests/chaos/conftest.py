"""A server of this directory's own, which writes as in production and may be killed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rowq import Queue
from rowq.demo.local_postgres import LocalPostgres, LocalPostgresError
from rowq.migrate import migrate
from tests.engines.base import Connection
from tests.engines.postgres import PostgresServer

# Unlike the other tests' servers it has fsync and full_page_writes on.
SETTINGS = {"max_prepared_transactions": "10", "timezone": "Asia/Kathmandu"}


@pytest.fixture(scope="session")
def local() -> Iterator[LocalPostgres]:
    """Return a private PostgreSQL of the preferred version."""
    home = Path(tempfile.mkdtemp(prefix="rowq-test-"))
    try:
        with LocalPostgres(home, settings=SETTINGS) as running:
            yield running
    except LocalPostgresError as reason:
        pytest.skip(f"no server of our own to kill: {reason}")
    finally:
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def mortal(local: LocalPostgres) -> PostgresServer:
    """Return that server; its data are safe as soon as a commit returns."""
    server = PostgresServer(
        local.url, f"to be killed, {local.origin}", crash=local.kill, restart=local.restart
    )
    with server.connect(local.url) as connection:
        assert connection.execute("show fsync").fetchone() == ("on",)
        assert connection.execute("show synchronous_commit").fetchone() == ("on",)
    return server


@pytest.fixture
def url(mortal: PostgresServer) -> Iterator[str]:
    """Return the URL of a new database on it, with rowq."""
    url = mortal.fresh_database()
    migrate(url)
    yield url
    mortal.drop_database(url)


@pytest.fixture
def connection(mortal: PostgresServer, url: str) -> Iterator[Connection]:
    """Return a session of the tables' owner, in autocommit, with the queue `orders`."""
    with mortal.connect(url) as connection:
        Queue(connection).create_queue("orders", backoff_base_seconds=0)
        yield connection
