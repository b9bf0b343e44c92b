"""Checker of histories: find what no correct queue could have done.

Calls overlap, so a rule reports only what is wrong in every order of the overlapping calls. Each
rule has a bad history in test_checker_rejects_bad_history.py that it must reject.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence

from tests.concurrency.history import Event
from tests.concurrency.record import Lease, Record

FINISHES = frozenset({"complete", "retry_later", "release", "fail_now"})
GIVES_ATTEMPT_BACK = frozenset({"release", "rollback"})
LAST_STATES = frozenset({"completed", "cancelled", "purged"})
MAYBE_LAST = LAST_STATES | {"requested", "expiring"}
"""Outcomes after which a message may have ended: reap ends cancelled and maintain expired ones, and
neither returns their ids."""
_PLACES = {
    **dict.fromkeys(LAST_STATES),
    "retrying": "delayed",
    "dead": "dead",
    "released": "ready",
    "snoozed": "delayed",
    "reset": "ready",
}
"""The state of a message after an outcome, as in a census."""


def check(history: Sequence[Event], group_limit: int = 1) -> list[str]:
    """Return the errors in a history, in words."""
    record = Record(history, group_limit)
    return [fault for rule in RULES for fault in rule(record)]


def no_double_lease(record: Record) -> Iterator[str]:
    """Two sessions never hold a live lease on the same message."""
    for message, leases in record.leases.items():
        holder: Lease | None = None
        for lease in leases:
            if holder and lease.dequeue.end < min(holder.live_until, lease.live_until):
                yield (
                    f"message {message} was leased to claim {lease.dequeue.claim_id}"
                    f" while claim {holder.dequeue.claim_id} held it"
                )
            if holder is None or lease.live_until > holder.live_until:
                holder = lease


def completed_once(record: Record) -> Iterator[str]:
    """A message is completed, cancelled or purged once."""
    for message in record.finishes:
        ends = [outcome for _, outcome in record.effects(message) if outcome in LAST_STATES]
        if len(ends) > 1:
            yield f"message {message} was finished {len(ends)} times: {', '.join(ends)}"


def not_delivered_after_completion(record: Record) -> Iterator[str]:
    """A completed, cancelled or purged message is never delivered again."""
    for message, leases in record.leases.items():
        ends = [event.end for event, outcome in record.effects(message) if outcome in LAST_STATES]
        if ends and any(lease.dequeue.start > min(ends) for lease in leases):
            yield f"message {message} was delivered after it was finished"


def not_delivered_after_request(record: Record) -> Iterator[str]:
    """A message that was cancelled while leased is not delivered again."""
    for message, leases in record.leases.items():
        asked = [event.end for event, outcome in record.effects(message) if outcome == "requested"]
        if asked and any(lease.dequeue.start > min(asked) for lease in leases):
            yield f"message {message} was delivered after its worker was asked to stop"


def not_kept_after_expiry(record: Record) -> Iterator[str]:
    """An expired message does not wait after the second maintain.

    Before the first it may have been returned by a worker.
    """
    kept = [0.0, 0.0]
    for event in record.history:
        if event.action == "maintain":
            kept.append(event.start)
        elif event.action == "census":
            waiting = {one for one, state in event.results if state not in ("leased", "dead")}
            for message in waiting & record.expires.keys():
                if record.expires[message].end < kept[-2]:
                    yield f"message {message} should have expired"


def late_finish_refused(record: Record) -> Iterator[str]:
    """A claim that has lost a message to another cannot finish it, and no claim can twice."""
    for message, leases in record.leases.items():
        finished: Counter[int | None] = Counter()
        place = {lease.dequeue.claim_id: number for number, lease in enumerate(leases)}
        for event, _ in record.effects(message):
            if event.action not in FINISHES:
                continue
            finished[event.claim_id] += 1
            if event.claim_id not in place:
                yield f"message {message} was finished by claim {event.claim_id}, not its own"
                continue
            later = leases[place[event.claim_id] + 1 :]
            if any(lease.dequeue.end < event.start for lease in later):
                yield (
                    f"claim {event.claim_id} could {event.action} message {message}"
                    " after another claim had it"
                )
        for claim, count in finished.items():
            if count > 1:
                yield f"claim {claim} finished message {message} {count} times"


def attempts_count_leases(record: Record) -> Iterator[str]:
    """Each lease is one attempt more, unless it was released or rolled back."""
    for message, leases in record.leases.items():
        if any(event.action == "reset" for event, _ in record.effects(message)):
            continue
        lowest, highest = 1, 1 + record.lost_dequeues
        for lease in leases:
            if not lowest <= lease.attempt <= highest:
                yield (
                    f"message {message} came as attempt {lease.attempt} in claim"
                    f" {lease.dequeue.claim_id}, not {lowest}"
                )
            lowest = lease.attempt + (not lease.enders & GIVES_ATTEMPT_BACK)
            lowest = 1 if record.lost_resets else lowest
            highest = lease.attempt + 1 + record.lost_dequeues


def nothing_lost(record: Record) -> Iterator[str]:
    """Every message is done, cancelled, purged, ready, delayed, blocked, leased or dead, once."""
    for census in (event for event in record.history if event.action == "census"):
        places: dict[int, list[str]] = defaultdict(list)
        for message, state in census.results:
            places[message].append(str(state))
        sent = {message for message, event in record.enqueued.items() if event.end < census.start}
        for message in sent:
            ends, maybe = _ends(record, message, census.start)
            found = len(places[message]) + ends
            if found > 1:
                yield f"message {message} is in {places[message]} and was finished {ends} times"
            if found == 0 and not maybe:
                yield f"message {message} is lost"
        strangers = [message for message in places if places[message] and message not in sent]
        if strangers and not record.lost_enqueues:
            yield f"messages that were never enqueued: {strangers[:5]}"


def _ends(record: Record, message: int, before: float) -> tuple[int, bool]:
    """Return how often a message was finished before a time, and whether it may have been."""
    calls = [(event, how) for event, how in record.finishes[message] if event.start < before]
    ends = sum(event.known and how in LAST_STATES for event, how in calls)
    return ends, any(how in MAYBE_LAST for _, how in calls)


def only_known_messages(record: Record) -> Iterator[str]:
    """A message that is delivered was enqueued, by a call that had begun."""
    for message, leases in record.leases.items():
        sent = record.enqueued.get(message)
        if sent is None and record.lost_enqueues == 0:
            yield f"message {message} was delivered and never enqueued"
        if sent is not None and leases[0].dequeue.end < sent.start:
            yield f"message {message} was delivered before it was enqueued"


def whole_or_not_at_all(record: Record) -> Iterator[str]:
    """A lost call has done everything or nothing."""
    for event in (event for event in record.history if not event.known):
        then, now = record.around(event)
        if then is None or now is None:
            continue
        was, found = dict(then.results), dict(now.results)
        moves = {
            message
            for message, outcome in event.results
            if _PLACES.get(str(outcome), was.get(message)) != was.get(message)
        }
        left = {message for message in moves if was.get(message) == found.get(message)}
        if left and left != moves:
            yield f"{event.action} was broken off halfway: it left {sorted(left)} where they were"


def groups_in_order(record: Record) -> Iterator[str]:
    """A message is not delivered before one of its group ended that was there when it came."""
    if record.group_limit > 1:
        return
    for members in _members(record).values():
        older = sorted(members, key=lambda message: record.joined[message].end)
        last, unfinished = 0.0, 0
        place = 0
        for message in sorted(members, key=lambda message: record.joined[message].start):
            while record.joined[older[place]].end < record.joined[message].start:
                if _ended(record, older[place]) > last:
                    last, unfinished = _ended(record, older[place]), older[place]
                place += 1
            if message in record.leases and record.leases[message][0].dequeue.end < last:
                yield f"message {message} was delivered before {unfinished} of its group had ended"


def _members(record: Record) -> dict[str, list[int]]:
    """Return the messages that joined each group at once, not delayed."""
    members = defaultdict(list)
    for message in record.joined:
        members[record.groups[message]].append(message)
    return members


def _ended(
    record: Record, message: int, ends: frozenset[str] | set[str] = MAYBE_LAST | {"dead"}
) -> float:
    """Return the earliest time at which a message may have ended this way."""
    times = [event.start for event, outcome in record.finishes[message] if outcome in ends]
    return min(times, default=float("inf"))


def groups_keep_their_limit(record: Record) -> Iterator[str]:
    """A group never has more messages leased than its limit."""
    changes: dict[str, list[tuple[float, int, int]]] = defaultdict(list)
    for message, group in record.groups.items():
        for lease in record.leases.get(message, ()):
            if lease.dequeue.end < lease.live_until:
                changes[group].append((lease.dequeue.end, 1, message))
                changes[group].append((lease.live_until, 0, message))
    for group, times in changes.items():
        held: Counter[int] = Counter()
        for _, is_begin, message in sorted(times):
            held[message] += 1 if is_begin else -1
            if is_begin and len(+held) > record.group_limit:
                yield f"messages {sorted(+held)} of group {group} were in work at once"


def groups_keep_their_limit_in_a_census(record: Record) -> Iterator[str]:
    """A census finds no more messages of a group ready or leased than its limit."""
    for census in (event for event in record.history if event.action == "census"):
        for group, states in _states(record, census).items():
            if states["ready"] + states["leased"] > record.group_limit:
                yield f"{dict(states)} messages of group {group} were in work at once"


def no_group_stranded(record: Record) -> Iterator[str]:
    """After maintain, no message waits in a group with no message in work.

    A message of a lost enqueue may be in work.
    """
    for census in (event for event in record.history if event.action == "census"):
        if record.lost_enqueues and any(one not in record.enqueued for one, _ in census.results):
            continue
        for group, states in _states(record, census).items():
            if states["blocked"] and not states["ready"] + states["leased"] + states["delayed"]:
                yield f"{states['blocked']} messages of group {group} wait for nothing"


def predecessors_end_first(record: Record) -> Iterator[str]:
    """A message is not delivered before all of its predecessors can have ended.

    A message that failed with a predecessor and was reset is delivered at once. It has died
    without a recorded call.
    """
    for message, (on_dead, predecessors) in record.waits.items():
        if message not in record.leases or _may_have_been_reset(record, message):
            continue
        delivered = record.leases[message][0].dequeue.end
        ends = MAYBE_LAST | ({"dead"} if on_dead == "continue" else set())
        for one in predecessors:
            if on_dead == "continue" and record.waits.get(one, ("hold", []))[0] == "fail":
                continue
            if delivered < _ended(record, one, ends):
                yield f"message {message} was delivered before its predecessor {one} had ended"


def _may_have_been_reset(record: Record, message: int) -> bool:
    is_reset = any(outcome == "reset" for _, outcome in record.finishes[message])
    return is_reset or (record.lost_resets > 0 and record.waits[message][0] == "fail")


def nothing_waits_for_nothing(record: Record) -> Iterator[str]:
    """After maintain, no message is blocked whose predecessors have all ended."""
    for census in (event for event in record.history if event.action == "census"):
        places = dict(census.results)
        for message, (on_dead, predecessors) in record.waits.items():
            if places.get(message) == "blocked" and message not in record.groups:
                holding = [one for one in predecessors if one in places]
                if on_dead != "hold":
                    holding = [one for one in holding if places[one] != "dead"]
                if not holding:
                    yield f"message {message} waits for nothing"


def _states(record: Record, census: Event) -> dict[str, Counter[str]]:
    """Return how many messages of each group a census found in each state.

    A delayed message has joined its group if it came without a delay, or has been leased; one
    that waits for predecessors may not have joined yet.
    """
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for message, state in census.results:
        has_joined = message in record.joined or message in record.leases
        if state == "blocked" and message in record.waits:
            continue
        if message in record.groups and (state != "delayed" or has_joined):
            found[record.groups[message]][str(state)] += 1
    return found


RULES: tuple[Callable[[Record], Iterator[str]], ...] = (
    no_double_lease,
    completed_once,
    not_delivered_after_completion,
    not_delivered_after_request,
    not_kept_after_expiry,
    late_finish_refused,
    attempts_count_leases,
    nothing_lost,
    only_known_messages,
    whole_or_not_at_all,
    groups_in_order,
    groups_keep_their_limit,
    groups_keep_their_limit_in_a_census,
    no_group_stranded,
    predecessors_end_first,
    nothing_waits_for_nothing,
)


def check_order(history: Sequence[Event]) -> list[str]:
    """Check one consumer's run: first deliveries in order of priority and arrival."""
    faults = []
    waiting: list[tuple[int, int]] = []
    delivered: set[int] = set()
    for event in sorted(history, key=lambda event: event.end):
        if event.action == "enqueue":
            for message, priority in event.results:
                heapq.heappush(waiting, (int(priority), message))
        elif event.action == "dequeue":
            for message in (message for message, _ in event.results if message not in delivered):
                first = _first(waiting, delivered)
                if first != message:
                    faults.append(f"message {message} came before message {first}")
                delivered.add(message)
    return faults


