"""What an examination finds, and how it asks a database."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """What a check came to; unknown: this account may not look."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    Attributes:
        check_name: what, in a few words.
        status: what it came to.
        detail: what was found, and what to do about it.
    """

    check_name: str
    status: Status
    detail: str


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of a server that matters to rowq.

    Attributes:
        name: as the engine's manual has it.
        query: returns one row of one value.
        is_good: whether a value is as it should be.
        otherwise: the status when it is not.
        advice: why it matters, and what to do.
    """

    name: str
    query: str
    is_good: Callable[[Any], bool]
    otherwise: Status
    advice: str


@dataclass(frozen=True, slots=True)
class Engine:
    """What an examination has to know of an engine.

    Attributes:
        now: a query of the server's time, in seconds since 1970 UTC.
        version: a query of the server's version, one value.
        is_supported: whether rowq runs on that version.
        supported: which versions those are, for people to read.
        settings: what else to look at.
    """

    now: str
    version: str
    is_supported: Callable[[Any], bool]
    supported: str
    settings: tuple[Setting, ...]


def value_of(connection: Any, query: str) -> Any:
    """Return the one value of a query; None where there is no row."""
    with closing(connection.cursor()) as cursor:
        cursor.execute(query)
        row = cursor.fetchone()
    return row[0] if row else None


def is_one_of(*values: Any) -> Callable[[Any], bool]:
    """Return whether a value is among these; texts in any case."""
    known = {_plain(value) for value in values}
    return lambda value: _plain(value) in known


def _plain(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value
