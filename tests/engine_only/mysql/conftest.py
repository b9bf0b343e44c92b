"""What tests of MariaDB and MySQL share: a session that holds a read view."""

from collections.abc import Iterator

import pytest

from tests.helpers.queues import Connect
from tests.run.slow import mark_slow

CORE = {
    "test_connections.py",
    "test_definer.py",
    "test_denied.py",
    "test_groups.py",
    "test_plans.py",
    "test_privileges.py",
    "test_pymysql.py",
    "test_fast_path.py",
    "test_snapshot_isolation.py",
    "test_splitter.py",
    "test_transactions.py",
}
"""Files of make test."""


@pytest.fixture
def old_view(connect: Connect, queue: str) -> Iterator[None]:
    """Hold a read view, as a backup or a long report does."""
    session = connect()
    session.execute("set session transaction isolation level repeatable read")
    session.execute("start transaction with consistent snapshot")
    session.execute("select queue_id from rowq.queue where queue_name = %s", [queue])
    yield
    session.rollback()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Leave the other files to make test-all and to .ci/run."""
    if item.path.name not in CORE:
        mark_slow(item, "what only MariaDB and MySQL do", ci="mariadb")
