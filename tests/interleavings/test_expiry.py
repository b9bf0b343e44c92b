"""Expired leases: of a worker and reap exactly one gets the claim."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from rowq import Queue, StaleClaim
from tests.interleavings.conftest import Open
from tests.interleavings.sessions import Session
from tests.interleavings.work import claim_of, each_ending, take
from tests.stored_times import expire_claim, pass_seconds

Finish = Callable[[Queue, str, int, list[int] | None], Any]

FINISHES: dict[str, Finish] = {
    "complete": lambda queue, name, claim, ids: queue.complete(name, claim, ids),
    "retry_later": lambda queue, name, claim, ids: queue.retry_later(name, claim, ids),
    "fail_now": lambda queue, name, claim, ids: queue.fail_now(name, claim, ids),
    "release": lambda queue, name, claim, ids: queue.release(name, claim, ids),
    "snooze": lambda queue, name, claim, ids: queue.release(name, claim, ids, delay_seconds=60),
}
DONE = {
    "complete": "completed",
    "retry_later": "retrying",
    "fail_now": "dead",
    "release": "released",
    "snooze": "snoozed",
}
STATE = {
    "complete": None,
    "retry_later": "delayed",
    "fail_now": "dead",
    "release": "ready",
    "snooze": "delayed",
}

each_finish = pytest.mark.parametrize("finish", FINISHES)


def expired_claim(session: Session, queue: str, count: int = 2) -> tuple[int, list[int]]:
    """Lease new messages to a claim whose lease has expired."""
    claim, ids = claim_of(session, queue, count)
    expire_claim(session.connection, claim)
    return claim, ids


def states(session: Session, queue: str, ids: list[int]) -> set[str | None]:
    """Return the states of messages; None is an unknown message."""
    found = [session.queue.get_message(queue, message_id) for message_id in ids]
    return {details.state if details else None for details in found}


def attempts(session: Session, queue: str, ids: list[int]) -> set[int]:
    """Return the attempts of messages that exist."""
    found = [session.queue.get_message(queue, message_id) for message_id in ids]
    assert all(found)
    return {details.attempt for details in found if details}


@pytest.mark.pitfall("mysql 2")
@each_ending
@each_finish
@pytest.mark.promise("P02", "P03", "P08", "P09")
def test_reap_skips_a_claim_with_an_open_finish(
    sessions: Open, queue: str, finish: str, ending: str
) -> None:
    worker, reaper = sessions(2)
    claim, ids = expired_claim(worker, queue)
    worker.begin()
    FINISHES[finish](worker.queue, queue, claim, ids)
    assert reaper.queue.reap(queue).reaped == 0
    worker.end(ending)
    if ending == "commit":
        assert reaper.queue.reap(queue).reaped == 0
        assert states(reaper, queue, ids) == {STATE[finish]}
    else:
        assert reaper.queue.reap(queue).reaped == 2
        assert take(reaper, queue, 5) == ids


@each_ending
@each_finish
@pytest.mark.parametrize("whole", [False, True], ids=["ids", "whole claim"])
@pytest.mark.promise("P08")
def test_finish_waits_for_an_open_reap(
    sessions: Open, queue: str, finish: str, whole: bool, ending: str
) -> None:
    worker, reaper = sessions(2)
    claim, ids = expired_claim(worker, queue)
    assert reaper.begin().queue.reap(queue).reaped == 2
    asked = None if whole else ids
    finishing = worker.start(lambda own: FINISHES[finish](own, queue, claim, asked))
    finishing.waits_for(reaper)
    reaper.end(ending)
    if ending == "commit" and whole:
        with pytest.raises(StaleClaim):
            finishing.result()
    else:
        expected = DONE[finish] if ending == "rollback" else "stale"
        assert {outcome.outcome for outcome in finishing.result()} == {expected}
    if ending == "commit":
        assert states(reaper, queue, ids) == {"ready"}
        assert attempts(reaper, queue, ids) == {1}
    else:
        assert reaper.queue.reap(queue).reaped == 0


@each_ending
@each_finish
@pytest.mark.promise("P03", "P08", "P45")
def test_finish_beside_an_open_partial_reap_applies_to_the_rest(
    sessions: Open, queue: str, finish: str, ending: str
) -> None:
    worker, reaper = sessions(2)
    claim, ids = expired_claim(worker, queue, 4)
    assert reaper.begin().queue.reap(queue, 3).reaped == 3
    finishing = worker.start(lambda own: FINISHES[finish](own, queue, claim, ids))
    finishing.waits_for(reaper)
    reaper.end(ending)
    reaped = ids[:3] if ending == "commit" else []
    assert {outcome.message_id: outcome.outcome for outcome in finishing.result()} == {
        message_id: "stale" if message_id in reaped else DONE[finish] for message_id in ids
    }
    with pytest.raises(StaleClaim):
        worker.queue.complete(queue, claim)
    if reaped:
        assert states(reaper, queue, reaped) == {"ready"}
        assert attempts(reaper, queue, reaped) == {1}


@each_ending
@pytest.mark.promise("P03", "P06", "P45")
def test_second_reap_skips_a_claim_with_an_open_partial_reap(
    sessions: Open, queue: str, ending: str
) -> None:
    first, second = sessions(2)
    _, ids = expired_claim(first, queue, 4)
    assert first.begin().queue.reap(queue, 1).reaped == 1
    assert second.queue.reap(queue).reaped == 0
    first.end(ending)
    assert second.queue.reap(queue).reaped == (3 if ending == "commit" else 4)
    assert take(second, queue, 5) == ids


@pytest.mark.promise("P08", "P45")
def test_heartbeat_after_a_partial_reap_extends_the_rest(sessions: Open, queue: str) -> None:
    worker, reaper = sessions(2)
    claim, ids = expired_claim(worker, queue, 3)
    assert reaper.begin().queue.reap(queue, 2).reaped == 2
    beating = worker.start(lambda own: own.extend_lease(queue, claim, lease_seconds=600))
    beating.waits_for(reaper)
    reaper.commit()
    assert beating.result().claim_id == claim
    assert reaper.queue.reap(queue).reaped == 0
    assert states(reaper, queue, ids[:2]) == {"ready"}
    assert states(reaper, queue, ids[2:]) == {"leased"}


@each_ending
@pytest.mark.promise("P03", "P09")
def test_reap_skips_a_claim_with_an_open_heartbeat(sessions: Open, queue: str, ending: str) -> None:
    worker, reaper = sessions(2)
    claim, ids = expired_claim(worker, queue)
    worker.begin().queue.extend_lease(queue, claim, lease_seconds=60)
    assert reaper.queue.reap(queue).reaped == 0
    worker.end(ending)
    assert reaper.queue.reap(queue).reaped == (0 if ending == "commit" else 2)
    if ending == "commit":
        completed = worker.queue.complete(queue, claim, ids)
        assert {outcome.outcome for outcome in completed} == {"completed"}


@each_ending
@pytest.mark.promise("P03", "P08")
def test_extend_lease_waits_for_an_open_reap(sessions: Open, queue: str, ending: str) -> None:
    worker, reaper = sessions(2)
    claim, ids = expired_claim(worker, queue)
    reaper.begin().queue.reap(queue)
    extending = worker.start(lambda own: own.extend_lease(queue, claim, lease_seconds=60))
    extending.waits_for(reaper)
    reaper.end(ending)
    if ending == "commit":
        with pytest.raises(StaleClaim):
            extending.result()
    else:
        assert extending.result().claim_id == claim
        assert reaper.queue.reap(queue).reaped == 0
    assert states(reaper, queue, ids) == {"ready" if ending == "commit" else "leased"}


@pytest.mark.pitfall("mysql 2")
@pytest.mark.promise("P04", "P08")
def test_complete_and_reap_at_once_give_the_claim_to_one(sessions: Open, queue: str) -> None:
    worker, reaper = sessions(2)
    worker.queue.alter_queue(queue, max_attempts=100)
    start_line = threading.Barrier(2)

    def reap(own: Queue) -> int:
        start_line.wait()
        return own.reap(queue).reaped

    for _ in range(30):
        claim, ids = expired_claim(worker, queue)

        def complete(own: Queue, claim: int = claim, ids: list[int] = ids) -> set[str]:
            start_line.wait()
            return {outcome.outcome for outcome in own.complete(queue, claim, ids)}

        completing, reaping = worker.start(complete), reaper.start(reap)
        outcome, reaped = completing.result(), reaping.result()
        assert (outcome, reaped) in (({"completed"}, 0), ({"stale"}, 2))
        again = reaper.queue.dequeue_fast(queue, 5)
        assert [message.message_id for message in again] == (ids if reaped else [])
        if again:
            reaper.queue.complete(queue, again[0].claim_id)


def reaped_claim(worker: Session, reaper: Session, queue: str) -> tuple[int, list[int]]:
    """Return a claim that was reaped, and its messages."""
    claim, ids = expired_claim(worker, queue)
    assert reaper.queue.reap(queue).reaped == 2
    return claim, ids


@each_finish
@pytest.mark.promise("P08")
def test_stale_claim_changes_nothing_after_a_reap(sessions: Open, queue: str, finish: str) -> None:
    worker, reaper, successor = sessions(3)
    claim, ids = reaped_claim(worker, reaper, queue)

    def outcomes() -> set[str]:
        done = FINISHES[finish](worker.queue, queue, claim, ids)
        return {outcome.outcome for outcome in done}

    assert outcomes() == {"stale"}
    assert states(reaper, queue, ids) == {"ready"}

    new_claim = successor.queue.dequeue_fast(queue, 2)[0].claim_id
    assert new_claim != claim
    assert outcomes() == {"stale"}
    with pytest.raises(StaleClaim):
        FINISHES[finish](worker.queue, queue, claim, None)
    assert states(reaper, queue, ids) == {"leased"}
    assert attempts(reaper, queue, ids) == {2}

    completed = successor.queue.complete(queue, new_claim)
    assert sorted(message.message_id for message in completed) == ids
    assert outcomes() == {"stale"}
    assert states(reaper, queue, ids) == {None}


@pytest.mark.promise("P08")
def test_stale_claim_cannot_be_extended_after_a_reap(sessions: Open, queue: str) -> None:
    worker, reaper = sessions(2)
    claim, ids = reaped_claim(worker, reaper, queue)
    with pytest.raises(StaleClaim):
        worker.queue.extend_lease(queue, claim)
    reaper.queue.dequeue_fast(queue, 2)
    with pytest.raises(StaleClaim):
        worker.queue.extend_lease(queue, claim, lease_seconds=86400)
    pass_seconds(reaper.connection, queue, 60)
    assert reaper.queue.reap(queue).reaped == 2
    assert attempts(reaper, queue, ids) == {2}


@pytest.mark.promise("P08")
def test_claim_of_one_queue_finishes_nothing_in_another(
    sessions: Open, queue: str, queue_name: str
) -> None:
    (worker,) = sessions(1)
    other = f"{queue_name}_other"
    worker.queue.create_queue(other)
    worker.queue.enqueue(queue, 0)
    message = worker.queue.dequeue_fast(queue)[0]
    outcomes = worker.queue.complete(other, message.claim_id, [message.message_id])
    assert [outcome.outcome for outcome in outcomes] == ["stale"]
    with pytest.raises(StaleClaim):
        worker.queue.extend_lease(other, message.claim_id)
    assert states(worker, queue, [message.message_id]) == {"leased"}
