"""The attackers' sessions by role."""

from collections.abc import Iterator

import pytest

from tests.engines.base import Connection
from tests.engines.mysql.accounts import Accounts, accounts
from tests.helpers.calls import call


@pytest.fixture
def users(connection: Connection, database_url: str) -> Iterator[Accounts]:
    """Return sessions of new accounts by rowq role, and one without a role."""
    with accounts(connection, database_url) as sessions:
        yield sessions


@pytest.fixture
def queue(connection: Connection, queue_name: str) -> Iterator[str]:
    """Return a new queue's name; drop the queue afterwards."""
    call(connection, "create_queue", queue_name=queue_name)
    yield queue_name
    call(connection, "drop_queue", queue_name=queue_name, force=True)
