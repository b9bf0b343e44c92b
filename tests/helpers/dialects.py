"""The dialects of all engines, and what only some of them can do."""

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
    """A dialect of an engine on which a statement can be ended without its session."""

    def interrupt(self, connection: Connection, other: Connection) -> None:
        """End the statement that another session is executing, and not that session."""


@runtime_checkable
class Preparing(Protocol):
    """A dialect of an engine that has statements for prepared transactions."""

    def begin_prepared(self, connection: Connection, name: str) -> None:
        """Open a transaction that can be prepared under a name."""

    def prepare(self, connection: Connection, name: str) -> None:
        """Prepare it: from now on it outlives its session, and the server."""

    def commit_prepared(self, connection: Connection, name: str) -> None:
        """Commit it, in another session."""

    def allows_prepared(self, connection: Connection) -> bool:
        """Whether the server allows such transactions."""


@runtime_checkable
class Matching(Protocol):
    """A dialect of an engine on which queues are bound to topics."""

    def bound_queues(self, connection: Connection, topics: Sequence[str]) -> set[tuple[str, str]]:
        """Return topics with the queues that are bound to them, by one call."""


DIALECTS: dict[str, Dialect] = {
    "mysql": mysql.DIALECT,
    "oracle": oracle.DIALECT,
    "postgres": postgres.DIALECT,
    "sqlserver": sqlserver.DIALECT,
}
"""The dialect of each engine, by the engine's name."""


def dialect_of(connection: Connection) -> Dialect:
    """Return the dialect of a driver's connection."""
    return DIALECTS[engine_for_connection(connection).name]


def interrupting_dialect_of(connection: Connection) -> Interrupting:
    """Return the dialect, which can interrupt; skips the test where the engine cannot."""
    dialect = dialect_of(connection)
    if not isinstance(dialect, Interrupting):
        pytest.skip(
            "this engine ends sessions, and no single statement of another one"
            "; to run it: --engine postgres18"
        )
    return dialect


def preparing_dialect_of(connection: Connection) -> Preparing:
    """Return the dialect, which can prepare; skips the test where engine or server cannot."""
    dialect = dialect_of(connection)
    if not isinstance(dialect, Preparing):
        pytest.skip(
            "this engine prepares transactions by a coordinator of its own only"
            "; to run it: --engine postgres18"
        )
    if not dialect.allows_prepared(connection):
        pytest.skip(
            "the server prepares none; to run it: start it with max_prepared_transactions = 10"
        )
    return dialect


def matching_dialect_of(connection: Connection) -> Matching:
    """Return the dialect, which can tell who is bound; skips the test where the engine cannot."""
    dialect = dialect_of(connection)
    if not isinstance(dialect, Matching):
        pytest.skip("rowq has no topics on this engine yet; to run it: --engine postgres18,mariadb")
    return dialect
