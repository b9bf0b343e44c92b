"""An attempt ends once, with one row of history, beside any other session."""

import pytest

from rowq import StaleClaim
from tests.helpers.dialects import dialect_of
from tests.interleavings.conftest import Open
from tests.interleavings.sessions import Session
from tests.interleavings.test_expiry import DONE, FINISHES, each_finish
from tests.interleavings.work import claim_of, each_ending, maintain_later
from tests.stored_times import expire_claim, pass_seconds

pytestmark = pytest.mark.promise("P37")

DAY = 86400


@pytest.fixture
def kept(sessions: Open, queue: str) -> str:
    """Return the name of a queue that keeps history."""
    (admin,) = sessions(1)
    admin.queue.alter_queue(queue, history_days=2)
    return queue


def past(session: Session, queue: str, message_id: int) -> list[str | None]:
    """Return the outcomes of a message's attempts, None for the current lease."""
    return [attempt.outcome for attempt in session.queue.get_history(queue, message_id)]


def pasts(session: Session, queue: str, ids: list[int]) -> list[list[str | None]]:
    """Return the outcomes of each message."""
    return [past(session, queue, message_id) for message_id in ids]


@each_ending
@each_finish
def test_ended_attempt_is_visible_after_commit(
    sessions: Open, kept: str, finish: str, ending: str
) -> None:
    worker, other = sessions(2)
    claim, ids = claim_of(worker, kept, 2)
    worker.begin()
    FINISHES[finish](worker.queue, kept, claim, None)
    assert pasts(worker, kept, ids) == [[DONE[finish]]] * 2
    before = [None] if dialect_of(other.connection).shows_before else []
    assert pasts(other, kept, ids) == [before] * 2
    worker.end(ending)
    after = [DONE[finish]] if ending == "commit" else [None]
    assert pasts(other, kept, ids) == [after] * 2


@each_ending
def test_uncommitted_dequeue_is_no_attempt_elsewhere(
    sessions: Open, kept: str, ending: str
) -> None:
    worker, other = sessions(2)
    message_id = other.queue.enqueue(kept, 0).message_id
    worker.begin().queue.dequeue_fast(kept, worker_name="first")
    assert past(worker, kept, message_id) == [None]
    assert past(other, kept, message_id) == []
    worker.end(ending)
    assert past(other, kept, message_id) == ([None] if ending == "commit" else [])
    if ending == "rollback":
        (message,) = other.queue.dequeue_fast(kept, worker_name="second")
        other.queue.complete(kept, message.claim_id)
        (attempt,) = worker.queue.get_history(kept, message_id)
        assert (attempt.worker_name, attempt.attempt) == ("second", 1)


@pytest.mark.promise("P08")
@each_ending
@each_finish
def test_finish_beside_an_open_reap_leaves_one_attempt(
    sessions: Open, kept: str, finish: str, ending: str
) -> None:
    worker, reaper = sessions(2)
    claim, ids = claim_of(worker, kept, 2)
    expire_claim(worker.connection, claim)
    assert reaper.begin().queue.reap(kept).reaped == 2
    finishing = worker.start(lambda own: FINISHES[finish](own, kept, claim, None))
    finishing.waits_for(reaper)
    reaper.end(ending)
    if ending == "commit":
        with pytest.raises(StaleClaim):
            finishing.result()
        assert pasts(worker, kept, ids) == [["lease_expired"]] * 2
    else:
        finishing.result()
        assert pasts(worker, kept, ids) == [[DONE[finish]]] * 2


@pytest.mark.promise("P03")
@each_ending
@each_finish
def test_reap_beside_an_open_finish_leaves_one_attempt(
    sessions: Open, kept: str, finish: str, ending: str
) -> None:
    worker, reaper = sessions(2)
    claim, ids = claim_of(worker, kept, 2)
    expire_claim(worker.connection, claim)
    worker.begin()
    FINISHES[finish](worker.queue, kept, claim, None)
    assert reaper.queue.reap(kept).reaped == 0
    worker.end(ending)
    assert reaper.queue.reap(kept).reaped == (0 if ending == "commit" else 2)
    outcome = DONE[finish] if ending == "commit" else "lease_expired"
    assert pasts(reaper, kept, ids) == [[outcome]] * 2


@pytest.mark.promise("P34")
@pytest.mark.requires("cancel")
@each_ending
@each_finish
def test_finish_beside_an_open_cancel_waits_for_it(
    sessions: Open, kept: str, finish: str, ending: str
) -> None:
    worker, other = sessions(2)
    claim, ids = claim_of(worker, kept, 2)
    other.begin().queue.cancel(kept, ids[:1], include_leased=True)
    finishing = worker.start(lambda own: FINISHES[finish](own, kept, claim, None))
    finishing.waits_for(other)
    other.end(ending)
    finishing.result()
    is_cancelled = ending == "commit" and finish != "complete"
    first = "cancelled" if is_cancelled else DONE[finish]
    assert pasts(other, kept, ids) == [[first], [DONE[finish]]]


