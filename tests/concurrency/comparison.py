"""Makes the same call on a queue of the engine and on the reference, and compares the answers."""

from collections import Counter
from random import Random

import pytest

from rowq import NewMessage, Queue, StaleClaim
from rowq.engines import engine_for_connection
from tests.concurrency.reference import STATES, ReferenceQueue
from tests.engines.base import Connection
from tests.stored_times import pass_seconds

BACKOFF = (10, 20, 40, 60, 60, 60)
"""The delays that the settings of the queue below make."""

NewEntry = tuple[int, int, str | None, int | None, str | None]
"""Priority, delay, dedup key, attempts and group of a message to enqueue."""


class Comparison:
    """One queue, twice. All times are multiples of 5 s, and a comparison takes less.

    seen: counts what happened, as "call: outcome".
    """

    def __init__(
        self, connection: Connection, name: str, seen: Counter[str], *, has_groups: bool
    ) -> None:
        self.connection = connection
        self.name = name
        self.seen = seen
        self.has_groups = has_groups
        self.queue = Queue(connection)
        self.queue.create_queue(
            name,
            max_attempts=3,
            backoff_base_seconds=10,
            backoff_factor=2,
            backoff_cap_seconds=60,
            backoff_jitter=0,
        )
        engine = engine_for_connection(connection).name
        self.promotes_last = engine == "sqlserver"
        self.reference = ReferenceQueue(
            max_attempts=3, backoff=BACKOFF, always_rechecks=engine == "mysql"
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
            self.cancel: 1,
            self.reset: 2,
            self.promote: 1,
            self.reap: 1,
            self.maintain: 1,
            self.let_time_pass: 3,
            self.pause_or_resume: 1,
            self.purge: 0.3,
            self.set_groups: 0.5 if self.has_groups else 0,
        }
        (call,) = seeded_random.choices(list(calls), list(calls.values()))
        call(seeded_random)
        self.compare_states()

    def compare_states(self) -> None:
        """Compare counts, and what is ready in the order of delivery."""
        stats = self.queue.queue_stats(self.name)[0]
        found = {state: getattr(stats, state) or 0 for state in STATES}
        assert found == self.reference.counts()
        self.seen["blocked"] += found["blocked"]
        assert [
            (message.message_id, message.priority, message.attempt, message.last_error)
            for message in self.queue.peek(self.name, 1000)
        ] == [
            (entry.message_id, entry.priority, entry.attempt, entry.error)
            for entry in self.reference.line()
        ]

    def compare_messages(self) -> None:
        """Compare where every message is that there ever was."""
        for message_id in self.known:
            details = self.queue.get_message(self.name, message_id)
            assert (details.state if details else None) == self.reference.state(message_id)

    def enqueue(self, seeded_random: Random) -> None:
        """Enqueue one message."""
        priority, delay, key, allowed, group = entry = self._new_entry(seeded_random)
        sent = self.queue.enqueue(
            self.name,
            0,
            priority=priority,
            delay_seconds=delay,
            dedup_key=key,
            max_attempts=allowed,
            group_key=group,
        )
        self._sent(sent.message_id, sent.outcome, entry)

    def enqueue_batch(self, seeded_random: Random) -> None:
        """Enqueue a few messages at once."""
        batch = [self._new_entry(seeded_random) for _ in range(seeded_random.randint(0, 6))]
        messages = [
            NewMessage(
                data=0,
                priority=priority,
                delay_seconds=delay,
                dedup_key=key,
                max_attempts=allowed,
                group_key=group,
            )
            for priority, delay, key, allowed, group in batch
        ]
        sent = self.queue.enqueue_batch(self.name, messages)
        for made, entry in zip(sent, batch, strict=True):
            self._sent(made.message_id, made.outcome, entry)

    def _sent(self, message_id: int, outcome: str, entry: NewEntry) -> None:
        holder = self.reference.holder(entry[2])
        assert outcome == ("enqueued" if holder is None else "duplicate")
        self.seen[f"enqueue: {outcome}"] += 1
        if holder is None:
            self.reference.enqueue(message_id, *entry)
            self.known.append(message_id)
        else:
            assert message_id == holder

    def dequeue(self, seeded_random: Random) -> None:
        """Lease a batch."""
        batch_size, lease = seeded_random.randint(1, 5), seeded_random.choice([10, 30])
        messages = self.queue.dequeue_fast(
            self.name, batch_size, worker_name="worker", lease_seconds=lease
        )
        claim_id = messages[0].claim_id if messages else 0
        expected = self.reference.dequeue(claim_id, batch_size, lease)
        assert [
            (message.message_id, message.attempt, message.last_error) for message in messages
        ] == [(entry.message_id, entry.attempt, entry.error) for entry in expected]
        self.seen[f"dequeue: {'some' if messages else 'none'}"] += 1
        if messages:
            self.claims.append(claim_id)

    def finish(self, seeded_random: Random) -> None:
        """Finish messages of a claim that may be stale, in any way."""
        how = seeded_random.choice(["complete", "complete", "retry_later", "fail_now", "release"])
        claim_id = self._any_claim(seeded_random)
        wanted = (
            None if seeded_random.random() < 0.5 else self._some_messages(seeded_random, claim_id)
        )
        delay = seeded_random.choice([None, 0, 10, 20])
        options = {"delay_seconds": delay, "error": "retry"} if how == "retry_later" else {}
        options |= {"error": "fail"} if how == "fail_now" else {}
        routine = getattr(self.queue, how)
        if wanted is None and claim_id not in self.reference.claims:
            with pytest.raises(StaleClaim):
                routine(self.name, claim_id, None, **options)
            self.seen[f"{how}: refused"] += 1
            return
        rows = routine(self.name, claim_id, wanted, **options)
        expected = dict.fromkeys(wanted or [], "stale")
        expected |= self._finish_reference(how, claim_id, wanted, delay)
        assert {outcome.message_id: outcome.outcome for outcome in rows} == expected
        self.seen.update(f"{how}: {outcome}" for outcome in expected.values())

    def _finish_reference(
        self, how: str, claim_id: int, wanted: list[int] | None, delay: int | None
    ) -> dict[int, str]:
        taken = self.reference.take(claim_id, wanted)
        if how == "retry_later":
            return self.reference.retry(taken, delay, "retry")
        if how == "complete":
            self.reference.finish(taken)
        elif how == "release":
            self.reference.release(taken)
        else:
            self.reference.bury(taken, "fail")
        outcome = {"complete": "completed", "release": "released", "fail_now": "dead"}[how]
        return {entry.message_id: outcome for entry in taken}

    def extend_lease(self, seeded_random: Random) -> None:
        """Lengthen the lease of a claim that may be stale."""
        claim_id, lease = self._any_claim(seeded_random), seeded_random.choice([10, 30])
        if claim_id in self.reference.claims:
            self.queue.extend_lease(self.name, claim_id, lease_seconds=lease)
            self.reference.extend(claim_id, lease)
        else:
            with pytest.raises(StaleClaim):
                self.queue.extend_lease(self.name, claim_id, lease_seconds=lease)
        self.seen["extend_lease"] += 1

    def cancel(self, seeded_random: Random) -> None:
        """Withdraw some messages, wherever they are."""
        wanted = seeded_random.sample(self.known, min(len(self.known), seeded_random.randint(1, 3)))
        outcomes = {
            outcome.message_id: outcome.outcome for outcome in self.queue.cancel(self.name, wanted)
        }
        assert outcomes == self.reference.cancel(wanted)
        self.seen.update(f"cancel: {outcome}" for outcome in outcomes.values())

    def reset(self, seeded_random: Random) -> None:
        """Bring one or all of the dead back."""
        limit = seeded_random.choice([1, 1000])
        rows = self.queue.reset(self.name, max_messages=limit)
        outcomes = {outcome.message_id: outcome.outcome for outcome in rows}
        assert outcomes == self.reference.reset(limit)
        self.seen.update(f"reset: {outcome}" for outcome in outcomes.values())

    def promote(self, seeded_random: Random) -> None:
        """Make one or all of the overdue ready."""
        limit = seeded_random.choice([1, 1000])
        promoted = self.queue.promote(self.name, limit).promoted
        assert promoted == self.reference.promote(limit)
        self.seen["promote"] += promoted

    def reap(self, _: Random) -> None:
        """Take back what has run out."""
        done = self.queue.reap(self.name)
        assert (done.reaped, done.died) == self.reference.reap()
        self.seen["reap: back"] += done.reaped
        self.seen["reap: died"] += done.died

    def maintain(self, seeded_random: Random) -> None:
        """Keep house, a while later."""
        self.let_time_pass(seeded_random)
        done = self.queue.maintain(self.name)[0]
        promoted = None if self.promotes_last else self.reference.promote()
        self.seen["maintain: rechecked"] += self.reference.keep_groups()
        assert (done.reaped, done.died) == self.reference.reap()
        assert done.promoted == (self.reference.promote() if promoted is None else promoted)
        self.seen["maintain: promoted"] += done.promoted
        self.seen["maintain: reaped"] += done.reaped

    def let_time_pass(self, seeded_random: Random) -> None:
        """Let a while pass."""
        seconds = seeded_random.choice([5, 5, 15, 45])
        pass_seconds(self.connection, self.name, seconds)
        self.reference.now += seconds

    def set_groups(self, seeded_random: Random) -> None:
        """Change the settings of groups."""
        limit, dead_hold = seeded_random.choice([1, 1, 2, 3]), seeded_random.random() < 0.4
        after_dead = "hold" if dead_hold else "continue"
        self.queue.alter_queue(self.name, group_limit=limit, group_after_dead=after_dead)
        self.reference.set_groups(limit, dead_hold=dead_hold)
        self.seen["groups that wait for a dead message"] += dead_hold

    def pause_or_resume(self, seeded_random: Random) -> None:
        """Stop delivery now and then, but more often start it."""
        self.reference.paused = seeded_random.random() < 0.3
        change = self.queue.pause_queue if self.reference.paused else self.queue.resume_queue
        change(self.name)

    def purge(self, seeded_random: Random) -> None:
        """Delete what waits."""
        include_dead = seeded_random.random() < 0.5
        removed = self.queue.purge_queue(self.name, include_dead=include_dead).removed
        assert removed == self.reference.purge(include_dead=include_dead)
        self.seen["purge"] += removed

    def _any_claim(self, seeded_random: Random) -> int:
        """Return a claim, mostly a recent one; one that never was before there are any."""
        return seeded_random.choice(self.claims[-4:] or [-1])

    def _new_entry(self, seeded_random: Random) -> NewEntry:
        priority, delay = seeded_random.choice([0, 5, 9]), seeded_random.choice([0, 0, 10, 20, 60])
        return (
            priority,
            delay,
            seeded_random.choice([None, "a", "b"]),
            seeded_random.choice([None, None, 1, 2]),
            seeded_random.choice([None, "g", "g", "h"]) if self.has_groups else None,
        )

    def _some_messages(self, seeded_random: Random, claim_id: int) -> list[int]:
        """Return some messages of a claim, and at times strange ones."""
        claim = self.reference.claims.get(claim_id)
        held = [entry.message_id for entry in claim.entries] if claim else []
        strange = seeded_random.sample(
            self.known, min(len(self.known), seeded_random.choice([0, 0, 2]))
        )
        return list({*seeded_random.sample(held, seeded_random.randint(0, len(held))), *strange})
