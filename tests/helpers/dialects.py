"""What the tests need to know of each engine's SQL; one module beside this one per engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from rowq.contract import Routine
from tests.engines.base import Connection
from tests.helpers.postgres import PostgresDialect


class Dialect(Protocol):
    """Calls, errors, transactions and row counts of one engine.

    database_error: the driver's class of errors that come from the server.
    """

    database_error: type[Exception]

    def call(
        self, connection: Connection, routine: Routine, arguments: Mapping[str, Any]
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Call a routine with these arguments by name; return column names and rows."""

    def error(self, error: Exception) -> tuple[str, str]:
        """Return number (such as RQ701, or the engine's own) and text of an error."""

    def begin(self, connection: Connection) -> None:
        """Open a transaction, read committed, on a connection in autocommit."""

    def commit(self, connection: Connection) -> None:
        """Commit it."""

    def rollback(self, connection: Connection) -> None:
        """Roll it back."""

    def stored(self, connection: Connection, queue: str) -> dict[str, int]:
        """Return how many rows each table has for a queue."""


def dialect_of(connection: Connection) -> Dialect:
    """Return the dialect of a driver's connection."""
    return _BY_DRIVER[type(connection).__module__.partition(".")[0]]


_BY_DRIVER: dict[str, Dialect] = {"psycopg": PostgresDialect()}
