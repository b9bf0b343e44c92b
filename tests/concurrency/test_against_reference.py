"""Random calls of one session, each compared with what a queue in plain Python does."""

from __future__ import annotations

from itertools import count
from random import Random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from rowq import NewMessage, Queue, StaleClaim
from tests.concurrency.reference import ReferenceQueue
from tests.engines.base import Connection
from tests.stored_times import pass_seconds

BACKOFF = (10, 20, 40, 60, 60, 60)
"""The delays that the settings of the queue below make."""

a_priority = st.sampled_from([0, 5, 9])
a_delay = st.sampled_from([0, 0, 10, 20, 60])
a_key = st.sampled_from([None, None, "a", "b"])
allowed_attempts = st.sampled_from([None, None, 1, 2])
a_batch_size = st.integers(1, 5)
a_lease = st.sampled_from([10, 30])
dice = st.randoms(use_true_random=False)


class Comparison(RuleBasedStateMachine):
    """Does each step in both queues. All times are multiples of 5 s; the test takes less."""

    def __init__(self, connection: Connection, name: str) -> None:
        super().__init__()
        self.connection = connection
        self.name = name
        self.queue = Queue(connection)
        self.queue.create_queue(
            name,
            max_attempts=3,
            backoff_base_seconds=10,
            backoff_factor=2,
            backoff_cap_seconds=60,
            backoff_jitter=0,
        )
        self.reference = ReferenceQueue(max_attempts=3, backoff=BACKOFF)
        self.known: list[int] = []
        self.claims: list[int] = []

    @rule(priority=a_priority, delay=a_delay, key=a_key, allowed=allowed_attempts)
    def enqueue(self, priority: int, delay: int, key: str | None, allowed: int | None) -> None:
        sent = self.queue.enqueue(
            self.name,
            0,
            priority=priority,
            delay_seconds=delay,
            dedup_key=key,
            max_attempts=allowed,
        )
        self._sent(sent.message_id, sent.outcome, priority, delay, key, allowed)

    @rule(batch=st.lists(st.tuples(a_priority, a_delay, a_key, allowed_attempts), max_size=6))
    def enqueue_batch(self, batch: list[tuple[int, int, str | None, int | None]]) -> None:
        messages = [
            NewMessage(
                data=0, priority=one, delay_seconds=delay, dedup_key=key, max_attempts=allowed
            )
            for one, delay, key, allowed in batch
        ]
        sent = self.queue.enqueue_batch(self.name, messages)
        for entry, (priority, delay, key, allowed) in zip(sent, batch, strict=True):
            self._sent(entry.message_id, entry.outcome, priority, delay, key, allowed)

    def _sent(
        self,
        message_id: int,
        outcome: str,
        priority: int,
        delay: int,
        key: str | None,
        allowed: int | None,
    ) -> None:
        holder = self.reference.holder(key)
        assert outcome == ("enqueued" if holder is None else "duplicate")
        if holder is None:
            self.reference.enqueue(message_id, priority, delay, key, allowed)
            self.known.append(message_id)
        else:
            assert message_id == holder

    @rule(batch_size=a_batch_size, lease=a_lease)
    def dequeue(self, batch_size: int, lease: int) -> None:
        messages = self.queue.dequeue_fast(
            self.name, batch_size, worker_name="worker", lease_seconds=lease
        )
        claim_id = messages[0].claim_id if messages else 0
        expected = self.reference.dequeue(claim_id, batch_size, lease)
        assert [(one.message_id, one.attempt, one.last_error) for one in messages] == [
            (one.message_id, one.attempt, one.error) for one in expected
        ]
        if messages:
            self.claims.append(claim_id)

    @precondition(lambda self: self.claims)
    @rule(
        how=st.sampled_from(["complete", "complete", "retry_later", "fail_now", "release"]),
        delay=st.sampled_from([None, 0, 10, 20]),
        everything=st.booleans(),
        dice=dice,
    )
    def finish(self, how: str, delay: int | None, everything: bool, dice: Random) -> None:
        claim_id = dice.choice(self.claims[-6:])
        wanted = None if everything else dice.sample(self.known, dice.randint(0, len(self.known)))
        held = claim_id in self.reference.claims
        options = {"delay_seconds": delay, "error": "retry"} if how == "retry_later" else {}
        options |= {"error": "fail"} if how == "fail_now" else {}
        routine = getattr(self.queue, how)
        if everything and not held:
            with pytest.raises(StaleClaim):
                routine(self.name, claim_id, None, **options)
            return
        outcomes = {
            one.message_id: one.outcome for one in routine(self.name, claim_id, wanted, **options)
        }
        taken = self.reference.take(claim_id, wanted)
        expected = dict.fromkeys(wanted or [], "stale")
        if how == "complete":
            self.reference.finish(taken)
            expected |= {one.message_id: "completed" for one in taken}
        elif how == "release":
            self.reference.release(taken)
            expected |= {one.message_id: "released" for one in taken}
        elif how == "fail_now":
            self.reference.bury(taken, "fail")
            expected |= {one.message_id: "dead" for one in taken}
        else:
            expected |= self.reference.retry(taken, delay, "retry")
        assert outcomes == expected

    @precondition(lambda self: self.claims)
    @rule(lease=a_lease, dice=dice)
    def extend_lease(self, lease: int, dice: Random) -> None:
        claim_id = dice.choice(self.claims[-6:])
        if claim_id in self.reference.claims:
            self.queue.extend_lease(self.name, claim_id, lease_seconds=lease)
            self.reference.extend(claim_id, lease)
        else:
            with pytest.raises(StaleClaim):
                self.queue.extend_lease(self.name, claim_id, lease_seconds=lease)

    @precondition(lambda self: self.known)
    @rule(dice=dice)
    def cancel(self, dice: Random) -> None:
        wanted = dice.sample(self.known, min(len(self.known), dice.randint(1, 3)))
        outcomes = self.queue.cancel(self.name, wanted)
        assert {one.message_id: one.outcome for one in outcomes} == self.reference.cancel(wanted)

    @rule(limit=st.sampled_from([1, 1000]))
    def reset(self, limit: int) -> None:
        outcomes = self.queue.reset(self.name, max_messages=limit)
        assert {one.message_id: one.outcome for one in outcomes} == self.reference.reset(limit)

    @rule(limit=st.sampled_from([1, 1000]))
    def promote(self, limit: int) -> None:
        assert self.queue.promote(self.name, limit).promoted == self.reference.promote(limit)

    @rule()
    def reap(self) -> None:
        done = self.queue.reap(self.name)
        assert (done.reaped, done.died) == self.reference.reap()

    @rule(seconds=st.sampled_from([5, 15, 45, 120]))
    def let_time_pass_and_maintain(self, seconds: int) -> None:
        self.let_time_pass(seconds)
        done = self.queue.maintain(self.name)[0]
        assert done.promoted == self.reference.promote()
        assert (done.reaped, done.died) == self.reference.reap()

    @rule(seconds=st.sampled_from([5, 15, 45]))
    def let_time_pass(self, seconds: int) -> None:
        pass_seconds(self.connection, self.name, seconds)
        self.reference.now += seconds

    @rule(dice=dice)
    def pause_or_resume(self, dice: Random) -> None:
        self.reference.paused = dice.random() < 0.3
        if self.reference.paused:
            self.queue.pause_queue(self.name)
        else:
            self.queue.resume_queue(self.name)

    @rule(include_dead=st.booleans(), dice=dice)
    def purge_now_and_then(self, include_dead: bool, dice: Random) -> None:
        if dice.random() < 0.2:
            removed = self.queue.purge_queue(self.name, include_dead=include_dead).removed
            assert removed == self.reference.purge(include_dead=include_dead)

    @invariant()
    def both_have_the_same_messages_in_the_same_order(self) -> None:
        stats = self.queue.queue_stats(self.name)[0]
        found = {one: getattr(stats, one) for one in ("ready", "delayed", "leased", "dead")}
        assert found == self.reference.counts()
        ready = self.queue.peek(self.name, 1000)
        assert [(one.message_id, one.attempt) for one in ready] == [
            (one.message_id, one.attempt) for one in self.reference.line()
        ]

    def teardown(self) -> None:
        for message_id in self.known:
            details = self.queue.get_message(self.name, message_id)
            assert (details.state if details else None) == self.reference.state(message_id)


@pytest.mark.promise("P04", "P05", "P08", "P09", "P10", "P11", "P12", "P18")
def test_a_queue_does_step_by_step_what_the_contract_says(
    connection: Connection, queue_name: str
) -> None:
    numbers = count()

    class WithConnection(Comparison):
        def __init__(self) -> None:
            super().__init__(connection, f"{queue_name}_{next(numbers)}")

    run_state_machine_as_test(
        WithConnection,
        settings=settings(
            max_examples=30,
            stateful_step_count=40,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
