"""A history sorted by message and by claim, for the rules of checker.py."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.concurrency.history import Event


@dataclass(slots=True)
class Lease:
    """One message in one claim.

    live_until: no call can have ended the lease before. enders: calls that may have ended it.
    """

    message: int
    attempt: int
    dequeue: Event
    live_until: float
    enders: set[str] = field(default_factory=set)


class Record:
    """A history, sorted by message and by claim.

    group_limit: the highest that the queue had. groups: group key by message. joined: the call that
        put a message into its group, unless it was delayed. waits: by message, what a dead
        predecessor does to it, and its predecessors. expires: by message, when its time comes.
    """

    def __init__(self, history: Sequence[Event], group_limit: int = 1) -> None:
        self.group_limit = group_limit
        self.groups: dict[int, str] = {}
        self.joined: dict[int, Event] = {}
        self.waits: dict[int, tuple[str, list[int]]] = {}
        self.expires: dict[int, Event] = {}
        self.history = sorted(history, key=lambda event: event.end)
        self.leases: dict[int, list[Lease]] = defaultdict(list)
        self.finishes: dict[int, list[tuple[Event, str]]] = defaultdict(list)
        self.enqueued: dict[int, Event] = {}
        self.lost_dequeues = 0
        self.lost_enqueues = 0
        self.lost_resets = 0
        self._by_claim: dict[int | None, list[Event]] = defaultdict(list)
        for event in self.history:
            self._sort(event)
        for leases in self.leases.values():
            for lease in leases:
                self._end(lease)

    def _sort(self, event: Event) -> None:
        if event.action == "dequeue":
            self.lost_dequeues += not event.known
            for message, attempt in event.results:
                lease = Lease(message, int(attempt), event, event.start + event.lease_seconds)
                self.leases[message].append(lease)
        elif event.action == "enqueue":
            self.lost_enqueues += not event.known
            self.enqueued |= {message: event for message, _ in event.results}
        elif event.action in ("join", "join_later", "wait"):
            self._tie(event)
        elif event.action not in ("census", "maintain"):
            if event.action == "expiring":
                self.expires |= {message: event for message, _ in event.results}
            self.lost_resets += event.action == "reset" and not event.known
            self._by_claim[event.claim_id].append(event)
            for message, outcome in event.results:
                self.finishes[message].append((event, str(outcome)))

    def _tie(self, event: Event) -> None:
        """Add the groups and predecessors of enqueued messages."""
        if event.action == "wait":
            for message, waits_for in event.results:
                on_dead, *predecessors = str(waits_for).split()
                self.waits[message] = on_dead, [int(one) for one in predecessors]
            return
        self.groups |= {message: str(key) for message, key in event.results}
        if event.action == "join":
            self.joined |= {message: event for message, _ in event.results}

    def _end(self, lease: Lease) -> None:
        """Find the calls that may have ended a lease, and the first time."""
        ends = []
        for event in self._by_claim[lease.dequeue.claim_id]:
            if event.action == "extend_lease":
                if event.known:
                    lease.live_until = max(lease.live_until, event.start + event.lease_seconds)
            elif not event.results or any(message == lease.message for message, _ in event.results):
                ends.append(event.start)
                lease.enders.add(event.action)
        if lease.dequeue.claim_id is not None:
            everything = self._by_claim[None]
            ends += [event.start for event in everything if event.action == "expire"]
        lease.live_until = min([lease.live_until, *ends])

    def around(self, event: Event) -> tuple[Event | None, Event | None]:
        """Return the census before and after a call, if no other call happened between them."""
        then = now = None
        for census in self.history:
            if census.action == "census" and census.end <= event.start:
                then = census
            elif census.action == "census" and census.start >= event.end:
                now = census
                break
        if then and now:
            between = (
                call for call in self.history if call.end > then.end and call.start < now.start
            )
            if any(call is not event for call in between):
                return None, None
        return then, now

    def effects(self, message: int) -> Iterator[tuple[Event, str]]:
        """Yield the calls on a message that are known to have taken effect."""
        for event, outcome in self.finishes[message]:
            if event.known and outcome not in ("stale", "leased", "not_found", "duplicate"):
                yield event, outcome
