"""Cancel overlaps with heartbeats, finishing calls, reap and dequeue."""

from collections.abc import Callable

import pytest

from rowq import Queue, StaleClaim
from tests.helpers.dialects import dialect_of
from tests.interleavings.conftest import Open
from tests.interleavings.sessions import Session
from tests.interleavings.test_expiry import DONE, FINISHES, STATE, states
from tests.interleavings.work import claim_of, each_ending, everything, maintain_later
from tests.stored_times import expire_claim

pytestmark = [pytest.mark.requires("cancel", "genuine"), pytest.mark.pitfall("sqlserver 34")]

each_finish = pytest.mark.parametrize("finish", FINISHES)


def cancel(session: Session, queue: str, ids: list[int]) -> list[str]:
    """Cancel messages, leased ones included; return the outcomes."""
    return [result.outcome for result in session.queue.cancel(queue, ids, include_leased=True)]


def cancel_ids_of(session: Session, queue: str, claim: int) -> list[int] | None:
    """Return the cancel_ids that a heartbeat returns."""
    ids = session.queue.extend_lease(queue, claim).cancel_ids
    return ids and sorted(ids)


def finishing(name: str, queue: str, claim: int) -> Callable[[Queue], dict[int, str]]:
    """Return a call that finishes a claim and returns outcomes by message."""
    return lambda own: {
        result.message_id: result.outcome for result in FINISHES[name](own, queue, claim, None)
    }


@each_ending
@pytest.mark.promise("P34")
def test_heartbeat_waits_for_an_open_cancel(sessions: Open, queue: str, ending: str) -> None:
    worker, other = sessions(2)
    claim, ids = claim_of(worker, queue, 2)
    assert cancel(other.begin(), queue, ids[:1]) == ["requested"]
    heartbeat = worker.start(lambda own: own.extend_lease(queue, claim))
    heartbeat.waits_for(other)
    other.end(ending)
    expected = ids[:1] if ending == "commit" else None
    assert heartbeat.result().cancel_ids == expected
    assert cancel_ids_of(worker, queue, claim) == expected


@each_ending
@pytest.mark.promise("P34")
def test_cancel_skips_a_claim_with_an_open_heartbeat(
    sessions: Open, queue: str, ending: str
) -> None:
    worker, other = sessions(2)
    claim, ids = claim_of(worker, queue, 2)
    worker.begin().queue.extend_lease(queue, claim)
    assert cancel(other, queue, ids) == ["leased", "leased"]
    worker.end(ending)
    assert cancel_ids_of(worker, queue, claim) is None
    assert cancel(other, queue, ids) == ["requested", "requested"]
    assert cancel_ids_of(worker, queue, claim) == ids


@each_ending
@each_finish
@pytest.mark.promise("P04", "P34")
def test_finish_waits_for_an_open_cancel(
    sessions: Open, queue: str, finish: str, ending: str
) -> None:
    worker, other = sessions(2)
    claim, ids = claim_of(worker, queue, 2)
    assert cancel(other.begin(), queue, ids[:1]) == ["requested"]
    call = worker.start(finishing(finish, queue, claim))
    call.waits_for(other)
    other.end(ending)
    first = DONE[finish] if ending == "rollback" or finish == "complete" else "cancelled"
    assert call.result() == {ids[0]: first, ids[1]: DONE[finish]}
    assert states(other, queue, ids[1:]) == {STATE[finish]}
    assert states(other, queue, ids[:1]) == {None if first == "cancelled" else STATE[finish]}


@each_ending
@each_finish
@pytest.mark.promise("P03", "P06", "P34")
def test_cancel_skips_a_claim_with_an_open_finish(
    sessions: Open, queue: str, finish: str, ending: str
) -> None:
    worker, other = sessions(2)
    claim, ids = claim_of(worker, queue, 2)
    worker.begin()
    finishing(finish, queue, claim)(worker.queue)
    assert cancel(other, queue, ids) == ["leased", "leased"]
    worker.end(ending)
    again = cancel(other, queue, ids)
    if ending == "rollback":
        assert again == ["requested", "requested"]
        assert cancel_ids_of(worker, queue, claim) == ids
    else:
        assert set(again) == {"not_found" if finish == "complete" else "cancelled"}
        assert states(other, queue, ids) == {None}


