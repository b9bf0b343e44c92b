"""Fixtures for pytest: a queue on a connection whose transaction is rolled back after each test.

Each of the three may be defined anew in an application's conftest.py: rowq_url with its own
database, or rowq_connection with the connection that its own fixtures roll back.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from rowq.engines import engine_for_url
from rowq.queue import Queue

URL_VARIABLE = "ROWQ_TEST_URL"


class _RolledBack(Exception):  # noqa: N818 - it is no error
    """Ends a test's transaction."""


@pytest.fixture(scope="session")
def rowq_url() -> str:
    """Return the URL of a database with rowq in it that tests may use: ROWQ_TEST_URL."""
    url = os.environ.get(URL_VARIABLE)
    if not url:
        pytest.fail(
            f"set {URL_VARIABLE} to the URL of a database for tests, with rowq in it (rowq migrate)"
            ", or define the fixture rowq_url",
            pytrace=False,
        )
    return url


@pytest.fixture
def rowq_connection(rowq_url: str) -> Iterator[Any]:
    """Yield a connection of the engine's driver in a transaction, and roll that back."""
    engine = engine_for_url(rowq_url)
    connection = engine.connect(rowq_url)
    try:
        with suppress(_RolledBack), engine.transaction(connection):
            yield connection
            raise _RolledBack
    finally:
        engine.close(connection)


@pytest.fixture
def rowq_queue(rowq_connection: Any) -> Queue:
    """Return a queue in the transaction of rowq_connection: it sees all that the test has done.

    After a refused call the transaction goes on. dequeue_wait and wait_for_result end transactions,
    so they are refused in it (WrongTransactionState): use dequeue_fast and get_result. On MariaDB
    and MySQL a statement that makes or alters a table ends the transaction, and what was done
    before stays.
    """
    return Queue(rowq_connection, savepoint=True)
