"""The acceptance, first part: what becomes of messages in one session after the other."""

from datetime import UTC, datetime

import rowq
from rowq.doctor.bench import Bench, Disagrees, expect, refuses, until
from rowq.messages import Outcome, RetryOutcome

_TEXTS = (" trailing ", "naïve 日本語 🐘", "'; drop table x; --", "back\\slash %s :1 ?", "a\nb\t")
_LARGE = 1_000_000


def the_order(bench: Bench) -> str:
    """A better priority comes first, and inside one the order of entry."""
    sent = [bench.send(priority, priority=priority)[0] for priority in (5, 9, 0, 5)]
    taken = bench.take(bench.first, 10)
    order = [sent[2], sent[0], sent[3], sent[1]]
    expect("ids in order", [one.message_id for one in taken], order)
    expect("attempts", {one.attempt for one in taken}, {1})
    expect("claims", len({one.claim_id for one in taken}), 1)
    expect("counts", bench.counts(), (0, 0, 4, 0))
    _complete(bench, taken[0].claim_id, order)
    expect("counts", bench.counts(), (0, 0, 0, 0))
    return "four messages of three priorities came in their order"


def what_is_in_them(bench: Bench) -> str:
    """Bodies, types and headers come out as they went in."""
    headers = {"a": [1, None, True], "é": {"big": 12345678901234567890}}
    for text in _TEXTS:
        bench.first.enqueue(bench.name, text=text, headers=headers, message_type="naïve 🐘")
    for binary in (bytes(range(256)), b"x" * _LARGE):
        bench.first.enqueue(bench.name, binary)
    bench.first.enqueue(bench.name, text="é" * _LARGE)
    taken = bench.take(bench.second, 100)
    texts = tuple(one.body for one in taken[: len(_TEXTS)])
    expect("texts", texts, _TEXTS)
    expect("headers", [one.headers for one in taken[: len(_TEXTS)]], [headers] * len(_TEXTS))
    expect("type", {one.message_type for one in taken[: len(_TEXTS)]}, {"naïve 🐘"})
    expect("bytes", taken[-3].body_binary, bytes(range(256)))
    expect("many bytes", taken[-2].body_binary, b"x" * _LARGE)
    expect("a long text", taken[-1].body, "é" * _LARGE)
    bench.second.complete(bench.name, taken[0].claim_id)
    return f"{len(_TEXTS)} texts, headers, 256 bytes, a megabyte of each"


def attempts(bench: Bench) -> str:
    """Release spends no attempt, retry_later does, and the last one is followed by death."""
    bench.send("x")
    claim = bench.take(bench.first)[0].claim_id
    lease = bench.first.extend_lease(bench.name, claim, lease_seconds=600)
    seconds = (lease.lease_until - datetime.now(UTC)).total_seconds()
    if not 300 < seconds < 900:
        raise Disagrees(f"a lease of 600 s from now ends in {seconds:.0f} s by our clock")
    expect("release", _words(bench.first.release(bench.name, claim)), ["released"])
    for attempt in (1, 2, 3):
        (message,) = bench.take(bench.first)
        expect("attempt", message.attempt, attempt)
        wanted = "dead" if attempt == 3 else "retrying"
        done = bench.first.retry_later(bench.name, message.claim_id, delay_seconds=0, error="no")
        expect("retry_later", _words(done), [wanted])
        if attempt == 1:
            (message,) = bench.take(bench.first)
            expect("last error", message.last_error, "no")
            bench.first.release(bench.name, message.claim_id)
    expect("dead", [one.last_error for one in bench.first.list_dead(bench.name)], ["no"])
    expect("reset", _words(bench.first.reset(bench.name)), ["reset"])
    (message,) = bench.take(bench.first)
    expect("attempt after reset", message.attempt, 1)
    expect("fail_now", _words(bench.first.fail_now(bench.name, message.claim_id)), ["dead"])
    outcomes = bench.first.cancel(bench.name, [message.message_id])
    expect("cancel", _words(outcomes), ["cancelled"])
    return "released, retried until dead, reset, failed and cancelled"


