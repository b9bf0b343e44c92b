"""Handlers and their decisions."""

# ruff: noqa: N818 - Retry, Snooze and Fail are decisions of a handler, not errors

import functools
import importlib
import inspect
import math
import pickle
import sys
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from rowq.errors import InvalidArgument, UnreadableBody, WorkerFailed
from rowq.messages import Message, UnreadableHeaders

_LONGEST_DELAY_SECONDS = 315_360_000.0
_ERROR_CHARACTERS = 2000


class _Decision(Exception):
    """Base class of a handler's decisions, to be raised or returned.

    A subclass need not call this __init__; missing attributes have the class's value.
    """

    error: str | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        # Use __new__, because the arguments of a subclass's __init__ are unknown.
        return _recreate, (type(self), self.args), vars(self)


def _recreate(kind: type[_Decision], args: tuple[Any, ...]) -> _Decision:
    return kind.__new__(kind, *args)


class Retry(_Decision):
    """Retry the message; raised or returned by a handler."""

    delay_seconds: float | None = None

    def __init__(self, delay_seconds: float | None = None, error: str | None = None) -> None:
        """Wait `delay_seconds`, or the queue's backoff; store `error` with the message."""
        super().__init__(error or "the handler requested a retry")
        self.delay_seconds = delay_seconds
        self.error = error


class Snooze(_Decision):
    """Deliver the message again after a delay; the attempt does not count. Raised or returned."""

    delay_seconds: float | None = None

    def __init__(self, seconds: float) -> None:
        """Wait `seconds`; expire_seconds of enqueue limits how often a message can be snoozed."""
        super().__init__(f"the handler snoozed the message for {seconds} seconds")
        self.delay_seconds = seconds


class Fail(_Decision):
    """Make the message dead without another attempt; raised or returned by a handler."""

    def __init__(self, error: str | None = None) -> None:
        """Store `error` with the dead message."""
        super().__init__(error or "the handler failed the message")
        self.error = error


Answer = Retry | Snooze | Fail
"""An answer that a handler raises or returns for a message that is not done."""


class OwnHandler(ABC):
    """A handler of rowq itself, which returns when `message.timed_out` is true."""

    @abstractmethod
    def least_batch(self) -> int:
        """Return how many messages of a claim it needs now; 1 if it can decide on each alone."""


class Release(Exception):
    """Release the message; the attempt does not count. For rowq's own handlers."""


class GiveUp(WorkerFailed):
    """No message can be handled, so the worker ends. For rowq's own handlers."""


Handler = Callable[..., Any]
"""A function of a message, or per batch a list; in a transactional worker also a connection."""

Handlers = Handler | str | Mapping[str, Handler | str]
"""A handler or "module:function", or one for each queue by name."""


class HandlerByQueue:
    """A handler that calls the one of the message's queue."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers

    def __call__(self, argument: Any, *connection: Any) -> Any:
        """Call the handler of the queue of a message, or of a claim's messages."""
        message = argument[0] if isinstance(argument, list) else argument
        return self._handlers[message.stripe.queue_name](argument, *connection)


def find_handlers(handler: Handlers, arguments: int = 1) -> Handler:
    """Return the handler, or a handler that chooses by queue; raises WorkerFailed."""
    if isinstance(handler, Mapping):
        return HandlerByQueue({name: find_handler(one, arguments) for name, one in handler.items()})
    return find_handler(handler, arguments)


def find_handler(handler: Handler | str, arguments: int = 1) -> Handler:
    """Return the handler, imported from "module:function" if needed; raises WorkerFailed.

    arguments: the number of arguments of its calls.
    """
    if callable(handler):
        return handler
    module_name, colon, path = handler.partition(":")
    if not (module_name and colon and path):
        raise WorkerFailed(f"handler must be module:function, got {handler!r}")
    try:
        found: Any = importlib.import_module(module_name)
        for attribute in path.split("."):
            found = getattr(found, attribute)
    except (ImportError, AttributeError) as error:
        raise WorkerFailed(f"cannot find handler {handler}: {error}") from error
    except (Exception, SystemExit) as error:
        what = f"{type(error).__name__}: {error}"
        raise WorkerFailed(f"cannot import handler {handler}: {what}") from error
    try:
        check_handler(found, arguments)
    except InvalidArgument as error:
        raise WorkerFailed(f"handler {handler}: {error}") from error
    return found  # type: ignore[no-any-return]


def check_handler(handler: object, arguments: int = 1, what: str = "message") -> None:
    """Refuse a handler with a wrong signature, or a generator; raises InvalidArgument.

    arguments: the number of arguments; the second is a connection. what: the first one's name in
    errors.
    """
    if not callable(handler):
        raise InvalidArgument(f"handler must be callable, got {type(handler).__name__}")
    called: Any = handler
    while isinstance(called, functools.partial):
        called = called.func
    if not inspect.isroutine(called) and not inspect.isclass(called):
        called = type(called).__call__
    if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
        raise InvalidArgument("handler must not be a generator: its body would never run")
    _check_arguments(handler, arguments, what)


