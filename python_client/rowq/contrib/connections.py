"""Sources: the driver's connection inside an object of SQLAlchemy or Django.

Neither is imported: their objects are recognized by package and methods.
"""

from typing import Any

from rowq.engines import engine_for_connection, engine_for_driver, packages_of
from rowq.engines.connections import DriverSource, Source
from rowq.engines.uncommitted import watch_session
from rowq.errors import EngineUnknown, QueueClosed

_REMEDY = "; use a URL such as postgresql+psycopg://, or rowq.contrib.sqlalchemy.enqueue"


def source_in(connection: Any) -> Source:
    """Return the source for an object of SQLAlchemy or Django; raises EngineUnknown."""
    packages = packages_of(type(connection))
    if "sqlalchemy" in packages:
        return _in_sqlalchemy(connection)
    if "django" in packages and hasattr(connection, "ensure_connection"):
        return _Django(connection)
    return DriverSource(connection)


class _Django(Source):
    """A connection of django.db.connections; it connects at first use."""

    is_async = False

    def __init__(self, connection: Any) -> None:
        self.engine = engine_for_driver(connection.Database.__name__, "Django")
        self._connection = connection

    def driver_connection(self) -> Any:
        self._connection.ensure_connection()
        return self._connection.connection

    def watch(self, target: str) -> None:
        """Do nothing: Django has transactions in blocks only, which end them."""


class _Pooled(Source):
    """A connection from engine.raw_connection() of SQLAlchemy."""

    def __init__(self, pooled: Any) -> None:
        self._pooled = pooled
        connection = self.driver_connection()
        self.engine = engine_for_connection(connection)
        # With asyncpg, SQLAlchemy begins a transaction only at a call through SQLAlchemy.
        engine_for_driver(self.engine.driver_package, "SQLAlchemy", _REMEDY)
        self.is_async = self.engine.is_async(connection)

    def driver_connection(self) -> Any:
        connection = self._pooled.driver_connection
        if connection is None:
            raise QueueClosed("the connection is closed and back in its pool; open a new one")
        return connection

    def watch(self, target: str) -> None:
        """Do nothing: the connection returns to its pool."""


class _Bound(Source):
    """A connection or session of SQLAlchemy, with a known dialect."""

    def __init__(self, owner: Any, dialect: Any) -> None:
        self.engine = engine_for_driver(dialect.driver, "SQLAlchemy", _REMEDY)
        self.is_async = dialect.is_async
        self._owner = owner

    def watch(self, target: str) -> None:
        watch_session(self._owner, target)


class _Session(_Bound):
    """A Session, AsyncSession or scoped session; its transaction determines its connection."""

    def driver_connection(self) -> Any:
        return self._owner.connection().connection.driver_connection

    async def driver_connection_async(self) -> Any:
        connection = await self._owner.connection()
        return (await connection.get_raw_connection()).driver_connection


class _Connection(_Bound):
    """A Connection or AsyncConnection; it commits only a transaction that it has begun."""

    def driver_connection(self) -> Any:
        if not self._owner.in_transaction():
            self._owner.begin()
        return self._owner.connection.driver_connection

    async def driver_connection_async(self) -> Any:
        if not self._owner.in_transaction():
            await self._owner.begin()
        return (await self._owner.get_raw_connection()).driver_connection


def _in_sqlalchemy(owner: Any) -> Source:
    # Check the class: some attributes of an asynchronous object raise when read.
    kind = type(owner)
    if hasattr(kind, "driver_connection"):
        return _Pooled(owner)
    if hasattr(kind, "get_bind"):
        return _Session(owner, owner.get_bind().dialect)
    if hasattr(kind, "in_transaction"):
        return _Connection(owner, owner.dialect)
    if hasattr(kind, "raw_connection") or hasattr(kind, "sync_engine"):
        raise EngineUnknown(
            f"expected a connection or session, got {kind.__name__}; use engine.connect()"
        )
    return DriverSource(owner)
