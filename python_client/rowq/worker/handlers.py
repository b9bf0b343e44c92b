"""What a handler is, what it can decide, and how its failure is told."""

# ruff: noqa: N818 - Retry and Fail are decisions of a handler, not errors

import importlib
import math
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from rowq.errors import WorkerFailed

_LONGEST_DELAY_SECONDS = 315_360_000.0
_ERROR_CHARACTERS = 2000


class Retry(Exception):
    """Raised by a handler: give the message back for another attempt."""

    def __init__(self, delay_seconds: float | None = None, error: str | None = None) -> None:
        """Wait `delay_seconds`, else the queue's backoff; `error` is kept with the message."""
        super().__init__(error or "the handler asked for another attempt")
        self.delay_seconds = _delay(delay_seconds)
        self.error = None if error is None else storable(error)


class Fail(Exception):
    """Raised by a handler: the message is dead, without another attempt."""

    def __init__(self, error: str | None = None) -> None:
        """Keep `error` with the dead message."""
        super().__init__(error or "the handler gave the message up")
        self.error = None if error is None else storable(error)


class Release(Exception):
    """Raised by a handler of rowq's own: give the message back, its attempt not spent."""


Verdict = Retry | Fail | Release | None
"""What becomes of a message: another attempt, dead, given back, or (None) completed."""

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
    if not callable(found):
        raise WorkerFailed(f"the handler {handler} cannot be called")
    return found  # type: ignore[no-any-return]


def verdict_of(error: BaseException) -> Retry | Fail | Release:
    """Return what an exception that left the handler decides: itself, or another attempt."""
    if isinstance(error, Retry | Fail | Release):
        return error
    lines = "".join(traceback.format_exception(error)).strip()
    return Retry(error=lines[-_ERROR_CHARACTERS:])


def batch_verdicts(message_ids: list[int], result: Any) -> dict[int, Verdict]:
    """Return the verdicts of a batch handler, which returns None or {message_id: Retry or Fail}."""
    said: Mapping[int, Verdict] = result if isinstance(result, Mapping) else {}
    return {message_id: said.get(message_id) for message_id in message_ids}


def storable(text: str) -> str:
    """Return `text` as every database takes it: no NUL, no lone surrogate, not too long."""
    encodable = text.encode("utf-8", "backslashreplace").decode()
    return encodable.replace("\0", "\\0")[:_ERROR_CHARACTERS]


def _delay(seconds: float | None) -> float | None:
    if seconds is None:
        return None
    number = float(seconds)
    return 0.0 if math.isnan(number) else min(max(number, 0.0), _LONGEST_DELAY_SECONDS)
