"""First part: what becomes of messages, one call after the other."""

from datetime import UTC, datetime

import rowq
from rowq.doctor.acceptance.two_sessions import (
    Disagrees,
    TwoSessions,
    expect,
    refuses,
    until,
)
from rowq.messages import Outcome, RetryOutcome

_TEXTS = (" trailing ", "naïve 日本語 🐘", "'; drop table x; --", "back\\slash %s :1 ?", "a\nb\t")
_LARGE = 1_000_000


def the_order(two: TwoSessions) -> str:
    """A better priority comes first, and inside one the order of entry."""
    sent = [two.enqueue(priority, priority=priority)[0] for priority in (5, 9, 0, 5)]
    taken = two.dequeue(two.first, 10)
    order = [sent[2], sent[0], sent[3], sent[1]]
    expect("ids in order", [message.message_id for message in taken], order)
    expect("attempts", {message.attempt for message in taken}, {1})
    expect("claims", len({message.claim_id for message in taken}), 1)
    expect("counts", two.counts(), (0, 0, 4, 0))
    _complete(two, taken[0].claim_id, order)
    expect("counts", two.counts(), (0, 0, 0, 0))
    return "four messages of three priorities came in their order"


def what_is_in_them(two: TwoSessions) -> str:
    """Bodies, types and headers come out as they went in."""
    headers = {"a": [1, None, True], "é": {"big": 12345678901234567890}}
    for text in _TEXTS:
        two.first.enqueue(two.queue, text=text, headers=headers, message_type="naïve 🐘")
    for binary in (bytes(range(256)), b"x" * _LARGE):
        two.first.enqueue(two.queue, binary)
    two.first.enqueue(two.queue, text="é" * _LARGE)
    taken = two.dequeue(two.second, 100)
    texts = tuple(message.body for message in taken[: len(_TEXTS)])
    expect("texts", texts, _TEXTS)
    expect(
        "headers", [message.headers for message in taken[: len(_TEXTS)]], [headers] * len(_TEXTS)
    )
    expect("type", {message.message_type for message in taken[: len(_TEXTS)]}, {"naïve 🐘"})
    expect("bytes", taken[-3].body_binary, bytes(range(256)))
    expect("many bytes", taken[-2].body_binary, b"x" * _LARGE)
    expect("a long text", taken[-1].body, "é" * _LARGE)
    two.second.complete(two.queue, taken[0].claim_id)
    return f"{len(_TEXTS)} texts, headers, 256 bytes, a megabyte of each"


def attempts(two: TwoSessions) -> str:
    """Release spends no attempt, retry_later does, and the last one is followed by death."""
    two.enqueue("x")
    claim = two.dequeue(two.first)[0].claim_id
    lease = two.first.extend_lease(two.queue, claim, lease_seconds=600)
    seconds = (lease.lease_until - datetime.now(UTC)).total_seconds()
    if not 300 < seconds < 900:
        raise Disagrees(f"a lease of 600 s from now ends in {seconds:.0f} s by our clock")
    expect("release", _words(two.first.release(two.queue, claim)), ["released"])
    for attempt in (1, 2, 3):
        (message,) = two.dequeue(two.first)
        expect("attempt", message.attempt, attempt)
        wanted = "dead" if attempt == 3 else "retrying"
        done = two.first.retry_later(two.queue, message.claim_id, delay_seconds=0, error="no")
        expect("retry_later", _words(done), [wanted])
        if attempt == 1:
            (message,) = two.dequeue(two.first)
            expect("last error", message.last_error, "no")
            two.first.release(two.queue, message.claim_id)
    expect("dead", [dead.last_error for dead in two.first.list_dead(two.queue)], ["no"])
    expect("reset", _words(two.first.reset(two.queue)), ["reset"])
    (message,) = two.dequeue(two.first)
    expect("attempt after reset", message.attempt, 1)
    expect("fail_now", _words(two.first.fail_now(two.queue, message.claim_id)), ["dead"])
    outcomes = two.first.cancel(two.queue, [message.message_id])
    expect("cancel", _words(outcomes), ["cancelled"])
    return "released, retried until dead, reset, failed and cancelled"