def check_limits(
    history: Sequence[Event],
    *,
    max_leased: int | None = None,
    rate_limit: int | None = None,
    rate_seconds: float = 1,
) -> list[str]:
    """Check a run of a limited queue: leased messages, and deliveries per window.

    A dequeue that was rolled back delivered nothing.
    """
    record = Record(history)
    faults: list[str] = []
    if max_leased is not None:
        faults += _too_many_leased(record, max_leased)
    if rate_limit is not None:
        faults += _too_many_begun(record, rate_limit, rate_seconds)
    return faults


def _too_many_leased(record: Record, most: int) -> Iterator[str]:
    """Check the number of leases that were certainly live at a time."""
    changes = []
    for leases in record.leases.values():
        for lease in leases:
            if lease.dequeue.end < lease.live_until:
                changes += [(lease.dequeue.end, 1), (lease.live_until, -1)]
    count = 0
    for at, change in sorted(changes):
        count += change
        if change > 0 and count > most:
            yield f"{count} messages were leased at {at:.6f}, and not {most}"


def _too_many_begun(record: Record, most: int, seconds: float) -> Iterator[str]:
    """Check the number of deliveries of calls within a window."""
    begun = sorted(
        (lease.dequeue.end, lease.dequeue.start)
        for leases in record.leases.values()
        for lease in leases
        if "rollback" not in lease.enders
    )
    for first in sorted({start for _, start in begun}):
        inside = [end for end, start in begun if start >= first and end < first + seconds]
        if len(inside) > most:
            yield f"{len(inside)} deliveries began in {seconds} s from {first:.6f}, and not {most}"


def _first(waiting: list[tuple[int, int]], delivered: set[int]) -> int | None:
    """Return the message that is next in line for its first delivery."""
    while waiting and waiting[0][1] in delivered:
        heapq.heappop(waiting)
    return waiting[0][1] if waiting else None
