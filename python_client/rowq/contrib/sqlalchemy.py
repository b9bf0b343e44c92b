"""Hands over messages in a transaction of SQLAlchemy's, whatever driver is below it.

>>> with Session(engine) as session, session.begin():
...     session.add(order)
...     session.flush()
...     rowq.contrib.sqlalchemy.enqueue(session, "orders", {"id": order.id})

Each function is the method of that name of rowq.Queue, on a session or connection of SQLAlchemy's,
and those that end in _async are for its asyncio. The call is a statement of SQLAlchemy's with bound
parameters: so it works with drivers that rowq does not know, such as asyncpg, psycopg2 and
mysqlclient, on PostgreSQL, MariaDB and MySQL. Nothing is committed here: the message exists if and
only if the caller's transaction commits.

A refusal of rowq's is raised as its class, such as QueueNotFound; other errors are SQLAlchemy's.
"""

import inspect
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Unpack

from rowq.arguments import Default
from rowq.async_queue import AsyncQueue
from rowq.async_session import AsyncSession
from rowq.engines import engine_module, engines
from rowq.engines.base import Engine, Row
from rowq.engines.calls import inputs_of
from rowq.engines.uncommitted import place_of, watch_session
from rowq.errors import EngineUnknown, PackageMissing, Refused, refusal_from_text
from rowq.messages import BatchEnqueued, BatchPublished, Enqueued, NewMessage, Published
from rowq.options import MessageOptions, PublishOptions, takes
from rowq.queue import Queue
from rowq.session import Session

try:
    import sqlalchemy
    from sqlalchemy.exc import DBAPIError
except ImportError as missing:
    raise PackageMissing(
        "rowq.contrib.sqlalchemy needs SQLAlchemy: pip install 'rowq[sqlalchemy]'"
    ) from missing

_ENGINES = {"postgresql": "postgres", "mysql": "mysql", "mariadb": "mysql"}
"""By SQLAlchemy's name of a dialect, rowq's of the engine; the others' calls are no statements."""

# Drivers of asyncio put the class of the server's error before what it says.
_REFUSAL = re.compile(r"(?:<class '[^']*'>: )?(RQ\d{3} [^\n]*)")


@takes(MessageOptions)
def enqueue(
    session: Any,
    queue_name: str,
    data: Any = None,
    *,
    text: str | None = None,
    default: Default | None = None,
    **options: Unpack[MessageOptions],
) -> Enqueued:
    """Hand over one message, see rowq.Queue.enqueue.

    Args:
        session: a Session, scoped_session or Connection of SQLAlchemy's.
        queue_name: the queue.
        data: any JSON value, or bytes.
        text: a text body, instead of data.
        default: makes JSON values of others, as in json.dumps.
        options: those of rowq.Queue.enqueue.

    Raises:
        EngineUnknown: it is none of these, or its database is of another engine.
        Refused: rowq has refused the call. On PostgreSQL the transaction takes nothing more then,
            unless the call is in `session.begin_nested()`.
    """
    return Queue(_Statements(session), default=default).enqueue(
        queue_name, data, text=text, **options
    )


def enqueue_batch(
    session: Any,
    queue_name: str,
    messages: Iterable[NewMessage | Any],
    *,
    default: Default | None = None,
) -> list[BatchEnqueued]:
    """Hand over up to 10000 messages, see rowq.Queue.enqueue_batch; otherwise as enqueue."""
    return Queue(_Statements(session), default=default).enqueue_batch(queue_name, messages)


@takes(PublishOptions)
def publish(
    session: Any,
    topic: str,
    data: Any = None,
    *,
    text: str | None = None,
    default: Default | None = None,
    **options: Unpack[PublishOptions],
) -> list[Published]:
    """Hand over a message to a topic's queues, see rowq.Queue.publish; otherwise as enqueue."""
    queue = Queue(_Statements(session), default=default)
    return queue.publish(topic, data, text=text, **options)


def publish_batch(
    session: Any, messages: Iterable[NewMessage], *, default: Default | None = None
) -> list[BatchPublished]:
    """Publish up to 10000 messages, see rowq.Queue.publish_batch; otherwise as enqueue."""
    return Queue(_Statements(session), default=default).publish_batch(messages)


@takes(MessageOptions)
async def enqueue_async(
    session: Any,
    queue_name: str,
    data: Any = None,
    *,
    text: str | None = None,
    default: Default | None = None,
    **options: Unpack[MessageOptions],
) -> Enqueued:
    """As enqueue, on an AsyncSession, async_scoped_session or AsyncConnection."""
    queue = AsyncQueue(_AsyncStatements(session), default=default)
    return await queue.enqueue(queue_name, data, text=text, **options)


async def enqueue_batch_async(
    session: Any,
    queue_name: str,
    messages: Iterable[NewMessage | Any],
    *,
    default: Default | None = None,
) -> list[BatchEnqueued]:
    """As enqueue_batch, on what enqueue_async takes."""
    queue = AsyncQueue(_AsyncStatements(session), default=default)
    return await queue.enqueue_batch(queue_name, messages)


