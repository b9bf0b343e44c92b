"""Looks at the queues of a database, one look at a time, whoever asks and however often.

Who asks while a look is under way is given its result, and who asks soon after it the same one. So
many scrapes cost the database as little as one, and one that hangs is followed by no other.
"""

import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from rowq.engines.sockets import TimedOutError
from rowq.errors import InvalidArgument
from rowq.forks import after_fork
from rowq.messages import Claim, HealthCheck, InstalledVersion, QueueStats
from rowq.queue import Queue
from rowq.rights import remedy_of
from rowq.session import OwnedSession
from rowq.tools.terminal import without_secrets

_log = logging.getLogger("rowq.metrics")
# A connection that was lost while nobody asked is made anew within so many seconds.
_RECONNECT_SECONDS = 2.0

# list_claims takes no more.
_MAX_CLAIMS = 10_000

Source = Any
"""A URL, a connection or queue, or a callable that returns one of these for each look."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What was found, or why nothing was; how long it took in seconds.

    max_count: no count is larger. claims: at most so many of them, too.
    """

    seconds: float = 0.0
    max_count: int = 0
    version: InstalledVersion | None = None
    queues: Sequence[QueueStats] = ()
    checks: Sequence[HealthCheck] = ()
    claims: Sequence[Claim] = ()
    error: BaseException | None = None


class Samples:
    """Looks at a database in a thread, and keeps what the last look has found for a while."""

    def __init__(
        self, source: Source, max_count: int, cache_seconds: float, timeout_seconds: float
    ) -> None:
        """Prepare, and open nothing; raises EngineUnknown, InvalidArgument for what will not do."""
        self._urls = [source] if isinstance(source, str) else []
        self._lend = _lender(source)
        self._max_count = max_count
        self._cache_seconds = cache_seconds
        self._timeout_seconds = timeout_seconds
        self._was_in_trouble = False
        self.forget()
        _all.add(self)

    def forget(self) -> None:
        """Begin anew: a forked process has none of its parent's threads."""
        self._lock = threading.Lock()
        self._pending: Future[Sample] | None = None
        self._last: Sample | None = None
        self._fresh_until = 0.0

    def get(self) -> Sample:
        """Return the last look while it is fresh, else what a new one finds; raises nothing."""
        began_at = time.monotonic()
        with self._lock:
            if self._pending is None:
                if self._last is not None and began_at < self._fresh_until:
                    return self._last
                begun: Future[Sample] = Future()
                thread = threading.Thread(
                    target=self._look, args=(begun,), name="rowq-metrics", daemon=True
                )
                try:
                    thread.start()
                except RuntimeError as no_thread:
                    return Sample(max_count=self._max_count, error=no_thread)
                self._pending = begun
            pending = self._pending
        wait([pending], timeout=self._timeout_seconds)
        if pending.done():
            return pending.result()
        error = TimedOutError(f"no answer within {self._timeout_seconds:g} seconds")
        self._note(error)
        return Sample(seconds=time.monotonic() - began_at, max_count=self._max_count, error=error)

    def _look(self, pending: "Future[Sample]") -> None:
        began_at = time.monotonic()
        look = self._found(began_at)
        self._note(look.error)
        with self._lock:
            self._last, self._pending = look, None
            self._fresh_until = time.monotonic() + self._cache_seconds
        pending.set_result(look)

    def _found(self, began_at: float) -> Sample:
        try:
            with self._lend() as queue:
                # This goes first: who may not call it is told the role that may call all of them.
                checks = queue.health()
                version = queue.version()
                queues = queue.queue_stats(max_count=self._max_count)
                claims = queue.list_claims(max_claims=min(self._max_count, _MAX_CLAIMS))
        except BaseException as error:  # What is given may raise anything, in this thread.
            seconds = time.monotonic() - began_at
            return Sample(seconds=seconds, max_count=self._max_count, error=error)
        seconds = time.monotonic() - began_at
        return Sample(seconds, self._max_count, version, queues, checks, claims)

    def _note(self, error: BaseException | None) -> None:
        """Log that looks fail, and that they succeed again; not each of them."""
        if error is not None and not self._was_in_trouble:
            _log.warning("the queues cannot be looked at: %s", self.described(error))
        elif error is None and self._was_in_trouble:
            _log.warning("the queues can be looked at again")
        self._was_in_trouble = error is not None

    def described(self, error: BaseException) -> str:
        """Return an error in one line, without secrets."""
        text = " ".join(f"{type(error).__name__}: {error}".split())
        remedy = remedy_of(error)
        return without_secrets(f"{text}: {remedy}" if remedy else text, self._urls)


def _lender(source: Source) -> Callable[[], Any]:
    """Return what lends a queue for a look, as a context manager."""
    if isinstance(source, str):
        queue = Queue(OwnedSession(source, reconnect_seconds=_RECONNECT_SECONDS))
        return lambda: _as_it_is(queue)
    if callable(source):
        return lambda: _made_by(source)
    lent = _queue_on(source)
    _check(lent)
    return lambda: _as_it_is(lent)


@contextmanager
def _as_it_is(queue: Queue) -> Iterator[Queue]:
    yield queue


@contextmanager
def _made_by(factory: Callable[[], Any]) -> Iterator[Queue]:
    """Make a connection for one look, and end it as its kind is ended."""
    with ExitStack() as stack:
        made = entered = factory()
        if hasattr(made, "__enter__"):
            entered = stack.enter_context(made)
        if entered is made:
            # Some drivers' blocks only commit at their end.
            stack.callback(_close, made)
        yield _queue_on(entered)


def _close(connection: Any) -> None:
    with suppress(Exception):
        connection.close()


def _queue_on(given: Any) -> Queue:
    return given if isinstance(given, Queue) else Queue(given)


def _check(queue: Queue) -> None:
    """Refuse a connection on which looks would leave a transaction open: it holds up clean-up."""
    session = queue._session
    is_own = isinstance(session, OwnedSession)
    if not is_own and session.engine.in_transaction(session.connection()):
        raise InvalidArgument(
            "a collector's connection must be in autocommit, or be one that a callable makes for"
            " each look"
        )


_all: "weakref.WeakSet[Samples]" = weakref.WeakSet()


def _forget_all() -> None:
    for looks in list(_all):
        looks.forget()


after_fork(_forget_all)
