"""Messages end beside sessions that wait for their results, and beside a purge."""

import pytest

from rowq import MessageResult
from tests.helpers.dialects import dialect_of
from tests.interleavings.conftest import Open
from tests.interleavings.sessions import SECONDS, Session
from tests.interleavings.work import claim_of, each_ending
from tests.stored_times import pass_seconds

pytestmark = [
    pytest.mark.requires("results"),
    pytest.mark.pitfall("sqlserver 38"),
    pytest.mark.promise("P32"),
]

KEPT_SECONDS = 600


@pytest.fixture
def kept(sessions: Open, queue: str) -> str:
    """Return the name of a queue that keeps results."""
    (admin,) = sessions(1)
    admin.queue.alter_queue(queue, result_seconds=KEPT_SECONDS)
    return queue


def end_of(session: Session, queue: str, message_id: int) -> tuple[str, object] | None:
    """Return state and result of a message."""
    return state_and_result(session.queue.get_result(queue, message_id))


def state_and_result(found: MessageResult | None) -> tuple[str, object] | None:
    return None if found is None else (found.state, found.result)


@each_ending
@pytest.mark.parametrize("end", ["complete", "fail_now", "cancel", "purge_queue"])
def test_wait_for_result_returns_an_end_after_its_commit(
    sessions: Open, kept: str, end: str, ending: str
) -> None:
    worker, waiter = sessions(2)
    if end in {"complete", "fail_now"}:
        claim_id, (message_id,) = claim_of(worker, kept, 1)
        before = ("leased", None)
    else:
        message_id, claim_id = worker.queue.enqueue(kept, 1).message_id, 0
        before = ("ready", None)
    worker.begin()
    match end:
        case "complete":
            worker.queue.complete(kept, claim_id, results=["done"])
            after: tuple[str, object] = ("completed", "done")
        case "fail_now":
            worker.queue.fail_now(kept, claim_id, error="broken")
            after = ("dead", None)
        case "cancel":
            worker.queue.cancel(kept, [message_id])
            after = ("cancelled", None)
        case _:
            worker.queue.purge_queue(kept)
            after = ("cancelled", None)
    # The end is not committed: a waiter neither sees it nor waits for a lock.
    waiting = waiter.start(lambda own: own.wait_for_result(kept, message_id, wait_seconds=0.3))
    assert state_and_result(waiting.result()) in {before, ("leased", None)}
    waiting = waiter.start(lambda own: own.wait_for_result(kept, message_id, wait_seconds=SECONDS))
    worker.end(ending)
    if ending == "rollback":
        assert end_of(worker, kept, message_id) == before
        if before[0] == "ready":
            claim_id = worker.queue.dequeue_fast(kept)[0].claim_id
        worker.queue.complete(kept, claim_id)
        after = ("completed", None)
    assert state_and_result(waiting.result()) == after


@each_ending
def test_wait_for_result_after_open_reset_returns_next_result(
    sessions: Open, kept: str, ending: str
) -> None:
    admin, waiter = sessions(2)
    claim_id, (message_id,) = claim_of(admin, kept, 1)
    admin.queue.fail_now(kept, claim_id)
    admin.begin().queue.reset(kept, [message_id])
    # Until the reset commits, other sessions see the message as dead or leased.
    shows_before = dialect_of(waiter.connection).shows_before
    assert end_of(waiter, kept, message_id) == ("dead" if shows_before else "leased", None)
    admin.end(ending)
    if ending == "rollback":
        assert end_of(waiter, kept, message_id) == ("dead", None)
        return
    waiting = waiter.start(lambda own: own.wait_for_result(kept, message_id, wait_seconds=SECONDS))
    (message,) = admin.queue.dequeue_fast(kept)
    admin.queue.complete(kept, message.claim_id, results=["again"])
    assert state_and_result(waiting.result()) == ("completed", "again")


@pytest.mark.promise("P08")
@each_ending
def test_second_complete_of_a_claim_sets_no_result(sessions: Open, kept: str, ending: str) -> None:
    first, second = sessions(2)
    claim_id, (message_id,) = claim_of(first, kept, 1)
    first.begin().queue.complete(kept, claim_id, [message_id], results=["first"])
    running = second.start(
        lambda own: own.complete(kept, claim_id, [message_id], results=["second"])
    )
    running.waits_for(first)
    first.end(ending)
    (outcome,) = running.result()
    if ending == "commit":
        assert outcome.outcome == "stale"
        assert end_of(first, kept, message_id) == ("completed", "first")
    else:
        assert outcome.outcome == "completed"
        assert end_of(first, kept, message_id) == ("completed", "second")


def overdue(session: Session, queue: str) -> list[int]:
    """Return two dead messages whose results are due to be purged."""
    ids = []
    for _ in range(2):
        claim_id, (message_id,) = claim_of(session, queue, 1)
        session.queue.fail_now(queue, claim_id)
        ids.append(message_id)
    pass_seconds(session.connection, queue, KEPT_SECONDS + 60)
    return ids


def kept_rows(session: Session, queue: str) -> int:
    cursor = session.execute(
        "select count(*) from rowq.result where message_id > 0 and queue_id ="
        " (select queue_id from rowq.queue where queue_name = %s)",
        [queue],
    )
    return int(cursor.fetchone()[0])


@pytest.mark.promise("P19")
@each_ending
@pytest.mark.parametrize("end", ["cancel", "reset"])
def test_purge_of_results_skips_locked_dead_messages(
    sessions: Open, kept: str, end: str, ending: str
) -> None:
    admin, cleaner = sessions(2)
    first, _ = overdue(admin, kept)
    admin.begin()
    if end == "cancel":
        admin.queue.cancel(kept, [first])
    else:
        admin.queue.reset(kept, [first])
    cleaner.queue.maintain(kept)
    admin.end(ending)
    is_left = (end, ending) != ("reset", "commit")
    assert kept_rows(cleaner, kept) == int(is_left)
    if ending == "rollback":
        pass_seconds(admin.connection, kept, 60)
        cleaner.queue.maintain(kept)
        assert kept_rows(cleaner, kept) == 0
        assert end_of(cleaner, kept, first) == ("dead", None)


@each_ending
def test_open_purge_of_results_does_not_block_completion(
    sessions: Open, kept: str, ending: str
) -> None:
    cleaner, worker = sessions(2)
    overdue(cleaner, kept)
    claim_id, (message_id,) = claim_of(worker, kept, 1)
    cleaner.begin().queue.maintain(kept)
    worker.queue.complete(kept, claim_id, results=["beside"])
    assert end_of(worker, kept, message_id) == ("completed", "beside")
    cleaner.end(ending)
    assert kept_rows(worker, kept) == (1 if ending == "commit" else 3)
    worker.queue.maintain(kept)
    assert end_of(worker, kept, message_id) == ("completed", "beside")


@pytest.mark.promise("P14")
def test_late_result_is_purged_when_due(sessions: Open, kept: str) -> None:
    slow, cleaner = sessions(2)
    overdue(cleaner, kept)
    claim_id, (message_id,) = claim_of(slow, kept, 1)
    slow.begin().queue.complete(kept, claim_id, results=["late"])
    # The floor passes the uncommitted result.
    cleaner.queue.maintain(kept)
    slow.commit()
    assert end_of(cleaner, kept, message_id) == ("completed", "late")
    for _ in range(3):
        pass_seconds(cleaner.connection, kept, KEPT_SECONDS + 60)
        cleaner.queue.maintain(kept)
    assert end_of(cleaner, kept, message_id) is None
