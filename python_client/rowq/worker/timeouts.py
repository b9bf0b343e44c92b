"""Timeouts of handlers: timeout_seconds of the worker.

Python cannot end a thread. So an exception is raised in the thread of a plain function, the task of
a coroutine is cancelled, and a command of --exec is killed by its own code. A function that waits
in C code, such as for a lock or the network, gets the exception when that returns. A call that has
not ended 10 seconds later hangs: its claim is abandoned, and the worker ends.
"""

import asyncio
import ctypes
import threading
import time
from collections.abc import Awaitable, Sequence
from typing import Any, Protocol

from rowq.errors import HandlerTimedOut, WorkerFailed
from rowq.worker.stripes import Stripe

# A call that runs this long after its timeout hangs. A command has half of it to end.
_HUNG_SECONDS = 10.0
_PAUSE_SECONDS = 0.001


class Limited(Protocol):
    """A message whose handler has a timeout."""

    @property
    def message_id(self) -> int:
        """The message's id."""

    @property
    def claim_id(self) -> int:
        """The claim that holds it."""

    @property
    def stripe(self) -> Stripe:
        """The stripe of the claim."""

    def limit(self, ends_at: float) -> None:
        """Set the handler's timeout, by time.monotonic()."""


class HandlerHung(WorkerFailed):
    """A handler did not end after its timeout; only the end of the process ends it."""


class _Settled(BaseException):
    """Replacement for an exception that is not raised yet."""


class Call:
    """One call of the handler, in the thread that created this object.

    has_interrupted: whether HandlerTimedOut was raised in it.

    Another thread calls `interrupt`. The order in which the flags are set and read guarantees that
    the exception is raised in the handler's code, or in `forbid`, and nowhere else.
    """

    def __init__(self, messages: Sequence[Limited], seconds: float) -> None:
        """Start a call with a timeout in seconds."""
        self.messages = messages
        self.ends_at = time.monotonic() + seconds
        self.thread = threading.get_ident()
        self._may_interrupt = False
        self._is_interrupting = False
        self.has_interrupted = False

    @property
    def seconds_left(self) -> float:
        """Seconds until the timeout; negative after it."""
        return self.ends_at - time.monotonic()

    def allow(self) -> None:
        """Allow the exception in this thread from now on."""
        self._may_interrupt = True

    def forbid(self) -> None:
        """Forbid the exception in this thread; raises HandlerTimedOut if it is already due."""
        self._may_interrupt = False
        while self._is_interrupting:
            time.sleep(_PAUSE_SECONDS)
        if self.has_interrupted:
            _settle(self.thread)

    def interrupt(self) -> None:
        """Raise HandlerTimedOut once in the call's thread, if allowed."""
        self._is_interrupting = True
        if self._may_interrupt and not self.has_interrupted:
            self.has_interrupted = _raise_in(self.thread, HandlerTimedOut)
        self._is_interrupting = False


class Timeouts:
    """The running handler calls of a process that have a timeout."""

    def __init__(self, seconds: float | None) -> None:
        """Set the timeout of each call in seconds; None: none."""
        self._seconds = seconds
        self._calls: set[Call] = set()
        self._lock = threading.Lock()

    def begin(self, messages: Sequence[Limited]) -> Call | None:
        """Record that this thread calls the handler; return None without a timeout."""
        if self._seconds is None:
            return None
        call = Call(messages, self._seconds)
        for message in messages:
            message.limit(call.ends_at)
        with self._lock:
            self._calls.add(call)
        return call

    def end(self, call: Call | None) -> None:
        """Record the end of a call; raises HandlerTimedOut if it is too late."""
        if call:
            call.forbid()
            with self._lock:
                self._calls.discard(call)

    def check(self) -> list[Call]:
        """Interrupt the calls that have timed out; return those that hang."""
        now = time.monotonic()
        with self._lock:
            late = [call for call in self._calls if now >= call.ends_at]
        for call in late:
            call.interrupt()
        return [call for call in late if now >= call.ends_at + _HUNG_SECONDS]

    def describe(self, error: HandlerTimedOut) -> None:
        """Set the text of an error to the timeout."""
        error.args = (f"the handler took longer than {self._seconds:g} s",)

    def hung(self, call: Call) -> HandlerHung:
        """Return the error of a call that hangs."""
        return HandlerHung(
            f"the handler hangs with message {call.messages[0].message_id}: it has not ended"
            f" {_HUNG_SECONDS:g} s after its timeout of {self._seconds:g} s"
        )


async def awaited(returned: Awaitable[Any], call: Call | None) -> Any:
    """Await the result of a handler; raises HandlerTimedOut."""
    if call is None:
        return await returned
    try:
        async with asyncio.timeout(call.seconds_left) as limit:
            return await returned
    except TimeoutError as error:
        if limit.expired():
            raise HandlerTimedOut from error
        raise


def _settle(thread: int) -> None:
    """Discard an exception that is pending in this thread.

    PyThreadState_SetAsyncExc with NULL would leave CPython 3.11 checking for it: every later call
    is slower, and one under a profiler or debugger never returns.
    """
    try:
        while _raise_in(thread, _Settled):
            time.sleep(0)
    except _Settled:
        return


def _raise_in(thread: int, error: type[BaseException]) -> bool:
    """Raise an error in a Python thread, replacing a pending one.

    Return whether it was possible: only CPython supports it.
    """
    try:
        raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
    except AttributeError:
        return False
    return bool(raise_in(ctypes.c_ulong(thread), ctypes.py_object(error)))