def check_importable(handler: Handler) -> None:
    """Refuse a handler that another process could not import; raises InvalidArgument."""
    function: Any = handler
    while isinstance(function, functools.partial):
        function = function.func
    try:
        pickle.dumps(handler)
        why = ""
    except Exception as error:
        why = f" ({error})"
    is_interactive = getattr(function, "__module__", None) == "__main__" and not hasattr(
        sys.modules["__main__"], "__file__"
    )
    if why or is_interactive:
        raise InvalidArgument(
            "processes requires an importable handler: a module-level function or"
            f' "module:function"{why}'
        )


def _check_arguments(handler: Callable[..., Any], arguments: int, what: str) -> None:
    try:
        # A decorator may pass more arguments to the wrapped function than it takes itself.
        signature = inspect.signature(handler, follow_wrapped=False)
    except (TypeError, ValueError):
        # Some functions in C have no signature.
        return
    call = f"handler({what}, connection)" if arguments > 1 else f"handler({what})"
    hint = "" if arguments > 1 else "; use transactional=True to pass a connection"
    try:
        signature.bind(*[None] * arguments)
    except TypeError as error:
        raise InvalidArgument(f"handler must be callable as {call}: {error}{hint}") from None


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision about a message, in values that every database accepts."""

    routine: Literal["complete", "retry_later", "fail_now", "release"]
    delay_seconds: float | None = None
    error: str | None = None


COMPLETED = Decision("complete")
RELEASED = Decision("release")


def retry(error: str) -> Decision:
    """Return the decision to retry after the queue's backoff."""
    return Decision("retry_later", error=storable(error))


def unreadable_headers(headers: UnreadableHeaders) -> Decision:
    """Return the decision for a message with unreadable headers."""
    return Decision("fail_now", error=storable(f"headers cannot be read: {headers.reason}"))


def unreadable_body(error: UnreadableBody) -> Decision:
    """Return the decision for a message with an unreadable body."""
    return Decision("fail_now", error=storable(str(error)))


def decision_of(error: BaseException) -> Decision:
    """Return the decision of a handler's exception: its own, or a retry."""
    match error:
        case Fail():
            return Decision("fail_now", error=_error_of(error))
        case Retry():
            return Decision("retry_later", _delay_of(error), _error_of(error))
        case Snooze():
            delay = _delay_of(error)
            return retry("Snooze without seconds") if delay is None else Decision("release", delay)
        case Release():
            return RELEASED
    lines = "".join(traceback.format_exception(error)).strip()
    return retry(lines[-_ERROR_CHARACTERS:])


def interrupted(messages: Sequence[Message]) -> dict[int, Decision]:
    """Return a retry for messages whose handler was ended by KeyboardInterrupt."""
    decision = retry("the handler was interrupted: KeyboardInterrupt")
    return {message.message_id: decision for message in messages}


def blamed(decisions: Mapping[int, Decision], why: str) -> dict[int, Decision]:
    """Return decisions whose errors begin with `why`; completions become retries."""
    found: dict[int, Decision] = {}
    for message_id, decision in decisions.items():
        error = storable(f"{why}; {decision.error}" if decision.error else why)
        done = decision.routine == "complete"
        found[message_id] = (
            Decision("retry_later", error=error) if done else replace(decision, error=error)
        )
    return found


def storable(text: str) -> str:
    """Return `text` without NUL and unpaired surrogates, shortened to 2000 characters."""
    encodable = text.encode("utf-8", "backslashreplace").decode()
    return encodable.replace("\0", "\\0")[:_ERROR_CHARACTERS]


def shown(value: object) -> str:
    """Return the repr of a value, or its type if that fails."""
    try:
        return repr(value)
    except Exception:
        return f"a {type(value).__name__}"


def _error_of(answer: Retry | Fail) -> str | None:
    """Return the error to store; the default for a subclass is its name and arguments."""
    error = _attribute(answer, "error")
    if error is None and type(answer) in {Retry, Fail}:
        return None
    if error is None:
        return storable("".join(traceback.format_exception_only(answer)).strip())
    return storable(error if isinstance(error, str) else shown(error))


def _delay_of(answer: Retry | Snooze) -> float | None:
    try:
        seconds = float(_attribute(answer, "delay_seconds"))
    except (TypeError, ValueError, OverflowError):
        return None
    return 0.0 if math.isnan(seconds) else min(max(seconds, 0.0), _LONGEST_DELAY_SECONDS)


def _attribute(answer: Answer, name: str) -> Any:
    """Return an attribute, or None if it is a property of a subclass that raises."""
    try:
        return getattr(answer, name)
    except Exception:
        return None
