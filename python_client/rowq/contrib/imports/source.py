"""Interface of another queue for the import."""

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
"""Maximum characters of a dedup key or group key."""
# The default max_allowed_packet of MariaDB and MySQL is 16 MiB, and quoting at most doubles a
# string.
_CALL_BYTES = 8 * 1024 * 1024 - 64 * 1024
_BETWEEN = 2


@dataclass(frozen=True, slots=True)
class Item:
    """A waiting message of the other queue.

    label    its name in errors
    id       its id in the other queue
    own_key  a unique key; the dedup key, unless the other queue has one
    message  the new message; its text is the body
    later    whether it is delayed
    tried    number of attempts in the other queue
    """

    label: str
    id: Any
    own_key: str
    message: NewMessage
    later: bool
    tried: int


class Batch:
    """The messages of one call, limited by number and by bytes of JSON."""

    def __init__(self, count: int) -> None:
        """Start without messages; `count` is the maximum."""
        self.items: list[Item] = []
        self.capacity = count
        self._bytes = 0

    def add(self, item: Item) -> bool:
        """Add a message if it fits; the first one always fits."""
        size = len(json.dumps(batch_entries([item.message]))) + _BETWEEN
        if self.items and self._bytes + size > _CALL_BYTES:
            return False
        self.items.append(item)
        self.capacity -= 1
        self._bytes += size
        return True


class Source(ABC):
    """The queues of another system."""

    @abstractmethod
    def choose(self, names: Sequence[str] | None) -> list[str]:
        """Return the queues to import, by default all; raises BadInput for an unknown one."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Any]:
        """Return a context for one batch."""

    @abstractmethod
    def reading(self, name: str) -> AbstractContextManager[Any]:
        """Return a context in which `page` reads the messages that wait at its start."""

    @abstractmethod
    def page(self, name: str, count: int, *, lock: bool) -> list[Item]:
        """Return the next messages, as many as fit one call, locked if they will be removed.

        Raises BadInput for a message that rowq cannot store.
        """

    @abstractmethod
    def remove(self, name: str, items: Sequence[Item]) -> int:
        """Delete messages; return their number."""

    @abstractmethod
    def left(self, name: str) -> int:
        """Return the number of messages that stay: leased, or waiting for others."""


def origin_of(*names: object) -> str:
    """Return a short hash of names, for a dedup key."""
    return hashlib.sha256("\0".join(map(str, names)).encode()).hexdigest()[:16]


def key_or(key: str | None, default: str) -> str:
    """Return the other queue's key as a dedup key, or `default` if it is empty or too long."""
    return key if key and len(key) <= LONGEST_KEY else default


def group_key_of(key: str | None, label: str) -> str | None:
    """Return a group key; raises BadInput if it is too long."""
    if key is not None and len(key) > LONGEST_KEY:
        raise BadInput(
            f"{label}: group key must be at most {LONGEST_KEY} characters, got {len(key)}"
        )
    return key or None
