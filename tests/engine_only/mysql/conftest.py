"""Fixtures of the tests for MariaDB and MySQL."""

from collections.abc import Iterator

import pytest

from tests.helpers.queues import Connect


@pytest.fixture
def old_view(connect: Connect, queue: str) -> Iterator[None]:
    """Hold a read view, as a backup or a long report does."""
    session = connect()
    session.execute("set session transaction isolation level repeatable read")
    session.execute("start transaction with consistent snapshot")
    session.execute("select queue_id from rowq.queue where queue_name = %s", [queue])
    yield
    session.rollback()
