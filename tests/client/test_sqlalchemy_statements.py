"""rowq.contrib.sqlalchemy with drivers that rowq does not support."""

from __future__ import annotations

import asyncio
import inspect
import traceback
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import psycopg
import pytest
import sqlalchemy
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import (
    AsyncConnection,
    AsyncEngine,
    AsyncSession,
    create_async_engine,
)
from sqlalchemy.orm import Session, scoped_session, sessionmaker
from sqlalchemy.pool import NullPool

import rowq
import rowq.contrib.sqlalchemy
from rowq.engines import engine_for_url, engine_module
from rowq.options import MessageOptions
from tests.engines.base import Connection
from tests.helpers.client_queue import ready
from tests.helpers.topics import word

__all__ = ["word"]

NOT_FOUND = r'^RQ701 queue_not_found: queue "no such queue" does not exist$'
HOSTILE = "é\n\t'\"; drop schema rowq cascade; -- %s %(a)s :a $1 😀"
DRIVERS = {
    "postgres": ("postgresql+psycopg", "postgresql+psycopg2"),
    "mysql": ("mysql+pymysql",),
}
ASYNC_DRIVERS = {
    "postgres": ("postgresql+asyncpg", "postgresql+psycopg_async"),
    "mysql": ("mysql+aiomysql",),
}


def url_for(driver: str, url: str) -> sqlalchemy.URL:
    """Return the SQLAlchemy URL of a database."""
    if driver.startswith("postgresql"):
        given = psycopg.conninfo.conninfo_to_dict(url)
        return sqlalchemy.URL.create(
            driver,
            username=str(given["user"]),
            password=given.get("password"),  # type: ignore[arg-type]
            database=str(given["dbname"]),
            query={key: str(given[key]) for key in ("host", "port") if given.get(key)},
        )
    given = engine_module("mysql", "url").connection_parameters(url)
    socket = {"unix_socket": str(given["unix_socket"])} if given.get("unix_socket") else {}
    return sqlalchemy.URL.create(
        driver,
        username=given["user"],
        password=given.get("password"),
        host=None if socket else given["host"],
        port=None if socket else given.get("port"),
        query=socket,
    )


@pytest.fixture
def sync_engines(database_url: str) -> list[sqlalchemy.Engine]:
    """Return a SQLAlchemy engine for each driver of a database."""
    return [
        sqlalchemy.create_engine(url_for(driver, database_url), poolclass=NullPool)
        for driver in known(DRIVERS, database_url)
    ]


@pytest.fixture
def async_engines(database_url: str) -> list[AsyncEngine]:
    """Return an asyncio engine for each driver of a database."""
    return [
        create_async_engine(url_for(driver, database_url), poolclass=NullPool)
        for driver in known(ASYNC_DRIVERS, database_url)
    ]


def known(drivers: dict[str, tuple[str, ...]], url: str) -> tuple[str, ...]:
    """Return the drivers for a database; skip if its calls are not single statements."""
    found = drivers.get(engine_for_url(url).name)
    if found is None:
        pytest.skip("it is for PostgreSQL, MariaDB and MySQL; to run it: --engine postgres18")
    return found


def check(connection: Connection, queue_name: str) -> None:
    """Check and remove the messages of `given` and of a batch."""
    queue = rowq.Queue(connection)
    first, second, third, fourth = queue.dequeue_fast(queue_name, 9)
    assert (first.data, first.headers, first.message_type) == (
        *({HOSTILE: [1.5, None, True, "1.1"]}, {"a": {HOSTILE: 1}}, HOSTILE),
    )
    assert [message.data for message in (second, third, fourth)] == [b"\0\xff%s:a", HOSTILE, None]
    details = queue.find_message(queue_name, HOSTILE)
    assert details
    assert (details.priority, details.max_attempts, details.due_at) == (9, 7, LATER)
    queue.complete(queue_name, first.claim_id)
    queue.cancel(queue_name, [details.message_id])


