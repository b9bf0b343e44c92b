"""SIGTERM and SIGINT: the first asks to stop, the second stops at once."""

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class StopSignals:
    """While entered, the first signal sets `asked`; the second calls `at_once` and exits.

    The handler only sets a flag: taking a lock or logging there could wait for the very code that
    it interrupts. Outside the main thread, where Python handles no signals, nothing is changed.
    A process that is forked meanwhile, by a message's handler, gets back what was there before.
    """

    entered: "StopSignals | None" = None

    def __init__(self, at_once: Callable[[], None] = lambda: None) -> None:
        """Change nothing yet."""
        self.asked = False
        self._at_once = at_once
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            StopSignals.entered = self
            self._previous = {number: signal.signal(number, self._handle) for number in _SIGNALS}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._previous:
            self.restore()
            StopSignals.entered = None

    def restore(self) -> None:
        """Handle signals again as before."""
        for number, handler in self._previous.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if self.asked:
            self._at_once()
            os._exit(128 + number)
        self.asked = True


class _Forks:
    """Keeps signals back in a thread that forks until the new process handles them in its way.

    One that came in between would be handled as the parent does, or be lost.
    """

    def __init__(self) -> None:
        self._masks = threading.local()

    def begin(self) -> None:
        if StopSignals.entered:
            self._masks.before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)

    def end_in_child(self) -> None:
        if StopSignals.entered:
            StopSignals.entered.restore()
            self.end()
            StopSignals.entered = None

    def end(self) -> None:
        if StopSignals.entered and hasattr(self._masks, "before"):
            signal.pthread_sigmask(signal.SIG_SETMASK, self._masks.before)


if hasattr(os, "register_at_fork"):
    _forks = _Forks()
    os.register_at_fork(
        before=_forks.begin,
        after_in_child=_forks.end_in_child,
        after_in_parent=_forks.end,
    )
