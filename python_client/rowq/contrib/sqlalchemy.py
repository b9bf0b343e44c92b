"""Enqueueing in a SQLAlchemy transaction, with any driver.

>>> with Session(engine) as session, session.begin():
...     session.add(order)
...     session.flush()
...     rowq.contrib.sqlalchemy.enqueue(session, "orders", {"id": order.id})

Each function is the method of that name of rowq.Queue, on a session or connection of SQLAlchemy;
names that end in _async are for its asyncio. The call is a SQLAlchemy statement with bound
parameters, so it also works with drivers that rowq does not support, such as psycopg2 and
mysqlclient, on PostgreSQL, MariaDB and MySQL. Nothing is committed: the message exists if and only
if the caller's transaction commits.

rowq's refusals are raised as their classes, such as QueueNotFound; other errors are SQLAlchemy's.
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
from rowq.engines.uncommitted import target_of, watch_session
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
"""rowq's engines by SQLAlchemy's dialect; on other engines a call is not a single statement."""

# Asynchronous drivers put the class of the server's error before its text.
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
    """Enqueue a message; see rowq.Queue.enqueue.

    Args:
        session: a Session, scoped_session or Connection of SQLAlchemy.
        queue_name: the queue.
        data: any JSON value, or bytes.
        text: a text body, instead of data.
        default: converts other values to JSON values, as in json.dumps.
        options: as in rowq.Queue.enqueue.

    Raises:
        EngineUnknown: unsupported session, or unsupported database.
        Refused: rowq refused the call. On PostgreSQL the transaction is then aborted, unless the
            call is in `session.begin_nested()`.
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
    """Enqueue up to 10000 messages, see rowq.Queue.enqueue_batch; otherwise as enqueue."""
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
    """Publish a message to a topic, see rowq.Queue.publish; otherwise as enqueue."""
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
    """As enqueue_batch, on the sessions of enqueue_async."""
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
    """As publish, on the sessions of enqueue_async."""
    queue = AsyncQueue(_AsyncStatements(session), default=default)
    return await queue.publish(topic, data, text=text, **options)


async def publish_batch_async(
    session: Any, messages: Iterable[NewMessage], *, default: Default | None = None
) -> list[BatchPublished]:
    """As publish_batch, on the sessions of enqueue_async."""
    return await AsyncQueue(_AsyncStatements(session), default=default).publish_batch(messages)


class _Statements(Session):
    """Calls as SQLAlchemy statements, in the transaction of its session."""

    def __init__(self, owner: Any) -> None:
        self._owner = owner
        self.engine = _engine_of(owner, is_async=False)

    def connection(self) -> Any:
        return self._owner

    def call(
        self,
        routine: str,
        arguments: Mapping[str, Any],
        until: float | None = None,  # noqa: ARG002
    ) -> list[Row]:
        """Execute the statement; raises the refusal in an error."""
        statement, values = _statement(self.engine, routine, arguments)
        try:
            rows = [tuple(row) for row in self._owner.execute(statement, values)]
        except DBAPIError as error:
            if refusal := _refusal(error):
                # The text of SQLAlchemy's own error contains the message's body.
                raise refusal from error.orig
            raise
        if rows and (target := target_of(routine, arguments)):
            watch_session(self._owner, target)
        return rows

    def close(self) -> None:
        """Leave the session to its owner."""

    def end(self) -> None:
        """Leave the session to its owner."""


class _AsyncStatements(AsyncSession):
    """As _Statements, for SQLAlchemy's asyncio."""

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
        """Execute the statement; raises the refusal in an error."""
        statement, values = _statement(self.engine, routine, arguments)
        try:
            rows = [tuple(row) for row in await self._owner.execute(statement, values)]
        except DBAPIError as error:
            if refusal := _refusal(error):
                # The text of SQLAlchemy's own error contains the message's body.
                raise refusal from error.orig
            raise
        if rows and (target := target_of(routine, arguments)):
            watch_session(self._owner, target)
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
            f"expected a SQLAlchemy session or connection, got {type(owner).__qualname__}"
        )
    if inspect.iscoroutinefunction(execute) != is_async:
        functions = "without _async" if is_async else "that end in _async"
        raise EngineUnknown(f"{type(owner).__qualname__} requires the functions {functions}")
    dialect = (owner.get_bind() if hasattr(type(owner), "get_bind") else owner).dialect
    name = _ENGINES.get(dialect.name)
    for engine in engines():
        if engine.name == name:
            return engine
    raise EngineUnknown(
        f"rowq.contrib.sqlalchemy requires PostgreSQL, MariaDB or MySQL, got {dialect.name};"
        " use rowq.Queue(session)"
    )


def _statement(
    engine: Engine, routine: str, arguments: Mapping[str, Any]
) -> tuple[sqlalchemy.TextClause, Mapping[str, Any]]:
    """Return a call as a statement, and its values; raises InvalidArgument."""
    text, values = engine_module(engine.name, "calls").named_call(routine, arguments)
    return _clause(engine.name, routine, text), values


@cache
def _clause(engine: str, routine: str, text: str) -> sqlalchemy.TextClause:
    """Return a statement with typed parameters, which some drivers need for null and bytes.

    On MySQL the driver quotes each value by its type, and bytes are sent as hex digits.
    """
    binary, others = (
        (sqlalchemy.LargeBinary(), sqlalchemy.Text()) if engine == "postgres" else (None, None)
    )
    types: dict[str, Any] = {
        name: binary if kind == "binary" else others for name, kind in inputs_of(engine, routine)
    }
    marks = (sqlalchemy.bindparam(name, type_=type_) for name, type_ in types.items())
    return sqlalchemy.text(text).bindparams(*marks)


def _refusal(error: DBAPIError) -> Refused | None:
    """Return the refusal in a driver's error, or None."""
    origin = error.orig
    # MySQL's drivers put a number before the text.
    texts = [str(origin), *(arg for arg in getattr(origin, "args", ()) if isinstance(arg, str))]
    for text in texts:
        if found := _REFUSAL.match(text):
            return refusal_from_text(found[1])
    return None
