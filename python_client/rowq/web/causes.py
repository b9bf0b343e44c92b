"""Groups dead messages by what went wrong."""

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
# With more causes than this, those that differ by numbers alone are taken together.
_MANY = 20

HIDDEN = "an error that is not shown"


@dataclass(frozen=True, slots=True)
class Group:
    """Dead messages of one type and cause; `key` names it in an address."""

    key: str
    message_type: str | None
    cause: str
    size: int
    newest: DeadMessage


def without_numbers(cause: str) -> str:
    """Return a cause with # for each number in it."""
    return _NUMBERS.sub("#", cause)


def kind_of(error: str | None) -> str:
    """Return the type of an error alone: nothing of what it says.

    Of a traceback that is where the frames of its last block end: what an error says may go on for
    lines. A word before a colon is a type only if it looks like one.
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
    """Return the groups of messages, given the newest first; the largest group comes first."""
    how = "e"
    if len({_place(message, "e") for message in messages}) > _MANY:
        how = "n"
    sizes = Counter(_place(message, how) for message in messages)
    newest = {_place(message, how): message for message in reversed(messages)}
    groups = [
        Group(_key(how, place), *place, size=size, newest=newest[place])
        for place, size in sizes.items()
    ]
    return sorted(groups, key=lambda group: -group.size)


def in_group(key: str) -> Callable[[DeadMessage], bool]:
    """Return whether a message is of the group with a key."""
    how = key[:1]
    return lambda message: _key(how, _place(message, how)) == key


def ids_of(messages: Iterable[DeadMessage], key: str) -> list[int]:
    """Return the ids of the messages of a group; an empty key is all of them."""
    matches = in_group(key)
    return [message.message_id for message in messages if not key or matches(message)]


def _place(message: DeadMessage, how: str) -> tuple[str | None, str]:
    cause = cause_of(message.last_error)
    return message.message_type, without_numbers(cause) if how == "n" else cause


def _key(how: str, place: tuple[str | None, str]) -> str:
    """Return a short name of a group: the error itself may be long, and is nothing for a log."""
    text = "\0".join((how, place[0] or "", place[1]))
    return how + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:20]
