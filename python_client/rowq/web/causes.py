"""Groups of dead messages by cause."""

import builtins
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rowq.messages import DeadMessage
from rowq.tools.terminal import NO_ERROR, TRACEBACK, cause_of

_NUMBERS = re.compile(
    r"\b(?:0x[0-9a-f]+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b|\d+", re.IGNORECASE
)
_KIND = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*(?=:|$)")
# With more causes than this, causes that differ only by numbers are merged.
_MANY = 20

HIDDEN = "hidden error"


@dataclass(frozen=True, slots=True)
class Group:
    """Dead messages of one type and cause; `key` identifies it in a URL."""

    key: str
    message_type: str | None
    cause: str
    size: int
    newest: DeadMessage


def without_numbers(cause: str) -> str:
    """Return a cause with # for each number."""
    return _NUMBERS.sub("#", cause)


def kind_of(error: str | None) -> str:
    """Return only the type of an error, without its text.

    In a traceback it follows the last frame, because the text may have several lines. A word before
    a colon is a type only if it looks like one.
    """
    lines = [line for line in (error or "").splitlines() if line.strip()]
    if not lines:
        return NO_ERROR
    starts = [number for number, line in enumerate(lines) if TRACEBACK.match(line)]
    after = lines[starts[-1] + 1 :] if starts else lines
    kind = _KIND.match(next((line for line in after if not line[0].isspace()), ""))
    return kind[0] if kind and _is_type(kind[0]) else HIDDEN


def _is_type(name: str) -> bool:
    known = getattr(builtins, name, None)
    is_built_in = isinstance(known, type) and issubclass(known, BaseException)
    return is_built_in or "." in name or name.endswith(("Error", "Exception"))


def group_dead(messages: Sequence[DeadMessage]) -> list[Group]:
    """Group messages, which are ordered newest first; the largest group comes first."""
    how = "e"
    if len({_cause_of(message, "e") for message in messages}) > _MANY:
        how = "n"
    sizes = Counter(_cause_of(message, how) for message in messages)
    newest = {_cause_of(message, how): message for message in reversed(messages)}
    groups = [
        Group(_key(how, cause), *cause, size=size, newest=newest[cause])
        for cause, size in sizes.items()
    ]
    return sorted(groups, key=lambda group: -group.size)


def in_group(key: str) -> Callable[[DeadMessage], bool]:
    """Return a check whether a message belongs to the group with a key."""
    how = key[:1]
    return lambda message: _key(how, _cause_of(message, how)) == key


def ids_of(messages: Iterable[DeadMessage], key: str) -> list[int]:
    """Return the ids of the messages of a group; of all messages if the key is empty."""
    matches = in_group(key)
    return [message.message_id for message in messages if not key or matches(message)]


def _cause_of(message: DeadMessage, how: str) -> tuple[str | None, str]:
    cause = cause_of(message.last_error)
    return message.message_type, without_numbers(cause) if how == "n" else cause


def _key(how: str, cause: tuple[str | None, str]) -> str:
    """Return a short key of a group: an error may be long, and must not be logged."""
    text = "\0".join((how, cause[0] or "", cause[1]))
    return how + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:20]
