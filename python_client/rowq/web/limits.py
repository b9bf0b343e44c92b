"""Limits of the page's own server: connections, time, and memory for headers."""

import asyncio
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 256
"""Open connections; fewer where the process may open few files."""
REQUEST_SECONDS = 10.0
"""Time from the connection, or from the last answer, until the headers of a request are there."""
MOST_HEADER_BYTES = 32 * 1024
_OTHER_FILES = 64
"""Files that connections leave to the databases and the rest of the process."""


def limited_protocol() -> type[H11Protocol]:
    """Return a protocol of uvicorn for one server, whose connections share their places."""

    class Limited(_Limited):
        """Shares the places of this server."""

        places = _Places(_most_connections())

    return Limited


def backlog() -> int:
    """Return how many connections may wait, which is how many asyncio accepts at a time.

    It accepts up to four times as many before the first one is ended for want of a place.
    """
    return _share(10)


def _most_connections() -> int:
    return _share(2)


def _share(divisor: int) -> int:
    """Return how many connections one part of the files that may be open is enough for."""
    try:
        import resource
    except ImportError:  # Windows has no such limit.
        return MOST_CONNECTIONS
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(min(MOST_CONNECTIONS, (files - _OTHER_FILES) // divisor), 1)


class _Places:
    """The open connections of a server.

    If all places are taken, a new connection gets that of the connection which has been without a
    request for longest. If all of them have a request, the new one is ended.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._silent: dict[_Limited, None] = {}
        self._busy: set[_Limited] = set()

    def add(self, connection: "_Limited") -> bool:
        """Give a new connection a place; return whether there was one."""
        if len(self._silent) + len(self._busy) >= self._most:
            oldest = next(iter(self._silent), None)
            if oldest is None:
                return False
            del self._silent[oldest]
            oldest.transport.abort()
        self._silent[connection] = None
        return True

    def set_busy(self, connection: "_Limited", is_busy: bool) -> None:
        """Record whether a request of a connection is being answered."""
        self.remove(connection)
        if is_busy:
            self._busy.add(connection)
        else:
            self._silent[connection] = None

    def remove(self, connection: "_Limited") -> None:
        """Free the place of a connection."""
        self._silent.pop(connection, None)
        self._busy.discard(connection)


class _Limited(H11Protocol):
    """A connection that ends if no request comes in time."""

    places: ClassVar[_Places]
    _is_busy = False
    _timeout: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin, or end at once if there is no place."""
        super().connection_made(transport)
        if self.places.add(self):
            self._await_request()
        else:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Free the place."""
        self._stop_waiting()
        self.places.remove(self)
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
        """Record whether a request is being answered now."""
        is_busy = self.cycle is not None and not self.cycle.response_complete
        if is_busy is self._is_busy or self.transport.is_closing():
            return
        self._is_busy = is_busy
        self.places.set_busy(self, is_busy)
        self._stop_waiting()
        if not is_busy:
            self._await_request()

    def _await_request(self) -> None:
        self._timeout = self.loop.call_later(REQUEST_SECONDS, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._timeout is not None:
            self._timeout.cancel()
            self._timeout = None
