"""explain_message of a queue in memory, with the reasons that its model knows."""

from collections.abc import Iterator
from datetime import datetime

from rowq.contrib.testing.model import Entry
from rowq.contrib.testing.stored import StoredQueue
from rowq.engines.base import Row

_LATE_SECONDS = 5
_MOST = 10_000


def explain(queue: StoredQueue, message_id: int) -> list[Row]:
    """Return the rows of explain_message."""
    entry = queue.model.entries.get(message_id)
    if entry is None:
        ended = queue.model.ended(message_id)
        if ended is not None:
            return [_row("ended", f"it has ended: {ended.state}")]
        detail = "it is not in the queue: not committed, rolled back, or ended with nothing kept"
        return [_row("unknown", detail)]
    rows = [*_reasons(queue, entry)]
    late = queue.time_of(queue.model.now - _LATE_SECONDS)
    if any(row[1] is not None and row[1] < late for row in rows):
        detail = "maintain is late by more than 5 seconds; run a worker, or call maintain"
        rows.append(_row("no_maintain", detail))
    return rows


def _row(reason: str, detail: str, clears_at: datetime | None = None) -> Row:
    return reason, clears_at, None, None, None, detail


def _reasons(queue: StoredQueue, entry: Entry) -> Iterator[Row]:
    if entry.state == "dead":
        yield _row("dead", "it is dead; reset makes it ready")
    elif entry.state == "leased":
        claim_id, worker, until = _holder(queue, entry)
        if until is not None and until <= queue.now:
            reason, detail = "lease_expired", "its lease has expired; the next maintain returns it"
        else:
            reason = "leased"
            detail = "a worker holds it until the worker finishes it or its lease expires"
        yield reason, until, None, claim_id, worker, detail
    else:
        yield from _of_waiting(queue, entry)


def _of_waiting(queue: StoredQueue, entry: Entry) -> Iterator[Row]:
    due = queue.time_of(entry.due[0])
    if queue.model.paused:
        yield _row("paused", "the queue is paused; resume_queue ends the pause")
    if entry.state == "blocked":
        yield from _of_group(queue, entry) if entry.awaits is None else _of_chain(queue, entry)
    if entry.state in {"delayed", "blocked"} and due > queue.now:
        yield _row("delayed", "it waits for its time; alter_message changes it", due)
    elif entry.state == "delayed":
        yield _row("overdue", "its time has come; the next maintain makes it ready", due)
    if entry.state == "ready":
        yield from _of_ready(queue, entry)
    if entry.expires is not None:
        expires = queue.time_of(entry.expires)
        yield _row("expires", "maintain expires it from this time on", expires)


def _of_ready(queue: StoredQueue, entry: Entry) -> Iterator[Row]:
    before = min(queue.model.ready_in_order().index(entry), _MOST)
    if before:
        are = "message is" if before == 1 else "messages are"
        yield _row("behind", f"{before} ready {are} before it")
    else:
        yield _row("next", "the next dequeue that leases a message leases this one")
    is_leased = any(claim.until > queue.model.now for claim in queue.model.claims.values())
    if not (queue.model.paused or is_leased):
        detail = "no message of the queue is leased, and no worker has reported for 60 seconds"
        yield _row("no_worker", detail)


def _of_chain(queue: StoredQueue, entry: Entry) -> Iterator[Row]:
    predecessor = queue.model.entries.get(entry.awaits or 0)
    if predecessor is None:
        yield _row("deferred", "its predecessor has ended; the next maintain resumes it")
    elif predecessor.state == "dead":
        detail = "its predecessor is dead; reset, cancel or discard that"
        yield "predecessor_dead", None, entry.awaits, None, None, detail
    else:
        claim_id, worker, until = _holder(queue, predecessor)
        if predecessor.state == "delayed":
            until = queue.time_of(predecessor.due[0])
        detail = f"it waits for its predecessor, which is {predecessor.state}"
        yield "predecessor", until, entry.awaits, claim_id, worker, detail


def _of_group(queue: StoredQueue, entry: Entry) -> Iterator[Row]:
    group = [one for one in queue.model.entries.values() if one.group == entry.group]
    holders = [one for one in group if one.has_slot]
    for state, detail in (
        ("leased", "a message of its group is leased; the next one follows when it ends"),
        ("dead", "a dead message holds the slot of its group; reset, cancel or discard it"),
        ("delayed", "a message of its group is delayed after an attempt"),
        ("ready", "a message of its group is ready and is delivered first"),
    ):
        for one in (holder for holder in holders if holder.state == state):
            claim_id, worker, until = _holder(queue, one)
            if state == "delayed":
                until = queue.time_of(one.due[0])
            reason = "group_dead" if state == "dead" else "group"
            yield reason, until, one.message_id, claim_id, worker, detail
    waiting = [one for one in group if one.state == "blocked" and one.awaits is None]
    before = min(sum(one.message_id < entry.message_id for one in waiting), _MOST)
    if before or not holders:
        wait = "message of its group waits" if before == 1 else "messages of its group wait"
        yield _row("group", f"{before} {wait} before it")


def _holder(queue: StoredQueue, entry: Entry) -> tuple[int | None, str | None, datetime | None]:
    """Return claim, worker and end of the lease of a message."""
    claim_id, claim = queue.holder(entry)
    if claim is None:
        return None, None, None
    return claim_id, claim.worker, queue.time_of(claim.until)
