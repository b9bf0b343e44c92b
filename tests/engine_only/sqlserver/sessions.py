"""Helpers for sessions of SQL Server."""

from contextlib import closing
from typing import Any

from tests.engines.base import Connection
from tests.helpers.dialects import dialect_of


def value(connection: Connection, query: str) -> Any:
    """Return the single value of a query."""
    with closing(connection.cursor()) as cursor:
        return cursor.execute(query).fetchval()


def impatient(connection: Connection) -> Connection:
    """Return a session in which a lock wait is an error."""
    dialect_of(connection).execute(connection, "set lock_timeout 0")
    return connection
