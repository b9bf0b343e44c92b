"""For applications with FastAPI: a queue for each request, and workers beside the requests.

It needs the extra `fastapi`. Nothing else of rowq imports this module.
"""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from rowq.async_queue import AsyncQueue
from rowq.errors import PackageMissing, RowqError
from rowq.queue import Queue
from rowq.worker import Worker

try:
    from fastapi import Depends
except ImportError as error:
    raise PackageMissing("rowq.fastapi needs FastAPI: pip install 'rowq[fastapi]'") from error

_log = logging.getLogger("rowq.fastapi")

Lifespan = Callable[[Any], AbstractAsyncContextManager[None]]
"""What FastAPI(lifespan=...) takes."""


def rowq_queue(pool: Any, **options: Any) -> Any:
    """Return the dependency of a queue on a connection of `pool`, in the request's transaction.

    It is committed when the path operation has returned and before the response is sent: who is
    told of an order may rely on its message. An exception, HTTPException too, rolls it back. To
    replace it in a test: `app.dependency_overrides[dependency.dependency]`.

        Orders = Annotated[rowq.AsyncQueue, rowq_queue(pool)]

    Args:
        pool: psycopg_pool's AsyncConnectionPool, which your lifespan opens, or SQLAlchemy's
            AsyncEngine, for rowq.AsyncQueue; psycopg_pool's ConnectionPool or SQLAlchemy's Engine,
            for rowq.Queue.
        options: those of the queue: savepoint, default.
    """

    async def async_queue() -> AsyncIterator[AsyncQueue]:
        async with _connection(pool) as connection:
            yield AsyncQueue(connection, **options)

    def queue() -> Iterator[Queue]:
        with _connection(pool) as connection:
            yield Queue(connection, **options)

    return Depends(async_queue if _is_async(pool) else queue, scope="function")


def worker_lifespan(*workers: Worker) -> Lifespan:
    """Return a lifespan that runs workers, each in a thread, for as long as the server runs.

    At the end they finish the messages in hand and release the others. The server's processes each
    have their own. A handler that is `async def` runs in an event loop of its worker's: it takes no
    connection of the application's asynchronous pool. A worker that gives up (WorkerFailed) says so
    in the log "rowq.fastapi", and the server goes on. In a lifespan of your own:

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
            for worker in workers:
                worker.stop()
            for thread in threads:
                await asyncio.to_thread(thread.join)

    return lifespan


def _run(worker: Worker) -> None:
    try:
        worker.run()
    except RowqError as error:
        _log.error("a worker has ended: %s", error)


def _is_async(pool: Any) -> bool:
    return hasattr(type(pool), "__aenter__") or hasattr(type(pool), "sync_engine")


def _connection(pool: Any) -> Any:
    """Return a context that lends a connection of the pool, and commits in the end."""
    return pool.connection() if hasattr(type(pool), "connection") else pool.begin()
