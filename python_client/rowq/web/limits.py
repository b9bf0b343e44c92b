"""Limits of the page's own server: connections, time and header size."""

import asyncio
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 256
"""Maximum number of connections; lower if the limit of open files is low."""
REQUEST_SECONDS = 10.0
"""Timeout for the headers of a request after the connection or the last response."""
MOST_HEADER_BYTES = 32 * 1024
_OTHER_FILES = 64
"""Open files reserved for databases and the rest of the process."""


def limited_protocol() -> type[H11Protocol]:
    """Return a uvicorn protocol for one server, whose connections share a pool."""

    class Limited(_Limited):
        """Uses the pool of this server."""

        pool = _Pool(_most_connections())

    return Limited


def backlog() -> int:
    """Return the backlog, which is also how many connections asyncio accepts at a time.

    asyncio accepts up to four times as many before the pool can close the first one.
    """
    return _share(10)


def _most_connections() -> int:
    return _share(2)


def _share(divisor: int) -> int:
    """Return the number of connections for a share of the open files."""
    try:
        import resource
    except ImportError:  # Windows has no such limit.
        return MOST_CONNECTIONS
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(min(MOST_CONNECTIONS, (files - _OTHER_FILES) // divisor), 1)


class _Pool:
    """The open connections of a server.

    If it is full, a new connection replaces the one that has been idle for longest. If all of them
    have a request, the new one is closed.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._idle: dict[_Limited, None] = {}
        self._busy: set[_Limited] = set()

    def add(self, connection: "_Limited") -> bool:
        """Add a connection; return False if the pool is full."""
        if len(self._idle) + len(self._busy) >= self._most:
            oldest = next(iter(self._idle), None)
            if oldest is None:
                return False
            del self._idle[oldest]
            oldest.transport.abort()
        self._idle[connection] = None
        return True

    def set_busy(self, connection: "_Limited", is_busy: bool) -> None:
        """Record whether a connection has a request."""
        self.remove(connection)
        if is_busy:
            self._busy.add(connection)
        else:
            self._idle[connection] = None

    def remove(self, connection: "_Limited") -> None:
        """Remove a connection."""
        self._idle.pop(connection, None)
        self._busy.discard(connection)


class _Limited(H11Protocol):
    """A connection that is closed if no request arrives in time."""

    pool: ClassVar[_Pool]
    _is_busy = False
    _timeout: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start, or close the connection if the pool is full."""
        super().connection_made(transport)
        if self.pool.add(self):
            self._await_request()
        else:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave the pool."""
        self._stop_waiting()
        self.pool.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read a part of a request."""
        super().data_received(data)
        self._observe()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._observe()

    def _observe(self) -> None:
        """Record whether the connection has a request."""
        is_busy = self.cycle is not None and not self.cycle.response_complete
        if is_busy is self._is_busy or self.transport.is_closing():
            return
        self._is_busy = is_busy
        self.pool.set_busy(self, is_busy)
        self._stop_waiting()
        if not is_busy:
            self._await_request()

    def _await_request(self) -> None:
        self._timeout = self.loop.call_later(REQUEST_SECONDS, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._timeout is not None:
            self._timeout.cancel()
            self._timeout = None
