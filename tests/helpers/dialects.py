"""The dialects of all engines, and their optional features."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import pytest

from rowq.engines import engine_for_connection
from tests.engines.base import Connection
from tests.engines.dialect import Dialect
from tests.engines.mysql import dialect as mysql
from tests.engines.oracle import dialect as oracle
from tests.engines.postgres import dialect as postgres
from tests.engines.sqlserver import dialect as sqlserver


@runtime_checkable
class Interrupting(Protocol):
    """A dialect that can cancel another session's statement."""

    def interrupt(self, connection: Connection, other: Connection) -> None:
        """Cancel the statement of another session."""


@runtime_checkable
class Preparing(Protocol):
    """A dialect with prepared transactions."""

    def begin_prepared(self, connection: Connection, name: str) -> None:
        """Open a transaction that can be prepared under a name."""

    def prepare(self, connection: Connection, name: str) -> None:
        """Prepare the transaction, so that it survives its session and the server."""

    def commit_prepared(self, connection: Connection, name: str) -> None:
        """Commit the transaction in another session."""

    def allows_prepared(self, connection: Connection) -> bool:
        """Return whether the server allows prepared transactions."""


@runtime_checkable
class Matching(Protocol):
    """A dialect with topics."""

    def bound_queues(self, connection: Connection, topics: Sequence[str]) -> set[tuple[str, str]]:
        """Return pairs of topic and bound queue from one call."""


DIALECTS: dict[str, Dialect] = {
    "mysql": mysql.DIALECT,
    "oracle": oracle.DIALECT,
    "postgres": postgres.DIALECT,
    "sqlserver": sqlserver.DIALECT,
}
"""The dialects by engine."""


def dialect_of(connection: Connection) -> Dialect:
    """Return the dialect of a driver's connection."""
    return DIALECTS[engine_for_connection(connection).name]


def interrupting_dialect_of(connection: Connection) -> Interrupting:
    """Return the dialect; skip the test if it cannot interrupt."""
    dialect = dialect_of(connection)
    if not isinstance(dialect, Interrupting):
        pytest.skip(
            "this engine cannot cancel another session's statement; to run it: --engine postgres18"
        )
    return dialect


def preparing_dialect_of(connection: Connection) -> Preparing:
    """Return the dialect; skip the test if engine or server cannot prepare transactions."""
    dialect = dialect_of(connection)
    if not isinstance(dialect, Preparing):
        pytest.skip(
            "this engine prepares transactions only with its coordinator"
            "; to run it: --engine postgres18"
        )
    if not dialect.allows_prepared(connection):
        pytest.skip(
            "the server allows no prepared transactions"
            "; to run it: start it with max_prepared_transactions = 10"
        )
    return dialect


def matching_dialect_of(connection: Connection) -> Matching:
    """Return the dialect; skip the test if it has no topics."""
    dialect = dialect_of(connection)
    if not isinstance(dialect, Matching):
        pytest.skip("no topics on this engine; to run it: --engine postgres18,mariadb")
    return dialect
