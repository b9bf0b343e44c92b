"""FastAPI integration: a queue per request, and workers in the server; extra `fastapi`."""

import asyncio
import inspect
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, asynccontextmanager
from functools import partial
from typing import Any

from rowq.async_queue import AsyncQueue
from rowq.engines import packages_of
from rowq.errors import EngineUnknown, PackageMissing, RowqError
from rowq.queue import Queue
from rowq.worker import Worker

try:
    from fastapi import Depends
    from starlette.requests import HTTPConnection
except ImportError as error:
    raise PackageMissing(
        "rowq.contrib.fastapi needs FastAPI: pip install 'rowq[fastapi]'"
    ) from error

_log = logging.getLogger("rowq.fastapi")
_RETRY_SECONDS = 0.05

Lifespan = Callable[[Any], AbstractAsyncContextManager[None]]
"""An argument for FastAPI(lifespan=...)."""


def rowq_queue(pool: Any, **options: Any) -> Any:
    """Return a dependency: a queue on a connection of `pool`, in its own transaction.

    It commits after the path operation has returned and before the response is sent. Any exception,
    including HTTPException, rolls it back. Use it for path operations that only enqueue messages.
    If one writes on its own connection or session, create a rowq.Queue or rowq.AsyncQueue from
    that, so that both commit together. In tests, replace it with
    `app.dependency_overrides[dependency.dependency]`.

        Orders = Annotated[rowq.AsyncQueue, rowq_queue(pool)]

    Args:
        pool: for rowq.AsyncQueue an AsyncConnectionPool of psycopg_pool, which your lifespan opens,
            or an AsyncEngine of SQLAlchemy; for rowq.Queue a ConnectionPool or an Engine. An engine
            must not be in autocommit. Or a function of the request that returns an asynchronous
            one, or a Pool of asyncpg, which must be created in the lifespan:
            `lambda request: request.app.state.pool`.
        options: those of the queue: savepoint, default.

    Raises:
        EngineUnknown: unsupported pool; for the result of a function, the request raises it.
    """
    is_function = _is_function(pool)
    if not is_function:
        _check_pool(pool)

    async def async_queue(request: HTTPConnection) -> AsyncIterator[AsyncQueue]:
        lender = _found(pool, request) if is_function else pool
        async with AsyncExitStack() as stack:
            connection = await stack.enter_async_context(_connection(lender))
            if not hasattr(type(lender), "begin"):
                # The connection may be in autocommit.
                await stack.enter_async_context(connection.transaction())
            yield AsyncQueue(connection, **options)

    def queue() -> Iterator[Queue]:
        with ExitStack() as stack:
            connection = stack.enter_context(_connection(pool))
            if not hasattr(type(pool), "begin"):
                stack.enter_context(connection.transaction())
            yield Queue(connection, **options)

    is_async = is_function or _is_async(pool)
    return Depends(async_queue if is_async else queue, scope="function")


def worker_lifespan(*workers: Worker) -> Lifespan:
    """Return a lifespan that runs workers, each in a thread, while the server runs.

    At the end they finish running messages and release the others. Each process of the server has
    its own workers. An `async def` handler runs in its worker's event loop, so it cannot use the
    application's asynchronous pool. If a worker fails (WorkerFailed), the logger "rowq.fastapi"
    logs it, and the server continues. In your own lifespan:

        async with worker_lifespan(worker)(app):
            yield
    """

    @asynccontextmanager
    async def lifespan(_app: Any) -> AsyncIterator[None]:
        threads = [threading.Thread(target=_run, args=(worker,)) for worker in workers]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            await asyncio.to_thread(_end, list(zip(threads, workers, strict=True)))

    return lifespan


def _end(runs: Sequence[tuple[threading.Thread, Worker]]) -> None:
    """Stop these workers and wait for them."""
    while living := [(thread, worker) for thread, worker in runs if thread.is_alive()]:
        # A new thread may not have started its run yet: repeat.
        for _, worker in living:
            worker._stop_run()
        living[0][0].join(_RETRY_SECONDS)


def _run(worker: Worker) -> None:
    try:
        worker.run()
    except RowqError as error:
        _log.error("worker failed: %s", error)


def _found(find: Callable[[HTTPConnection], Any], request: HTTPConnection) -> Any:
    """Return the pool that an application's function returns; raises EngineUnknown."""
    pool = find(request)
    _check_pool(pool)
    if not _is_async(pool):
        raise EngineUnknown("the function of rowq_queue must return an asynchronous pool or engine")
    return pool


def _is_function(pool: Any) -> bool:
    """Whether it is a function, and not a pool, a factory such as sessionmaker, or a coroutine."""
    is_plain = inspect.isroutine(pool) or isinstance(pool, partial)
    return is_plain and not inspect.iscoroutinefunction(pool)


def _check_pool(pool: Any) -> None:
    """Refuse an unsupported pool; raises EngineUnknown."""
    kind = type(pool)
    if not (hasattr(kind, "connection") or hasattr(kind, "begin") or _is_of_asyncpg(pool)):
        raise EngineUnknown(
            "pool must be a psycopg_pool or asyncpg pool, or a SQLAlchemy engine,"
            f" got {kind.__module__}.{kind.__qualname__}"
        )


def _is_async(pool: Any) -> bool:
    return hasattr(type(pool), "__aenter__") or hasattr(type(pool), "sync_engine")


def _is_of_asyncpg(pool: Any) -> bool:
    return "asyncpg" in packages_of(type(pool)) and hasattr(type(pool), "acquire")


def _connection(pool: Any) -> Any:
    """Return a context with a connection of the pool; SQLAlchemy's is in a transaction."""
    if _is_of_asyncpg(pool):
        return pool.acquire()
    return pool.begin() if hasattr(type(pool), "begin") else pool.connection()
