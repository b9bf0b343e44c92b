"""rowq.contrib.fastapi: a queue per request, and workers in the server."""

import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Annotated, Any

import asyncpg
import psycopg
import psycopg_pool
import pytest
import sqlalchemy
from fastapi import FastAPI, HTTPException
from fastapi.testclient import TestClient
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

import rowq
from rowq.contrib.fastapi import rowq_queue, worker_lifespan
from rowq.contrib.testing import MemoryQueue
from tests.engines.base import Connection, wait_until
from tests.helpers.client_queue import ready

pytestmark = pytest.mark.requires("async")


def asynchronous(dependency: Any, name: str) -> FastAPI:
    app = FastAPI()

    @app.post("/orders/{number}")
    async def place(number: int, queue: Annotated[rowq.AsyncQueue, dependency]) -> int:
        placed = await queue.enqueue(name, {"id": number})
        if number == 0:
            raise HTTPException(409)
        return placed.message_id

    return app


def synchronous(dependency: Any, name: str) -> FastAPI:
    app = FastAPI()

    @app.post("/orders/{number}")
    def place(number: int, queue: Annotated[rowq.Queue, dependency]) -> int:
        placed = queue.enqueue(name, {"id": number})
        if number == 0:
            raise HTTPException(409)
        return placed.message_id

    return app


POOLS: dict[str, tuple[Callable[[str], Any], Callable[[Any, str], FastAPI]]] = {
    "psycopg, async": (
        lambda url: psycopg_pool.AsyncConnectionPool(url, open=False, min_size=1),
        asynchronous,
    ),
    "psycopg": (lambda url: psycopg_pool.ConnectionPool(url, open=True, min_size=1), synchronous),
    "SQLAlchemy, async": (
        lambda url: create_async_engine(sqlalchemy_url(url), poolclass=NullPool),
        asynchronous,
    ),
    "SQLAlchemy": (lambda url: sqlalchemy.create_engine(sqlalchemy_url(url)), synchronous),
}


def while_open(pool: Any) -> Callable[[Any], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        async with pool:
            yield

    return lifespan


def sqlalchemy_url(url: str) -> str:
    return f"postgresql+psycopg://{url.partition('://')[2]}"


@pytest.mark.parametrize("kind", POOLS)
def test_message_commits_before_response_unless_error(
    database_url: str, connection: Connection, made: str, kind: str
) -> None:
    make, application = POOLS[kind]
    pool = make(database_url)
    app = application(rowq_queue(pool), made)
    if kind == "psycopg, async":
        app.router.lifespan_context = while_open(pool)
    with TestClient(app) as client:
        assert client.post("/orders/1").status_code == 200
        assert ready(connection, made) == 1
        assert client.post("/orders/0").status_code == 409
        assert ready(connection, made) == 1
    if kind == "psycopg":
        pool.close()


def test_pool_of_the_lifespan_is_found(
    database_url: str, connection: Connection, made: str
) -> None:
    given = psycopg.conninfo.conninfo_to_dict(database_url)
    names = {"dbname": "database", "user": "user", "password": "password", "host": "host"}
    names |= {"port": "port"}
    login: dict[str, Any] = {names[key]: value for key, value in given.items() if key in names}

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with asyncpg.create_pool(**login, min_size=1) as pool:
            app.state.pool = pool
            yield

    app = asynchronous(rowq_queue(lambda request: request.app.state.pool), made)
    app.router.lifespan_context = lifespan
    with TestClient(app) as client:
        for number, status in ((1, 200), (0, 409), (2, 200)):
            assert client.post(f"/orders/{number}").status_code == status
    assert ready(connection, made) == 2


def test_unsupported_pool_is_refused(database_url: str, made: str) -> None:
    with pytest.raises(rowq.EngineUnknown, match=r"got builtins\.str"):
        rowq_queue(database_url)

    async def find(_request: object) -> None: ...

    for factory in (sqlalchemy.Engine, find):
        with pytest.raises(rowq.EngineUnknown, match="pool must be"):
            rowq_queue(factory)
    engine = sqlalchemy.create_engine(sqlalchemy_url(database_url))
    app = asynchronous(rowq_queue(lambda _request: engine), made)
    with pytest.raises(rowq.EngineUnknown, match="asynchronous"):
        TestClient(app).post("/orders/1")


def test_dependency_can_be_overridden(database_url: str) -> None:
    memory = MemoryQueue()
    memory.create_queue("orders")
    dependency = rowq_queue(sqlalchemy.create_engine(sqlalchemy_url(database_url)))
    app = synchronous(dependency, "orders")
    app.dependency_overrides[dependency.dependency] = lambda: memory
    assert TestClient(app).post("/orders/1").json() == 1
    assert memory.peek("orders")[0].data == {"id": 1}


def test_worker_runs_while_the_server_runs(
    database_url: str, connection: Connection, made: str
) -> None:
    handled: list[Any] = []
    worker = rowq.Worker(database_url, made, lambda message: handled.append(message.data))
    with TestClient(FastAPI(lifespan=worker_lifespan(worker))):
        rowq.Queue(connection).enqueue(made, 1)
        until = time.monotonic() + 30
        while not worker.stats.processed and time.monotonic() < until:
            time.sleep(0.01)
        assert handled == [1]
    rowq.Queue(connection).enqueue(made, 2)
    assert (handled, worker.stats.processed) == ([1], 1)


def test_failed_worker_is_logged_and_server_continues(
    database_url: str, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = FastAPI(lifespan=worker_lifespan(rowq.Worker(database_url, queue_name, print)))
    with caplog.at_level(logging.ERROR, "rowq.fastapi"), TestClient(app) as client:
        assert client.get("/openapi.json").status_code == 200
    assert "worker failed: RQ701 queue_not_found" in caplog.text


def test_failed_worker_works_after_a_server_restart(
    database_url: str, connection: Connection, queue_name: str
) -> None:
    worker = rowq.Worker(database_url, queue_name, lambda _message: None, drain=True)
    app = FastAPI(lifespan=worker_lifespan(worker))
    with TestClient(app):
        pass
    queue = rowq.Queue(connection)
    queue.create_queue(queue_name)
    for number in range(2):
        # Before the second start, the first run has ended by its failure.
        queue.enqueue(queue_name, number)
        with TestClient(app):
            wait_until(lambda: ready(connection, queue_name) == 0, "the message is handled")


def test_server_that_ends_at_once_ends_its_workers(database_url: str, made: str) -> None:
    workers = [rowq.Worker(database_url, made, lambda _message: None) for _ in range(3)]
    for _ in range(5):
        with TestClient(FastAPI(lifespan=worker_lifespan(*workers))):
            pass
