"""Polling by the idle threads of a process: one at a time.

The others wait until it finds messages. So an idle process makes the same few queries for any
number of threads, and in a burst each thread wakes the next.

If the process listens (listener.py), the thread polls after a notification, and after long pauses.
Processes that get the same notification poll at once, and one of them gets the message. So a
process whose polls found nothing several times in a row waits a little and then polls once.
"""

import math
import random
import threading
import time
from collections.abc import Iterable
from enum import Enum, auto

from rowq.backoff import Backoff

# A poll that takes this long has probably lost its connection, so another thread polls.
_STUCK_SECONDS = 5.0
# Fruitless notifications in a row before the process starts to wait for others.
_MISSES = 2
_FIRST_NOTIFICATION_DELAY_SECONDS = 0.002
_LONGEST_NOTIFICATION_DELAY_SECONDS = 0.025


class Turn(Enum):
    """Why an idle thread continues: to poll, to close its connections, or because polling ends."""

    POLL = auto()
    REST = auto()
    END = auto()


class Polling:
    """Shared state of the threads of one process; a thread in `PollingTurn.wait` is idle.

    One idle thread polls; when it stops, it wakes the next.
    """

    def __init__(self, first_seconds: float, longest_seconds: float) -> None:
        """Pause between two polls for `first_seconds`, doubling up to `longest_seconds`."""
        # The lock is reentrant, so that a signal handler may call end() at any time.
        lock = threading.RLock()
        self._free = threading.Condition(lock)
        self._due = threading.Condition(lock)
        self._longest_seconds = longest_seconds
        self._pauses = Backoff(first_seconds, longest_seconds)
        self._notification_delay = NotificationDelay()
        self._listening_since: float | None = None
        self._is_notified = False
        self.is_doubted = False
        self._poller: PollingTurn | None = None
        self._waiting = 0
        self._was_idle = False
        self._at_once = False
        self._names: set[str] | None = None
        self._ended = False

    def hurry(self) -> None:
        """Make the next poll happen at once, because more messages are likely."""
        with self._due:
            self._names = None
            self._poll_at_once()

    def notify(self, queue_names: Iterable[str] = ()) -> None:
        """As hurry, after notifications of queues: another process may get the message first.

        The poll asks only these queues, unless there is another reason for it.
        """
        with self._due:
            self._is_notified = True
            if not self._at_once:
                self._names = set(queue_names)
            elif self._names is not None:
                self._names.update(queue_names)
            self._poll_at_once()

    def _poll_at_once(self) -> None:
        self._pauses.reset()
        self._at_once = True
        self._due.notify()

    def notification_delay_seconds(self) -> float:
        """Return how long to wait for other processes after the next notification."""
        with self._due:
            return self._notification_delay.seconds * random.uniform(0.5, 1.0)  # noqa: S311 - no secret

    def begin_listening(self, longest_seconds: float) -> None:
        """Rely on notifications from now on; pause for up to `longest_seconds`."""
        with self._due:
            self._listening_since = self._listening_since or time.monotonic()
            self._pauses.cap = longest_seconds
            self.is_doubted = False

    def end_listening(self) -> None:
        """Stop relying on notifications; poll at once, and after short pauses."""
        with self._due:
            self._listening_since = None
            self.is_doubted = False
            self._pauses.cap = self._longest_seconds
            self.hurry()

    def has_polled_all_since(self, time: float) -> bool:
        """Whether the process has listened since a monotonic time, and has no poll to do."""
        with self._due:
            since = self._listening_since
            return since is not None and since <= time and not self._at_once

    @property
    def longest_pause_seconds(self) -> float:
        """The current longest pause between two polls."""
        return self._pauses.cap

    def was_idle(self) -> bool:
        """Return whether any thread was idle since the last call."""
        with self._free:
            was_idle, self._was_idle = self._was_idle, False
            return was_idle or self._poller is not None or self._waiting > 0

    def end(self) -> None:
        """Wake every idle thread, and end polling."""
        with self._free:
            self._ended = True
            self._due.notify_all()
            self._free.notify_all()

    def _pass_on(self, turn: "PollingTurn", hurry: bool) -> None:
        with self._free:
            if self._poller is not turn:
                return
            self._poller = None
            self._pauses.reset()
            if hurry and self._waiting > 0:
                self._at_once, self._names = True, None
            self._free.notify()

    def _wait(self, turn: "PollingTurn", rest_at: float) -> Turn:
        with self._free:
            turn.polled_at = None
            self._was_idle = True
            while not self._ended and self._poller is not turn:
                if time.monotonic() >= rest_at:
                    return Turn.REST
                self._take_over(turn, rest_at)
            if not (self._ended or self._at_once):
                pause = min(self._pauses.next(), _seconds_until(rest_at))
                self._due.wait_for(lambda: self._ended or self._at_once, pause)
            turn.is_notified, turn.is_due = self._is_notified, not self._at_once
            turn.queue_names = self._names if self._at_once else None
            self._at_once, self._is_notified, self._names = False, False, None
            turn.polled_at = time.monotonic()
            return Turn.END if self._ended else Turn.POLL

    def _record_answer(self, turn: "PollingTurn", found: bool) -> None:
        with self._due:
            if found and turn.is_due and self._listening_since is not None:
                # A message came without a notification: the listening connection may be dead.
                self.is_doubted = True
            if turn.is_notified:
                self._notification_delay.record(found)

    def _take_over(self, turn: "PollingTurn", rest_at: float) -> None:
        """Make `turn` the poller, or wait for a change, at most until `rest_at`."""
        seconds = self._poller.seconds_left() if self._poller else 0.0
        if seconds > 0:
            self._waiting += 1
            self._free.wait(min(seconds, _seconds_until(rest_at)))
            self._waiting -= 1
            return
        if self._poller is not None:
            self._at_once, self._names = True, None
        self._poller = turn


