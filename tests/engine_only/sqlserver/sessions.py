"""What tests of SQL Server alone do with a session."""

from contextlib import closing
from typing import Any

from tests.engines.base import Connection
from tests.helpers.dialects import dialect_of


def value(connection: Connection, query: str) -> Any:
    """Return the one value of a query."""
    with closing(connection.cursor()) as cursor:
        return cursor.execute(query).fetchval()


def impatient(connection: Connection) -> Connection:
    """Return a session for which every wait for a lock is an error."""
    dialect_of(connection).execute(connection, "set lock_timeout 0")
    return connection
