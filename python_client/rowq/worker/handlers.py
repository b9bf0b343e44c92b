"""What a handler is, what it can decide, and what becomes of its message then."""

# ruff: noqa: N818 - Retry and Fail are decisions of a handler, not errors

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
    """Base of what a handler raises or returns to say what becomes of a message.

    A subclass need not call this __init__: what it leaves out has the class's value.
    """

    error: str | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        # It is made by __new__, as nobody knows what arguments a subclass's __init__ takes.
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


class OwnHandler(ABC):
    """A handler of rowq's own, that ends itself when `message.timed_out` is true."""

    @abstractmethod
    def least_batch(self) -> int:
        """Return how many messages of a claim it needs now, 1 where it can decide about each."""


class Release(Exception):
    """Raised by a handler of rowq's own: release the message, its attempt not spent."""


class GiveUp(WorkerFailed):
    """Raised by a handler of rowq's own: no message can be handled, so the worker ends."""


Handler = Callable[..., Any]
"""Takes a message, or per batch a list of them; in a transactional worker also the connection."""


def find_handler(handler: Handler | str, arguments: int = 1) -> Handler:
    """Return the handler itself, or what "module:function" names; raises WorkerFailed.

    arguments: with how many it will be called.
    """
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
        check_handler(found, arguments)
    except InvalidArgument as error:
        raise WorkerFailed(f"the handler {handler}: {error}") from error
    return found  # type: ignore[no-any-return]


def check_handler(handler: object, arguments: int = 1, what: str = "message") -> None:
    """Refuse what cannot be called so, and a generator, which would do nothing when called.

    Args:
        handler: what the worker was given.
        arguments: with how many it will be called; the second one is a connection.
        what: the first one's name in an error.

    Raises:
        InvalidArgument: it cannot work.
    """
    if not callable(handler):
        raise InvalidArgument("the handler cannot be called")
    called: Any = handler
    while isinstance(called, functools.partial):
        called = called.func
    if not inspect.isroutine(called) and not inspect.isclass(called):
        called = type(called).__call__
    if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
        raise InvalidArgument("the handler is a generator: called, it would do nothing")
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
    is_typed_in = getattr(function, "__module__", None) == "__main__" and not hasattr(
        sys.modules["__main__"], "__file__"
    )
    if why or is_typed_in:
        raise InvalidArgument(
            "a handler for processes must be importable: a function at the top of a module, or its"
            f' name as "module:function"{why}'
        )


def _check_arguments(handler: Callable[..., Any], arguments: int, what: str) -> None:
    try:
        # A decorator may give the function that it wraps more than it takes itself.
        signature = inspect.signature(handler, follow_wrapped=False)
    except (TypeError, ValueError):
        # Some functions written in C do not tell.
        return
    call = f"handler({what}, connection)" if arguments > 1 else f"handler({what})"
    hint = "" if arguments > 1 else "; transactional=True gives it a connection, too"
    try:
        signature.bind(*[None] * arguments)
    except TypeError as error:
        raise InvalidArgument(f"the handler is called as {call}: {error}{hint}") from None


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of a message, in values that every database takes."""

    routine: Literal["complete", "retry_later", "fail_now", "release"]
    delay_seconds: float | None = None
    error: str | None = None


COMPLETED = Decision("complete")
RELEASED = Decision("release")


def retry(error: str) -> Decision:
    """Return the decision of another attempt after the queue's backoff."""
    return Decision("retry_later", error=storable(error))


def unreadable_headers(headers: UnreadableHeaders) -> Decision:
    """Return the decision on a message with headers that no attempt will be able to read."""
    return Decision("fail_now", error=storable(f"headers cannot be read: {headers.reason}"))


def unreadable_body(error: UnreadableBody) -> Decision:
    """Return the decision on a message with a body that no attempt will be able to read."""
    return Decision("fail_now", error=storable(str(error)))


def decision_of(error: BaseException) -> Decision:
    """Return what an exception that left the handler decides: itself, or another attempt."""
    match error:
        case Fail():
            return Decision("fail_now", error=_error_of(error))
        case Retry():
            return Decision("retry_later", _delay_of(error), _error_of(error))
        case Release():
            return RELEASED
    lines = "".join(traceback.format_exception(error)).strip()
    return retry(lines[-_ERROR_CHARACTERS:])


def interrupted(messages: Sequence[Message]) -> dict[int, Decision]:
    """Return another attempt for messages whose handler was ended by a KeyboardInterrupt."""
    decision = retry("the handler was interrupted: KeyboardInterrupt")
    return {message.message_id: decision for message in messages}


def blamed(decisions: Mapping[int, Decision], why: str) -> dict[int, Decision]:
    """Return decisions whose errors begin with what the handler did; none of them completes."""
    found: dict[int, Decision] = {}
    for message_id, decision in decisions.items():
        error = storable(f"{why}; {decision.error}" if decision.error else why)
        done = decision.routine == "complete"
        found[message_id] = (
            Decision("retry_later", error=error) if done else replace(decision, error=error)
        )
    return found


def storable(text: str) -> str:
    """Return `text` as every database takes it: no NUL, no lone surrogate, not too long."""
    encodable = text.encode("utf-8", "backslashreplace").decode()
    return encodable.replace("\0", "\\0")[:_ERROR_CHARACTERS]


def shown(value: object) -> str:
    """Return the repr of a value, or its type where that fails."""
    try:
        return repr(value)
    except Exception:
        return f"a {type(value).__name__}"


def _error_of(answer: Retry | Fail) -> str | None:
    """Return the error to keep; a subclass that gives none is shown by its name and arguments."""
    given = _attribute(answer, "error")
    if given is None and type(answer) in {Retry, Fail}:
        return None
    if given is None:
        return storable("".join(traceback.format_exception_only(answer)).strip())
    return storable(given if isinstance(given, str) else shown(given))


def _delay_of(answer: Retry) -> float | None:
    given = _attribute(answer, "delay_seconds")
    try:
        seconds = float(given)
    except (TypeError, ValueError, OverflowError):
        return None
    return 0.0 if math.isnan(seconds) else min(max(seconds, 0.0), _LONGEST_DELAY_SECONDS)


def _attribute(answer: Retry | Fail, name: str) -> Any:
    """Return an attribute; a subclass may have made it a property that fails."""
    try:
        return getattr(answer, name)
    except Exception:
        return None
