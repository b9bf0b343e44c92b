"""Samples of the queues of a database, one at a time and cached.

Many scrapes cost the database as much as one, and a sample that hangs is not repeated.
"""

import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import ExitStack, contextmanager, nullcontext, suppress
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
# Time to replace a connection that was lost between two samples.
_RECONNECT_SECONDS = 2.0

# The maximum of list_claims.
_MAX_CLAIMS = 10_000

Source = Any
"""A URL, a connection or queue, or a callable that returns a connection for each sample."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The state of the queues, or the error; counts and claims are limited by `max_count`."""

    seconds: float = 0.0
    max_count: int = 0
    version: InstalledVersion | None = None
    queues: Sequence[QueueStats] = ()
    checks: Sequence[HealthCheck] = ()
    claims: Sequence[Claim] = ()
    error: BaseException | None = None


class Samples:
    """Takes samples in a thread, and keeps the last one for a while."""

    def __init__(
        self, source: Source, max_count: int, cache_seconds: float, timeout_seconds: float
    ) -> None:
        """Connect on the first sample; raise EngineUnknown or InvalidArgument."""
        self._urls = [source] if isinstance(source, str) else []
        self._queue = _queue_factory(source)
        self._max_count = max_count
        self._cache_seconds = cache_seconds
        self._timeout_seconds = timeout_seconds
        self._had_error = False
        self.reset()
        _all.add(self)

    def reset(self) -> None:
        """Forget the thread: a forked process does not have its parent's threads."""
        self._lock = threading.Lock()
        self._pending: Future[Sample] | None = None
        self._last: Sample | None = None
        self._fresh_until = 0.0

    def get(self) -> Sample:
        """Return the last sample while it is fresh, else a new one; errors are in the sample."""
        began_at = time.monotonic()
        with self._lock:
            if self._pending is None:
                if self._last is not None and began_at < self._fresh_until:
                    return self._last
                started: Future[Sample] = Future()
                thread = threading.Thread(
                    target=self._run, args=(started,), name="rowq-metrics", daemon=True
                )
                try:
                    thread.start()
                except RuntimeError as no_thread:
                    return Sample(max_count=self._max_count, error=no_thread)
                self._pending = started
            pending = self._pending
        wait([pending], timeout=self._timeout_seconds)
        if pending.done():
            return pending.result()
        error = TimedOutError(f"no answer within {self._timeout_seconds:g} seconds")
        self._log_change(error)
        return Sample(seconds=time.monotonic() - began_at, max_count=self._max_count, error=error)

    def _run(self, pending: "Future[Sample]") -> None:
        sample = self._take()
        self._log_change(sample.error)
        with self._lock:
            self._last, self._pending = sample, None
            self._fresh_until = time.monotonic() + self._cache_seconds
        pending.set_result(sample)

    def _take(self) -> Sample:
        began_at = time.monotonic()
        try:
            with self._queue() as queue:
                # Call health first: its error names the role that can call all of these.
                checks = queue.health()
                version = queue.version()
                queues = queue.queue_stats(max_count=self._max_count)
                claims = queue.list_claims(max_claims=min(self._max_count, _MAX_CLAIMS))
        except BaseException as error:  # A caller's source may raise anything.
            seconds = time.monotonic() - began_at
            return Sample(seconds=seconds, max_count=self._max_count, error=error)
        seconds = time.monotonic() - began_at
        return Sample(seconds, self._max_count, version, queues, checks, claims)

    def _log_change(self, error: BaseException | None) -> None:
        """Log the first failure, and the first success after it."""
        if error is not None and not self._had_error:
            _log.warning("cannot read the queues: %s", self.described(error))
        elif error is None and self._had_error:
            _log.warning("reading the queues works again")
        self._had_error = error is not None

    def described(self, error: BaseException) -> str:
        """Return an error as one line, without secrets."""
        text = " ".join(f"{type(error).__name__}: {error}".split())
        remedy = remedy_of(error)
        return without_secrets(f"{text}: {remedy}" if remedy else text, self._urls)


def _queue_factory(source: Source) -> Callable[[], Any]:
    """Return a function that returns a context manager of a queue for a sample."""
    if isinstance(source, str):
        queue = Queue(OwnedSession(source, reconnect_seconds=_RECONNECT_SECONDS))
    elif callable(source):
        return lambda: _created_by(source)
    else:
        queue = _queue_on(source)
        _check(queue)
    return lambda: nullcontext(queue)


@contextmanager
def _created_by(factory: Callable[[], Any]) -> Iterator[Queue]:
    """Create a connection for one sample, then exit or close it."""
    with ExitStack() as stack:
        created = entered = factory()
        if hasattr(created, "__enter__"):
            entered = stack.enter_context(created)
        if entered is created:
            # With some drivers, the end of the block commits but does not close.
            stack.callback(_close, created)
        yield _queue_on(entered)


def _close(connection: Any) -> None:
    with suppress(Exception):
        connection.close()


def _queue_on(source: Any) -> Queue:
    return source if isinstance(source, Queue) else Queue(source)


def _check(queue: Queue) -> None:
    """Refuse a connection without autocommit: an open transaction would prevent cleanup."""
    session = queue._session
    is_own = isinstance(session, OwnedSession)
    if not is_own and session.engine.in_transaction(session.connection()):
        raise InvalidArgument(
            "a collector requires a connection in autocommit, or a callable that returns one"
        )


_all: "weakref.WeakSet[Samples]" = weakref.WeakSet()


def _reset_all() -> None:
    for samples in list(_all):
        samples.reset()


after_fork(_reset_all)
