"""Sessions of the attackers, by the role that they have."""

from collections.abc import Iterator

import pytest

from tests.engines.base import Connection
from tests.engines.mysql.accounts import Accounts, accounts
from tests.helpers.calls import call


@pytest.fixture
def users(connection: Connection, database_url: str) -> Iterator[Accounts]:
    """Return sessions of new accounts by the rowq role they have, and one of nobody."""
    with accounts(connection, database_url) as sessions:
        yield sessions


@pytest.fixture
def queue(connection: Connection, queue_name: str) -> Iterator[str]:
    """Return the name of a new queue, which is gone afterwards with all that is in it."""
    call(connection, "create_queue", queue_name=queue_name)
    yield queue_name
    call(connection, "drop_queue", queue_name=queue_name, force=True)
