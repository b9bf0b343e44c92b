"""The driver's connection inside what SQLAlchemy or Django has put around it.

Neither is imported: an object of theirs is known by the package of its class and by its methods.
"""

from typing import Any

from rowq.engines import engine_for_connection, engine_for_driver, packages_of
from rowq.engines.connections import DriverSource, Source
from rowq.engines.uncommitted import watch_session
from rowq.errors import EngineUnknown, QueueClosed

_REMEDY = (
    "; name one in the URL, such as postgresql+psycopg://, or send by"
    " rowq.contrib.sqlalchemy.enqueue, which takes others, too"
)


def source_in(connection: Any) -> Source:
    """Return the source for an object of SQLAlchemy's or Django's; raises EngineUnknown."""
    packages = packages_of(type(connection))
    if "sqlalchemy" in packages:
        return _in_sqlalchemy(connection)
    if "django" in packages and hasattr(connection, "ensure_connection"):
        return _Django(connection)
    return DriverSource(connection)


class _Django(Source):
    """django.db.connection, or one of django.db.connections; it connects when it is first used."""

    is_async = False

    def __init__(self, connection: Any) -> None:
        self.engine = engine_for_driver(connection.Database.__name__, "Django")
        self._connection = connection

    def driver_connection(self) -> Any:
        self._connection.ensure_connection()
        return self._connection.connection

    def watch(self, place: str) -> None:
        """Do nothing: Django ends its transactions in blocks, and else is in autocommit."""


class _Pooled(Source):
    """A connection of SQLAlchemy's pool, as from engine.raw_connection()."""

    def __init__(self, pooled: Any) -> None:
        self._pooled = pooled
        connection = self.driver_connection()
        self.engine = engine_for_connection(connection)
        # With asyncpg, SQLAlchemy begins a transaction at the first call that goes through it.
        engine_for_driver(self.engine.driver_package, "SQLAlchemy", _REMEDY)
        self.is_async = self.engine.is_async(connection)

    def driver_connection(self) -> Any:
        connection = self._pooled.driver_connection
        if connection is None:
            raise QueueClosed("the connection was closed, so it is back in its pool")
        return connection

    def watch(self, place: str) -> None:
        """Do nothing: it goes back to its pool."""


class _Bound(Source):
    """A connection or session of SQLAlchemy's, which knows its dialect before it has connected."""

    def __init__(self, owner: Any, dialect: Any) -> None:
        self.engine = engine_for_driver(dialect.driver, "SQLAlchemy", _REMEDY)
        self.is_async = dialect.is_async
        self._owner = owner

    def watch(self, place: str) -> None:
        watch_session(self._owner, place)


class _Session(_Bound):
    """A Session, AsyncSession, or a scoped one: its connection is that of its transaction."""

    def driver_connection(self) -> Any:
        return self._owner.connection().connection.driver_connection

    async def driver_connection_async(self) -> Any:
        connection = await self._owner.connection()
        return (await connection.get_raw_connection()).driver_connection


class _Connection(_Bound):
    """A Connection or AsyncConnection; it commits only a transaction that it knows of."""

    def driver_connection(self) -> Any:
        if not self._owner.in_transaction():
            self._owner.begin()
        return self._owner.connection.driver_connection

    async def driver_connection_async(self) -> Any:
        if not self._owner.in_transaction():
            await self._owner.begin()
        return (await self._owner.get_raw_connection()).driver_connection


def _in_sqlalchemy(given: Any) -> Source:
    # The class is asked, as some attributes of an asynchronous object raise when they are read.
    kind = type(given)
    if hasattr(kind, "driver_connection"):
        return _Pooled(given)
    if hasattr(kind, "get_bind"):
        return _Session(given, given.get_bind().dialect)
    if hasattr(kind, "in_transaction"):
        return _Connection(given, given.dialect)
    if hasattr(kind, "raw_connection") or hasattr(kind, "sync_engine"):
        raise EngineUnknown(
            f"an {kind.__name__} is no connection: use engine.connect() or a session of it"
        )
    return DriverSource(given)
