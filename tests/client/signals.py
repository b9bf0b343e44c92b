"""Exceptions raised by a signal handler, as for timeouts."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class SoftLimit(Exception):  # noqa: N818 - as Celery calls its own
    """An ordinary exception of the application."""


class HardLimit(BaseException):
    """A BaseException of the application."""


@contextmanager
def interrupted(after: float, error: BaseException) -> Iterator[None]:
    """Raise `error` in the main thread after `seconds`, unless the block has ended."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise error

    before = signal.signal(signal.SIGUSR1, interrupt)
    timer = threading.Timer(after, os.kill, (os.getpid(), signal.SIGUSR1))
    try:
        timer.start()
        yield
    finally:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        timer.cancel()
        timer.join()
        signal.signal(signal.SIGUSR1, before)
