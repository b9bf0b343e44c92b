"""Is told of new messages while the worker is idle, so that they need not wait for a poll.

It listens only while a thread is idle, as each producer's commit then notifies, and commits that
notify wait for each other in the whole server. A message that is not told of is found by the next
poll.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rowq.engines.base import ListeningEngine, Notifications
from rowq.errors import WorkerFailed
from rowq.worker.context import Context, log

_TICK_SECONDS = 0.1
_FIRST_SECONDS = 5.0
_AGAIN_SECONDS = 10.0
# Above this rate a poll finds several messages at a time, so that producers need not notify.
_MOST_A_SECOND = 500


class Listener:
    """The loop of the thread that listens, with its own connection, until the worker stops."""

    def __init__(self, context: Context, engine: ListeningEngine) -> None:
        """Prepare to listen for the worker of `context`."""
        self._context = context
        self._engine = engine
        self._name = context.settings.queue_name
        self._rate = Rate(_MOST_A_SECOND)
        self._has_listened = False
        self._is_listening = False
        self._again_at = 0.0

    def run(self) -> None:
        """Listen, on a new connection when the last one broke.

        Raises WorkerFailed where no notification can come through.
        """
        while not self._context.stopping.is_set():
            self._context.persist(self._listen)

    def _listen(self) -> None:
        """Listen until the worker stops, or until a connection breaks on which it had worked."""
        if self._context.stopping.is_set():
            return
        with self._connected() as connection:
            notifications = self._engine.notifications(connection)
            if why := self._begin(connection, notifications):
                self._do_without(why)
                return
            self._has_listened = True
            try:
                self._go_on(connection, notifications)
            except Exception as error:
                if not self._engine.is_connection_lost(error):
                    raise
                log.warning("the connection that listens is lost: %s", error)
                self._context.stopping.wait(_TICK_SECONDS)

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        connection = self._engine.connect(self._context.settings.url)
        try:
            yield connection
        finally:
            self._engine.close(connection)

    def _begin(self, connection: Any, notifications: Notifications) -> str:
        """Listen; return why that cannot be, or an empty text."""
        with self._connected() as other:
            if notifications.is_deaf(other, _FIRST_SECONDS):
                return (
                    "no notification comes through; it needs a connection of its own, not one of a"
                    " pooler in transaction mode"
                )
        if self._switch(connection, to=True) == "unavailable":
            return (
                "a server that allows prepared transactions does not notify; set"
                " max_prepared_transactions to 0, or work without listen"
            )
        return ""

    def _do_without(self, why: str) -> None:
        """Raise WorkerFailed at the start; where listening has worked before, poll for a while."""
        if not self._has_listened:
            raise WorkerFailed(f"listen: {why}")
        log.warning("listen, trying again in %g s: %s", _AGAIN_SECONDS, why)
        self._context.stopping.wait(_AGAIN_SECONDS)

    def _go_on(self, connection: Any, notifications: Notifications) -> None:
        """Pass notifications on; listen while some thread was idle within the last tick."""
        idle_at = time.monotonic()
        while not self._context.stopping.is_set():
            self._pass_on(notifications.wait(_TICK_SECONDS))
            if self._context.polling.was_idle():
                idle_at = time.monotonic()
            is_idle = time.monotonic() - idle_at < _TICK_SECONDS
            is_wanted = is_idle and not self._rate.is_over
            if is_wanted != self._is_listening and time.monotonic() >= self._again_at:
                self._switch(connection, to=is_wanted)

    def _switch(self, connection: Any, *, to: bool) -> str:
        """Begin or end to listen; return the outcome, which is "busy" under a stranger's lock."""
        outcome = self._call(connection, "listen" if to else "unlisten")
        self._is_listening = outcome == "listening"
        if outcome == "busy":
            self._again_at = time.monotonic() + _AGAIN_SECONDS
            log.warning("listen, trying again in %g s: a stranger holds its lock", _AGAIN_SECONDS)
        return outcome

    def _pass_on(self, queue_names: list[str]) -> None:
        for _ in range(queue_names.count(self._name)):
            self._rate.count()
            if not self._rate.is_over:
                self._context.polling.hurry()

    def _call(self, connection: Any, routine: str) -> str:
        """Call listen or unlisten, and let a thread look for what came before it was in effect."""
        ((_, outcome),) = self._engine.call(connection, routine, {"queue_name": self._name})
        self._context.polling.hurry()
        return str(outcome)


class Rate:
    """Counts events; after too many within a second, the limit is exceeded for a second more."""

    def __init__(self, most_a_second: int) -> None:
        """Allow `most_a_second` events a second."""
        self._most = most_a_second
        self._counted = 0
        self._began = 0.0
        self._over_until = 0.0

    @property
    def is_over(self) -> bool:
        """Whether there were too many events."""
        return time.monotonic() < self._over_until

    def count(self) -> None:
        """Count one event."""
        now = time.monotonic()
        if now - self._began >= 1:
            self._began, self._counted = now, 0
        self._counted += 1
        if self._counted > self._most:
            self._over_until = now + 1
