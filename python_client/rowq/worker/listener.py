"""The listener: it receives notifications of new messages while the worker is idle.

It listens on the shared connection, and keeps other threads from it while it reads or calls. A
notification that arrives during another thread's call is found at the next tick.

It listens only while a thread is idle: then each producer's commit notifies, and commits that
notify wait for each other in the whole server. Messages without a notification are found by the
next poll: those enqueued before it listened, or returned by a rollback.

One of the listening processes is the leader: it calls maintain and, while idle, polls about once a
second. The others do so less often: many idle processes cost little more than one.

The worker polls a queue with limits, because nothing notifies of free capacity.
"""

import time
from collections.abc import Sequence
from typing import Any

from rowq.engines.base import ListeningEngine
from rowq.errors import WorkerFailed
from rowq.messages import QueueStats
from rowq.worker.context import Context, log
from rowq.worker.engines import notifications_of
from rowq.worker.engines.base import Notifications

_TICK_SECONDS = 0.1
_FIRST_SECONDS = 5.0
_RETRY_SECONDS = 10.0
# Above this rate each poll finds several messages, so that producers need not notify.
_MOST_PER_SECOND = 500
# More than any producers send: a flood from another session. The database sends all of them before
# it answers a call on the connection.
_FLOOD_PER_SECOND = 10_000
# The leader's longest pause between two polls.
_LONGEST_SECONDS = 1.25
# The others' interval of polls, maintain and elections; each pause between two polls is randomly
# shortened by up to half.
_FOLLOWER_SECONDS = 7.0
# How often to read whether the queue has limits.
_SETTING_SECONDS = 60.0