@takes(PublishOptions)
async def publish_async(
    session: Any,
    topic: str,
    data: Any = None,
    *,
    text: str | None = None,
    default: Default | None = None,
    **options: Unpack[PublishOptions],
) -> list[Published]:
    """As publish, on what enqueue_async takes."""
    queue = AsyncQueue(_AsyncStatements(session), default=default)
    return await queue.publish(topic, data, text=text, **options)


async def publish_batch_async(
    session: Any, messages: Iterable[NewMessage], *, default: Default | None = None
) -> list[BatchPublished]:
    """As publish_batch, on what enqueue_async takes."""
    return await AsyncQueue(_AsyncStatements(session), default=default).publish_batch(messages)


class _Statements(Session):
    """Calls routines by statements of SQLAlchemy's, in the transaction of its session."""

    def __init__(self, owner: Any) -> None:
        self._owner = owner
        self.engine = _engine_of(owner, is_async=False)

    def connection(self) -> Any:
        return self._owner

    def call(
        self,
        routine: str,
        arguments: Mapping[str, Any],
        until: float | None = None,  # noqa: ARG002 - none of these waits
    ) -> list[Row]:
        """Execute the statement; raises the refusal that an error stands for."""
        statement, values = _statement(self.engine, routine, arguments)
        try:
            rows = [tuple(row) for row in self._owner.execute(statement, values)]
        except DBAPIError as error:
            if refusal := _refusal(error):
                # SQLAlchemy's own error has the message's body in its text.
                raise refusal from error.orig
            raise
        if rows and (place := place_of(routine, arguments)):
            watch_session(self._owner, place)
        return rows

    def close(self) -> None:
        """Leave the session to its owner."""

    def end(self) -> None:
        """Leave the session to its owner."""


class _AsyncStatements(AsyncSession):
    """As _Statements, on sessions and connections of SQLAlchemy's asyncio."""

    def __init__(self, owner: Any) -> None:
        self._owner = owner
        self.engine = _engine_of(owner, is_async=True)

    async def connection(self) -> Any:
        return self._owner

    async def call(
        self,
        routine: str,
        arguments: Mapping[str, Any],
        until: float | None = None,  # noqa: ARG002
    ) -> list[Row]:
        """Execute the statement; raises the refusal that an error stands for."""
        statement, values = _statement(self.engine, routine, arguments)
        try:
            rows = [tuple(row) for row in await self._owner.execute(statement, values)]
        except DBAPIError as error:
            if refusal := _refusal(error):
                # SQLAlchemy's own error has the message's body in its text.
                raise refusal from error.orig
            raise
        if rows and (place := place_of(routine, arguments)):
            watch_session(self._owner, place)
        return rows

    async def close(self) -> None:
        """Leave the session to its owner."""

    async def end(self) -> None:
        """Leave the session to its owner."""


def _engine_of(owner: Any, *, is_async: bool) -> Engine:
    """Return rowq's engine of a session or connection; raises EngineUnknown."""
    execute = getattr(type(owner), "execute", None)
    if execute is None:
        raise EngineUnknown(
            f"{type(owner).__qualname__} has no transaction: use a session or a connection"
        )
    if inspect.iscoroutinefunction(execute) != is_async:
        takers = "without _async in their names" if is_async else "that end in _async"
        raise EngineUnknown(f"{type(owner).__qualname__}: the functions {takers} take it")
    dialect = (owner.get_bind() if hasattr(type(owner), "get_bind") else owner).dialect
    name = _ENGINES.get(dialect.name)
    for engine in engines():
        if engine.name == name:
            return engine
    raise EngineUnknown(
        f"rowq.contrib.sqlalchemy is for PostgreSQL, MariaDB and MySQL, and this is {dialect.name}:"
        " rowq.Queue(session) calls by the driver"
    )


def _statement(
    engine: Engine, routine: str, arguments: Mapping[str, Any]
) -> tuple[sqlalchemy.TextClause, Mapping[str, Any]]:
    """Return a call as a statement, and its values; raises InvalidArgument."""
    text, values = engine_module(engine.name, "calls").named_call(routine, arguments)
    return _clause(engine.name, routine, text), values


@cache
def _clause(engine: str, routine: str, text: str) -> sqlalchemy.TextClause:
    """Return a statement whose parameters have types, as some drivers need for null and for bytes.

    On MySQL the driver quotes each value by its own type.
    """
    # MySQL's statements take bytes as a text in hexadecimal digits.
    binary, others = (
        (sqlalchemy.LargeBinary(), sqlalchemy.Text()) if engine == "postgres" else (None, None)
    )
    types: dict[str, Any] = {
        name: binary if kind == "binary" else others for name, kind in inputs_of(engine, routine)
    }
    marks = (sqlalchemy.bindparam(name, type_=type_) for name, type_ in types.items())
    return sqlalchemy.text(text).bindparams(*marks)


def _refusal(error: DBAPIError) -> Refused | None:
    """Return the refusal that a driver's error stands for, or None."""
    origin = error.orig
    # MySQL's drivers have a number before the text.
    texts = [str(origin), *(part for part in getattr(origin, "args", ()) if isinstance(part, str))]
    for text in texts:
        if found := _REFUSAL.match(text):
            return refusal_from_text(found[1])
    return None
