"""A limit of time for what a driver does without one."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

_Made = TypeVar("_Made")


class TimedOutError(Exception):
    """Something was not made within its time."""


def within(seconds: float, make: Callable[[], _Made], discard: Callable[[_Made], None]) -> _Made:
    """Return what `make` returns, or raise what it raises, unless that takes too long.

    A thread that nobody waits for any more goes on until `make` ends, and discards what it made. So
    it does when an exception out of a signal's handler ends the waiting.

    Args:
        seconds: how long it may take.
        make: what to do, in a thread of its own.
        discard: what to do with what came too late.

    Raises:
        TimedOutError: it took longer.
    """
    made: Future[_Made] = Future()

    def run() -> None:
        try:
            result = make()
        except BaseException as error:
            if made.set_running_or_notify_cancel():
                made.set_exception(error)
            return
        if made.set_running_or_notify_cancel():
            made.set_result(result)
        else:
            discard(result)

    threading.Thread(target=run, name="rowq connects", daemon=True).start()
    try:
        wait([made], timeout=seconds)
    finally:
        is_late = made.cancel()
    if is_late:
        raise TimedOutError(f"no answer within {seconds:g} seconds")
    return made.result()