@each_ending
@each_finish
@pytest.mark.promise("P34")
def test_finish_ends_a_cancelled_message_only_if_it_commits(
    sessions: Open, queue: str, finish: str, ending: str
) -> None:
    worker, other = sessions(2)
    claim, ids = claim_of(worker, queue, 2)
    cancel(other, queue, ids[:1])
    worker.begin()
    finishing(finish, queue, claim)(worker.queue)
    worker.end(ending)
    if ending == "rollback":
        assert cancel_ids_of(worker, queue, claim) == ids[:1]
        finishing(finish, queue, claim)(worker.queue)
    assert states(other, queue, ids[:1]) == {None}
    assert ids[0] not in everything(other, queue)


@each_ending
@pytest.mark.promise("P09", "P34")
def test_reap_skips_a_claim_with_an_open_cancel(sessions: Open, queue: str, ending: str) -> None:
    reaper, other = sessions(2)
    claim, ids = claim_of(other, queue, 2)
    expire_claim(other.connection, claim)
    assert cancel(other.begin(), queue, ids[:1]) == ["requested"]
    assert reaper.queue.reap(queue).reaped == 0
    other.end(ending)
    maintain_later(reaper, queue)
    assert everything(reaper, queue) == (ids[1:] if ending == "commit" else ids)


@each_ending
@pytest.mark.promise("P09", "P34")
def test_cancel_skips_a_claim_with_an_open_reap(sessions: Open, queue: str, ending: str) -> None:
    reaper, other = sessions(2)
    claim, ids = claim_of(other, queue, 2)
    expire_claim(other.connection, claim)
    assert reaper.begin().queue.reap(queue).reaped == 2
    assert cancel(other, queue, ids) == ["leased", "leased"]
    reaper.end(ending)
    assert set(cancel(other, queue, ids)) == {"cancelled" if ending == "commit" else "requested"}
    maintain_later(reaper, queue)
    assert everything(reaper, queue) == []
    assert states(other, queue, ids) == {None}


@each_ending
@pytest.mark.promise("P34")
def test_reap_ends_a_cancelled_message_only_if_it_commits(
    sessions: Open, queue: str, ending: str
) -> None:
    reaper, other = sessions(2)
    claim, ids = claim_of(other, queue, 2)
    cancel(other, queue, ids)
    expire_claim(other.connection, claim)
    assert reaper.begin().queue.reap(queue).reaped == 0
    assert states(other, queue, ids) == {"leased"}
    reaper.end(ending)
    assert states(other, queue, ids) == {None if ending == "commit" else "leased"}
    other.queue.reap(queue)
    assert states(other, queue, ids) == {None}


@each_ending
@pytest.mark.promise("P03", "P07", "P34")
def test_cancel_skips_an_uncommitted_dequeue(sessions: Open, queue: str, ending: str) -> None:
    worker, other = sessions(2)
    ids = [worker.queue.enqueue(queue, 0).message_id for _ in range(2)]
    claim = worker.begin().queue.dequeue_fast(queue, 2)[0].claim_id
    assert cancel(other, queue, ids) == ["leased", "leased"]
    worker.end(ending)
    if ending == "commit":
        assert cancel_ids_of(worker, queue, claim) is None
        assert cancel(other, queue, ids) == ["requested", "requested"]
        assert cancel_ids_of(worker, queue, claim) == ids
    else:
        assert cancel(other, queue, ids) == ["cancelled", "cancelled"]
        assert everything(worker, queue) == []


@each_ending
@pytest.mark.promise("P34")
def test_second_cancel_skips_a_claim_with_an_open_cancel(
    sessions: Open, queue: str, ending: str
) -> None:
    worker, first, second = sessions(3)
    claim, ids = claim_of(worker, queue, 2)
    assert cancel(first.begin(), queue, ids[:1]) == ["requested"]
    assert cancel(second, queue, ids) == ["leased", "leased"]
    first.end(ending)
    assert cancel(second, queue, ids[1:]) == ["requested"]
    assert cancel_ids_of(worker, queue, claim) == (ids if ending == "commit" else ids[1:])


