"""What an importer asks of the other queue."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from rowq.cli.errors import BadInput
from rowq.messages import NewMessage

LONGEST_KEY = 200
"""Characters of a dedup key or group key."""


@dataclass(frozen=True, slots=True)
class Item:
    """A waiting message of the other queue.

    key      its place in the order of reading
    label    how an error names it
    id       the other queue's id for it
    message  what it becomes; its text is the body
    later    whether it waits for its time
    tried    how often the other queue has had it at work
    """

    key: tuple[Any, ...]
    label: str
    id: Any
    message: NewMessage
    later: bool
    tried: int


class Source(ABC):
    """The queues of another system."""

    @abstractmethod
    def choose(self, names: Sequence[str] | None) -> list[str]:
        """Return the queues of these names, all by default; raises BadInput for an unknown one."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Any]:
        """Return a block that holds all of a batch."""

    @abstractmethod
    def page(
        self, name: str, after: tuple[Any, ...] | None, count: int, *, lock: bool
    ) -> list[Item]:
        """Return the next waiting messages of a queue, locked if they are to be removed.

        Raises BadInput for one that cannot be a message of rowq's.
        """

    @abstractmethod
    def remove(self, name: str, items: Sequence[Item]) -> int:
        """Delete messages; return how many there were."""

    @abstractmethod
    def left(self, name: str) -> int:
        """Return how many messages stay because somebody works on them, or they wait for others."""


def key_or(given: str | None, otherwise: str) -> str:
    """Return a key of the other queue's as a dedup key, or another where it is no good one."""
    return given if given and len(given) <= LONGEST_KEY else otherwise


def group_key_of(given: str | None, label: str) -> str | None:
    """Return a key whose messages keep their order; raises BadInput for one that is too long."""
    if given is not None and len(given) > LONGEST_KEY:
        raise BadInput(f"{label}: a group key has up to {LONGEST_KEY} characters, it {len(given)}")
    return given or None
