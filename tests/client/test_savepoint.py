"""The caller's transaction after a refused call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import psycopg
import pytest

import rowq
from tests.engines.base import Connection, Server
from tests.helpers.client_queue import ready


@pytest.mark.promise("P15")
@pytest.mark.parametrize("begun_before", [True, False])
def test_savepoint_keeps_the_transaction_after_a_refusal(
    connect: Callable[..., Connection], connection: Connection, made: str, begun_before: bool
) -> None:
    """Also if the refused call is the first of the transaction."""
    session = connect(autocommit=False)
    queue = rowq.Queue(session, savepoint=True)
    if begun_before:
        queue.enqueue(made, 1)
    with pytest.raises(rowq.QueueNotFound):
        queue.enqueue("no such queue", 1)
    with pytest.raises(rowq.StaleClaim):
        queue.complete(made, 12345)
    queue.enqueue(made, 2)
    assert ready(connection, made) == 0
    session.commit()
    assert ready(connection, made) == begun_before + 1


def test_rollback_with_savepoints_removes_everything(
    connect: Callable[..., Connection], connection: Connection, made: str
) -> None:
    session = connect(autocommit=False)
    queue = rowq.Queue(session, savepoint=True)
    queue.enqueue(made, 1)
    session.rollback()
    assert ready(connection, made) == 0


def test_savepoint_has_no_effect_in_autocommit(connection: Connection, made: str) -> None:
    queue = rowq.Queue(connection, savepoint=True)
    with pytest.raises(rowq.QueueNotFound):
        queue.enqueue("no such queue", 1)
    queue.enqueue(made, 1)
    assert len(queue.dequeue_wait(made, wait_seconds=0.1)) == 1


def test_refusal_without_savepoint_aborts_only_postgres(
    server: Server, connect: Callable[..., Connection], made: str
) -> None:
    """As documented for each engine."""
    session = connect(autocommit=False)
    queue = rowq.Queue(session)
    with pytest.raises(rowq.QueueNotFound):
        queue.enqueue("no such queue", 1)
    if server.engine == "postgres":
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            queue.enqueue(made, 1)
    else:
        queue.enqueue(made, 1)
    session.rollback()


@pytest.mark.requires("async")
def test_async_queue_uses_savepoints(database_url: str, connection: Connection, made: str) -> None:
    async def life() -> None:
        async with await psycopg.AsyncConnection.connect(database_url) as session:
            queue = rowq.AsyncQueue(session, savepoint=True)
            with pytest.raises(rowq.QueueNotFound):
                await queue.enqueue("no such queue", 1)
            await queue.enqueue(made, 1)

    asyncio.run(life())
    assert ready(connection, made) == 1


@pytest.mark.requires("async")
def test_savepoint_keeps_the_transaction_after_a_cancel(
    connect: Callable[..., Connection], database_url: str, connection: Connection, made: str
) -> None:
    blocker = connect(autocommit=False)
    rowq.Queue(blocker).enqueue(made, 1, dedup_key="held")

    async def life() -> None:
        async with await psycopg.AsyncConnection.connect(database_url) as session:
            queue = rowq.AsyncQueue(session, savepoint=True)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await queue.enqueue(made, 2, dedup_key="held")
            await queue.enqueue(made, 3)

    asyncio.run(life())
    blocker.rollback()
    assert ready(connection, made) == 1
