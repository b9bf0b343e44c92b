"""Judge an aborted call: it has done all of its work, or nothing."""

from collections.abc import Iterator
from dataclasses import dataclass

from rowq import Queue
from rowq.engines import engine_for_url
from tests.chaos.callers import Caller
from tests.chaos.prepared import DAYS_AGO, LEASE_SECONDS, Picture, Prepared
from tests.concurrency.checker import FINISHES, check
from tests.concurrency.history import Results
from tests.engines.base import Connection
from tests.helpers.dialects import dialect_of
from tests.stored_times import pass_seconds

MAINTENANCE = "maintenance"
"""Routines that may stop halfway: each message is then unchanged or done."""
_TAKES = frozenset({"dequeue_fast", "dequeue_wait"})
_SENDS = frozenset({"enqueue", "enqueue_batch", "publish", "publish_batch", "put", "run_schedule"})
_PRIORITY = 5


@dataclass
class BrokenCall:
    """One call, its queue, and its possible results.

    before: the queue without the call. after: the queue with the full effect of the call.
    """

    prepared: Prepared
    caller: Caller
    before: Picture
    after: Picture
    began_at: float = 0.0

    def faults(self, connection: Connection) -> Iterator[str]:
        """Yield what is wrong with the error, the stored data and later deliveries."""
        self.prepared.use(connection)
        yield from self._strange_error()
        now = Picture.of(connection, self.prepared)
        if not self._may_be(now):
            yield f"it is {now}; before it was {self.before}; after it is {self.after}"
        self._record_call()
        self.prepared.take_census(connection)
        if now.settings is not None:
            _drain(connection, self.prepared)
            yield from _leftovers(connection, self.prepared)
        yield from check(self.prepared.recorder.history())

    def _strange_error(self) -> Iterator[str]:
        """An aborted caller gets a retryable error."""
        error, engine = self.caller.error, engine_for_url(self.caller.url)
        if error is None or isinstance(error, ConnectionAbortedError):
            return
        refusal = engine.refusal(error)
        if not (refusal.retryable if refusal else engine.is_transient(error)):
            yield f"no caller would retry after {error!r}"

    def _may_be(self, now: Picture) -> bool:
        if self.caller.in_transaction:
            return now == self.before
        if self.caller.error is None:
            return now == self.after
        if now in (self.before, self.after):
            return True
        maintains = self.caller.routine.group == MAINTENANCE
        return maintains and now.is_between(self.before, self.after)

    def _record_call(self) -> None:
        """Record what the call did, or would have done."""
        caller, own = self.caller, self.prepared
        action, known = caller.routine.name, caller.error is None
        if caller.in_transaction or caller.routine.group == MAINTENANCE:
            return
        claim_id: int | None = own.claim_id if action in FINISHES else None
        results: Results = ()
        if action in _SENDS:
            action = "enqueue"
            results = tuple(
                (row.message_id, _PRIORITY) for row in caller.rows if row.outcome == "enqueued"
            )
        elif action in _TAKES:
            action, claim_id, results = "dequeue", *self._leased()
        else:
            results = tuple(self._changes())
        own.recorder.record(
            self.began_at, "caller", action, claim_id, results, known=known,
            lease_seconds=LEASE_SECONDS,
        )  # fmt: skip
        if action == "complete_and_dequeue":
            own.recorder.record(
                self.began_at, "caller", "dequeue", *self._leased(), known=known,
                lease_seconds=LEASE_SECONDS,
            )  # fmt: skip

    def _leased(self) -> tuple[int | None, Results]:
        rows = self.caller.rows
        if self.caller.routine.name == "dequeue_wait":
            leased = [dict(message) for row in rows for message in row.messages or ()]
        else:
            leased = [vars(row) for row in rows]
        found = tuple((int(entry["message_id"]), int(entry["attempt"])) for entry in leased)
        return (int(leased[0]["claim_id"]) if leased else None), found

    def _changes(self) -> Iterator[tuple[int, str]]:
        """Yield each message that the call moves, with its outcome."""
        words = {"gone": "purged", "delayed": "retrying", "ready": "reset"}
        if self.caller.routine.name in FINISHES:
            words["ready"] = "released"
        if self.caller.routine.name == "release":
            words["delayed"] = "snoozed"
        states = zip(self.prepared.ids, self.before.states, self.after.states, strict=False)
        for message_id, then, later in states:
            if later != then and then not in {"completed", "cancelled"}:
                yield message_id, words.get(later, later)
            elif later == "leased" and self.caller.routine.name == "cancel":
                yield message_id, "requested"


def _drain(connection: Connection, prepared: Prepared) -> None:
    """Let delays and leases end, and complete all messages, dead ones included."""
    queue, recorder, name = Queue(connection), prepared.recorder, prepared.name
    queue.resume_queue(name)
    for schedule in queue.list_schedules(name):
        queue.drop_schedule(name, schedule.schedule_name)
    start = recorder.clock()
    reset = queue.reset(name)
    results = [(outcome.message_id, outcome.outcome) for outcome in reset]
    recorder.record(start, "judge", "reset", None, results)
    start = recorder.clock()
    pass_seconds(connection, name, 3 * DAYS_AGO)
    recorder.record(start, "judge", "expire")
    queue.maintain(name, 10_000)
    while messages := prepared.lease(1000):
        start = recorder.clock()
        rows = queue.complete(name, messages[0].claim_id)
        done = [(outcome.message_id, outcome.outcome) for outcome in rows]
        recorder.record(start, "judge", "complete", messages[0].claim_id, done)
    prepared.take_census(connection)


def _leftovers(connection: Connection, prepared: Prepared) -> Iterator[str]:
    """Yield what a drained queue must not have."""
    dialect, name = dialect_of(connection), prepared.name
    if left := dialect.census(connection, name):
        yield f"left after the drain: {left}"
    if keys := dialect.held_keys(connection, name):
        yield f"dedup keys without an owner: {keys}"
    kept = {message for message, _ in dialect.finished(connection, name)}
    if bodies := dialect.bodies(connection, name) - kept:
        yield f"bodies without a message: {bodies}"
