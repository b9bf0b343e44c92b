"""Sources: how calls find the driver's connection in the caller's object.

rowq.contrib.connections unwraps objects of SQLAlchemy and Django. A session, and Django, may change
connections, so each call finds the connection again.
"""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from rowq.engines import engine_for_connection, packages_of
from rowq.engines.base import Engine
from rowq.errors import ForbiddenInHandler

LENT_FOR = "rowq_claim_id"
"""An attribute of a connection: the claim for whose handler a worker lends it."""
_ABOUT_A_CLAIM = frozenset(
    {"complete", "complete_and_dequeue", "retry_later", "fail_now", "release", "extend_lease"}
)

_WRAPPERS = {"django", "sqlalchemy"}


def refuse_own_claim(connection: Any, routine: str, arguments: Mapping[str, Any]) -> None:
    """Refuse a handler's call about its own claim on the connection that the worker lends it.

    It would lock the claim's row until the transaction ends, so the heartbeat would wait, and the
    worker's own outcome would be stale.
    """
    if routine in _ABOUT_A_CLAIM:
        own = getattr(connection, LENT_FOR, None)
        if own is not None and arguments.get("claim_id") == own:
            raise ForbiddenInHandler(
                f"{routine}: a handler must not finish or extend its own claim; return, or raise an"
                " exception, and the worker does it"
            )


def is_lent(connection: Any) -> bool:
    """Whether a worker lends the connection to a handler now."""
    return getattr(connection, LENT_FOR, None) is not None


class Source(ABC):
    """Source of the driver's connection in a caller's object."""

    engine: Engine
    is_async: bool

    @abstractmethod
    def driver_connection(self) -> Any:
        """Return the driver's connection, in its owner's transaction."""

    async def driver_connection_async(self) -> Any:
        """As driver_connection, on an asynchronous connection."""
        return self.driver_connection()

    @abstractmethod
    def watch(self, target: str) -> None:
        """Warn if the owner closes the connection before the current transaction is committed.

        The transaction enqueued to `target`.
        """


def source_of(connection: Any) -> Source:
    """Return the source for a caller's connection or session; raises EngineUnknown."""
    packages = packages_of(type(connection))
    if _WRAPPERS.isdisjoint(packages):
        return DriverSource(connection)
    source: Source = importlib.import_module("rowq.contrib.connections").source_in(connection)
    return source


class DriverSource(Source):
    """The driver's own connection."""

    def __init__(self, connection: Any) -> None:
        """Raise EngineUnknown for an unsupported connection."""
        self.engine = engine_for_connection(connection)
        self.is_async = self.engine.is_async(connection)
        self._connection = connection

    def driver_connection(self) -> Any:
        """Return the connection."""
        return self._connection

    def watch(self, target: str) -> None:
        """Let the engine watch the connection, unless a worker lends it."""
        if not is_lent(self._connection) and self.engine.in_transaction(self._connection):
            self.engine.watch(self._connection, target)
