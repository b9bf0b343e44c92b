"""What a queue object talks through: the caller's own connection, or one that rowq keeps up.

Made by generate_sync.py from async_session.py.
"""

# ruff: noqa: D102 - the sessions' methods are described where Session declares them

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
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


class Session(ABC):
    """One connection to call routines on."""

    engine: Engine

    @abstractmethod
    def connection(self) -> Any:
        """Return the driver's connection, up as far as we know."""

    @abstractmethod
    def call(self, routine: str, arguments: Mapping[str, Any]) -> list[Row]:
        """Call a routine and return its rows."""

    @abstractmethod
    def close(self) -> None:
        """Close what this session opened."""


class BorrowedSession(Session):
    """The caller's own connection: never opened, committed, repeated or closed here."""

    def __init__(self, connection: Any) -> None:
        """Find the engine of `connection`; raises EngineUnknown."""
        self.engine = engine_for_connection(connection)
        self._connection = connection
        if self.engine.is_async(connection):
            raise EngineUnknown("Queue needs a synchronous connection; AsyncQueue takes this one")

    def connection(self) -> Any:
        return self._connection

    def call(self, routine: str, arguments: Mapping[str, Any]) -> list[Row]:
        refuse_own_claim(self._connection, routine, arguments)
        return self.engine.call(self._connection, routine, arguments)

    def close(self) -> None:
        """Leave the connection to its owner."""


class OwnedSession(Session):
    """A connection of our own in autocommit; when it breaks, a new one is made with back-off.

    A call in REPEATABLE is then made again. Any other call raises ConnectionLost once it was sent,
    because nobody can know whether it took effect.
    """

    def __init__(
        self,
        url: str,
        *,
        reconnect_seconds: float = 60.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Keep the URL; `reconnect_seconds` is how long one call goes on trying."""
        self.engine = engine_for_url(url)
        self._url = url
        self._reconnect_seconds = reconnect_seconds
        self._sleep = sleep
        self._connection: Any = None

    def open(self) -> None:
        """Connect for the first time; raises CannotConnect at once when that fails."""
        self._connection = self.engine.connect(self._url)

    def connection(self) -> Any:
        if self._connection is not None and not self.engine.is_usable(self._connection):
            self.close()
        if self._connection is None:
            self.open()
        return self._connection

    def call(self, routine: str, arguments: Mapping[str, Any]) -> list[Row]:
        backoff = Backoff(first=0.1, cap=5.0)
        give_up_at = time.monotonic() + self._reconnect_seconds
        while True:
            sent = False
            try:
                connection = self.connection()
                sent = True
                return self.engine.call(connection, routine, arguments)
            except Exception as error:
                if not self.engine.is_connection_lost(error):
                    raise
                sent = sent and self.engine.was_sent(error)
                self.close()
                self._give_up(routine, error, sent, time.monotonic() >= give_up_at)
                delay = backoff.next()
                _log.warning(
                    "%s: connection lost, trying again in %.1f s: %s",
                    without_password(self._url),
                    delay,
                    error,
                )
            self._sleep(delay)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self.engine.close(connection)

    def _give_up(self, routine: str, error: Exception, sent: bool, too_late: bool) -> None:
        if sent and routine not in REPEATABLE:
            raise ConnectionLost(
                f"the connection broke during {routine}: whether it took effect is unknown"
            ) from error
        if too_late:
            raise ConnectionLost(
                f"no connection for {routine} within {self._reconnect_seconds:g} s: {error}"
            ) from error