def times_and_keys(two: TwoSessions) -> str:
    """A delayed message comes at its time, a key is taken until its message is finished."""
    first = two.first.enqueue(two.queue, "later", delay_seconds=0.5, dedup_key="key ")
    again = two.second.enqueue(two.queue, "again", dedup_key="key ")
    expect("the same key", (again.outcome, again.message_id), ("duplicate", first.message_id))
    other = two.second.enqueue(two.queue, "other", dedup_key="KEY ")
    expect("another key", other.outcome, "enqueued")
    two.second.cancel(two.queue, [other.message_id])
    expect("before its time", two.dequeue(two.first), [])
    taken: list[rowq.Message] = []

    def has_come() -> bool:
        taken.extend(two.dequeue(two.first))
        return bool(taken)

    until(has_come, "the delayed message comes")
    _complete(two, taken[0].claim_id, [first.message_id])
    free = two.first.enqueue(two.queue, "again", dedup_key="key ")
    expect("the key of a finished message", free.outcome, "enqueued")
    _complete(two, two.dequeue(two.first)[0].claim_id, [free.message_id])
    return "a delay of half a second, and a key that was taken, and free again"


def the_switch(two: TwoSessions) -> str:
    """A paused queue takes messages and gives none."""
    two.first.pause_queue(two.queue)
    (sent,) = two.enqueue("x")
    expect("from a paused queue", two.dequeue(two.second), [])
    two.second.resume_queue(two.queue)
    (message,) = two.dequeue(two.first)
    _complete(two, message.claim_id, [sent])
    return "paused and resumed"


def the_archive(two: TwoSessions) -> str:
    """What a queue with an archive has finished is kept, and can be looked at."""
    two.first.alter_queue(two.queue, archive_days=1)
    (sent,) = two.enqueue({"kept": True}, message_type="kept")
    _complete(two, two.dequeue(two.first)[0].claim_id, [sent])
    for _ in range(2):
        found = two.second.get_message(two.queue, sent)
        state = (found.state, found.data) if found else None
        expect("a finished message", state, ("completed", {"kept": True}))
        two.first.archive(two.queue)
    two.first.alter_queue(two.queue, archive_days=0)
    expect("delivery", two.dequeue(two.second), [])
    return "a finished message is found before and after it is archived"


def refusals(two: TwoSessions) -> str:
    """A wrong call is refused by number, and changes nothing."""
    (sent,) = two.enqueue("x")
    refuses(rowq.QueueNotFound, lambda: two.first.enqueue(f"{two.queue} ", 1))
    refuses(rowq.InvalidArgument, lambda: two.first.enqueue(two.queue, 1, priority=10))
    refuses(rowq.InvalidArgument, lambda: two.first.dequeue_fast(two.queue, 0))
    refuses(rowq.StaleClaim, lambda: two.first.complete(two.queue, 1))
    refuses(rowq.QueueNotEmpty, lambda: two.first.drop_queue(two.queue))
    batch = [rowq.NewMessage(data=1), rowq.NewMessage(data=2, priority=10)]
    refuses(rowq.InvalidArgument, lambda: two.first.enqueue_batch(two.queue, batch))
    expect("counts", two.counts(), (1, 0, 0, 0))
    two.first.purge_queue(two.queue)
    expect("a message that was purged", two.first.get_message(two.queue, sent), None)
    return "six wrong calls were refused, and changed nothing"


def _complete(two: TwoSessions, claim_id: int, ids: list[int]) -> None:
    outcomes = two.first.complete(two.queue, claim_id, ids)
    wanted = {(message_id, "completed") for message_id in ids}
    expect("complete", {(outcome.message_id, outcome.outcome) for outcome in outcomes}, wanted)


def _words(outcomes: list[Outcome] | list[RetryOutcome]) -> list[str]:
    return [outcome.outcome for outcome in outcomes]
