"""Ends handlers that take longer than the worker's timeout_seconds.

Python ends no thread. So a call of the handler is ended as well as its kind allows: an exception is
raised in the thread of a plain function, the task of a coroutine is cancelled, and a command of
--exec, which is killed, looks at the time itself. A function that waits in C code, such as for a
lock or an answer from the network, gets the exception when that returns. A call that has not ended
some seconds later hangs: its messages are given up, and the worker ends.
"""

import asyncio
import ctypes
import threading
import time
from collections.abc import Awaitable, Sequence
from typing import Any, Protocol

from rowq.errors import HandlerTimedOut, WorkerFailed
from rowq.worker.stripes import Stripe

# A call that goes on for so many seconds after its time hangs. A command has half of it to obey.
_HUNG_SECONDS = 10.0
_PAUSE_SECONDS = 0.001


class Limited(Protocol):
    """A message for which a handler has so much time."""

    @property
    def message_id(self) -> int:
        """The message's id."""

    @property
    def claim_id(self) -> int:
        """The claim that holds it."""

    @property
    def stripe(self) -> Stripe:
        """Where the claim is."""

    def limit(self, ends_at: float) -> None:
        """Let the handler's time be up at a moment of time.monotonic()."""


class HandlerHung(WorkerFailed):
    """A handler did not end after its time was up: only the end of its process ends it."""


class _Settled(BaseException):
    """Takes the place of an exception that was not raised yet."""


class Call:
    """One call of the handler, in the thread that has made this object.

    has_interrupted: whether HandlerTimedOut was raised in it.

    `interrupt` is another thread's. The flags are set and read in an order by which the exception
    is raised in the handler's code, or in that of `forbid`, and nowhere else.
    """

    def __init__(self, messages: Sequence[Limited], seconds: float) -> None:
        """Begin; the time is up after so many seconds."""
        self.messages = messages
        self.ends_at = time.monotonic() + seconds
        self.thread = threading.get_ident()
        self._may_interrupt = False
        self._is_interrupting = False
        self.has_interrupted = False

    @property
    def seconds_left(self) -> float:
        """For how many seconds it may go on, below 0 when its time is up."""
        return self.ends_at - time.monotonic()

    def allow(self) -> None:
        """Let the exception be raised in this thread from now on."""
        self._may_interrupt = True

    def forbid(self) -> None:
        """Let nothing be raised in this thread any more; raises HandlerTimedOut if that is late."""
        self._may_interrupt = False
        while self._is_interrupting:
            time.sleep(_PAUSE_SECONDS)
        if self.has_interrupted:
            _settle(self.thread)

    def interrupt(self) -> None:
        """Raise HandlerTimedOut once in the call's thread, if that is allowed."""
        self._is_interrupting = True
        if self._may_interrupt and not self.has_interrupted:
            self.has_interrupted = _raise_in(self.thread, HandlerTimedOut)
        self._is_interrupting = False


class Timeouts:
    """The calls of the handler that are under way in a process, where they have a limit of time."""

    def __init__(self, seconds: float | None) -> None:
        """Limit each call to so many seconds; None: to none."""
        self._seconds = seconds
        self._calls: set[Call] = set()
        self._lock = threading.Lock()

    def begin(self, messages: Sequence[Limited]) -> Call | None:
        """Note that this thread is about to call the handler; None where there is no limit."""
        if self._seconds is None:
            return None
        call = Call(messages, self._seconds)
        for message in messages:
            message.limit(call.ends_at)
        with self._lock:
            self._calls.add(call)
        return call

    def end(self, call: Call | None) -> None:
        """Note that a call has ended; raises HandlerTimedOut when that is too late."""
        if call:
            call.forbid()
            with self._lock:
                self._calls.discard(call)

    def check(self) -> list[Call]:
        """Interrupt the calls whose time is up; return those that hang."""
        now = time.monotonic()
        with self._lock:
            late = [call for call in self._calls if now >= call.ends_at]
        for call in late:
            call.interrupt()
        return [call for call in late if now >= call.ends_at + _HUNG_SECONDS]

    def say(self, error: HandlerTimedOut) -> None:
        """Let the error of a call whose time was up say what the limit is."""
        error.args = (f"the handler took longer than {self._seconds:g} s",)

    def hung(self, call: Call) -> HandlerHung:
        """Return the error of a call that hangs."""
        return HandlerHung(
            f"the handler has not ended {_HUNG_SECONDS:g} s after its time of {self._seconds:g} s"
            f" was up, with message {call.messages[0].message_id}"
        )


async def awaited(returned: Awaitable[Any], call: Call | None) -> Any:
    """Return what comes of what a handler has returned; raises HandlerTimedOut."""
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
    """Let what was to be raised in this thread, and was not yet, never be raised.

    To take it back (PyThreadState_SetAsyncExc with NULL) would leave CPython 3.11 on the lookout
    for it: every call is slower from then on, and one under a profiler or debugger never returns.
    """
    try:
        while _raise_in(thread, _Settled):
            time.sleep(0)
    except _Settled:
        return


def _raise_in(thread: int, error: type[BaseException]) -> bool:
    """Raise an error in a thread of Python, in place of one that was not raised yet.

    Return whether that can be: other interpreters than CPython have no way.
    """
    try:
        raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
    except AttributeError:
        return False
    return bool(raise_in(ctypes.c_ulong(thread), ctypes.py_object(error)))
