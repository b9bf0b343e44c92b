"""A savepoint around a call in its caller's open transaction.

An error of PostgreSQL leaves a transaction that takes nothing more until it is rolled back, to a
savepoint at least.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

from rowq.engines.postgres.driver import load_driver

_SET = "savepoint rowq_call"
_RELEASE = "release savepoint rowq_call"
_BACK = ("rollback to savepoint rowq_call", _RELEASE)


@contextmanager
def savepoint(connection: Any) -> Iterator[None]:
    """Undo a block that raises; the driver begins the transaction if none is open."""
    connection.execute(_SET)
    try:
        yield
    except BaseException:
        # The connection may be gone, and then the first error is the one to be told.
        with suppress(load_driver().Error):
            for statement in _BACK:
                connection.execute(statement)
        raise
    connection.execute(_RELEASE)


@asynccontextmanager
async def savepoint_async(
    connection: Any, errors: tuple[type[Exception], ...]
) -> AsyncIterator[None]:
    """As savepoint, on an asynchronous connection whose driver raises these `errors`."""
    await connection.execute(_SET)
    try:
        yield
    except BaseException:
        with suppress(*errors):
            for statement in _BACK:
                await connection.execute(statement)
        raise
    await connection.execute(_RELEASE)