LATER = (datetime.now(UTC) + timedelta(days=9)).replace(microsecond=123456)
DATA = {HOSTILE: [1.5, None, True, Decimal("1.1")]}
OPTIONS: MessageOptions = {
    "headers": {"a": {HOSTILE: 1}},
    "message_type": HOSTILE,
    "priority": 0,
}
DELAYED: MessageOptions = {
    "run_at": LATER,
    "dedup_key": HOSTILE,
    "priority": 9,
    "max_attempts": 7,
}


@pytest.mark.promise("P01", "P20")
def test_messages_share_a_sessions_transaction(
    sync_engines: list[sqlalchemy.Engine], connection: Connection, made: str
) -> None:
    for engine in sync_engines:
        sessions = scoped_session(sessionmaker(engine))
        with Session(engine) as session, engine.connect() as shared:
            for owner in (session, sessions, shared):
                rowq.contrib.sqlalchemy.enqueue(owner, made, 1)
                owner.rollback()
                rowq.contrib.sqlalchemy.enqueue(owner, made, DATA, default=str, **OPTIONS)
                rowq.contrib.sqlalchemy.enqueue(owner, made, **DELAYED)
                sent = rowq.contrib.sqlalchemy.enqueue_batch(
                    owner, made, [b"\0\xff%s:a", HOSTILE, rowq.NewMessage()]
                )
                assert [type(one.message_id) for one in sent] == [int] * 3
                again = rowq.contrib.sqlalchemy.enqueue(owner, made, 1, dedup_key=HOSTILE)
                assert again.outcome == "duplicate"
                assert ready(connection, made) == 0
                owner.commit()
                check(connection, made)
        sessions.remove()


@pytest.mark.promise("P01", "P20")
def test_messages_share_an_async_sessions_transaction(
    async_engines: list[AsyncEngine], connection: Connection, made: str
) -> None:
    async def send(owner: AsyncSession | AsyncConnection) -> None:
        await rowq.contrib.sqlalchemy.enqueue_async(owner, made, 1)
        await owner.rollback()
        await rowq.contrib.sqlalchemy.enqueue_async(owner, made, DATA, default=str, **OPTIONS)
        await rowq.contrib.sqlalchemy.enqueue_async(owner, made, **DELAYED)
        await rowq.contrib.sqlalchemy.enqueue_batch_async(
            owner, made, [b"\0\xff%s:a", HOSTILE, rowq.NewMessage()]
        )
        assert ready(connection, made) == 0
        await owner.commit()
        check(connection, made)

    async def life(engine: AsyncEngine) -> None:
        async with AsyncSession(engine) as session, engine.connect() as shared:
            await send(session)
            await send(shared)

    for engine in async_engines:
        asyncio.run(life(engine))


def test_publish_reaches_the_queues_of_a_topic(
    sync_engines: list[sqlalchemy.Engine],
    async_engines: list[AsyncEngine],
    connection: Connection,
    made: str,
    word: str,
) -> None:
    rowq.Queue(connection).bind_topic(made, word)
    several = [rowq.NewMessage(data=n, topic=word) for n in (2, 3)]
    with Session(sync_engines[0]) as session, session.begin():
        (published,) = rowq.contrib.sqlalchemy.publish(session, word, 1, expire_seconds=600)
        assert (published.queue_name, published.outcome) == (made, "enqueued")
        assert len(rowq.contrib.sqlalchemy.publish_batch(session, several)) == 2

    async def life() -> None:
        async with AsyncSession(async_engines[0]) as session, session.begin():
            await rowq.contrib.sqlalchemy.publish_async(session, word, 1)
            await rowq.contrib.sqlalchemy.publish_batch_async(session, several)

    asyncio.run(life())
    assert [message.data for message in rowq.Queue(connection).peek(made, max_messages=9)] == [
        1,
        2,
        3,
    ] * 2


