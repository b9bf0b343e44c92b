"""What a queue object talks through: the caller's own connection, or one that rowq keeps up.

session.py is made from this file by generate_sync.py.
"""

# ruff: noqa: D102 - the sessions' methods are described where AsyncSession declares them

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from rowq.backoff import Backoff
from rowq.engines import engine_for_connection, engine_for_url, without_password
from rowq.engines.base import Engine, Row
from rowq.engines.work.guard import refuse_own_claim
from rowq.errors import ConnectionLost, EngineUnknown

_log = logging.getLogger("rowq")

# Calls whose repetition cannot do harm after a loss that hides whether the first one took effect:
# a claim that nobody heard of is reaped, and what a claim has finished it cannot finish again.
# The others would add, remove or hide something twice; so would an enqueue with a dedup key,
# when the first message is finished before the second call comes.
REPEATABLE = frozenset(
    {
        *("create_queue", "alter_queue", "pause_queue", "resume_queue"),
        *("dequeue_fast", "dequeue_wait", "peek"),
        *("complete", "retry_later", "fail_now", "release", "extend_lease"),
        *("maintain", "reap", "promote", "archive", "purge_archive"),
        *("queue_stats", "get_message", "list_dead", "health", "version"),
    }
)


class AsyncSession(ABC):
    """One connection to call routines on."""

    engine: Engine

    @abstractmethod
    async def connection(self) -> Any:
        """Return the driver's connection, up as far as we know."""

    @abstractmethod
    async def call(self, routine: str, arguments: Mapping[str, Any]) -> list[Row]:
        """Call a routine and return its rows."""

    @abstractmethod
    async def close(self) -> None:
        """Close what this session opened."""


class AsyncBorrowedSession(AsyncSession):
    """The caller's own connection: never opened, committed, repeated or closed here."""

    def __init__(self, connection: Any) -> None:
        """Find the engine of `connection`; raises EngineUnknown."""
        self.engine = engine_for_connection(connection)
        self._connection = connection
        if not self.engine.is_async(connection):
            raise EngineUnknown("AsyncQueue needs an asynchronous connection; Queue takes this one")

    async def connection(self) -> Any:
        return self._connection

    async def call(self, routine: str, arguments: Mapping[str, Any]) -> list[Row]:
        refuse_own_claim(self._connection, routine, arguments)
        return await self.engine.call_async(self._connection, routine, arguments)

    async def close(self) -> None:
        """Leave the connection to its owner."""


class AsyncOwnedSession(AsyncSession):
    """A connection of our own in autocommit; when it breaks, a new one is made with back-off.

    A call in REPEATABLE is then made again. Any other call raises ConnectionLost once it was sent,
    because nobody can know whether it took effect.
    """

    def __init__(
        self,
        url: str,
        *,
        reconnect_seconds: float = 60.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Keep the URL; `reconnect_seconds` is how long one call goes on trying."""
        self.engine = engine_for_url(url)
        self._url = url
        self._reconnect_seconds = reconnect_seconds
        self._sleep = sleep
        self._connection: Any = None

    async def open(self) -> None:
        """Connect for the first time; raises CannotConnect at once when that fails."""
        self._connection = await self.engine.connect_async(self._url)

    async def connection(self) -> Any:
        if self._connection is not None and not self.engine.is_usable(self._connection):
            await self.close()
        if self._connection is None:
            await self.open()
        return self._connection

    async def call(self, routine: str, arguments: Mapping[str, Any]) -> list[Row]:
        backoff = Backoff(first=0.1, cap=5.0)
        give_up_at = time.monotonic() + self._reconnect_seconds
        while True:
            sent = False
            try:
                connection = await self.connection()
                sent = True
                return await self.engine.call_async(connection, routine, arguments)
            except Exception as error:
                if not self.engine.is_connection_lost(error):
                    raise
                sent = sent and self.engine.was_sent(error)
                await self.close()
                self._give_up(routine, error, sent, time.monotonic() >= give_up_at)
                delay = backoff.next()
                _log.warning(
                    "%s: connection lost, trying again in %.1f s: %s",
                    without_password(self._url),
                    delay,
                    error,
                )
            await self._sleep(delay)

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await self.engine.close_async(connection)

    def _give_up(self, routine: str, error: Exception, sent: bool, too_late: bool) -> None:
        if sent and routine not in REPEATABLE:
            raise ConnectionLost(
                f"the connection broke during {routine}: whether it took effect is unknown"
            ) from error
        if too_late:
            raise ConnectionLost(
                f"no connection for {routine} within {self._reconnect_seconds:g} s: {error}"
            ) from error
