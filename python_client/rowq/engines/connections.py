"""Where the calls of a queue find the driver's connection: it is the caller's, or inside of it.

What SQLAlchemy or Django has put around it is known by the package of its class, and opened by
rowq.contrib.connections. A session, and Django, use one connection after the other, so each call
asks anew.
"""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from rowq.engines import engine_for_connection, packages_of
from rowq.engines.base import Engine
from rowq.errors import ForbiddenInHandler

LENT_FOR = "rowq_claim_id"
"""An attribute of a connection: the claim for whose handler a worker has lent it."""
_ABOUT_A_CLAIM = frozenset({"complete", "retry_later", "fail_now", "release", "extend_lease"})

_WRAPPERS = {"django", "sqlalchemy"}


def refuse_own_claim(connection: Any, routine: str, arguments: Mapping[str, Any]) -> None:
    """Refuse a call about the claim whose message the connection was lent for.

    The claim's row would be locked until the transaction ends, and the heartbeat wait for it; and
    what the worker then says about the message would be stale.
    """
    if routine in _ABOUT_A_CLAIM:
        own = getattr(connection, LENT_FOR, None)
        if own is not None and arguments.get("claim_id") == own:
            raise ForbiddenInHandler(
                f"{routine}: a handler says by its end what becomes of its message, and the worker"
                " extends the lease meanwhile"
            )


def is_lent(connection: Any) -> bool:
    """Whether a connection is a worker's, and lent to a handler now."""
    return getattr(connection, LENT_FOR, None) is not None


class Source(ABC):
    """Where the calls of a queue on its caller's connection find that of the driver."""

    engine: Engine
    is_async: bool

    @abstractmethod
    def driver_connection(self) -> Any:
        """Return the driver's connection, in the transaction that its owner will commit."""

    async def driver_connection_async(self) -> Any:
        """As driver_connection, where finding it has to be awaited."""
        return self.driver_connection()

    @abstractmethod
    def watch(self, place: str) -> None:
        """Warn if its owner closes the connection before the present transaction is committed.

        Something was enqueued in that, at `place`.
        """


def source_of(connection: Any) -> Source:
    """Return the source for an object that a caller has given; raises EngineUnknown."""
    packages = packages_of(type(connection))
    if _WRAPPERS.isdisjoint(packages):
        return DriverSource(connection)
    source: Source = importlib.import_module("rowq.contrib.connections").source_in(connection)
    return source


class DriverSource(Source):
    """The driver's own connection."""

    def __init__(self, connection: Any) -> None:
        """Raise EngineUnknown for what is none."""
        self.engine = engine_for_connection(connection)
        self.is_async = self.engine.is_async(connection)
        self._connection = connection

    def driver_connection(self) -> Any:
        """Return it."""
        return self._connection

    def watch(self, place: str) -> None:
        """Have the driver's engine do so, unless a worker has lent the connection."""
        if not is_lent(self._connection) and self.engine.in_transaction(self._connection):
            self.engine.watch(self._connection, place)
