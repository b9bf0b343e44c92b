"""What all threads of one worker share: settings, counts, and when to stop.

What a worker's calls are made again after, besides what a session does (async_session.py), stands
on the client's page under "When the connection breaks".
"""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from rowq.backoff import Backoff
from rowq.engines import engine_for_url
from rowq.engines.base import Engine, ListeningEngine
from rowq.errors import ConnectionLost, InvalidArgument, RowqError
from rowq.session import OwnedSession
from rowq.worker.log import log
from rowq.worker.polling import Polling
from rowq.worker.settings import Settings
from rowq.worker.stats import Counter
from rowq.worker.verdicts import shown

_T = TypeVar("_T")

# How long a stopping worker goes on trying to hand in its results when the database is away.
_GRACE_SECONDS = 10.0


class Context:
    """The shared state of a worker's threads."""

    def __init__(self, settings: Settings, *, is_patient: bool = False) -> None:
        """Nothing is opened yet; is_patient: the first connection, too, is waited for."""
        self.settings = settings
        self.is_patient = is_patient
        self.engine = engine_for_url(settings.url)
        self.listening_engine = _listening(self.engine) if settings.listen else None
        self.counter = Counter()
        self.polling = Polling(settings.idle_min_seconds, settings.idle_max_seconds)
        self.stopping = threading.Event()
        self.failure: BaseException | None = None
        self._give_up_at = float("inf")
        self._has_warned = False

    def stop(self) -> None:
        """Tell every thread to finish its message and end."""
        if not self.stopping.is_set():
            self._give_up_at = time.monotonic() + _GRACE_SECONDS
            self.stopping.set()
            self.polling.end()

    def fail(self, error: BaseException) -> None:
        """Stop because of `error`, without waiting for the database; the first one counts."""
        if self.failure is None:
            self.failure = error
        self.stop()
        self._give_up_at = time.monotonic()

    def warn_of_result(self, result: object) -> None:
        """Say once what a handler returned that means nothing."""
        if not self._has_warned:
            self._has_warned = True
            log.warning(
                "the handler returned %.100s: its message is completed; only None, Retry(...) and"
                " Fail(...) mean something (said once)",
                shown(result),
            )

    def session(self, on_loss: Callable[[], None] = lambda: None) -> OwnedSession:
        """Return a session, not yet open, that reconnects for as long as this worker lives.

        `on_loss` is called before every pause between two attempts to reconnect.
        """

        def sleep(seconds: float) -> None:
            on_loss()
            self.sleep_or_give_up(seconds)

        return OwnedSession(self.settings.url, reconnect_seconds=float("inf"), sleep=sleep)

    def sleep_or_give_up(self, seconds: float) -> None:
        """Wait, shorter when stopping; raises ConnectionLost when stopping takes too long."""
        if not self.stopping.wait(seconds):
            return
        if time.monotonic() >= self._give_up_at:
            raise ConnectionLost("the worker stops without the database; leases will run out")
        time.sleep(min(seconds, 0.5))

    def persist(self, call: Callable[[], _T]) -> _T:
        """Make a call that is safe to repeat until it succeeds or its error is no passing one."""
        backoff = Backoff(first=0.1, cap=5.0)
        while True:
            try:
                return call()
            except Exception as error:
                if not self.is_passing(error):
                    raise
                delay = backoff.next()
                log.warning("trying again in %.1f s: %s", delay, error)
            self.sleep_or_give_up(delay)

    def is_passing(self, error: Exception) -> bool:
        """Whether what failed with this error may succeed in a moment."""
        if isinstance(error, ConnectionLost):
            return False
        return (isinstance(error, RowqError) and error.retryable) or self.engine.is_passing(error)


def _listening(engine: Engine) -> ListeningEngine:
    if not isinstance(engine, ListeningEngine):
        raise InvalidArgument("listen is for PostgreSQL: other engines' workers only poll")
    return engine
