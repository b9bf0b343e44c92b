"""Make the same call on a queue and on the model, and compare the answers."""

from collections import Counter
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, NamedTuple

import pytest

from rowq import NewMessage, Queue, StaleClaim
from rowq.contrib.testing.model import STATES, ReferenceQueue

BACKOFF = (600, 1200, 2400, 3600, 3600, 3600)
"""The retry delays that the queue's settings cause."""


class NewEntry(NamedTuple):
    """A message to enqueue, as the reference takes it."""

    priority: int
    delay: int
    key: str | None
    allowed: int | None
    group: str | None
    after: list[int]
    dead: str | None
    message_type: str | None
    expires: int | None


class Comparison:
    """One queue, twice. All times are multiples of 300 s, and a comparison takes less.

    queue: of an engine, or in memory. engine: its name, or the imitated engine's.
    pass_seconds: lets time pass for the queue. seen: counts what happened, as "call: outcome".
    topic: an unbound topic by which every second message is published; None without topics.
    result_seconds: None if the engine has no results.
    """

    def __init__(
        self,
        queue: Queue,
        name: str,
        seen: Counter[str],
        *,
        engine: str,
        pass_seconds: Callable[[int], None],
        has_groups: bool,
        has_predecessors: bool,
        has_cancel: bool,
        has_expiry: bool,
        result_seconds: float | None,
        topic: str | None,
    ) -> None:
        self.pass_seconds = pass_seconds
        self.name = name
        self.seen = seen
        self.has_groups = has_groups
        self.has_predecessors = has_predecessors
        self.has_cancel = has_cancel
        self.has_expiry = has_expiry
        self.has_results = bool(result_seconds)
        self.queue = queue
        self.queue.create_queue(
            name,
            max_attempts=3,
            backoff_base_seconds=600,
            backoff_factor=2,
            backoff_cap_seconds=3600,
            backoff_jitter=0,
            result_seconds=result_seconds,
        )
        self.topic = topic
        if topic is not None:
            self.queue.bind_topic(name, topic)
        self.looks_at_all_queues = engine == "mysql"
        self.promotes_last = engine == "sqlserver"
        self.reference = ReferenceQueue(
            max_attempts=3,
            backoff=BACKOFF,
            always_runs_deferred=engine == "mysql",
            releases_slots_first=engine == "mysql",
            result_seconds=result_seconds or 0,
        )
        self.known: list[int] = []
        self.claims: list[int] = []

    def step(self, seeded_random: Random) -> None:
        """Make a random call, and compare answers and states."""
        calls = {
            self.enqueue: 3,
            self.enqueue_batch: 3,
            self.dequeue: 6,
            self.finish: 8,
            self.extend_lease: 1,
            self.cancel: 2,
            self.cancel_many: 0.3 if self.has_cancel else 0,
            self.reset: 4,
            self.promote: 1,
            self.reap: 1,
            self.maintain: 1,
            self.let_time_pass: 3,
            self.pause_or_resume: 1,
            self.purge: 0.3,
            self.discard: 1,
            self.set_groups: 0.8 if self.has_groups else 0,
        }
        (call,) = seeded_random.choices(list(calls), list(calls.values()))
        call(seeded_random)
        self.compare_states()

    def compare_states(self) -> None:
        """Compare counts, and ready messages in the order of delivery."""
        stats = self.queue.queue_stats(self.name)[0]
        found = {state: getattr(stats, state) or 0 for state in STATES}
        assert found == self.reference.counts()
        self.seen["blocked"] += found["blocked"]
        assert [
            (message.message_id, message.priority, message.attempt, message.last_error)
            for message in self.queue.peek(self.name, max_messages=1000)
        ] == [
            (entry.message_id, entry.priority, entry.attempt, entry.error)
            for entry in self.reference.ready_in_order()
        ]

    def compare_messages(self) -> None:
        """Compare the state of every message ever enqueued, and its result."""
        for message_id in self.known:
            details = self.queue.get_message(self.name, message_id)
            assert (details.state if details else None) == self.reference.state(message_id)
            if self.has_results:
                found = self.queue.get_result(self.name, message_id)
                ended = (found.state, found.result) if found else None
                assert ended == self.reference.result(message_id)
                self.seen[f"result: {found.state if found else None}"] += 1

    def enqueue(self, seeded_random: Random) -> None:
        """Enqueue one message, or publish it."""
        entry = self._new_entry(seeded_random)
        priority, delay, key, allowed, group, after, dead, message_type, expires = entry
        if self.topic is not None and not after and len(self.known) % 2:
            (published,) = self.queue.publish(
                self.topic,
                0,
                priority=priority,
                delay_seconds=delay,
                dedup_key=key,
                max_attempts=allowed,
                group_key=group,
                message_type=message_type,
                expire_seconds=expires,
            )
            self.seen["publish"] += 1
            self._sent(published.message_id, published.outcome, entry)
            return
        sent = self.queue.enqueue(
            self.name,
            0,
            priority=priority,
            delay_seconds=delay,
            dedup_key=key,
            max_attempts=allowed,
            group_key=group,
            predecessor_ids=after or None,
            on_predecessor_dead=dead,
            message_type=message_type,
            expire_seconds=expires,
        )
        self._sent(sent.message_id, sent.outcome, entry)

    def enqueue_batch(self, seeded_random: Random) -> None:
        """Enqueue a few messages at once."""
        batch = [self._new_entry(seeded_random) for _ in range(seeded_random.randint(0, 6))]
        positions = [self._some_positions(seeded_random, place) for place in range(len(batch))]
        messages = [
            NewMessage(
                data=0,
                priority=entry.priority,
                delay_seconds=entry.delay,
                dedup_key=entry.key,
                max_attempts=entry.allowed,
                group_key=entry.group,
                predecessor_ids=entry.after or None,
                predecessor_positions=places or None,
                on_predecessor_dead=entry.dead,
                message_type=entry.message_type,
                expire_seconds=entry.expires,
            )
            for entry, places in zip(batch, positions, strict=True)
        ]
        sent = self.queue.enqueue_batch(self.name, messages)
        reserved: dict[str | None, int] = {}
        for made, entry, places in zip(sent, batch, positions, strict=True):
            named = [*entry.after, *(sent[place - 1].message_id for place in places)]
            self._sent(made.message_id, made.outcome, entry._replace(after=named), reserved)
            reserved.setdefault(entry.key, made.message_id)

    def _sent(
        self,
        message_id: int,
        outcome: str,
        entry: NewEntry,
        reserved: Mapping[str | None, int] | None = None,
    ) -> None:
        """Compare a message's outcome; reserved: dedup keys of earlier messages of its batch."""
        owner = self.reference.owner_of(entry.key)
        if entry.key is not None and reserved:
            owner = reserved.get(entry.key, owner)
        assert outcome == ("enqueued" if owner is None else "duplicate")
        self.seen[f"enqueue: {outcome}"] += 1
        self.seen["waits for others"] += bool(entry.after) and owner is None
        if owner is None:
            self.reference.enqueue(message_id, *entry)
            self.known.append(message_id)
        else:
            assert message_id == owner

    def dequeue(self, seeded_random: Random) -> None:
        """Lease a batch."""
        batch_size, lease = seeded_random.randint(1, 5), seeded_random.choice([600, 1800])
        messages = self.queue.dequeue_fast(
            self.name, batch_size, worker_name="worker", lease_seconds=lease
        )
        claim_id = messages[0].claim_id if messages else 0
        expected = self.reference.dequeue(claim_id, batch_size, lease, "worker")
        assert [
            (message.message_id, message.attempt, message.last_error) for message in messages
        ] == [(entry.message_id, entry.attempt, entry.error) for entry in expected]
        self.seen[f"dequeue: {'some' if messages else 'none'}"] += 1
        if messages:
            self.claims.append(claim_id)

    def finish(self, seeded_random: Random) -> None:
        """Finish messages of a claim that may be stale."""
        how = seeded_random.choice(["complete", "retry_later", "fail_now", "release"])
        claim_id = self._any_claim(seeded_random)
        cancelled = [number for number, claim in self.reference.claims.items() if claim.cancels()]
        if cancelled and seeded_random.random() < 0.3:
            claim_id = seeded_random.choice(cancelled)
        wanted = (
            None if seeded_random.random() < 0.5 else self._some_messages(seeded_random, claim_id)
        )
        delay = seeded_random.choice([None, 0, 600, 1200])
        options: dict[str, Any] = {"error": "fail"} if how == "fail_now" else {}
        options |= {"delay_seconds": delay} if how in {"retry_later", "release"} else {}
        options |= {"error": "retry"} if how == "retry_later" else {}
        results = self._some_results(seeded_random, claim_id, wanted) if how == "complete" else {}
        options |= {"results": list(results.values())} if results else {}
        routine = getattr(self.queue, how)
        if wanted is None and claim_id not in self.reference.claims:
            with pytest.raises(StaleClaim):
                routine(self.name, claim_id, None, **options)
            self.seen[f"{how}: refused"] += 1
            return
        rows = routine(self.name, claim_id, wanted, **options)
        expected = dict.fromkeys(wanted or [], "stale")
        expected |= self._finish_reference(how, claim_id, wanted, delay, results)
        assert {outcome.message_id: outcome.outcome for outcome in rows} == expected
        self.seen.update(f"{how}: {outcome}" for outcome in expected.values())

    def _finish_reference(
        self,
        how: str,
        claim_id: int,
        wanted: list[int] | None,
        delay: int | None,
        results: Mapping[int, str],
    ) -> dict[int, str]:
        taken = self.reference.take(claim_id, wanted)
        if how == "complete":
            self.seen["completed although cancelled"] += any(one.is_cancelled for one in taken)
            self.reference.complete(taken, results)
            return {entry.message_id: "completed" for entry in taken}
        ended, taken = self.reference.end_cancelled(taken)
        outcomes = {entry.message_id: "cancelled" for entry in ended}
        if how == "retry_later":
            return outcomes | self.reference.retry(taken, delay, "retry")
        if how == "release":
            self.reference.release(taken, delay)
        else:
            self.reference.make_dead(taken, "fail")
        outcome = {"release": "snoozed" if delay else "released", "fail_now": "dead"}[how]
        return outcomes | {entry.message_id: outcome for entry in taken}

    def extend_lease(self, seeded_random: Random) -> None:
        """Extend the lease of a claim that may be stale."""
        claim_id, lease = self._any_claim(seeded_random), seeded_random.choice([600, 1800])
        if claim_id in self.reference.claims:
            held = self.queue.extend_lease(self.name, claim_id, lease_seconds=lease)
            self.reference.extend(claim_id, lease)
            cancels = self.reference.claims[claim_id].cancels()
            assert sorted(held.cancel_ids or []) == sorted(cancels)
        else:
            with pytest.raises(StaleClaim):
                self.queue.extend_lease(self.name, claim_id, lease_seconds=lease)
        self.seen["extend_lease"] += 1

    def cancel(self, seeded_random: Random) -> None:
        """Cancel some messages in any state."""
        held = [one for one in self.known if self.reference.state(one) == "leased"]
        among = held if held and seeded_random.random() < 0.5 else self.known
        wanted = seeded_random.sample(among, min(len(among), seeded_random.randint(1, 3)))
        include_leased = self.has_cancel and seeded_random.random() < 0.6
        rows = self.queue.cancel(self.name, wanted, include_leased=include_leased)
        outcomes = {outcome.message_id: outcome.outcome for outcome in rows}
        assert outcomes == self.reference.cancel(wanted, include_leased=include_leased)
        self.seen.update(f"cancel: {outcome}" for outcome in outcomes.values())

    def cancel_many(self, seeded_random: Random) -> None:
        """Cancel messages of a type, in several steps."""
        message_type, after = seeded_random.choice(["one", "two"]), 0
        # On an engine that scans the messages of all queues, make one step.
        limit = 10_000 if self.looks_at_all_queues else seeded_random.choice([3, 1000])
        while True:
            found = self.queue.cancel_many(
                self.name, message_type=message_type, after_message_id=after, max_messages=limit
            )
            cancelled, last = self.reference.cancel_many(
                lambda entry: entry.message_type == message_type, after, limit
            )
            assert found.cancelled == cancelled
            self.seen["cancel_many"] += cancelled
            if not self.looks_at_all_queues:
                assert found.after_message_id == last
            if found.after_message_id is None:
                return
            after = found.after_message_id

    def alter_message(self, seeded_random: Random) -> None:
        """Change priority, time and expiry of a message in any state."""
        if not self.known:
            return
        message_id = seeded_random.choice(self.known)
        changes: dict[str, Any] = {
            "priority": seeded_random.choice([None, 0, 5, 9]),
            "delay_seconds": seeded_random.choice([None, 0, 300, 900]),
            "expire_seconds": seeded_random.choice([None, 0, 900]) if self.has_expiry else None,
        }
        if set(changes.values()) == {None}:
            return
        found = self.queue.alter_message(self.name, message_id, **changes)
        assert found.outcome == self.reference.alter(message_id, *changes.values())
        self.seen[f"alter: {found.outcome}"] += 1
        self.compare_states()

    def reset(self, seeded_random: Random) -> None:
        """Reset one or all dead messages."""
        limit = seeded_random.choice([1, 1000])
        message_type = seeded_random.choice([None, None, "one"])
        rows = self.queue.reset(self.name, max_messages=limit, message_type=message_type)
        outcomes = {outcome.message_id: outcome.outcome for outcome in rows}
        dead = self.reference.dead(limit, lambda entry: message_type in (None, entry.message_type))
        assert outcomes == self.reference.reset(dead)
        self.seen.update(f"reset: {outcome}" for outcome in outcomes.values())

    def promote(self, seeded_random: Random) -> None:
        """Promote one or all due messages."""
        limit = seeded_random.choice([1, 1000])
        promoted = self.queue.promote(self.name, limit).promoted
        assert promoted == self.reference.promote(limit)
        self.seen["promote"] += promoted

    def reap(self, _: Random) -> None:
        """Reap expired claims."""
        done = self.queue.reap(self.name)
        assert (done.reaped, done.died) == self.reference.reap()
        self.seen["reap: back"] += done.reaped
        self.seen["reap: died"] += done.died

    def maintain(self, seeded_random: Random) -> None:
        """Call maintain later."""
        self.let_time_pass(seeded_random)
        done = self.queue.maintain(self.name)[0]
        assert (done.expired or 0) == self.reference.expire()
        self.seen["maintain: expired"] += done.expired or 0
        promoted = None if self.promotes_last else self.reference.promote()
        self.seen["maintain: deferred work"] += self.reference.maintain_groups()
        assert (done.reaped, done.died) == self.reference.reap()
        assert done.promoted == (self.reference.promote() if promoted is None else promoted)
        self.reference.forget_results()
        self.seen["maintain: promoted"] += done.promoted
        self.seen["maintain: reaped"] += done.reaped

    def let_time_pass(self, seeded_random: Random) -> None:
        """Let time pass."""
        seconds = seeded_random.choice([300, 300, 900, 2700])
        self.pass_seconds(seconds)
        self.reference.now += seconds

    def set_groups(self, seeded_random: Random) -> None:
        """Change the settings of groups."""
        limit, dead_hold = seeded_random.choice([1, 1, 2, 3]), seeded_random.random() < 0.4
        after_dead = "hold" if dead_hold else "continue"
        self.queue.alter_queue(self.name, group_limit=limit, group_after_dead=after_dead)
        self.reference.set_groups(limit, dead_hold=dead_hold)
        self.seen["groups that wait for a dead message"] += dead_hold

    def pause_or_resume(self, seeded_random: Random) -> None:
        """Pause or, more often, resume the queue."""
        self.reference.paused = seeded_random.random() < 0.3
        change = self.queue.pause_queue if self.reference.paused else self.queue.resume_queue
        change(self.name)

    def purge(self, seeded_random: Random) -> None:
        """Purge the queue."""
        include_dead = seeded_random.random() < 0.5
        removed = self.queue.purge_queue(self.name, include_dead=include_dead).removed
        assert removed == self.reference.purge(include_dead=include_dead)
        self.seen["purge"] += removed

    def discard(self, seeded_random: Random) -> None:
        """Discard some dead messages."""
        limit = seeded_random.choice([1, 2, 1000])
        removed = self.queue.discard_dead(self.name, max_messages=limit).removed
        assert removed == self.reference.discard(self.reference.dead(limit))
        self.seen["discard"] += removed

    def _any_claim(self, seeded_random: Random) -> int:
        """Return a claim id, mostly a recent one, or an unknown one."""
        return seeded_random.choice(self.claims[-4:] or [-1])

    def _new_entry(self, seeded_random: Random) -> NewEntry:
        priority = seeded_random.choice([0, 5, 9])
        delay = seeded_random.choice([0, 0, 600, 1200, 3600])
        return NewEntry(
            priority,
            delay,
            seeded_random.choice([None, "a", "b"]),
            seeded_random.choice([None, None, 1, 2]),
            seeded_random.choice([None, "g", "g", "h"]) if self.has_groups else None,
            *self._new_wait(seeded_random),
            seeded_random.choice([None, "one", "two"]),
            seeded_random.choice([None, None, 600, 2700]) if self.has_expiry else None,
        )

    def _new_wait(self, seeded_random: Random) -> tuple[list[int], str | None]:
        """Return some recent messages as predecessors, and on_predecessor_dead."""
        if not self.has_predecessors or seeded_random.random() < 0.6:
            return [], None
        last = self.known[-12:]
        named = seeded_random.sample(last, min(len(last), seeded_random.randint(0, 3)))
        return named, seeded_random.choice([None, "hold", "continue", "fail"])

    def _some_results(
        self, seeded_random: Random, claim_id: int, wanted: list[int] | None
    ) -> dict[int, str]:
        """Return results for a call of complete, or none."""
        claim = self.reference.claims.get(claim_id)
        held = [entry.message_id for entry in claim.entries] if claim else []
        if wanted is None and len(held) == 1:
            wanted = held
        if not wanted or not self.has_results or seeded_random.random() < 0.5:
            return {}
        return {message_id: f"done {message_id}" for message_id in wanted}

    def _some_positions(self, seeded_random: Random, place: int) -> list[int]:
        if not self.has_predecessors or seeded_random.random() < 0.6:
            return []
        return seeded_random.sample(range(1, place + 1), min(place, seeded_random.randint(0, 2)))

    def _some_messages(self, seeded_random: Random, claim_id: int) -> list[int]:
        """Return some message ids of a claim, at times invalid ones."""
        claim = self.reference.claims.get(claim_id)
        held = [entry.message_id for entry in claim.entries] if claim else []
        strange = seeded_random.sample(
            self.known, min(len(self.known), seeded_random.choice([0, 0, 2]))
        )
        return list({*seeded_random.sample(held, seeded_random.randint(0, len(held))), *strange})
