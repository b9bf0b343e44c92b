"""A queue without a database, for tests of an application."""

import threading
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from rowq.arguments import Default
from rowq.async_queue import AsyncQueue
from rowq.async_session import AsyncSession
from rowq.contrib.testing.checks import checked
from rowq.contrib.testing.routines import Routines
from rowq.engines.base import Row
from rowq.errors import InvalidArgument, QueueClosed
from rowq.queue import Queue
from rowq.session import Session


class MemoryQueue(Queue):
    """A rowq.Queue whose messages are in this process and end with it.

    It has the methods and arguments of rowq.Queue, and checks them like the client and the
    routines, except depth, length and numbers of headers and results. Its clock stands still until
    `pass_seconds`. No call waits: dequeue_wait and wait_for_result return at once. There are no
    transactions.

    Unknown features raise NotImplementedError: schedules, workers, history, the archive, limits,
    the pause of groups, health and version. Delays have no jitter. If engines differ in the order
    of equal messages, it behaves like PostgreSQL.
    """

    def __init__(self, *, default: Default | None = None) -> None:
        """Create it without queues; `default` is that of rowq.Queue."""
        self._memory = MemorySession()
        super().__init__(self._memory, default=default)

    def pass_seconds(self, seconds: float) -> None:
        """Advance the clock of delays, leases and expiry; raises InvalidArgument."""
        self._memory.pass_seconds(seconds)

    def as_async(self) -> AsyncQueue:
        """Return a rowq.AsyncQueue of the same messages."""
        return AsyncQueue(AsyncMemorySession(self._memory), default=self._default)


class MemorySession(Session):
    """Calls the routines of the queue in memory; threads take turns."""

    def __init__(self) -> None:
        self._routines = Routines()
        self._lock = threading.RLock()
        self._ended = False

    def connection(self) -> NoReturn:
        """Raise NotImplementedError: there is none."""
        raise NotImplementedError("a MemoryQueue has no connection")

    def call(
        self,
        routine: str,
        arguments: Mapping[str, Any],
        until: float | None = None,  # noqa: ARG002 - no call waits
    ) -> list[Row]:
        """Call a routine and return its rows."""
        if self._ended:
            raise QueueClosed("this Queue is closed; create a new one")
        does = getattr(self._routines, routine, None)
        if does is None:
            raise NotImplementedError(
                f"a MemoryQueue has no {routine}; test it on a database, with rowq_queue"
            )
        with self._lock:
            rows: list[Row] = does(**checked(routine, arguments))
            return rows

    def wait(
        self,
        routine: str,
        arguments: Mapping[str, Any],
        wait_seconds: float,
        is_over: Callable[[Any], bool],  # noqa: ARG002
    ) -> list[Row]:
        """Call a waiting routine once: no other session can add messages."""
        return self.call(routine, {**arguments, "wait_seconds": wait_seconds})

    def close(self) -> None:
        """Do nothing; the messages stay."""

    def end(self) -> None:
        """Refuse every later call."""
        self._ended = True

    def pass_seconds(self, seconds: float) -> None:
        """Let time pass."""
        if seconds < 0:
            raise InvalidArgument(f"seconds must be 0 or more, got {seconds}")
        with self._lock:
            self._routines.queues.pass_seconds(seconds)

    def make_due(self, queue_name: str) -> int:
        """Make all delayed messages of a queue due; return their number."""
        with self._lock:
            return self._routines.queues.require(queue_name).shift_due()


class AsyncMemorySession(AsyncSession):
    """A MemorySession for async code, with the same messages."""

    def __init__(self, memory: MemorySession) -> None:
        self._memory = memory
        self._ended = False

    async def connection(self) -> NoReturn:
        """Raise NotImplementedError: there is none."""
        self._memory.connection()

    async def call(
        self,
        routine: str,
        arguments: Mapping[str, Any],
        until: float | None = None,  # noqa: ARG002 - no call waits
    ) -> list[Row]:
        """Call a routine and return its rows."""
        if self._ended:
            raise QueueClosed("this Queue is closed; create a new one")
        return self._memory.call(routine, arguments)

    async def wait(
        self,
        routine: str,
        arguments: Mapping[str, Any],
        wait_seconds: float,
        is_over: Callable[[Any], bool],  # noqa: ARG002
    ) -> list[Row]:
        """Call a waiting routine once."""
        return await self.call(routine, {**arguments, "wait_seconds": wait_seconds})

    async def close(self) -> None:
        """Do nothing; the messages stay."""

    async def end(self) -> None:
        """Refuse later calls of this queue; the other queue keeps the messages."""
        self._ended = True
