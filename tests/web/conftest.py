"""Fixtures of the tests of rowq web."""

from collections.abc import Iterator

import pytest

from tests.engines.base import Connection, Server
from tests.helpers.client_queue import made
from tests.helpers.worker_queue import make_queue
from tests.web.accounts import account
from tests.web.browsing import Browser, browsing

__all__ = ["made", "make_queue"]


@pytest.fixture
def browser(database_url: str) -> Iterator[Browser]:
    """Return a browser on the page of an account with all rights."""
    with browsing(database_url) as found:
        yield found


@pytest.fixture
def monitor_url(server: Server, connection: Connection, database_url: str) -> Iterator[str]:
    """Return the URL of an account with role rowq_monitor."""
    with account(server, connection, database_url, "rowq_monitor") as url:
        yield url


@pytest.fixture
def monitor(monitor_url: str) -> Iterator[Browser]:
    """Return a browser on the page of an account with role rowq_monitor."""
    with browsing(monitor_url) as found:
        yield found
