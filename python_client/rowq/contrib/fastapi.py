"""For applications with FastAPI: a queue for each request, and workers beside the requests.

It needs the extra `fastapi`. Nothing else of rowq imports this module.
"""

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
_ASK_AGAIN_SECONDS = 0.05

Lifespan = Callable[[Any], AbstractAsyncContextManager[None]]
"""What FastAPI(lifespan=...) takes."""


def rowq_queue(pool: Any, **options: Any) -> Any:
    """Return the dependency of a queue on a connection of `pool`, in a transaction of its own.

    It is committed when the path operation has returned and before the response is sent: who is
    told that a message is there may rely on it. An exception, HTTPException too, rolls it back. It
    is for path operations that only hand over messages: one that writes on a connection or session
    of its own makes a rowq.Queue or rowq.AsyncQueue of that, so that both are committed or none. To
    replace it in a test: `app.dependency_overrides[dependency.dependency]`.

        Orders = Annotated[rowq.AsyncQueue, rowq_queue(pool)]

    Args:
        pool: psycopg_pool's AsyncConnectionPool, which your lifespan opens, or SQLAlchemy's
            AsyncEngine, for rowq.AsyncQueue; psycopg_pool's ConnectionPool or SQLAlchemy's Engine,
            for rowq.Queue. An engine is not in autocommit. Or a function that returns one of the
            asynchronous ones, or asyncpg's Pool, which has to be made in the lifespan: it is called
            with each request, as in `lambda request: request.app.state.pool`.
        options: those of the queue: savepoint, default.

    Raises:
        EngineUnknown: it is none of these; of what a function returns the request raises it.
    """
    is_function = _is_function(pool)
    if not is_function:
        _check_pool(pool)

    async def async_queue(request: HTTPConnection) -> AsyncIterator[AsyncQueue]:
        lender = _asked(pool, request) if is_function else pool
        async with AsyncExitStack() as stack:
            connection = await stack.enter_async_context(_connection(lender))
            if not hasattr(type(lender), "begin"):
                # The pool's connections may be in autocommit.
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
            await asyncio.to_thread(_end, list(zip(threads, workers, strict=True)))

    return lifespan


def _end(runs: Sequence[tuple[threading.Thread, Worker]]) -> None:
    """Stop these runs of workers, those that have not ended yet, and wait for them."""
    while living := [(thread, worker) for thread, worker in runs if thread.is_alive()]:
        # A thread that was started just now may not have begun its run: it is asked again.
        for _, worker in living:
            worker._stop_run()
        living[0][0].join(_ASK_AGAIN_SECONDS)


def _run(worker: Worker) -> None:
    try:
        worker.run()
    except RowqError as error:
        _log.error("a worker has ended: %s", error)


def _asked(find: Callable[[HTTPConnection], Any], request: HTTPConnection) -> Any:
    """Return the pool that an application's function finds; raises EngineUnknown."""
    pool = find(request)
    _check_pool(pool)
    if not _is_async(pool):
        raise EngineUnknown("a function of rowq_queue returns an asynchronous pool or engine")
    return pool


def _is_function(pool: Any) -> bool:
    """Tell functions from pools, from factories such as sessionmaker, and from coroutines."""
    is_plain = inspect.isroutine(pool) or isinstance(pool, partial)
    return is_plain and not inspect.iscoroutinefunction(pool)


def _check_pool(pool: Any) -> None:
    """Refuse what lends no connections; raises EngineUnknown."""
    kind = type(pool)
    if not (hasattr(kind, "connection") or hasattr(kind, "begin") or _is_of_asyncpg(pool)):
        raise EngineUnknown(
            "rowq_queue takes a pool of psycopg_pool or asyncpg, or an engine of SQLAlchemy, not a"
            f" {kind.__module__}.{kind.__qualname__}"
        )


def _is_async(pool: Any) -> bool:
    return hasattr(type(pool), "__aenter__") or hasattr(type(pool), "sync_engine")


def _is_of_asyncpg(pool: Any) -> bool:
    return "asyncpg" in packages_of(type(pool)) and hasattr(type(pool), "acquire")


def _connection(pool: Any) -> Any:
    """Return a context that lends a connection of the pool; SQLAlchemy's is in a transaction."""
    if _is_of_asyncpg(pool):
        return pool.acquire()
    return pool.begin() if hasattr(type(pool), "begin") else pool.connection()
