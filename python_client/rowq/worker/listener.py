"""Hears of new messages while the worker is idle, so that they need not wait for the next poll.

Only while somebody is idle: each producer's commit notifies then, and such commits pass one after
the other through the whole database. What is not heard of, the next poll finds.
"""

import time
from collections.abc import Iterable
from typing import Any

from rowq.engines.base import Ear, ListeningEngine
from rowq.errors import WorkerFailed
from rowq.worker.context import Context

_TICK_SECONDS = 0.1
_FIRST_SECONDS = 5.0
# Where so many come a poll finds several at a time: let producers commit side by side again.
_MOST_A_SECOND = 500


class Listener:
    """Runs in a thread of its own, with its own connection, until the worker stops."""

    def __init__(self, context: Context, engine: ListeningEngine) -> None:
        """Do nothing yet."""
        self._context = context
        self._engine = engine
        self._rate = Rate(_MOST_A_SECOND)

    def run(self) -> None:
        """Listen, on a new connection when the last one broke.

        Raises WorkerFailed where nothing can be heard.
        """
        self._context.persist(self._listen)

    def _listen(self) -> None:
        connection = self._engine.connect(self._context.settings.url)
        try:
            ear = self._engine.ear(connection)
            self._begin(connection, ear)
            self._go_on(connection, ear)
        finally:
            self._engine.close(connection)

    def _begin(self, connection: Any, ear: Ear) -> None:
        """Listen, and see that it works: what another connection notifies must be heard.

        Its own notification comes with the answer to a call, even through a pooler.
        """
        if self._call(connection, "listen") == "unavailable":
            raise WorkerFailed(
                "listen: a server that allows prepared transactions does not notify; set"
                " max_prepared_transactions to 0, or work without listen"
            )
        other = self._engine.connect(self._context.settings.url)
        try:
            self._call(other, "listen")
            self._call(other, "unlisten")
        finally:
            self._engine.close(other)
        if not _hears_twice(ear, _FIRST_SECONDS):
            self._call(connection, "unlisten")
            raise WorkerFailed(
                "listen: no notification comes through; it needs a connection of its own, not one"
                " of a pooler in transaction mode"
            )

    def _go_on(self, connection: Any, ear: Ear) -> None:
        is_listening = True
        self._context.polling.hurry()
        while not self._context.stopping.is_set():
            self._pass_on(ear.hear(_TICK_SECONDS))
            is_wanted = self._context.polling.was_idle() and not self._rate.is_over
            if is_wanted != is_listening:
                self._call(connection, "listen" if is_wanted else "unlisten")
                is_listening = is_wanted

    def _pass_on(self, heard: Iterable[str]) -> None:
        for queue_name in heard:
            if queue_name == self._context.settings.queue_name:
                self._rate.count()
            if queue_name in {"", self._context.settings.queue_name}:
                self._context.polling.hurry()

    def _call(self, connection: Any, routine: str) -> str:
        arguments = {"queue_name": self._context.settings.queue_name}
        ((_, outcome),) = self._engine.call(connection, routine, arguments)
        return str(outcome)


def _hears_twice(ear: Ear, seconds: float) -> bool:
    until = time.monotonic() + seconds
    heard = 0
    while heard < 2 and (left := until - time.monotonic()) > 0:
        heard += len(ear.hear(left))
    return heard >= 2


class Rate:
    """Counts events; once there were too many within a second, it is over for a second more."""

    def __init__(self, most_a_second: int) -> None:
        """Allow so many."""
        self._most = most_a_second
        self._counted = 0
        self._began = 0.0
        self._over_until = 0.0

    @property
    def is_over(self) -> bool:
        """Whether there were too many."""
        return time.monotonic() < self._over_until

    def count(self) -> None:
        """Count one event."""
        now = time.monotonic()
        if now - self._began >= 1:
            self._began, self._counted = now, 0
        self._counted += 1
        if self._counted > self._most:
            self._over_until = now + 1
