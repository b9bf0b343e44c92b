"""Sessions that lease messages in autocommit, or in a transaction with their effect."""

import contextlib
from collections.abc import Sequence

from rowq import Message, NextMessages, StaleClaim
from tests.concurrency.actors import Actor, Run, SessionLost
from tests.helpers.dialects import dialect_of
from tests.stored_times import expire_claim


class Consumer(Actor):
    """Leases batches and finishes them in every way, late or not at all.

    late: expired claims that are finished some turns later. leased: the batch of the next turn, if
    the last call leased it.
    """

    def __init__(self, run: Run, name: str, seed: int) -> None:
        super().__init__(run, name, seed)
        self.late: list[tuple[int, list[int]]] = []
        self.leased: list[Message] = []

    def act(self) -> bool:
        if self.late and self.seeded_random.random() < 0.3:
            self._end(self._how(), *self.late.pop())
        messages, self.leased = self.leased or self.dequeue(), []
        if not messages:
            return False
        claim_id = messages[0].claim_id
        try:
            self._handle(claim_id, messages)
        except SessionLost:
            self.connect()
            self.expire(claim_id)
        return True

    def dequeue(self) -> list[Message]:
        """Lease a batch and record it."""
        start, size = self.now(), self._size()
        messages: list[Message] = self.call(
            "dequeue",
            lambda: self.queue.dequeue_fast(
                self.run.queue_name,
                size,
                worker_name=self.name,
                lease_seconds=self.run.lease_seconds,
            ),
        )
        self._log_leased(start, messages)
        return messages

    def _size(self) -> int:
        largest = self.run.largest_batch
        return self.seeded_random.choice(
            [1, min(10, largest), largest, self.seeded_random.randint(1, largest)]
        )

    def _log_leased(self, start: float, messages: Sequence[Message]) -> None:
        if messages:
            leased = [(message.message_id, message.attempt) for message in messages]
            claim_id = messages[0].claim_id
            self.log(start, "dequeue", claim_id, leased, lease_seconds=self.run.lease_seconds)

    def expire(self, claim_id: int) -> None:
        """Let a claim expire."""
        start = self.now()
        self.call("expire", lambda: expire_claim(self.connection, claim_id), claim_id)
        self.log(start, "expire", claim_id)

    def _handle(self, claim_id: int, messages: Sequence[Message]) -> None:
        ids = [message.message_id for message in messages]
        if self.reaches_leased and self.seeded_random.random() < 0.05:
            self.cancel(self.seeded_random.choices(ids, k=3), include_leased=True)
        luck = self.seeded_random.random()
        if luck < 0.04:
            self.expire(claim_id)  # The claim runs out and is never finished.
        elif luck < 0.12:
            self.expire(claim_id)
            self.late.append((claim_id, ids))
        elif luck < 0.60:
            self._end("complete", claim_id, ids, named=self.seeded_random.random() < 0.2)
        else:
            self._finish_in_parts(claim_id, ids)

    def _finish_in_parts(self, claim_id: int, ids: list[int]) -> None:
        self.seeded_random.shuffle(ids)
        while ids:
            if self.seeded_random.random() < 0.2:
                self._extend(claim_id)
            cut = self.seeded_random.randint(1, len(ids))
            named = cut < len(ids) or self.seeded_random.random() < 0.5
            self._end(self._how(), claim_id, ids[:cut], named=named)
            ids = ids[cut:]

    def _how(self) -> str:
        ways = ("complete", "retry_later", "release", "fail_now")
        return self.seeded_random.choices(ways, (70, 20, 8, 2))[0]

    def _extend(self, claim_id: int) -> None:
        start = self.now()
        with contextlib.suppress(StaleClaim):
            self.call(
                "extend_lease",
                lambda: self.queue.extend_lease(self.run.queue_name, claim_id),
                claim_id,
            )
            self.log(start, "extend_lease", claim_id, lease_seconds=self.run.lease_seconds)

    def finish(self, action: str, claim_id: int, ids: Sequence[int], *, named: bool = True) -> None:
        """Finish some messages of a claim and write down what became of each.

        named: false for all that the claim still holds, which these must be.
        """
        start = self.now()
        options = (
            {"delay_seconds": self.seeded_random.choice([0, 0.1])}
            if action in {"retry_later", "release"}
            else {}
        )
        routine = getattr(self.queue, action)
        hoped = {"complete": "completed", "fail_now": "dead"}.get(action, action)
        outcomes = self.call(
            action,
            lambda: routine(self.run.queue_name, claim_id, ids if named else None, **options),
            claim_id,
            results=[(message_id, hoped) for message_id in ids],
        )
        self.log(
            start, action, claim_id, [(outcome.message_id, outcome.outcome) for outcome in outcomes]
        )

    def _end(self, how: str, claim_id: int, ids: Sequence[int], *, named: bool = True) -> None:
        """Finish messages; half of the completions also lease the batch of the next turn."""
        if how == "complete" and not self.leased and self.seeded_random.random() < 0.5:
            self._exchange(claim_id, ids, named=named)
        else:
            self.finish(how, claim_id, ids, named=named)

    def _exchange(self, claim_id: int, ids: Sequence[int], *, named: bool) -> None:
        """Complete messages of a claim and lease a batch by one call, recorded as two."""
        start, size = self.now(), self._size()
        try:
            answer: NextMessages = self.call(
                "complete",
                lambda: self.queue.complete_and_dequeue(
                    self.run.queue_name,
                    claim_id,
                    ids if named else None,
                    batch_size=size,
                    worker_name=self.name,
                    lease_seconds=self.run.lease_seconds,
                ),
                claim_id,
                results=[(message_id, "completed") for message_id in ids],
            )
        except SessionLost:
            self.log(start, "dequeue", known=False)
            raise
        assert named or not answer.is_stale
        stale = set(answer.stale_ids)
        outcomes = [(one, "stale" if one in stale else "completed") for one in ids]
        self.log(start, "complete", claim_id, outcomes)
        self._log_leased(start, answer.messages)
        self.leased = answer.messages


