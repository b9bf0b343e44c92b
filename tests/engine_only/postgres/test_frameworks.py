"""rowq on psycopg connections of Django and of asynchronous SQLAlchemy."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db import transaction
from django.db.utils import ConnectionHandler
from django.utils.connection import ConnectionProxy
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.pool import NullPool

import rowq
from tests.client.test_queue import check_types
from tests.engines.base import Connection
from tests.helpers.client_queue import ready


@pytest.fixture
def django(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return django.db.connection for this database."""
    if not settings.configured:
        settings.configure(USE_TZ=True)
    given = psycopg.conninfo.conninfo_to_dict(database_url)
    database = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": given.get("dbname"),
        "USER": given.get("user"),
        "PASSWORD": given.get("password"),
        "HOST": given.get("host"),
        "PORT": given.get("port"),
    }
    handler = ConnectionHandler({"default": database})
    monkeypatch.setattr(transaction, "get_connection", lambda _using=None: handler["default"])
    yield ConnectionProxy(handler, "default")
    handler["default"].close()


def test_django_connection_is_opened_on_first_use(
    django: Any, connection: Connection, made: str
) -> None:
    queue = rowq.Queue(django)
    assert django.connection is None
    queue.enqueue(made, 1)
    django.close()
    queue.enqueue(made, 2)
    assert ready(connection, made) == 2


def test_message_in_django_atomic_exists_only_after_commit(
    django: Any, connection: Connection, made: str
) -> None:
    queue = rowq.Queue(django)
    with transaction.atomic():
        queue.enqueue(made, 1)
        assert ready(connection, made) == 0
    with transaction.atomic():
        queue.enqueue(made, 2)
        transaction.set_rollback(True)
    assert ready(connection, made) == 1


def test_django_wrapper_connection_is_accepted(django: Any, made: str) -> None:
    with transaction.atomic():
        queue = rowq.Queue(django._connections["default"])
        queue.enqueue(made, {"id": 1}, headers={"a": [1]})
        (message,) = queue.dequeue_fast(made)
        for result in (message, *queue.queue_stats(made)):
            check_types(result)
        assert (message.data, message.headers) == ({"id": 1}, {"a": [1]})


@pytest.fixture
def async_engine(database_url: str) -> AsyncEngine:
    _, _, rest = database_url.partition("://")
    return create_async_engine(
        "postgresql+psycopg_async://",
        async_creator=lambda: psycopg.AsyncConnection.connect(f"postgresql://{rest}"),
        poolclass=NullPool,
    )


def test_async_sessions_messages_share_its_transaction(
    async_engine: AsyncEngine, connection: Connection, made: str
) -> None:
    async def life() -> None:
        async with AsyncSession(async_engine) as session:
            queue = rowq.AsyncQueue(session)
            await queue.enqueue(made, 1)
            assert ready(connection, made) == 0
            await session.commit()
            await queue.enqueue(made, 2)
            await session.rollback()

    asyncio.run(life())
    assert ready(connection, made) == 1


def test_async_connections_messages_share_its_transaction(
    async_engine: AsyncEngine, connection: Connection, made: str
) -> None:
    async def life() -> None:
        async with async_engine.connect() as shared:
            await rowq.AsyncQueue(shared).enqueue(made, 1)
            await shared.commit()
        async with async_engine.connect() as shared:
            pooled = await shared.get_raw_connection()
            await rowq.AsyncQueue(pooled).enqueue(made, 2)

    asyncio.run(life())
    assert ready(connection, made) == 1


def test_wrong_queue_class_names_the_right_one(async_engine: AsyncEngine) -> None:
    with pytest.raises(rowq.EngineUnknown, match="AsyncQueue takes this one"):
        rowq.Queue(AsyncSession(async_engine))
    with pytest.raises(rowq.EngineUnknown, match=r"got AsyncEngine; use engine\.connect\(\)"):
        rowq.AsyncQueue(async_engine)


def test_other_postgresql_driver_is_refused_with_remedy() -> None:
    other = create_async_engine("postgresql+asyncpg://host/x")
    with pytest.raises(rowq.EngineUnknown, match=r"asyncpg.*psycopg"):
        rowq.AsyncQueue(AsyncSession(other))
