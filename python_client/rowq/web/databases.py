"""Calls routines on a database: in threads, on a few connections, and for a limited time."""

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
# A call on a connection that is lost is given up after so many seconds, and so is the wait for a
# free connection.
PATIENCE_SECONDS = 2.0
# A page waits no longer for its calls. They go on, but no more than there are connections.
_LONGEST_SECONDS = 15.0
# A role that is granted is noticed after so many seconds; one that is revoked at the next call.
_RIGHTS_SECONDS = 600.0
_OF_ROLES = {"admin": "get_message", "producer": "cancel", "consumer": "peek"}
"""By role, a routine that tells whether an account has it: rowq grants routines by roles alone.

It is called so that it must refuse, which a server may log.
"""


class GoesOnError(TimedOutError):
    """A call was given up by its page, and may have its effect all the same."""


class Database:
    """One database that is shown."""

    def __init__(self, name: str, url: str) -> None:
        """Prepare, and open nothing; raises EngineUnknown.

        name: for people, and for the addresses of its pages.
        """
        self.name = name
        self.url = url
        self.examining = threading.Lock()
        """Held while somebody examines it: that takes connections of its own."""
        self._room = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        self._idle: deque[Queue] = deque([Queue(self._session())])
        self._rights: frozenset[str] = frozenset()
        self._rights_until = 0.0

    @contextmanager
    def queue(self) -> Iterator[Queue]:
        """Lend a queue object that nobody else uses; raises TimedOutError when none is free."""
        if not self._room.acquire(timeout=PATIENCE_SECONDS):
            raise TimedOutError("every connection of this page is waiting for the database")
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
            self._room.release()

    def call(self, work: Callable[[Queue], Result]) -> Result:
        """Return what `work` returns; raises what it raises."""
        with self.queue() as queue:
            return work(queue)

    async def run(self, work: Callable[[Queue], Result]) -> Result:
        """Return what `work` returns, in a thread; raises TimedOutError after a while."""
        return await in_thread(partial(self.call, work))

    def rights(self) -> frozenset[str]:
        """Return the routines that the account may call; raises what calls raise.

        What is kept is only what the database has answered: an error that passes takes no right.
        """
        if time.monotonic() >= self._rights_until:
            self._rights = self.call(_rights)
            self._rights_until = time.monotonic() + _RIGHTS_SECONDS
        return self._rights

    def forget_rights(self) -> None:
        """Find out anew what the account may do: it may not do what it once might."""
        self._rights_until = 0.0

    def described(self, error: BaseException) -> str:
        """Return an error as one line, without secrets."""
        # PostgreSQL shows there where in its own code a statement stands.
        text = " ".join(str(error).partition("\nCONTEXT:")[0].split()) or type(error).__name__
        remedy = remedy_of(error)
        if remedy and remedy not in text:
            text = f"{text}: {remedy}"
        return without_secrets(text, [self.url])

    def close(self) -> None:
        """Close the connections that nobody uses."""
        while self._idle:
            self._idle.pop().close()

    def _session(self) -> OwnedSession:
        return OwnedSession(self.url, reconnect_seconds=PATIENCE_SECONDS)


async def in_thread(work: Callable[[], Result]) -> Result:
    """Return what `work` returns, in a thread; raises GoesOnError after a while."""
    with anyio.move_on_after(_LONGEST_SECONDS):
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
    raise GoesOnError(
        f"no answer of the database within {_LONGEST_SECONDS:g} seconds; the call may still be"
        " going on"
    )


def is_expected(error: BaseException) -> bool:
    """Whether an error is rowq's or a driver's, or one that took too long: no fault of the page."""
    return isinstance(error, TimedOutError) or is_foreseen(error)


def status_of(error: BaseException) -> int:
    """Return the HTTP status that says what kind an error is."""
    if remedy_of(error):
        return 403
    if isinstance(error, Refused):
        return {"RQ701": 404, "RQ702": 404, "RQ705": 503, "RQ706": 503}.get(error.number, 400)
    return 503


def _rights(queue: Queue) -> frozenset[str]:
    session = queue._session
    there = load_contract().of(session.engine.name)
    roles: set[str] = set()
    for role, name in _OF_ROLES.items():
        # Who is admin may do everything, and need not be asked for more.
        if "admin" not in roles and is_allowed(session.engine, session.call, there[name]):
            roles.add(role)
    return frozenset(name for name, routine in there.items() if not roles.isdisjoint(routine.roles))