class TransactionalConsumer(Consumer):
    """Dequeues, does the effect and completes in one transaction; some are rolled back.

    It is recorded after it has ended: the messages of a killed session return at once, and another
    session may record them first.
    """

    def act(self) -> bool:
        try:
            return self._transact()
        except Exception as error:
            if self._may_be_repeated(error):
                # The server rolled back the transaction and its leases.
                self.connection.rollback()
                self.run.deadlocks.append(self.name)
                return True
            if not self.is_lost(error):
                raise
            self.log(self.now(), "dequeue", known=False)
            self.connect()
            return True

    def _may_be_repeated(self, error: Exception) -> bool:
        """Return whether a deadlock has rolled back the owner's transaction."""
        if self.may_try_again(error):
            return True
        meets_deadlocks = not dialect_of(self.connection).is_free_of_deadlocks
        lost = self.is_lost(error)
        return meets_deadlocks and not lost and self._engine.is_transient(error)

    def _transact(self) -> bool:
        start, dialect = self.now(), dialect_of(self.connection)
        dialect.begin(self.connection)
        size = self.seeded_random.randint(1, self.run.largest_batch)
        messages = self.queue.dequeue_fast(
            self.run.queue_name, size, worker_name=self.name, lease_seconds=self.run.lease_seconds
        )
        end = self.now()
        if not messages:
            dialect.rollback(self.connection)
            return False
        claim_id = messages[0].claim_id
        self._do_effects(claim_id, [message.message_id for message in messages])
        leased = [(message.message_id, message.attempt) for message in messages]
        done = [(message.message_id, "completed") for message in messages]
        ending = self.now()
        commits = self.seeded_random.random() < 0.8
        try:
            (dialect.commit if commits else dialect.rollback)(self.connection)
        except Exception:
            if commits:
                self.log(ending, "complete", claim_id, done, known=False)
            raise
        self.log(start, "dequeue", claim_id, leased, lease_seconds=self.run.lease_seconds, end=end)
        if commits:
            self.log(ending, "complete", claim_id, done)
        else:
            self.log(ending, "rollback", claim_id)
        return True

    def _do_effects(self, claim_id: int, ids: Sequence[int]) -> None:
        marks = ", ".join(["(%s, %s)"] * len(ids))
        dialect_of(self.connection).execute(
            self.connection,
            f"insert into run_effect (queue_name, message_id) values {marks}",
            [value for message_id in ids for value in (self.run.queue_name, message_id)],
        )
        outcomes = self.queue.complete(self.run.queue_name, claim_id)
        assert {outcome.outcome for outcome in outcomes} == {"completed"}