class Listener:
    """The loop of the thread that listens, until the worker stops."""

    def __init__(self, context: Context, engine: ListeningEngine) -> None:
        self._context = context
        self._engine = engine
        self._shared = context.servers[0].shared
        self._names = context.settings.queue_names
        self._is_required = bool(context.settings.listen)
        self._rate = Rate(_MOST_PER_SECOND)
        self._flood = Rate(_FLOOD_PER_SECOND)
        self._received = 0
        self._has_listened = False
        self._is_listening = False
        self._is_disabled = False
        self._retry_at = 0.0
        self._maintains = 0 < context.settings.maintain_seconds <= _FOLLOWER_SECONDS
        self._led: set[str] = set()
        self._election_at = 0.0
        self._is_limited = False
        self._limits_at = 0.0

    def run(self) -> None:
        """Listen, and reconnect if the connection is lost.

        On failure, raise the error if listen=True. Otherwise log it, and retry only if it has
        listened before.
        """
        # A worker that is never idle need not listen.
        while not self._context.polling.was_idle():
            if self._context.stopping.wait(_TICK_SECONDS):
                return
        while not (self._is_disabled or self._context.stopping.is_set()):
            try:
                self._context.persist(self._listen)
            except Exception as error:
                if self._is_required:
                    raise
                self._poll_instead(str(error))

    def _listen(self) -> None:
        """Listen until the worker stops, or a connection on which it listened is lost."""
        if self._context.stopping.is_set():
            return
        self._led, self._received = set(), 0
        with self._shared.lent() as connection:
            notifications = notifications_of(self._engine, connection)
        try:
            with self._shared.lent_again(connection):
                why = self._begin(connection, notifications)
            if why:
                self._poll_instead(why)
                return
            self._has_listened = True
            self._run_on(connection, notifications)
        except _FloodError:
            self._leave(connection)
            log.warning("too many notifications, listening again in %g s", _RETRY_SECONDS)
            self._context.stopping.wait(_RETRY_SECONDS)
        except Exception as error:
            self._leave(connection)
            if not (self._has_listened and self._engine.is_connection_lost(error)):
                raise
            log.warning("listening connection lost: %s", error)
            self._context.stopping.wait(_TICK_SECONDS)

    def _leave(self, connection: Any) -> None:
        """Close the connection, which ends its notifications."""
        self._end_listening()
        self._shared.discard(connection)

    def _begin(self, connection: Any, notifications: Notifications) -> str:
        """Listen; return why it is impossible, or an empty string."""
        # Leave nothing behind in a pooler's session, unless listen=True.
        if not self._is_required and not self._engine.is_direct(connection):
            return "the connection uses a pooler; if it is in session mode, use listen=True"
        other = self._engine.connect(self._context.servers[0].url)
        try:
            if notifications.is_deaf(other, _FIRST_SECONDS):
                return "notifications do not arrive; connect without a pooler in transaction mode"
        finally:
            self._engine.close(other)
        if self._switch(connection, notifications, to=True) == "unavailable":
            return (
                "a server with prepared transactions cannot notify; set max_prepared_transactions=0"
            )
        return ""

    def _poll_instead(self, why: str) -> None:
        """Poll for a while if listening has worked before; else raise WorkerFailed, or end."""
        if self._has_listened:
            log.warning("cannot listen, retrying in %g s: %s", _RETRY_SECONDS, why)
            self._context.stopping.wait(_RETRY_SECONDS)
        elif self._is_required:
            raise WorkerFailed(f"cannot listen: {why}")
        elif not self._context.stopping.is_set():
            self._is_disabled = True
            log.warning(
                "cannot listen, polling instead (pass listen=False to silence this): %s", why
            )

    def _run_on(self, connection: Any, notifications: Notifications) -> None:
        """Forward notifications; listen while a thread was idle within the last tick."""
        idle_at = time.monotonic()
        while not self._context.stopping.is_set():
            notifications.sleep(_TICK_SECONDS)
            self._forward(connection, notifications)
            if self._context.polling.was_idle():
                idle_at = time.monotonic()
            is_idle = time.monotonic() - idle_at < _TICK_SECONDS
            with self._shared.lent_again(connection):
                self._adjust(connection, notifications, is_idle=is_idle)
        # Handlers may still run for long, while nothing reads the notifications.
        if self._is_listening:
            with self._shared.lent_again(connection):
                self._switch(connection, notifications, to=False)

    def _adjust(self, connection: Any, notifications: Notifications, *, is_idle: bool) -> None:
        """Start or stop listening, or take part in an election, if it is time."""
        is_wanted = is_idle and not self._rate.is_over and not self._has_limits(connection)
        if self._context.polling.is_doubted:
            self._restart(connection, notifications)
        elif is_wanted != self._is_listening and time.monotonic() >= self._retry_at:
            self._switch(connection, notifications, to=is_wanted)
        elif self._context.follower_seconds and time.monotonic() >= self._election_at:
            self._elect(connection)

    def _switch(self, connection: Any, notifications: Notifications, *, to: bool) -> str:
        """Start or stop listening; return the outcome: "busy" if another session has the lock."""
        self._end_listening()
        outcome = self._listen_to_all(connection) if to else self._leave_all(connection)
        self._is_listening = outcome == "listening"
        if self._is_listening:
            self._elect(connection)
        elif not to:
            # The routine keeps the channel for other queues, but this session has none.
            notifications.end()
        if outcome == "busy":
            self._retry_at = time.monotonic() + _RETRY_SECONDS
            log.warning(
                "cannot listen, retrying in %g s: another session holds the lock", _RETRY_SECONDS
            )
        # Earlier messages had no notification.
        self._context.polling.hurry()
        return outcome

    def _listen_to_all(self, connection: Any) -> str:
        """Listen to every queue, or to none; return the outcome."""
        for number, name in enumerate(self._names):
            outcome = str(self._call(connection, "listen", name))
            if outcome != "listening":
                self._leave_all(connection, self._names[:number])
                return outcome
        return "listening"

    def _leave_all(self, connection: Any, names: Sequence[str] | None = None) -> str:
        for name in self._names if names is None else names:
            self._call(connection, "unlisten", name)
        return "stopped"

    def _has_limits(self, connection: Any) -> bool:
        """Whether a queue has limits, at most a minute old: nothing notifies of free capacity."""
        if time.monotonic() >= self._limits_at:
            self._is_limited = any(self._is_queue_limited(connection, name) for name in self._names)
            self._limits_at = time.monotonic() + _SETTING_SECONDS
        return self._is_limited

    def _is_queue_limited(self, connection: Any, name: str) -> bool:
        arguments = {
            "queue_name": name,
            "max_count": 1,
            "after_queue_name": None,
            "max_queues": None,
        }
        (row,) = self._engine.call(connection, "queue_stats", arguments)
        stats = QueueStats(*row)
        return bool(stats.max_leased or stats.rate_limit)

    def _restart(self, connection: Any, notifications: Notifications) -> None:
        """Stop and start listening, because the connection may be dead."""
        self._switch(connection, notifications, to=False)
        self._switch(connection, notifications, to=True)

    def _elect(self, connection: Any) -> None:
        """Take part in the elections; a process that leads no queue pauses longer."""
        if self._maintains and not self._led:
            self._led.update(
                name for name in self._names if self._call(connection, "elect_leader", name)
            )
        is_follower = self._maintains and not self._led
        self._context.follower_seconds = _FOLLOWER_SECONDS if is_follower else 0.0
        self._election_at = time.monotonic() + _FOLLOWER_SECONDS
        longest = _FOLLOWER_SECONDS if is_follower else _LONGEST_SECONDS
        self._context.polling.begin_listening(self._context.settings.longest_pause(longest))

    def _end_listening(self) -> None:
        self._is_listening = False
        self._context.follower_seconds = 0.0
        self._context.polling.end_listening()

    def _call(self, connection: Any, routine: str, name: str) -> Any:
        """Call a routine for a queue; return its second column."""
        ((_, answer, *_),) = self._engine.call(connection, routine, {"queue_name": name})
        return answer

    def _forward(self, connection: Any, notifications: Notifications) -> None:
        """Let a thread poll the queues of new notifications."""
        names = self._read(connection, notifications)
        if not names:
            return
        if notification_delay := self._context.polling.notification_delay_seconds():
            self._context.stopping.wait(notification_delay)
            names += self._read(connection, notifications)
        self._rate.count(len(names))
        if not self._rate.is_over:
            self._context.polling.notify(names)

    def _read(self, connection: Any, notifications: Notifications) -> list[str]:
        """Return the queue of each new notification; raises _FloodError."""
        with self._shared.lent_again(connection):
            names = [name for name in notifications.wait(0) if name in self._names]
        self._flood.count(notifications.received - self._received)
        self._received = notifications.received
        if self._flood.is_over:
            raise _FloodError
        return names


class _FloodError(Exception):
    """There are too many notifications to read."""


class Rate:
    """Event counter; after too many events within a second, `is_over` holds for a second."""

    def __init__(self, most_per_second: int) -> None:
        """Allow `most_per_second` events per second."""
        self._most = most_per_second
        self._counted = 0
        self._began = 0.0
        self._over_until = 0.0

    @property
    def is_over(self) -> bool:
        """Whether there were too many events."""
        return time.monotonic() < self._over_until

    def count(self, events: int = 1) -> None:
        """Count events that happened now."""
        now = time.monotonic()
        if now - self._began >= 1:
            self._began, self._counted = now, 0
        self._counted += events
        if self._counted > self._most:
            self._over_until = now + 1
