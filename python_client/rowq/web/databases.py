"""Calls of routines on a database: in threads, on a few connections, with timeouts."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

import anyio
import anyio.to_thread

from rowq.contract import load_contract
from rowq.engines import is_foreseen
from rowq.engines.sockets import TimedOutError
from rowq.errors import Refused
from rowq.queue import Queue
from rowq.rights import remedy_of
from rowq.session import OwnedSession
from rowq.tools.rights import is_allowed
from rowq.tools.terminal import without_secrets

Result = TypeVar("Result")

_MOST_CONNECTIONS = 4
# Timeout for reconnecting, and for a free connection.
CONNECTION_SECONDS = 2.0
# Timeout of a page's calls; they continue in the background, at most one per connection.
_LONGEST_SECONDS = 15.0
# Time until a newly granted role is noticed; a revoked role is noticed at the next call.
_RIGHTS_SECONDS = 600.0
_OF_ROLES = {"admin": "get_message", "producer": "cancel", "consumer": "peek"}
"""A routine of each role, called with arguments that it refuses; the server may log that."""


class StillRunningError(TimedOutError):
    """The page stopped waiting for a call, which may still take effect."""


class Database:
    """A database, and its name on the page and in URLs; connects at the first call."""

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self.url = url
        self.examining = threading.Lock()
        """Held while rowq doctor runs, because it opens connections."""
        self._connections = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        self._idle: deque[Queue] = deque([Queue(self._session())])
        self._rights: frozenset[str] = frozenset()
        self._rights_until = 0.0

    @contextmanager
    def queue(self) -> Iterator[Queue]:
        """Return a free queue object for a block; raise TimedOutError."""
        if not self._connections.acquire(timeout=CONNECTION_SECONDS):
            raise TimedOutError("all connections of this page are waiting for the database; retry")
        try:
            try:
                queue = self._idle.pop()
            except IndexError:
                queue = Queue(self._session())
            try:
                yield queue
            finally:
                self._idle.append(queue)
        finally:
            self._connections.release()

    def call(self, work: Callable[[Queue], Result]) -> Result:
        """Call `work` with a queue."""
        with self.queue() as queue:
            return work(queue)

    async def run(self, work: Callable[[Queue], Result]) -> Result:
        """Call `work` in a thread; raise TimedOutError."""
        return await in_thread(partial(self.call, work))

    def rights(self) -> frozenset[str]:
        """Return the routines that the account can call, cached; a transient error removes none."""
        if time.monotonic() >= self._rights_until:
            self._rights = self.call(_rights)
            self._rights_until = time.monotonic() + _RIGHTS_SECONDS
        return self._rights

    def forget_rights(self) -> None:
        """Read the rights again at the next request."""
        self._rights_until = 0.0

    def described(self, error: BaseException) -> str:
        """Return an error as one line, without secrets."""
        # There PostgreSQL shows the position in its own code.
        text = " ".join(str(error).partition("\nCONTEXT:")[0].split()) or type(error).__name__
        remedy = remedy_of(error)
        if remedy and remedy not in text:
            text = f"{text}: {remedy}"
        return without_secrets(text, [self.url])

    def close(self) -> None:
        """Close idle connections."""
        while self._idle:
            self._idle.pop().close()

    def _session(self) -> OwnedSession:
        return OwnedSession(self.url, reconnect_seconds=CONNECTION_SECONDS)


async def in_thread(work: Callable[[], Result]) -> Result:
    """Call `work` in a thread; raise StillRunningError after a timeout."""
    with anyio.move_on_after(_LONGEST_SECONDS):
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
    raise StillRunningError(
        f"the database did not answer within {_LONGEST_SECONDS:g} seconds; the call may still take"
        " effect"
    )


def is_expected(error: BaseException) -> bool:
    """Return whether an error is from rowq, a driver or a timeout, not a bug of the page."""
    return isinstance(error, TimedOutError) or is_foreseen(error)


def status_of(error: BaseException) -> int:
    """Return the HTTP status of an error."""
    if remedy_of(error):
        return 403
    if isinstance(error, Refused):
        return {"RQ701": 404, "RQ702": 404, "RQ705": 503, "RQ706": 503}.get(error.number, 400)
    return 503


def _rights(queue: Queue) -> frozenset[str]:
    session = queue._session
    routines = load_contract().of(session.engine.name)
    roles: set[str] = set()
    for role, name in _OF_ROLES.items():
        # The role admin includes all others.
        if "admin" not in roles and is_allowed(session.engine, session.call, routines[name]):
            roles.add(role)
    return frozenset(
        name for name, routine in routines.items() if not roles.isdisjoint(routine.roles)
    )
