"""Is told of new messages while the worker is idle, so that they need not wait for a poll.

It listens only while a thread is idle, as each producer's commit then notifies, and commits that
notify wait for each other in the whole server. A message that is not told of is found by the next
poll: one that was being enqueued before anybody listened, or came back by a rollback.

Of the processes that listen one is elected: it calls maintain, and polls while it is idle, about
once a second, the others more seldom, so that a crowd of idle processes costs little more than one.

At a queue with limits it does not listen: nobody tells when there is room again, so that the worker
polls.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rowq.engines.base import ListeningEngine
from rowq.errors import WorkerFailed
from rowq.messages import QueueStats
from rowq.worker.context import Context, log
from rowq.worker.engines import notifications_of
from rowq.worker.engines.base import Notifications

_TICK_SECONDS = 0.1
_FIRST_SECONDS = 5.0
_AGAIN_SECONDS = 10.0
# Above this rate a poll finds several messages at a time, so that producers need not notify.
_MOST_A_SECOND = 500
# More notifications a second than any producers send: a flood of a stranger's, which this process
# would be busy to read. The database answers no call on the connection before it has sent them.
_FLOOD_A_SECOND = 10_000
# The longest pause between two polls while it listens.
_LONGEST_SECONDS = 1.25
# The others poll, call maintain and stand for election only so often; each pause between two polls
# is shortened by up to a half at random.
_REST_SECONDS = 7.0
# Whether the queue has limits is looked up again after so long.
_SETTING_SECONDS = 60.0


class Listener:
    """The loop of the thread that listens, with its own connection, until the worker stops."""

    def __init__(self, context: Context, engine: ListeningEngine) -> None:
        self._context = context
        self._engine = engine
        self._name = context.settings.queue_name
        self._is_demanded = bool(context.settings.listen)
        self._rate = Rate(_MOST_A_SECOND)
        self._flood = Rate(_FLOOD_A_SECOND)
        self._has_listened = False
        self._is_listening = False
        self._is_given_up = False
        self._again_at = 0.0
        self._keeps_house = 0 < context.settings.maintain_seconds <= _REST_SECONDS
        self._is_elected = False
        self._stand_at = 0.0
        self._is_limited = False
        self._look_again_at = 0.0

    def run(self) -> None:
        """Listen, on a new connection when the last one broke.

        Where that cannot be it raises the error if the worker was told to listen. Else it says so
        in the log, and tries again if it has listened before.
        """
        # A worker that always has something to do needs no connection for this.
        while not self._context.polling.was_idle():
            if self._context.stopping.wait(_TICK_SECONDS):
                return
        while not (self._is_given_up or self._context.stopping.is_set()):
            try:
                self._context.persist(self._listen)
            except Exception as error:
                if self._is_demanded:
                    raise
                self._do_without(str(error))

    def _listen(self) -> None:
        """Listen until the worker stops, or until a connection breaks on which it had worked."""
        if self._context.stopping.is_set():
            return
        self._is_elected = False
        with self._connected() as connection:
            notifications = notifications_of(self._engine, connection)
            if why := self._begin(connection, notifications):
                self._do_without(why)
                return
            self._has_listened = True
            try:
                self._go_on(connection, notifications)
            except _FloodError:
                self._end_told()
                log.warning("too many notifications, listening again in %g s", _AGAIN_SECONDS)
                self._context.stopping.wait(_AGAIN_SECONDS)
            except Exception as error:
                self._end_told()
                if not self._engine.is_connection_lost(error):
                    raise
                log.warning("the connection that listens is lost: %s", error)
                self._context.stopping.wait(_TICK_SECONDS)

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        connection = self._engine.connect(self._context.servers[0].url)
        try:
            yield connection
        finally:
            self._engine.close(connection)

    def _begin(self, connection: Any, notifications: Notifications) -> str:
        """Listen; return why that cannot be, or an empty text."""
        # In the session of a pooler nothing may be left behind, so it is tried only when asked for.
        if not self._is_demanded and not self._engine.is_direct(connection):
            return (
                "the connection is one of a pooler; where that gives each client a session of its"
                " own, listen=True tries it"
            )
        with self._connected() as other:
            if notifications.is_deaf(other, _FIRST_SECONDS):
                return (
                    "no notification comes through; it needs a connection of its own, not one of a"
                    " pooler in transaction mode"
                )
        if self._switch(connection, notifications, to=True) == "unavailable":
            return (
                "a server that allows prepared transactions does not notify, because a transaction"
                " that has notified cannot be prepared; set max_prepared_transactions to 0"
            )
        return ""

    def _do_without(self, why: str) -> None:
        """Poll for a while where listening has worked before; else raise WorkerFailed, or end."""
        if self._has_listened:
            log.warning("listen, trying again in %g s: %s", _AGAIN_SECONDS, why)
            self._context.stopping.wait(_AGAIN_SECONDS)
        elif self._is_demanded:
            raise WorkerFailed(f"listen: {why}")
        elif not self._context.stopping.is_set():
            self._is_given_up = True
            log.warning("the worker polls and does not listen (nor say this, if told so): %s", why)

    def _go_on(self, connection: Any, notifications: Notifications) -> None:
        """Pass notifications on; listen while some thread was idle within the last tick."""
        idle_at = time.monotonic()
        while not self._context.stopping.is_set():
            self._pass_on(notifications)
            if self._context.polling.was_idle():
                idle_at = time.monotonic()
            is_idle = time.monotonic() - idle_at < _TICK_SECONDS
            is_wanted = is_idle and not self._rate.is_over and not self._has_limits(connection)
            if self._context.polling.is_doubted:
                self._prove(connection, notifications)
            elif is_wanted != self._is_listening and time.monotonic() >= self._again_at:
                self._switch(connection, notifications, to=is_wanted)
            elif self._context.resting_seconds and time.monotonic() >= self._stand_at:
                self._stand(connection)

    def _switch(self, connection: Any, notifications: Notifications, *, to: bool) -> str:
        """Begin or end to listen; return the outcome, which is "busy" under a stranger's lock."""
        self._end_told()
        outcome = str(self._call(connection, "listen" if to else "unlisten"))
        self._is_listening = outcome == "listening"
        if self._is_listening:
            self._stand(connection)
        elif not to:
            # The routine leaves the channel to other queues, which this session has none of.
            notifications.end()
        if outcome == "busy":
            self._again_at = time.monotonic() + _AGAIN_SECONDS
            log.warning("listen, trying again in %g s: a stranger holds its lock", _AGAIN_SECONDS)
        # What came before it was in effect was not told of.
        self._context.polling.hurry()
        return outcome

    def _has_limits(self, connection: Any) -> bool:
        """Whether the queue has limits, as of the last minute: nobody tells when there is room."""
        if time.monotonic() >= self._look_again_at:
            arguments = {"queue_name": self._name, "max_count": 1}
            (row,) = self._engine.call(connection, "queue_stats", arguments)
            stats = QueueStats(*row)
            self._is_limited = bool(stats.max_leased or stats.rate_limit)
            self._look_again_at = time.monotonic() + _SETTING_SECONDS
        return self._is_limited

    def _prove(self, connection: Any, notifications: Notifications) -> None:
        """Listen anew, with short pauses meanwhile, as the connection may be dead."""
        self._switch(connection, notifications, to=False)
        self._switch(connection, notifications, to=True)

    def _stand(self, connection: Any) -> None:
        """Stand for election: whoever is not elected rests for a while."""
        may_rest = self._keeps_house and not self._is_elected
        if may_rest:
            self._is_elected = bool(self._call(connection, "elect_leader"))
        is_resting = may_rest and not self._is_elected
        self._context.resting_seconds = _REST_SECONDS if is_resting else 0.0
        self._stand_at = time.monotonic() + _REST_SECONDS
        longest = _REST_SECONDS if is_resting else _LONGEST_SECONDS
        self._context.polling.begin_told(self._context.settings.longest_pause(longest))

    def _end_told(self) -> None:
        self._is_listening = False
        self._context.resting_seconds = 0.0
        self._context.polling.end_told()

    def _call(self, connection: Any, routine: str) -> Any:
        """Call a routine for the queue; return its second column."""
        ((_, answer, *_),) = self._engine.call(connection, routine, {"queue_name": self._name})
        return answer

    def _pass_on(self, notifications: Notifications) -> None:
        """Wait a tick for notifications; give a hint after those of the queue."""
        before = notifications.received
        told = notifications.wait(_TICK_SECONDS).count(self._name)
        self._flood.count(notifications.received - before)
        if self._flood.is_over:
            raise _FloodError
        if not told:
            return
        if notification_delay := self._context.polling.notification_delay_seconds():
            self._context.stopping.wait(notification_delay)
            told += notifications.wait(0).count(self._name)
        self._rate.count(told)
        if not self._rate.is_over:
            self._context.polling.hint()


class _FloodError(Exception):
    """There are too many notifications to read them."""


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

    def count(self, events: int = 1) -> None:
        """Count events that have just happened."""
        now = time.monotonic()
        if now - self._began >= 1:
            self._began, self._counted = now, 0
        self._counted += events
        if self._counted > self._most:
            self._over_until = now + 1