class NotificationDelay:
    """Delay before polling after a notification, so that other processes can go first.

    It grows with every fruitless notification, and shrinks with every other one.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._misses = 0

    def record(self, found: bool) -> None:
        """Record whether a notification led to messages."""
        self._misses = 0 if found else self._misses + 1
        if found:
            shorter = self.seconds / 4
            self.seconds = shorter if shorter >= _FIRST_NOTIFICATION_DELAY_SECONDS else 0.0
        elif self._misses >= _MISSES:
            longer = max(2 * self.seconds, _FIRST_NOTIFICATION_DELAY_SECONDS)
            self.seconds = min(longer, _LONGEST_NOTIFICATION_DELAY_SECONDS)


class PollingTurn:
    """One thread's turns in the polling of its process."""

    def __init__(self, polling: Polling) -> None:
        """Take part in `polling`; the thread is not idle yet."""
        self._polling = polling
        self.polled_at: float | None = None
        self.is_notified = False
        self.is_due = False
        self.queue_names: set[str] | None = None
        """The queues to poll after notifications; None: all."""

    def wait(self, rest_at: float = math.inf) -> Turn:
        """Be idle until it is this thread's turn to poll, or the end, or a monotonic time."""
        return self._polling._wait(self, rest_at)

    def record_answer(self, *, found: bool) -> None:
        """Record whether the poll after `wait` found messages."""
        self._polling._record_answer(self, found)

    def pass_on(self, *, hurry: bool = True) -> None:
        """Stop polling, if this thread polls, and wake the next idle one.

        hurry: it polls at once, because more messages are likely; else after the first pause.
        """
        self._polling._pass_on(self, hurry)

    def seconds_left(self) -> float:
        """Return for how many seconds the other threads leave the polling to this one."""
        if self.polled_at is None:
            return _STUCK_SECONDS
        return self.polled_at + _STUCK_SECONDS - time.monotonic()


def _seconds_until(at: float) -> float:
    return max(at - time.monotonic(), 0.0)
