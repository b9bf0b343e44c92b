"""Which of a worker's idle threads asks the database for messages: one at a time.

The others wait until it has found some. So an idle process costs the same few queries whatever its
threads, and a burst wakes one thread after the other, each by the one before it.
"""

import threading
import time

from rowq.backoff import Backoff

# A thread that has waited this long has probably lost its connection, so another one polls.
_STUCK_SECONDS = 5.0


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
        self._pauses = Backoff(first_seconds, longest_seconds)
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
            self._at_once = False
            turn.asked_at = time.monotonic()
            return not self._ended

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


class PollingTurn:
    """One thread's part in the polling of its process."""

    def __init__(self, polling: Polling) -> None:
        """Take part in `polling`; the thread is not idle."""
        self._polling = polling
        self.asked_at: float | None = None

    def wait(self) -> bool:
        """Be idle until it is this thread's turn to ask; return False at the end of all polling."""
        return self._polling._wait(self)

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
