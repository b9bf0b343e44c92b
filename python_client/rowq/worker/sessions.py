"""Sessions of a worker process: while its threads are idle, they share one connection per server.

A thread that works has a connection of its own, and closes it after REST_SECONDS without work. Then
its calls, such as polls, use the shared connection, as maintenance and the listener always do.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rowq.engines import engine_for_url
from rowq.engines.base import Row
from rowq.errors import CannotConnect
from rowq.session import OwnedSession, Session

REST_SECONDS = 5.0
"""A thread's connection that had no work for this long is closed."""

# How long a call waits for another thread's before it uses the thread's own connection.
_BUSY_SECONDS = 0.1
# On some engines these wait for a producer, and would keep the shared connection from the others.
_WAITING = frozenset({"retry_later", "fail_now", "release", "extend_lease"})


class SharedSession(OwnedSession):
    """A session whose connection the threads of a process share for short calls."""

    def call_if_free(self, routine: str, arguments: Mapping[str, Any]) -> list[Row] | None:
        """Call a routine once; return None if that is impossible now.

        Another thread uses the connection, or the error is one after which `call` tries again.
        """
        if not self._lock.acquire(timeout=_BUSY_SECONDS):
            return None
        try:
            return self._call(self._idle_connection(), routine, arguments)
        except Exception as error:
            if not self._trouble(error):
                raise
            if self.engine.is_connection_lost(error) or self.engine.is_wrong_server(error):
                self.close()
            return None
        finally:
            self._lock.release()

    @contextmanager
    def lent(self) -> Iterator[Any]:
        """Keep other threads from the connection during a block; connect if needed."""
        with self._lock:
            yield self._idle_connection()

    @contextmanager
    def lent_again(self, connection: Any) -> Iterator[None]:
        """As `lent`, for a connection lent before; raises CannotConnect if it was replaced."""
        with self._lock:
            if self._connection is not connection:
                raise CannotConnect("another thread has replaced the shared connection")
            yield

    def discard(self, connection: Any) -> None:
        """Close a connection lent before, unless it was replaced."""
        with self._lock:
            if self._connection is connection:
                self.close()


class BriefSession(Session):
    """A connection whose calls neither wait for locks nor are retried."""

    def __init__(self, url: str) -> None:
        self.engine = engine_for_url(url)
        self._url = url
        self._connection: Any = None
        self._called_at = 0.0

    @property
    def is_open(self) -> bool:
        """Whether there is a usable connection."""
        return self._connection is not None and self.engine.is_usable(self._connection)

    def connection(self) -> Any:
        """Return a usable connection; reconnect if needed."""
        if self._connection is not None and not self.engine.is_usable(self._connection):
            self.close()
        if self._connection is None:
            self._connection = self.engine.connect(self._url)
        return self._connection

    def call(
        self, routine: str, arguments: Mapping[str, Any], until: float | None = None
    ) -> list[Row]:
        """Call a routine that does not wait; close a lost connection, and raise the error."""
        del until
        self._called_at = time.monotonic()
        try:
            return self.engine.call_briefly(self.connection(), routine, arguments)
        except Exception as error:
            if self.engine.is_connection_lost(error):
                self.close()
            raise

    def close_unused(self) -> None:
        """Close the connection if it had no call for REST_SECONDS."""
        if self._connection is not None and time.monotonic() >= self._called_at + REST_SECONDS:
            self.close()

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self.engine.close(connection)

    def end(self) -> None:
        """Close the connection."""
        self.close()


class GuestSession(Session):
    """The calls of a thread: on its own connection if it has one, else on the shared one."""

    def __init__(self, own: OwnedSession | BriefSession, shared: SharedSession) -> None:
        """Open a connection of `own` only if the shared one cannot be used."""
        self.engine = own.engine
        self._own = own
        self._shared = shared

    @property
    def is_open(self) -> bool:
        """Whether a call needs no new connection."""
        return self._own.is_open or self._shared.is_open

    def connection(self) -> Any:
        """Return the thread's own connection."""
        return self._own.connection()

    def call(
        self, routine: str, arguments: Mapping[str, Any], until: float | None = None
    ) -> list[Row]:
        """Call a routine that is repeatable."""
        rows = None
        if not (self._own.is_open or routine in _WAITING):
            rows = self._shared.call_if_free(routine, arguments)
        return self._own.call(routine, arguments, until) if rows is None else rows

    def close(self) -> None:
        """Close the thread's own connection."""
        self._own.close()

    def end(self) -> None:
        """Close the thread's own connection permanently."""
        self._own.end()
