"""A private server per product that may be killed, or a given one."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from rowq import Queue
from rowq.tools.migrate import migrate
from tests.chaos.killable import MAY_BE_GIVEN, WAYS, KillableServer, given, no_way
from tests.engines.base import Connection, Unavailable, url_variable
from tests.engines.provide import SERVERS


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> Iterator[KillableServer]:
    """Return a private server of the product that may be killed, else a given one."""
    product = request.param.rstrip("0123456789.")
    with ExitStack() as stack:
        try:
            way = WAYS.get(product, no_way)
            killable = stack.enter_context(way(request.param.removeprefix(product)))
        except Unavailable as reason:
            variable = url_variable(MAY_BE_GIVEN.get(product, ""))
            if variable not in os.environ:
                pytest.skip(
                    f"no server of our own to kill: {reason}; to run it: Docker or local programs"
                )
            killable = given(request.config.stash[SERVERS].get(request.param))
        yield killable


@pytest.fixture
def killable(server: KillableServer) -> KillableServer:
    """Return that server; a commit makes data durable."""
    return server


@pytest.fixture
def url(killable: KillableServer) -> Iterator[str]:
    """Return the URL of a new database on it, with rowq."""
    url = killable.server.fresh_database()
    migrate(url)
    yield url
    killable.server.drop_database(url)


@pytest.fixture
def connection(killable: KillableServer, url: str) -> Iterator[Connection]:
    """Return the owner's session in autocommit, with the queue `orders`."""
    with closing(killable.server.connect(url)) as connection:
        Queue(connection).create_queue("orders", backoff_base_seconds=0)
        yield connection
