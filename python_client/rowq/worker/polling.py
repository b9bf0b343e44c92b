"""Which of a worker's idle threads asks the database for messages: one at a time.

The others wait until it has found some. So an idle process costs the same few queries whatever its
threads, and a burst wakes one thread after the other, each by the one before it.

Where the process is told of new messages (listener.py), the thread asks when there was a hint, and
after long pauses besides. Processes that are told of the same message ask all at once, and one of
them gets it. So a process whose questions came too late several times in a row lets the others go
first: it asks a little later, once for all hints that have come meanwhile.
"""

import random
import threading
import time

from rowq.backoff import Backoff

# A thread that has waited this long has probably lost its connection, so another one polls.
_STUCK_SECONDS = 5.0
# After so many hints in a row that led to nothing, other processes are let go first.
_MISSES = 2
_FIRST_NOTIFICATION_DELAY_SECONDS = 0.002
_LONGEST_NOTIFICATION_DELAY_SECONDS = 0.025


class Polling:
    """What the threads of one process share; a thread that calls `PollingTurn.wait` is idle.

    While any thread is idle, one of them polls: the thread that stops polling wakes the next.
    """

    def __init__(self, first_seconds: float, longest_seconds: float) -> None:
        """Pause between two polls for `first_seconds`, doubling up to `longest_seconds`."""
        # The lock is reentrant, so that a signal's handler may call end() wherever it interrupts.
        lock = threading.RLock()
        self._free = threading.Condition(lock)
        self._due = threading.Condition(lock)
        self._longest_seconds = longest_seconds
        self._pauses = Backoff(first_seconds, longest_seconds)
        self._notification_delay = NotificationDelay()
        self._told_since: float | None = None
        self._is_hinted = False
        self.is_doubted = False
        self._poller: PollingTurn | None = None
        self._waiting = 0
        self._was_idle = False
        self._at_once = False
        self._ended = False

    def hurry(self) -> None:
        """Let the thread that polls, or polls next, ask at once: there is likely to be more."""
        with self._due:
            self._pauses.reset()
            self._at_once = True
            self._due.notify()

    def hint(self) -> None:
        """As hurry: the process was told of a message, which another process may take first."""
        with self._due:
            self._is_hinted = True
            self.hurry()

    def notification_delay_seconds(self) -> float:
        """Return for how long other processes are let go first after the next hint."""
        with self._due:
            return self._notification_delay.seconds * random.uniform(0.5, 1.0)  # noqa: S311 - no secret

    def begin_told(self, longest_seconds: float) -> None:
        """Note that from now on hints come of new messages; pause for up to `longest_seconds`."""
        with self._due:
            self._told_since = self._told_since or time.monotonic()
            self._pauses.cap = longest_seconds
            self.is_doubted = False

    def end_told(self) -> None:
        """Note that no hints come any more; pauses are short again, and the first one is over."""
        with self._due:
            self._told_since = None
            self.is_doubted = False
            self._pauses.cap = self._longest_seconds
            self.hurry()

    def knows_of_all_since(self, moment: float) -> bool:
        """Whether hints came since a monotonic moment, and each of them has led to a poll."""
        with self._due:
            return self._told_since is not None and self._told_since <= moment and not self._at_once

    @property
    def longest_pause_seconds(self) -> float:
        """The longest pause between two polls, as things are now."""
        return self._pauses.cap

    def was_idle(self) -> bool:
        """Return whether any thread was idle since this was last asked."""
        with self._free:
            was_idle, self._was_idle = self._was_idle, False
            return was_idle or self._poller is not None or self._waiting > 0

    def end(self) -> None:
        """Wake every idle thread for good."""
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
            self._at_once = self._at_once or (hurry and self._waiting > 0)
            self._free.notify()

    def _wait(self, turn: "PollingTurn") -> bool:
        with self._free:
            turn.asked_at = None
            self._was_idle = True
            while not self._ended and self._poller is not turn:
                self._take_over(turn)
            if not (self._ended or self._at_once):
                self._due.wait_for(lambda: self._ended or self._at_once, self._pauses.next())
            turn.is_hinted, turn.is_due = self._is_hinted, not self._at_once
            self._at_once = self._is_hinted = False
            turn.asked_at = time.monotonic()
            return not self._ended

    def _note_answer(self, turn: "PollingTurn", found: bool) -> None:
        with self._due:
            if found:
                # A message came of which nobody has told: perhaps the connection that listens is
                # dead, and the other end does not say so.
                self.is_doubted = self.is_doubted or (turn.is_due and self._told_since is not None)
            if turn.is_hinted:
                self._notification_delay.note(found)

    def _take_over(self, turn: "PollingTurn") -> None:
        """Make `turn` the one that polls, or wait for a change."""
        patience = self._poller.patience() if self._poller else 0.0
        if patience > 0:
            self._waiting += 1
            self._free.wait(patience)
            self._waiting -= 1
            return
        self._at_once = self._at_once or self._poller is not None
        self._poller = turn


class NotificationDelay:
    """For how long a process lets others go first: those that are told of the same messages.

    It grows with every hint that led to nothing, and shrinks with every other one.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._misses = 0

    def note(self, found: bool) -> None:
        """Note whether a hint has led to messages."""
        self._misses = 0 if found else self._misses + 1
        if found:
            shorter = self.seconds / 4
            self.seconds = shorter if shorter >= _FIRST_NOTIFICATION_DELAY_SECONDS else 0.0
        elif self._misses >= _MISSES:
            longer = max(2 * self.seconds, _FIRST_NOTIFICATION_DELAY_SECONDS)
            self.seconds = min(longer, _LONGEST_NOTIFICATION_DELAY_SECONDS)


class PollingTurn:
    """One thread's part in the polling of its process."""

    def __init__(self, polling: Polling) -> None:
        """Take part in `polling`; the thread is not idle."""
        self._polling = polling
        self.asked_at: float | None = None
        self.is_hinted = False
        self.is_due = False

    def wait(self) -> bool:
        """Be idle until it is this thread's turn to ask; return False at the end of all polling."""
        return self._polling._wait(self)

    def note_answer(self, *, found: bool) -> None:
        """Note whether the question that `wait` called for has found messages."""
        self._polling._note_answer(self, found)

    def pass_on(self, *, hurry: bool = True) -> None:
        """Stop polling, if this thread does, and wake the next idle one.

        hurry: it is to ask at once, there is likely to be more; else after the first pause.
        """
        self._polling._pass_on(self, hurry)

    def patience(self) -> float:
        """Return for how many seconds more the others leave the polling to this one."""
        if self.asked_at is None:
            return _STUCK_SECONDS
        return self.asked_at + _STUCK_SECONDS - time.monotonic()