@each_ending
@pytest.mark.promise("P26", "P34")
def test_reap_keeps_a_cancelled_message_a_producer_names(
    sessions: Open, queue: str, ending: str
) -> None:
    producer, reaper = sessions(2)
    claim, (message_id,) = claim_of(reaper, queue, 1)
    cancel(reaper, queue, [message_id])
    expire_claim(reaper.connection, claim)
    producer.begin()
    waiting = producer.queue.enqueue(queue, 0, predecessor_ids=[message_id]).message_id
    assert reaper.queue.reap(queue).reaped == 0
    maintain_later(reaper, queue)
    assert states(reaper, queue, [message_id]) == {"leased"}
    producer.end(ending)
    maintain_later(reaper, queue)
    maintain_later(reaper, queue)
    assert states(reaper, queue, [message_id]) == {None}
    assert everything(reaper, queue) == ([waiting] if ending == "commit" else [])


@pytest.mark.promise("P06")
def test_claim_that_reap_skips_does_not_use_up_its_batch(sessions: Open, queue: str) -> None:
    producer, reaper = sessions(2)
    held, (message_id,) = claim_of(reaper, queue, 1)
    other, (next_id,) = claim_of(reaper, queue, 1)
    cancel(reaper, queue, [message_id])
    for claim in (held, other):
        expire_claim(reaper.connection, claim)
    producer.begin()
    producer.queue.enqueue(queue, 0, predecessor_ids=[message_id])
    if dialect_of(reaper.connection).expires_predecessors:  # Then reap skips no claim.
        assert reaper.queue.reap(queue, 1).reaped == 0
        assert [claim.claim_id for claim in reaper.queue.list_claims(queue)] == [other]
    assert reaper.queue.reap(queue, 1).reaped == 1
    assert states(reaper, queue, [next_id]) == {"ready"}
    producer.end("rollback")


@each_ending
@pytest.mark.promise("P12", "P34")
def test_reap_does_not_wait_for_a_producer_of_a_duplicate(
    sessions: Open, queue: str, ending: str
) -> None:
    producer, reaper = sessions(2)
    ids = [reaper.queue.enqueue(queue, 0, dedup_key="a").message_id]
    claim = reaper.queue.dequeue_fast(queue)[0].claim_id
    cancel(reaper, queue, ids)
    expire_claim(reaper.connection, claim)
    assert producer.begin().queue.enqueue(queue, 0, dedup_key="a").outcome == "duplicate"
    assert reaper.queue.reap(queue).reaped == 0
    producer.end(ending)
    maintain_later(reaper, queue)
    assert states(reaper, queue, ids) == {None}


@each_ending
@pytest.mark.promise("P06")
def test_cancel_many_skips_messages_in_an_open_dequeue(
    sessions: Open, queue: str, ending: str
) -> None:
    worker, other = sessions(2)
    ids = [worker.queue.enqueue(queue, 0, message_type="mail").message_id for _ in range(3)]
    # Start here: messages of other queues in the same table count.
    before = ids[0] - 1
    worker.begin().queue.dequeue_fast(queue, 2)
    answer = other.queue.cancel_many(queue, message_type="mail", after_message_id=before)
    assert (answer.cancelled, answer.after_message_id) == (1, None)
    worker.end(ending)
    answer = other.queue.cancel_many(queue, message_type="mail", after_message_id=before)
    assert answer.cancelled == (0 if ending == "commit" else 2)
    assert states(other, queue, ids[:2]) == {"leased" if ending == "commit" else None}


@pytest.mark.promise("P08", "P34")
def test_cancelled_claim_is_stale_after_its_lease(sessions: Open, queue: str) -> None:
    worker, other = sessions(2)
    claim, ids = claim_of(worker, queue, 2)
    cancel(other, queue, ids)
    expire_claim(other.connection, claim)
    maintain_later(other, queue)
    with pytest.raises(StaleClaim):
        worker.queue.complete(queue, claim)
    with pytest.raises(StaleClaim):
        worker.queue.extend_lease(queue, claim)
