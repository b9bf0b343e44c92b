"""What an importer asks of the other queue."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from rowq.bodies import batch_entries
from rowq.messages import NewMessage
from rowq.tools.console.errors import BadInput

LONGEST_KEY = 200
"""Characters of a dedup key or group key."""
# MariaDB and MySQL take statements of 16 MiB unless they are set otherwise, and the quotes of a
# string in one double at most.
_CALL_BYTES = 8 * 1024 * 1024 - 64 * 1024
_BETWEEN = 2


@dataclass(frozen=True, slots=True)
class Item:
    """A waiting message of the other queue.

    label    how an error names it
    id       the other queue's id for it
    own_key  names it and no other one; its dedup key, unless the other queue has one for it
    message  what it becomes; its text is the body
    later    whether it waits for its time
    tried    how often the other queue has had it at work
    """

    label: str
    id: Any
    own_key: str
    message: NewMessage
    later: bool
    tried: int


class Batch:
    """The messages of one call: up to a number, and up to so many bytes of JSON."""

    def __init__(self, count: int) -> None:
        """Begin without a message; `count` is the most."""
        self.items: list[Item] = []
        self.room = count
        self._bytes = 0

    def add(self, item: Item) -> bool:
        """Add a message if it fits; the first one always does."""
        size = len(json.dumps(batch_entries([item.message]))) + _BETWEEN
        if self.items and self._bytes + size > _CALL_BYTES:
            return False
        self.items.append(item)
        self.room -= 1
        self._bytes += size
        return True


class Source(ABC):
    """The queues of another system."""

    @abstractmethod
    def choose(self, names: Sequence[str] | None) -> list[str]:
        """Return the queues of these names, all by default; raises BadInput for an unknown one."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Any]:
        """Return a block that holds all of a batch."""

    @abstractmethod
    def reading(self, name: str) -> AbstractContextManager[Any]:
        """Return a block in which page returns the messages that wait in a queue at its begin."""

    @abstractmethod
    def page(self, name: str, count: int, *, lock: bool) -> list[Item]:
        """Return the next messages, as many as fit one call, locked if they are to be removed.

        Raises BadInput for one that cannot be a message of rowq's.
        """

    @abstractmethod
    def remove(self, name: str, items: Sequence[Item]) -> int:
        """Delete messages; return how many there were."""

    @abstractmethod
    def left(self, name: str) -> int:
        """Return how many messages stay because somebody works on them, or they wait for others."""


def origin_of(*names: object) -> str:
    """Return a short text that stands for these names and no others, as a part of a key."""
    return hashlib.sha256("\0".join(map(str, names)).encode()).hexdigest()[:16]


def key_or(given: str | None, otherwise: str) -> str:
    """Return a key of the other queue's as a dedup key, or another where it is no good one."""
    return given if given and len(given) <= LONGEST_KEY else otherwise


def group_key_of(given: str | None, label: str) -> str | None:
    """Return a key whose messages keep their order; raises BadInput for one that is too long."""
    if given is not None and len(given) > LONGEST_KEY:
        raise BadInput(f"{label}: a group key has up to {LONGEST_KEY} characters, it {len(given)}")
    return given or None
