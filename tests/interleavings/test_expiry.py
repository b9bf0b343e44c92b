"""A worker and the reaper want the same claim at the same instant: exactly one of them gets it."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from rowq import Queue, StaleClaim
from tests.interleavings.conftest import Open
from tests.interleavings.sessions import Session
from tests.interleavings.work import claim_of
from tests.stored_times import expire_claim, pass_seconds

Finish = Callable[[Queue, str, int, list[int] | None], Any]

FINISHES: dict[str, Finish] = {
    "complete": lambda queue, name, claim, ids: queue.complete(name, claim, ids),
    "retry_later": lambda queue, name, claim, ids: queue.retry_later(name, claim, ids),
    "fail_now": lambda queue, name, claim, ids: queue.fail_now(name, claim, ids),
    "release": lambda queue, name, claim, ids: queue.release(name, claim, ids),
}
DONE = {
    "complete": "completed",
    "retry_later": "retrying",
    "fail_now": "dead",
    "release": "released",
}
STATE = {"complete": None, "retry_later": "delayed", "fail_now": "dead", "release": "ready"}

each_finish = pytest.mark.parametrize("finish", FINISHES)


def expired_claim(session: Session, queue: str, count: int = 2) -> tuple[int, list[int]]:
    """Lease new messages to a claim whose lease has run out."""
    claim, ids = claim_of(session, queue, count)
    expire_claim(session.connection, claim)
    return claim, ids


def states(session: Session, queue: str, ids: list[int]) -> set[str | None]:
    """Return the states of messages; None is one that rowq does not know."""
    found = [session.queue.get_message(queue, message_id) for message_id in ids]
    return {details.state if details else None for details in found}


def attempts(session: Session, queue: str, ids: list[int]) -> set[int]:
    """Return the attempts of messages, all of which rowq knows."""
    found = [session.queue.get_message(queue, message_id) for message_id in ids]
    assert all(found)
    return {details.attempt for details in found if details}


@pytest.mark.pitfall("mysql 2")
@each_finish
@pytest.mark.promise("P03", "P08")
def test_reap_passes_over_a_claim_that_is_being_finished(
    sessions: Open, queue: str, finish: str
) -> None:
    worker, reaper = sessions(2)
    claim, ids = expired_claim(worker, queue)
    worker.begin()
    FINISHES[finish](worker.queue, queue, claim, ids)
    assert reaper.queue.reap(queue).reaped == 0
    worker.commit()
    assert reaper.queue.reap(queue).reaped == 0
    assert states(reaper, queue, ids) == {STATE[finish]}


@each_finish
@pytest.mark.promise("P02", "P09")
def test_reap_takes_back_what_a_rolled_back_finish_left(
    sessions: Open, queue: str, finish: str
) -> None:
    worker, reaper = sessions(2)
    claim, ids = expired_claim(worker, queue)
    worker.begin()
    FINISHES[finish](worker.queue, queue, claim, ids)
    assert reaper.queue.reap(queue).reaped == 0
    worker.rollback()
    assert reaper.queue.reap(queue).reaped == 2
    assert [message.message_id for message in reaper.queue.dequeue_fast(queue, 5)] == ids


@each_finish
@pytest.mark.promise("P08")
def test_a_finish_waits_for_an_open_reap_and_is_then_stale(
    sessions: Open, queue: str, finish: str
) -> None:
    worker, reaper = sessions(2)
    claim, ids = expired_claim(worker, queue)
    assert reaper.begin().queue.reap(queue).reaped == 2
    finishing = worker.start(lambda own: FINISHES[finish](own, queue, claim, ids))
    finishing.waits_for(reaper)
    reaper.commit()
    assert {outcome.outcome for outcome in finishing.result()} == {"stale"}
    assert states(reaper, queue, ids) == {"ready"}
    assert attempts(reaper, queue, ids) == {1}


@each_finish
@pytest.mark.promise("P08")
def test_a_finish_of_everything_waits_for_an_open_reap_and_is_then_refused(
    sessions: Open, queue: str, finish: str
) -> None:
    worker, reaper = sessions(2)
    claim, ids = expired_claim(worker, queue)
    reaper.begin().queue.reap(queue)
    finishing = worker.start(lambda own: FINISHES[finish](own, queue, claim, None))
    finishing.waits_for(reaper)
    reaper.commit()
    with pytest.raises(StaleClaim):
        finishing.result()
    assert states(reaper, queue, ids) == {"ready"}


@each_finish
@pytest.mark.promise("P08")
def test_a_finish_that_waited_for_a_rolled_back_reap_is_done(
    sessions: Open, queue: str, finish: str
) -> None:
    worker, reaper = sessions(2)
    claim, ids = expired_claim(worker, queue)
    reaper.begin().queue.reap(queue)
    finishing = worker.start(lambda own: FINISHES[finish](own, queue, claim, ids))
    finishing.waits_for(reaper)
    reaper.rollback()
    assert {outcome.outcome for outcome in finishing.result()} == {DONE[finish]}
    assert reaper.queue.reap(queue).reaped == 0


@pytest.mark.promise("P03")
def test_reap_passes_over_a_claim_whose_lease_is_being_extended(sessions: Open, queue: str) -> None:
    worker, reaper = sessions(2)
    claim, ids = expired_claim(worker, queue)
    worker.begin().queue.extend_lease(queue, claim, lease_seconds=60)
    assert reaper.queue.reap(queue).reaped == 0
    worker.commit()
    assert reaper.queue.reap(queue).reaped == 0
    assert {outcome.outcome for outcome in worker.queue.complete(queue, claim, ids)} == {
        "completed"
    }


@pytest.mark.promise("P09")
def test_reap_takes_back_a_claim_whose_extension_was_rolled_back(
    sessions: Open, queue: str
) -> None:
    worker, reaper = sessions(2)
    claim, _ = expired_claim(worker, queue)
    worker.begin().queue.extend_lease(queue, claim, lease_seconds=60)
    assert reaper.queue.reap(queue).reaped == 0
    worker.rollback()
    assert reaper.queue.reap(queue).reaped == 2


@pytest.mark.promise("P08")
def test_extend_lease_waits_for_an_open_reap_and_is_then_refused(
    sessions: Open, queue: str
) -> None:
    worker, reaper = sessions(2)
    claim, ids = expired_claim(worker, queue)
    reaper.begin().queue.reap(queue)
    extending = worker.start(lambda own: own.extend_lease(queue, claim, lease_seconds=60))
    extending.waits_for(reaper)
    reaper.commit()
    with pytest.raises(StaleClaim):
        extending.result()
    assert states(reaper, queue, ids) == {"ready"}


@pytest.mark.promise("P03", "P08")
def test_extend_lease_that_waited_for_a_rolled_back_reap_holds(sessions: Open, queue: str) -> None:
    worker, reaper = sessions(2)
    claim, ids = expired_claim(worker, queue)
    reaper.begin().queue.reap(queue)
    extending = worker.start(lambda own: own.extend_lease(queue, claim, lease_seconds=60))
    extending.waits_for(reaper)
    reaper.rollback()
    assert extending.result().claim_id == claim
    assert reaper.queue.reap(queue).reaped == 0
    assert states(reaper, queue, ids) == {"leased"}


@pytest.mark.pitfall("mysql 2")
@pytest.mark.promise("P04", "P08")
def test_of_complete_and_reap_at_the_same_instant_exactly_one_has_the_claim(
    sessions: Open, queue: str
) -> None:
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
def test_a_stale_claim_after_reap_changes_nothing_whoever_has_the_messages_now(
    sessions: Open, queue: str, finish: str
) -> None:
    worker, reaper, successor = sessions(3)
    claim, ids = reaped_claim(worker, reaper, queue)
    assert {outcome.outcome for outcome in FINISHES[finish](worker.queue, queue, claim, ids)} == {
        "stale"
    }
    assert states(reaper, queue, ids) == {"ready"}

    new_claim = successor.queue.dequeue_fast(queue, 2)[0].claim_id
    assert new_claim != claim
    assert {outcome.outcome for outcome in FINISHES[finish](worker.queue, queue, claim, ids)} == {
        "stale"
    }
    with pytest.raises(StaleClaim):
        FINISHES[finish](worker.queue, queue, claim, None)
    assert states(reaper, queue, ids) == {"leased"}
    assert attempts(reaper, queue, ids) == {2}

    completed = successor.queue.complete(queue, new_claim)
    assert sorted(message.message_id for message in completed) == ids
    assert {outcome.outcome for outcome in FINISHES[finish](worker.queue, queue, claim, ids)} == {
        "stale"
    }
    assert states(reaper, queue, ids) == {None}


@pytest.mark.promise("P08")
def test_a_stale_claim_after_reap_cannot_be_extended(sessions: Open, queue: str) -> None:
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
def test_the_claim_of_one_queue_finishes_nothing_in_another(
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
