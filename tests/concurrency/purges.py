"""The purge of a run: purge_queue returns a number, and the history needs the ids."""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.concurrency.history import Event


@dataclass(frozen=True)
class Purge:
    """A purge between two times of the history's clock; removed: None if its answer was lost."""

    start: float
    end: float
    removed: int | None


def with_purge(history: Sequence[Event], purge: Purge, most: int) -> list[Event]:
    """Return a history with an event of its only purge.

    It has removed the missing messages that no other call removed. most: their maximum number.
    """
    censuses = [event for event in history if event.action == "census"]
    sent = {
        message
        for event in history
        if event.action == "enqueue" and event.known
        for message, _ in event.results
    }
    # A cancelled message may have ended when its lease expired, without a record.
    ended = {
        (message, event.known and how != "requested")
        for event in history
        for message, how in event.results
        if how in {"completed", "cancelled", "requested"}
    }
    there = {message for message, _ in censuses[-1].results}
    gone = sent - there
    purged = sorted(gone - {message for message, _ in ended})
    unsure = {message for message, _ in ended} - {message for message, known in ended if known}
    removed = len(purged) if purge.removed is None else purge.removed
    assert removed <= most, f"{removed} were purged, and no more than {most} may be"
    # A message of a lost enqueue is unknown, and may be among them.
    is_open = any(event.action == "enqueue" and not event.known for event in history)
    assert len(purged) <= removed, f"{removed} were purged, {len(purged)} are missing: {purged}"
    assert is_open or removed <= len(purged) + len(unsure & gone), (
        f"{removed} were purged, only {len(purged)} are missing"
    )
    event = Event(
        purge.start,
        purge.end,
        "maintainer",
        "purge_queue",
        results=tuple((message, "purged") for message in purged),
    )
    return sorted([*history, event], key=lambda one: one.end)