@pytest.mark.promise("P34")
@pytest.mark.requires("cancel")
@each_ending
@each_finish
def test_cancel_beside_an_open_finish_changes_no_outcome(
    sessions: Open, kept: str, finish: str, ending: str
) -> None:
    worker, other = sessions(2)
    claim, ids = claim_of(worker, kept, 2)
    worker.begin()
    FINISHES[finish](worker.queue, kept, claim, None)
    assert {row.outcome for row in other.queue.cancel(kept, ids, include_leased=True)} == {"leased"}
    worker.end(ending)
    after = [DONE[finish]] if ending == "commit" else [None]
    assert pasts(other, kept, ids) == [after] * 2


@pytest.mark.promise("P08")
@each_ending
@each_finish
def test_two_sessions_end_parts_of_one_claim(
    sessions: Open, kept: str, finish: str, ending: str
) -> None:
    first, second = sessions(2)
    claim, ids = claim_of(first, kept, 3)
    first.begin().queue.complete(kept, claim, ids[:2])
    # Both sessions name the second message.
    finishing = second.start(lambda own: FINISHES[finish](own, kept, claim, ids[1:]))
    finishing.waits_for(first)
    first.end(ending)
    found = [result.outcome for result in finishing.result()]
    done = DONE[finish]
    if ending == "commit":
        assert found == ["stale", done]
        assert pasts(first, kept, ids) == [["completed"], ["completed"], [done]]
    else:
        assert found == [done, done]
        assert pasts(first, kept, ids) == [[None], [done], [done]]


@each_ending
def test_history_days_applies_to_attempts_that_end_later(
    sessions: Open, queue: str, ending: str
) -> None:
    admin, worker = sessions(2)
    claim, ids = claim_of(worker, queue, 3)
    worker.queue.complete(queue, claim, ids[:1])
    admin.begin().queue.alter_queue(queue, history_days=2)
    worker.queue.release(queue, claim, ids[1:2])
    admin.end(ending)
    worker.queue.fail_now(queue, claim, ids[2:])
    last = ["dead"] if ending == "commit" else []
    assert pasts(admin, queue, ids) == [[], [], last]
    for attempt in admin.queue.get_history(queue, ids[2]):
        # The lease is older than the setting.
        assert attempt.ended_at is not None
        assert attempt.leased_at < attempt.ended_at


def overdue(session: Session, queue: str) -> list[int]:
    """End two attempts that are due to be purged; return their messages."""
    claim, ids = claim_of(session, queue, 2)
    session.queue.complete(queue, claim)
    pass_seconds(session.connection, queue, 4 * DAY)
    return ids


@pytest.mark.promise("P19")
@each_ending
@pytest.mark.parametrize("purge", ["maintain", "purge_archive"])
def test_open_purge_of_history_does_not_block_completion(
    sessions: Open, kept: str, purge: str, ending: str
) -> None:
    cleaner, worker, other = sessions(3)
    old = overdue(cleaner, kept)
    claim, ids = claim_of(worker, kept, 2)
    getattr(cleaner.begin().queue, purge)(kept)
    worker.queue.complete(kept, claim)
    getattr(other.queue, purge)(kept)
    cleaner.end(ending)
    assert pasts(worker, kept, old) == [[] if ending == "commit" else ["completed"]] * 2
    maintain_later(worker, kept)
    assert pasts(worker, kept, old) == [[]] * 2
    assert pasts(worker, kept, ids) == [["completed"]] * 2


@pytest.mark.pitfall("mysql 15")
@pytest.mark.promise("P14", "P19")
@each_ending
@pytest.mark.parametrize("purge", ["maintain", "purge_archive"])
def test_open_completion_does_not_block_a_purge_of_history(
    sessions: Open, kept: str, purge: str, ending: str
) -> None:
    slow, cleaner = sessions(2)
    old = overdue(cleaner, kept)
    claim, ids = claim_of(slow, kept, 2)
    slow.begin().queue.complete(kept, claim)
    getattr(cleaner.queue, purge)(kept)
    assert pasts(cleaner, kept, old) == [[]] * 2
    slow.end(ending)
    assert pasts(cleaner, kept, ids) == [["completed"] if ending == "commit" else [None]] * 2
    if ending == "rollback":
        slow.queue.complete(kept, claim)
    for _ in range(3):
        pass_seconds(cleaner.connection, kept, 4 * DAY)
        getattr(cleaner.queue, purge)(kept)
    assert pasts(cleaner, kept, ids) == [[]] * 2


@pytest.mark.promise("P19")
@pytest.mark.parametrize("purge", ["maintain", "purge_archive"])
def test_old_snapshot_does_not_block_a_purge_of_history(
    sessions: Open, kept: str, purge: str
) -> None:
    reader, cleaner = sessions(2)
    old = overdue(cleaner, kept)
    reader.begin("repeatable read")
    assert pasts(reader, kept, old) == [["completed"]] * 2
    getattr(cleaner.queue, purge)(kept)
    assert pasts(cleaner, kept, old) == [[]] * 2
    claim, ids = claim_of(cleaner, kept, 2)
    cleaner.queue.complete(kept, claim)
    sees_newer = dialect_of(reader.connection).sees_newer
    assert pasts(reader, kept, old) == [[] if sees_newer else ["completed"]] * 2
    assert pasts(reader, kept, ids) == [["completed"] if sees_newer else []] * 2
    reader.commit()
    assert pasts(reader, kept, [*old, *ids]) == [[], [], ["completed"], ["completed"]]
