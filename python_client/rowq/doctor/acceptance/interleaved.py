"""Second part: what two sessions do beside each other."""

from concurrent.futures import ThreadPoolExecutor

import rowq
from rowq.doctor.acceptance.two_sessions import (
    Disagrees,
    TwoSessions,
    expect,
    refuses,
    until,
)


def disjoint_batches(two: TwoSessions) -> str:
    """An open dequeue holds its batch and no row more; the other one goes on behind it."""
    ids = two.enqueue(*range(9))
    with two.undone(two.first):
        expect("the first batch", _taken(two, two.first, 3), ids[:3])
        second = two.dequeue(two.second, 3)
        expect("the second batch", [message.message_id for message in second], ids[3:6])
    third = two.dequeue(two.second, 6)
    order = [*ids[:3], *ids[6:]]
    expect("after the rollback", [message.message_id for message in third], order)
    expect("attempts", {message.attempt for message in third}, {1})
    for claim in (second[0].claim_id, third[0].claim_id):
        two.second.complete(two.queue, claim)
    return "rows 1 to 3, then 4 to 6; rolled back, 1 to 3 came first again"


def rollback_leaves_nothing(two: TwoSessions) -> str:
    """What a transaction has sent, taken and finished is as before when it is rolled back."""
    with two.undone(two.first):
        two.first.enqueue(two.queue, "never", dedup_key="never")
        two.first.enqueue_batch(two.queue, [rowq.NewMessage(data=1)] * 3)
        expect("seen by others", two.counts(), (0, 0, 0, 0))
    expect("after the rollback", two.counts(), (0, 0, 0, 0))
    expect(
        "the key",
        two.first.enqueue(two.queue, 1, dedup_key="never").outcome,
        "enqueued",
    )
    with two.undone(two.first):
        (message,) = two.dequeue(two.first)
        two.first.complete(two.queue, message.claim_id)
    (again,) = two.dequeue(two.second)
    expect("given back", (again.message_id, again.attempt), (message.message_id, 1))
    with two.transaction(two.second):
        two.second.complete(two.queue, again.claim_id)
        sent = two.second.enqueue(two.queue, "next").message_id
        expect("before the commit", two.dequeue(two.first), [])
    (last,) = two.dequeue(two.first)
    expect("after the commit", (last.message_id, last.data), (sent, "next"))
    two.first.complete(two.queue, last.claim_id)
    return "sent, taken and finished in transactions, rolled back and committed"


def stale_claims(two: TwoSessions) -> str:
    """A claim that ran out finishes nothing, and its message is at the front again."""
    ids = two.enqueue("slow", "behind")
    (slow,) = two.dequeue(two.first, lease_seconds=1)

    def is_back() -> bool:
        two.second.maintain(two.queue)
        found = two.second.get_message(two.queue, ids[0])
        return found is not None and found.state == "ready"

    until(is_back, "the message of an expired lease is ready again")
    _is_stale(two, slow)
    again = two.dequeue(two.second, 2)
    attempts = [(message.message_id, message.attempt) for message in again]
    expect("at the front, with its attempt", attempts, [(ids[0], 2), (ids[1], 1)])
    _is_stale(two, slow)
    outcomes = two.second.complete(two.queue, again[0].claim_id)
    expect("the one who holds it", {outcome.outcome for outcome in outcomes}, {"completed"})
    _is_stale(two, slow)
    return "a lease of a second ran out; its claim changed nothing at any time after"


def one_housekeeper(two: TwoSessions) -> str:
    """Of two who keep house one is elected, and the other does not wait."""

    def is_passed_over() -> bool:
        with two.undone(two.first):
            mine = two.first.maintain(two.queue)[0].elected
            theirs = two.second.maintain(two.queue)[0].elected
        if mine and theirs:
            raise Disagrees("two sessions were elected at a time")
        return mine

    until(is_passed_over, "a session is elected")
    return "one of two was elected; nobody waited"


def waiting(two: TwoSessions) -> str:
    """A message that comes ends a wait; without one it ends at its time."""
    expect("in vain", two.second.dequeue_wait(two.queue, wait_seconds=0.2), [])
    with ThreadPoolExecutor(1) as pool:
        wait = pool.submit(two.second.dequeue_wait, two.queue, wait_seconds=20)
        (sent,) = two.enqueue("awaited")
        (message,) = wait.result()
    expect("awaited", (message.message_id, message.data), (sent, "awaited"))
    two.second.complete(two.queue, message.claim_id)
    return "a wait was ended by a message, another by its time"


def _taken(two: TwoSessions, session: rowq.Queue, count: int) -> list[int]:
    return [message.message_id for message in two.dequeue(session, count)]


def _is_stale(two: TwoSessions, message: rowq.Message) -> None:
    """Try everything with a claim that has run out."""
    ids = [message.message_id]
    outcomes = two.first.complete(two.queue, message.claim_id, ids)
    expect("complete", [outcome.outcome for outcome in outcomes], ["stale"])
    given_back = two.first.release(two.queue, message.claim_id, ids)
    expect("release", [outcome.outcome for outcome in given_back], ["stale"])
    refuses(rowq.StaleClaim, lambda: two.first.extend_lease(two.queue, message.claim_id))
    refuses(rowq.StaleClaim, lambda: two.first.complete(two.queue, message.claim_id))