def times_and_keys(bench: Bench) -> str:
    """A delayed message comes at its time, a key is taken until its message is finished."""
    first = bench.first.enqueue(bench.name, "later", delay_seconds=0.5, dedup_key="key ")
    again = bench.second.enqueue(bench.name, "again", dedup_key="key ")
    expect("the same key", (again.outcome, again.message_id), ("duplicate", first.message_id))
    other = bench.second.enqueue(bench.name, "other", dedup_key="KEY ")
    expect("another key", other.outcome, "enqueued")
    bench.second.cancel(bench.name, [other.message_id])
    expect("before its time", bench.take(bench.first), [])
    taken: list[rowq.Message] = []

    def has_come() -> bool:
        taken.extend(bench.take(bench.first))
        return bool(taken)

    until(has_come, "the delayed message comes")
    _complete(bench, taken[0].claim_id, [first.message_id])
    free = bench.first.enqueue(bench.name, "again", dedup_key="key ")
    expect("the key of a finished message", free.outcome, "enqueued")
    _complete(bench, bench.take(bench.first)[0].claim_id, [free.message_id])
    return "a delay of half a second, and a key that was taken, and free again"


def the_switch(bench: Bench) -> str:
    """A paused queue takes messages and gives none."""
    bench.first.pause_queue(bench.name)
    (sent,) = bench.send("x")
    expect("from a paused queue", bench.take(bench.second), [])
    bench.second.resume_queue(bench.name)
    (message,) = bench.take(bench.first)
    _complete(bench, message.claim_id, [sent])
    return "paused and resumed"


def the_archive(bench: Bench) -> str:
    """What a queue with an archive has finished is kept, and can be looked at."""
    bench.first.alter_queue(bench.name, archive_days=1)
    (sent,) = bench.send({"kept": True}, message_type="kept")
    _complete(bench, bench.take(bench.first)[0].claim_id, [sent])
    for _ in range(2):
        found = bench.second.get_message(bench.name, sent)
        state = (found.state, found.data) if found else None
        expect("a finished message", state, ("completed", {"kept": True}))
        bench.first.archive(bench.name)
    bench.first.alter_queue(bench.name, archive_days=0)
    expect("delivery", bench.take(bench.second), [])
    return "a finished message is found before and after it is archived"


def refusals(bench: Bench) -> str:
    """A wrong call is refused by number, and changes nothing."""
    (sent,) = bench.send("x")
    refuses(rowq.QueueNotFound, lambda: bench.first.enqueue(f"{bench.name} ", 1))
    refuses(rowq.InvalidArgument, lambda: bench.first.enqueue(bench.name, 1, priority=10))
    refuses(rowq.InvalidArgument, lambda: bench.first.dequeue_fast(bench.name, 0))
    refuses(rowq.StaleClaim, lambda: bench.first.complete(bench.name, 1))
    refuses(rowq.QueueNotEmpty, lambda: bench.first.drop_queue(bench.name))
    batch = [rowq.NewMessage(data=1), rowq.NewMessage(data=2, priority=10)]
    refuses(rowq.InvalidArgument, lambda: bench.first.enqueue_batch(bench.name, batch))
    expect("counts", bench.counts(), (1, 0, 0, 0))
    bench.first.purge_queue(bench.name)
    expect("a message that was purged", bench.first.get_message(bench.name, sent), None)
    return "six wrong calls were refused, and changed nothing"


def _complete(bench: Bench, claim_id: int, ids: list[int]) -> None:
    outcomes = bench.first.complete(bench.name, claim_id, ids)
    wanted = {(one, "completed") for one in ids}
    expect("complete", {(one.message_id, one.outcome) for one in outcomes}, wanted)


def _words(outcomes: list[Outcome] | list[RetryOutcome]) -> list[str]:
    return [one.outcome for one in outcomes]