@pytest.mark.promise("P20")
def test_bytes_roundtrip_with_every_driver(
    sync_engines: list[sqlalchemy.Engine],
    async_engines: list[AsyncEngine],
    connection: Connection,
    made: str,
) -> None:
    body = b"\0\xff%s:a'\\"
    for engine in sync_engines:
        with engine.begin() as owner:
            rowq.contrib.sqlalchemy.enqueue(owner, made, body)

    async def send(engine: AsyncEngine) -> None:
        async with engine.begin() as owner:
            await rowq.contrib.sqlalchemy.enqueue_async(owner, made, body)
        await engine.dispose()

    for async_engine in async_engines:
        asyncio.run(send(async_engine))
    sent = [message.body_binary for message in rowq.Queue(connection).peek(made, max_messages=100)]
    assert sent == [body] * (len(sync_engines) + len(async_engines))


@pytest.mark.promise("P15")
def test_refusal_has_its_class_and_savepoint_recovers(
    sync_engines: list[sqlalchemy.Engine],
    async_engines: list[AsyncEngine],
    connection: Connection,
    made: str,
) -> None:
    for engine in sync_engines:
        with Session(engine) as session, session.begin():
            with (
                pytest.raises(rowq.QueueNotFound, match=NOT_FOUND) as raised,
                session.begin_nested(),
            ):
                rowq.contrib.sqlalchemy.enqueue(session, "no such queue", made)
            assert isinstance(raised.value.__cause__, engine.dialect.loaded_dbapi.Error)
            assert made not in "".join(traceback.format_exception(raised.value))
            for wrong in ({"text": "\ud800"}, {"message_type": "\udc80"}, {"priority": 10**10}):
                with pytest.raises(rowq.InvalidArgument):
                    rowq.contrib.sqlalchemy.enqueue(session, made, **wrong)
            rowq.contrib.sqlalchemy.enqueue(session, made, 1)
            with pytest.raises(SQLAlchemyError), session.begin_nested():
                session.execute(sqlalchemy.text("select 'RQ701 queue_not_found' from nowhere"))

    async def life(engine: AsyncEngine) -> None:
        async with AsyncSession(engine) as session, session.begin():
            with pytest.raises(rowq.QueueNotFound, match=NOT_FOUND):
                async with session.begin_nested():
                    await rowq.contrib.sqlalchemy.enqueue_async(session, "no such queue", 1)
            await rowq.contrib.sqlalchemy.enqueue_async(session, made, 1)

    for async_engine in async_engines:
        asyncio.run(life(async_engine))
    assert ready(connection, made) == len(sync_engines) + len(async_engines)


def test_unsupported_session_is_refused_with_a_hint() -> None:
    sqlite = sqlalchemy.create_engine("sqlite://")
    wrong: list[tuple[Any, str]] = [
        (sqlite, "expected a SQLAlchemy session or connection, got Engine"),
        (Session(sqlite), "got sqlite; use "),
        (AsyncSession(), "AsyncSession requires the functions that end in _async"),
        ("postgresql://host/db", "expected a SQLAlchemy session or connection, got str"),
    ]
    for owner, hint in wrong:
        with pytest.raises(rowq.EngineUnknown, match=hint):
            rowq.contrib.sqlalchemy.enqueue(owner, "orders", 1)
    with pytest.raises(rowq.EngineUnknown, match="Session requires the functions without _async"):
        asyncio.run(rowq.contrib.sqlalchemy.enqueue_async(Session(sqlite), "orders", 1))


@pytest.mark.parametrize("name", ["enqueue", "publish"])
def test_functions_have_the_options_of_queue_methods(name: str) -> None:
    methods = inspect.signature(getattr(rowq.Queue, name)).parameters.values()
    for function in (name, f"{name}_async"):
        own = inspect.signature(getattr(rowq.contrib.sqlalchemy, function)).parameters
        assert {one.name for one in methods if one.kind is one.KEYWORD_ONLY} == {
            one.name for one in own.values() if one.kind is one.KEYWORD_ONLY
        } - {"default"}
