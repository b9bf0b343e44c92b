"""The purge of a run: its routine tells how many messages it removed, the history wants which."""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.concurrency.history import Event


@dataclass(frozen=True)
class Purge:
    """A purge between two moments of the history's clock; removed: None where no answer came."""

    start: float
    end: float
    removed: int | None


def with_purge(history: Sequence[Event], purge: Purge, most: int) -> list[Event]:
    """Return a history with an event of its only purge: of what is gone and nothing else tells of.

    most: how many it may have removed. Fails when it was not so many.
    """
    censuses = [event for event in history if event.action == "census"]
    sent = {
        message
        for event in history
        if event.action == "enqueue" and event.known
        for message, _ in event.results
    }
    # What a worker was asked to stop may have ended when its lease ran out, and nobody was told.
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
    # A message of an enqueue that was lost is not known to anybody, and may be among them.
    is_open = any(event.action == "enqueue" and not event.known for event in history)
    assert len(purged) <= removed, f"{removed} were purged, {len(purged)} are missing: {purged}"
    assert is_open or removed <= len(purged) + len(unsure & gone), (
        f"{removed} were purged, only {len(purged)} are missing"
    )
    event = Event(
        purge.start,
        purge.end,
        "housekeeper",
        "purge_queue",
        results=tuple((message, "purged") for message in purged),
    )
    return sorted([*history, event], key=lambda one: one.end)
