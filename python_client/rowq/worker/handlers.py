"""What a handler is, and what it can decide."""

# ruff: noqa: N818 - Retry and Fail are decisions of a handler, not errors

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any

from rowq.errors import InvalidArgument, WorkerFailed


class _Decision(Exception):
    """Base of what a handler raises or returns to say what becomes of a message.

    A subclass need not call this __init__: what it leaves out has the class's value.
    """

    error: str | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        # By the class's __new__, as nobody knows what arguments a subclass's __init__ takes.
        return _made_anew, (type(self), self.args), vars(self)


def _made_anew(kind: type[_Decision], args: tuple[Any, ...]) -> _Decision:
    return kind.__new__(kind, *args)


class Retry(_Decision):
    """Raised or returned by a handler: give the message back for another attempt."""

    delay_seconds: float | None = None

    def __init__(self, delay_seconds: float | None = None, error: str | None = None) -> None:
        """Wait `delay_seconds`, else the queue's backoff; `error` is kept with the message."""
        super().__init__(error or "the handler asked for another attempt")
        self.delay_seconds = delay_seconds
        self.error = error


class Fail(_Decision):
    """Raised or returned by a handler: the message is dead, without another attempt."""

    def __init__(self, error: str | None = None) -> None:
        """Keep `error` with the dead message."""
        super().__init__(error or "the handler gave the message up")
        self.error = error


class Release(Exception):
    """Raised by a handler of rowq's own: give the message back, its attempt not spent."""


class GiveUp(WorkerFailed):
    """Raised by a handler of rowq's own: no message can be worked on, so give back and end."""


Handler = Callable[..., Any]
"""Takes a message, or per batch a list of them; in a transactional worker also the connection."""


def find_handler(handler: Handler | str) -> Handler:
    """Return the handler itself, or what "module:function" names; raises WorkerFailed."""
    if callable(handler):
        return handler
    module_name, colon, path = handler.partition(":")
    if not (module_name and colon and path):
        raise WorkerFailed(f"a handler is written module:function, got {handler!r}")
    try:
        found: Any = importlib.import_module(module_name)
        for attribute in path.split("."):
            found = getattr(found, attribute)
    except (ImportError, AttributeError) as error:
        raise WorkerFailed(f"cannot find the handler {handler}: {error}") from error
    except (Exception, SystemExit) as error:
        what = f"{type(error).__name__}: {error}"
        raise WorkerFailed(f"cannot import the handler {handler}: {what}") from error
    try:
        check_handler(found)
    except InvalidArgument as error:
        raise WorkerFailed(f"the handler {handler}: {error}") from error
    return found  # type: ignore[no-any-return]


def check_handler(handler: object) -> None:
    """Refuse what can be called and does nothing when it is; raises InvalidArgument."""
    if not callable(handler):
        raise InvalidArgument("the handler cannot be called")
    called: Any = handler
    while isinstance(called, functools.partial):
        called = called.func
    if not inspect.isroutine(called) and not inspect.isclass(called):
        called = type(called).__call__
    if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
        raise InvalidArgument("the handler is a generator: called, it would do nothing")
