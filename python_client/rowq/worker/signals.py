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
    A process that a message's handler forks gets back what was there before.
    """

    def __init__(self, at_once: Callable[[], None] = lambda: None) -> None:
        """Change nothing yet."""
        self.asked = False
        self._process_id = os.getpid()
        self._at_once = at_once
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._previous = {number: signal.signal(number, self._handle) for number in _SIGNALS}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if os.getpid() != self._process_id:
            previous = self._previous[signal.Signals(number)]
            signal.signal(number, signal.SIG_DFL if previous is None else previous)
            os.kill(os.getpid(), number)
            return
        if self.asked:
            self._at_once()
            os._exit(128 + number)
        self.asked = True
