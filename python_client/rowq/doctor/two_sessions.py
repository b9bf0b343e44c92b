"""The acceptance, second part: two sessions beside each other."""

from concurrent.futures import ThreadPoolExecutor

import rowq
from rowq.doctor.bench import Bench, Disagrees, expect, refuses, until


def disjoint_batches(bench: Bench) -> str:
    """An open dequeue holds its batch and no row more; the other one goes on behind it."""
    ids = bench.send(*range(9))
    with bench.undone(bench.first):
        expect("the first batch", _taken(bench, bench.first, 3), ids[:3])
        second = bench.take(bench.second, 3)
        expect("the second batch", [one.message_id for one in second], ids[3:6])
    third = bench.take(bench.second, 6)
    order = [*ids[:3], *ids[6:]]
    expect("after the rollback", [one.message_id for one in third], order)
    expect("attempts", {one.attempt for one in third}, {1})
    for claim in (second[0].claim_id, third[0].claim_id):
        bench.second.complete(bench.name, claim)
    return "rows 1 to 3, then 4 to 6; rolled back, 1 to 3 came first again"


def rollback_leaves_nothing(bench: Bench) -> str:
    """What a transaction has sent, taken and finished is as before when it is rolled back."""
    with bench.undone(bench.first):
        bench.first.enqueue(bench.name, "never", dedup_key="never")
        bench.first.enqueue_batch(bench.name, [rowq.NewMessage(data=1)] * 3)
        expect("seen by others", bench.counts(), (0, 0, 0, 0))
    expect("after the rollback", bench.counts(), (0, 0, 0, 0))
    expect("the key", bench.first.enqueue(bench.name, 1, dedup_key="never").outcome, "enqueued")
    with bench.undone(bench.first):
        (message,) = bench.take(bench.first)
        bench.first.complete(bench.name, message.claim_id)
    (again,) = bench.take(bench.second)
    expect("given back", (again.message_id, again.attempt), (message.message_id, 1))
    with bench.transaction(bench.second):
        bench.second.complete(bench.name, again.claim_id)
        sent = bench.second.enqueue(bench.name, "next").message_id
        expect("before the commit", bench.take(bench.first), [])
    (last,) = bench.take(bench.first)
    expect("after the commit", (last.message_id, last.data), (sent, "next"))
    bench.first.complete(bench.name, last.claim_id)
    return "sent, taken and finished in transactions, rolled back and committed"


def stale_claims(bench: Bench) -> str:
    """A claim that ran out finishes nothing, and its message is at the front again."""
    ids = bench.send("slow", "behind")
    (slow,) = bench.take(bench.first, lease_seconds=1)

    def is_back() -> bool:
        bench.second.maintain(bench.name)
        found = bench.second.get_message(bench.name, ids[0])
        return found is not None and found.state == "ready"

    until(is_back, "the message of an expired lease is ready again")
    _is_stale(bench, slow)
    again = bench.take(bench.second, 2)
    attempts = [(one.message_id, one.attempt) for one in again]
    expect("at the front, with its attempt", attempts, [(ids[0], 2), (ids[1], 1)])
    _is_stale(bench, slow)
    outcomes = bench.second.complete(bench.name, again[0].claim_id)
    expect("the one who holds it", {one.outcome for one in outcomes}, {"completed"})
    _is_stale(bench, slow)
    return "a lease of a second ran out; its claim changed nothing at any time after"


def one_housekeeper(bench: Bench) -> str:
    """Of two who keep house one is elected, and the other does not wait."""

    def is_passed_over() -> bool:
        with bench.undone(bench.first):
            mine = bench.first.maintain(bench.name)[0].elected
            theirs = bench.second.maintain(bench.name)[0].elected
        if mine and theirs:
            raise Disagrees("two sessions were elected at a time")
        return mine

    until(is_passed_over, "a session is elected")
    return "one of two was elected; nobody waited"


def waiting(bench: Bench) -> str:
    """A message that comes ends a wait; without one it ends at its time."""
    expect("in vain", bench.second.dequeue_wait(bench.name, wait_seconds=0.2), [])
    with ThreadPoolExecutor(1) as pool:
        wait = pool.submit(bench.second.dequeue_wait, bench.name, wait_seconds=20)
        (sent,) = bench.send("awaited")
        (message,) = wait.result()
    expect("awaited", (message.message_id, message.data), (sent, "awaited"))
    bench.second.complete(bench.name, message.claim_id)
    return "a wait was ended by a message, another by its time"


def _taken(bench: Bench, session: rowq.Queue, count: int) -> list[int]:
    return [one.message_id for one in bench.take(session, count)]


def _is_stale(bench: Bench, message: rowq.Message) -> None:
    """Try everything with a claim that has run out."""
    ids = [message.message_id]
    outcomes = bench.first.complete(bench.name, message.claim_id, ids)
    expect("complete", [one.outcome for one in outcomes], ["stale"])
    given_back = bench.first.release(bench.name, message.claim_id, ids)
    expect("release", [one.outcome for one in given_back], ["stale"])
    refuses(rowq.StaleClaim, lambda: bench.first.extend_lease(bench.name, message.claim_id))
    refuses(rowq.StaleClaim, lambda: bench.first.complete(bench.name, message.claim_id))
