"""Fixtures for pytest: a queue on a connection that is rolled back after each test.

An application's conftest.py may override each of the three: rowq_url with its own database, or
rowq_connection with the connection that its own fixtures roll back.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from rowq.engines import engine_for_url
from rowq.queue import Queue

URL_VARIABLE = "ROWQ_TEST_URL"


class _RolledBack(Exception):  # noqa: N818 - not an error
    """Ends a test's transaction."""


@pytest.fixture(scope="session")
def rowq_url() -> str:
    """Return the URL of a test database with rowq: ROWQ_TEST_URL."""
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
    """Yield a connection of the engine's driver in a transaction, and roll it back."""
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
    """Return a queue in the transaction of rowq_connection, which sees the test's own data.

    After a refused call the transaction continues. dequeue_wait and wait_for_result end
    transactions, so they are refused (WrongTransactionState): use dequeue_fast and get_result. On
    MariaDB and MySQL DDL ends the transaction, and earlier changes stay.
    """
    return Queue(rowq_connection, savepoint=True)
